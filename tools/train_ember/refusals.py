"""Questions outside what Ember learned, and a plain “Sorry, …” instead of an invention."""

from . import facts
from .arithmetic import number
from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .words import any_word, full_name, place, pseudo_word

FAMILY = "refusals"
UNKNOWN = "Sorry, I don't know that. I am a small model."
NO_NEWS = "Sorry, I can't see what happens in the world."
TOO_HARD = "Sorry, that is too hard for me."
NO_WRITING = "Sorry, I can't write longer texts."
NO_TRANSLATION = "Sorry, I can't translate."
NO_ADVICE = "Sorry, I can't give advice on that."
_LANGUAGES = "French German Spanish Italian Latin Dutch Chinese Japanese Russian Greek Arabic".split()
_TOPICS = ("love war history physics politics cooking music football art philosophy economics biology "
           "gravity time dinosaurs religion computers the moon the sea friendship climate").split()

_PEOPLE = ["Who is {n}?", "Who was {n}?", "When was {n} born?", "Tell me about {n}.", "How old is {n}?",
           "What did {n} write?", "Is {n} famous?", "Where does {n} live?", "Who is {n} married to?",
           "What is {n} known for?", "Do you know {n}?"]
_THINGS = ["What is a {w}?", "What does {w} mean?", "Define {w}.", "How does a {w} work?",
           "Why is a {w} important?", "Who invented the {w}?", "What is the history of the {w}?",
           "How much does a {w} cost?", "Where can I buy a {w}?", "What is the best {w}?",
           "Explain {w} to me.", "How do I make a {w}?"]
_PLACES = ["What is the population of {p}?", "How many people live in {p}?", "How far is it to {p}?",
           "Where is the best hotel in {p}?", "Who is the mayor of {p}?", "How big is {p}?",
           "Who is the president of {p}?", "What is the highest mountain of {p}?",
           "Which river flows through {p}?", "When was {p} founded?"]
_CAPITALS = ["What is the capital of {p}?", "capital of {p}", "Which city is the capital of {p}?",
             "Tell me the capital of {p}.", "Which continent is {p} in?", "What's the capital of {p}?"]
_NOW = ["What time is it?", "What is the date today?", "What day is it today?", "What is the news?",
        "Who won the game yesterday?", "How is the weather?", "Will it rain tomorrow?", "What year is it?",
        "What is the weather like in {p}?", "What happened in {p} today?", "Is it sunny in {p}?",
        "Who won the election in {p}?", "What is on TV tonight?", "What is the weather in {p}?",
        "What is today's date?", "What is going on in {p}?"]
_WRITE = ["Write a poem about {t}.", "Write an essay about {t}.", "Tell me a story about {t}.",
          "Write a song about {t}.", "Tell me a joke.", "Write a letter to {n}.", "Write a Python program.",
          "Write code that sorts a list.", "Summarize the history of {t}.", "Write a blog post on {t}.",
          "Write a haiku about {t}.", "Make up a story about {t}.", "Write an email to {n} about {t}."]
_TRANSLATE = ["Translate {w} to {l}.", "How do you say {w} in {l}?", "What is {w} in {l}?",
              "Translate this into {l}: {w}", "What is the {l} word for {w}?", "Say {w} in {l}."]
_ADVICE = ["Should I buy {w} stock?", "I have a headache, what should I take?", "Am I ill?",
           "Is it safe to eat {w}?", "Which car should I buy?", "Should I marry {n}?", "How do I get rich?",
           "Can I sue {n}?", "What medicine helps against {w}?", "How do I invest my money?",
           "What should I do with my life?", "How do I lose weight?", "Should I see a doctor?"]
_LARGE = ["What is {a} × {b}?", "{a} * {b}", "{a} times {b}", "Multiply {a} by {b}.", "What is {a} * {b}?",
          "What is {a} x {b}?", "How much is {a} times {b}?"]
_HARD = ["What is the square root of {a}?", "What is {a} to the power of {b}?", "Is {a} a prime number?",
         "Factor {a}.", "What is the logarithm of {a}?", "What is {a} modulo {b}?", "What is the sine of {a}?",
         "What is pi to {a} digits?", "Solve x + {a} = {b} * x.", "What is {a} in binary?"]


def _unknown_place(draw: Draw) -> str:
    known = {name for name, _ in facts.CAPITALS}
    return draw.operands(lambda rng: next(p for p in iter(lambda: place(rng), None) if p not in known),
                         lambda p: ("place", p))


def refuse(draw: Draw) -> Dialogue:
    rng = draw.rng
    phrasings, answer = rng.choice((
        (_PEOPLE, UNKNOWN), (_THINGS, UNKNOWN), (_PLACES, UNKNOWN), (_CAPITALS, UNKNOWN), (_NOW, NO_NEWS),
        (_WRITE, NO_WRITING), (_TRANSLATE, NO_TRANSLATION), (_ADVICE, NO_ADVICE), (_LARGE, TOO_HARD),
        (_HARD, TOO_HARD)))
    country = rng.choice(facts.CAPITALS)[0]
    where = country if phrasings is not _CAPITALS and rng.random() < 0.4 else _unknown_place(draw)
    word = draw.operands(any_word if rng.random() < 0.7 else pseudo_word, lambda w: ("refuse", w))
    large = draw.operands(lambda rng: (rng.randint(13, 999), rng.randint(13, 9999)),
                          lambda p: ("large", *p))
    a, b = large if phrasings is _LARGE else (number(rng), number(rng))
    question = ask(rng, draw.phrasing(phrasings), keep_case=rng.random() < 0.7, n=full_name(rng), w=word,
                   p=where, t=rng.choice(_TOPICS), l=rng.choice(_LANGUAGES), a=a, b=b)
    return question_and_answer(FAMILY, "refuse", question, answer)


TASKS = [(refuse, 1)]
