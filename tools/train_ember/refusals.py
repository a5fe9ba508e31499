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
_LANGUAGES = ("French German Spanish Italian Latin Dutch Chinese Japanese "
              "Russian Greek Arabic").split()
_WORLD = [
    "Why is the {w} {j}?", "Why do {w}s {v}?", "How do {w}s {v}?", "When did the {w} {v}?",
    "Who {v}s the {w}?",
    "What makes a {w} {j}?", "How can a {w} {v}?", "Where do {w}s {v}?",
    "Which {w} is the most {j}?",
    "Why are {w}s so {j}?", "Do {w}s {v}?", "Can a {w} {v}?", "What if a {w} could {v}?",
    "Is a {w} {j}?", "How {j} is a {w}?", "Who first saw a {j} {w}?", "When will the {w} {v}?",
    "What happens when a {w} {v}s?", "Who owns the {j} {w}?",
    "What is the most {j} {w} in the world?",
    "Why does a {w} {v}?", "Who made the first {j} {w}?", "How often does a {w} {v}?",
]
_VERBS = ("fly sing grow burn move shine melt sleep break sink work eat fall "
          "fight swim die travel jump").split()
_KINDS = ("blue strong old famous rare big heavy fast beautiful expensive warm "
          "dangerous round cold sad").split()
_TOPICS = ("love war history physics politics cooking music football art philosophy economics "
           "biology gravity time dinosaurs religion computers the moon the sea friendship "
           "climate").split()

_PEOPLE = ["Have you heard of {n}?", "What does {n} do?", "What did {n} invent?",
           "Where was {n} born?", "When did {n} die?", "Why is {n} famous?", "How tall is {n}?",
           "Which film did {n} make?", "Who are the parents of {n}?", "Name the wife of {n}.",
           "What is the job of {n}?", "How rich is {n}?", "Who knows {n}?", "Do you like {n}?",
           "Have you met {n}?", "Describe {n}.", "Explain who {n} is.", "What happened to {n}?",
           "Which books did {n} write?", "In which year was {n} born?",
      "Who is {n}?", "Who was {n}?", "When was {n} born?", "Tell me about {n}.", "How old is {n}?",
           "What did {n} write?", "Is {n} famous?", "Where does {n} live?",
           "Who is {n} married to?",
           "What is {n} known for?", "Do you know {n}?"]
_THINGS = ["Explain {w}.", "Explain what {w} is.", "Tell me about {w}.",
           "What do you think about {w}?", "Do you like {w}?", "Why do people like {w}?",
           "Who discovered {w}?", "When was the {w} invented?", "How is {w} made?",
           "Where does {w} come from?", "What is {w} made of?", "How many kinds of {w} are there?",
           "Describe {w}.", "Describe a {w} to me.", "What is special about {w}?",
           "Is {w} good for you?", "Why is {w} so popular?", "How do you use a {w}?",
           "How fast is a {w}?", "How heavy is a {w}?", "Give me facts about {w}.",
           "What can I do with {w}?", "Can you explain {w}?", "Do you know what {w} is?",
           "Who wrote the book {w}?", "Who sang {w}?", "Who plays in the film {w}?",
      "What is a {w}?", "What does {w} mean?", "Define {w}.", "How does a {w} work?",
           "Why is a {w} important?", "Who invented the {w}?", "What is the history of the {w}?",
           "How much does a {w} cost?", "Where can I buy a {w}?", "What is the best {w}?",
           "Explain {w} to me.", "How do I make a {w}?"]
_PLACES = ["How do I get to {p}?", "Is {p} nice?", "Is {p} a big city?", "What can I see in {p}?",
           "What is {p} famous for?", "What is the history of {p}?", "What is the area of {p}?",
           "Who is the king of {p}?", "Who rules {p}?", "What do people eat in {p}?",
           "What is the currency of {p}?", "Which sea is next to {p}?",
           "What are the neighbours of {p}?", "What is the largest city of {p}?",
           "How old is {p}?", "Who founded {p}?", "Tell me about {p}.", "How expensive is {p}?",
           "What river is in {p}?", "Which rivers are in {p}?", "Name a river in {p}.",
           "Which lake is in {p}?", "Is {p} far away?", "What is the flag of {p}?",
           "How many rivers flow through {p}?",
      "What is the population of {p}?", "How many people live in {p}?", "How far is it to {p}?",
           "Where is the best hotel in {p}?", "Who is the mayor of {p}?", "How big is {p}?",
           "Who is the president of {p}?", "What is the highest mountain of {p}?",
           "Which river flows through {p}?", "When was {p} founded?"]
_CAPITALS = ["What continent is {p} in?", "On which continent is {p}?", "Name the capital of {p}.",
             "What language do people speak in {p}?", "What's {p}'s capital?",
             "Do you know the capital of {p}?", "{p} is the capital of which country?",
             "Which country has {p} as its capital?",
      "What is the capital of {p}?", "capital of {p}", "Which city is the capital of {p}?",
             "Tell me the capital of {p}.", "Which continent is {p} in?",
             "What's the capital of {p}?"]
_NOW = ["What time is it now?", "What's the time?", "What is the time in {p}?",
        "Which day is today?", "What is the weather today?", "What is the weather tomorrow?",
        "Will it snow?", "Is it warm outside?", "Is it cold in {p}?",
        "What is the temperature outside?", "What is new today?", "What happened yesterday?",
        "What happened today?", "What's going on today?", "Who is winning?", "Who won the match?",
        "Who won the world cup?", "Is the shop open?", "When does the train to {p} leave?",
        "Are there any news from {p}?", "What's new in {p}?", "What is happening in {p}?",
        "What is the price of gold today?", "Where am I?", "Where am I now?",
        "What is happening now?", "Give me the news.", "Tell me the news from {p}.",
        "What is the score?", "What month is it now?",
      "What time is it?", "What is the date today?", "What day is it today?", "What is the news?",
        "Who won the game yesterday?", "How is the weather?", "Will it rain tomorrow?",
        "What year is it?",
        "What is the weather like in {p}?", "What happened in {p} today?", "Is it sunny in {p}?",
        "Who won the election in {p}?", "What is on TV tonight?", "What is the weather in {p}?",
        "What is today's date?", "What is going on in {p}?"]
_WRITE = ["Write a book about {t}.", "Write me a story.", "Write me a poem.",
          "Write a long text about {t}.", "Write a speech about {t}.",
          "Tell me a long story about {t}.", "Tell me a story.", "Tell me something about {t}.",
          "Sing a song.", "Compose a song on {t}.", "Write an article about {t}.",
          "Write a report on {t}.", "Give me a recipe.", "Write a function in Python.",
          "Write a program in C.", "Write some code.", "Code a website for me.", "Write an app.",
          "Write a review of {t}.", "Summarize this book.", "Summarize {t}.",
          "Write lyrics about {t}.", "Make a joke about {t}.", "Do you know a joke?",
          "Write a message to {n} about {t}.", "Draft an email to {n}.",
          "Write a story in which {n} finds {t}.", "Invent a story on {t}.", "Make up a poem.",
      "Write a poem about {t}.", "Write an essay about {t}.", "Tell me a story about {t}.",
          "Write a song about {t}.", "Tell me a joke.", "Write a letter to {n}.",
          "Write a Python program.",
          "Write code that sorts a list.", "Summarize the history of {t}.",
          "Write a blog post on {t}.",
          "Write a haiku about {t}.", "Make up a story about {t}.",
          "Write an email to {n} about {t}."]
_TRANSLATE = ["Translate {w} into {l}.", "Translate the word {w} to {l}.", "{w} in {l}?",
              "Do you speak {l}?", "Can you speak {l}?", "Can you translate {w}?",
              "What does {w} mean in {l}?", "Give me the {l} for {w}.",
              "How is {w} called in {l}?", "Write {w} in {l}.", "Put {w} into {l}.",
              "Please answer in {l}.", "Speak {l} with me.",
      "Translate {w} to {l}.", "How do you say {w} in {l}?", "What is {w} in {l}?",
              "Translate this into {l}: {w}", "What is the {l} word for {w}?", "Say {w} in {l}."]
_ADVICE = ["What should I eat today?", "What should I wear?", "Which phone should I buy?",
           "Should I buy a house?", "Should I quit my job?", "Should I take a loan?",
           "How do I make money?", "How do I become rich?", "How do I find a job?",
           "How do I lose my fear?", "How do I gain weight?", "How do I sleep better?",
           "How do I get healthy?", "How do I make friends?", "I feel sad, what should I do?",
           "I feel sick.", "My stomach hurts.", "I have a fever, what helps?", "Is {w} healthy?",
           "Is {w} dangerous for me?", "Can I eat {w}?", "Do I need a lawyer?",
           "What are my rights?", "Should I call {n}?", "Should I trust {n}?",
           "Should I vote for {n}?", "Is it wise to buy {w}?", "Should I go to a doctor?",
           "Which pills should I take?", "What should I study?", "What should I do about {n}?",
      "Should I buy {w} stock?", "I have a headache, what should I take?", "Am I ill?",
           "Is it safe to eat {w}?", "Which car should I buy?", "Should I marry {n}?",
           "How do I get rich?",
           "Can I sue {n}?", "What medicine helps against {w}?", "How do I invest my money?",
           "What should I do with my life?", "How do I lose weight?", "Should I see a doctor?"]
_LARGE = ["What is the product of {a} and {b}?", "Calculate {a} * {b}.", "Compute {a} × {b}.",
          "{a}*{b}", "{a}x{b}", "{a} x {b}", "Can you multiply {a} and {b}?",
      "What is {a} × {b}?", "{a} * {b}", "{a} times {b}", "Multiply {a} by {b}.",
      "What is {a} * {b}?",
          "What is {a} x {b}?", "How much is {a} times {b}?"]
_HARD = ["square root of {a}", "{a}^{b}", "{a} squared", "What is {a} cubed?", "{a} factorial",
         "What is the factorial of {a}?", "Is {a} prime?", "What are the factors of {a}?",
         "What is the cosine of {a}?", "What is the logarithm of {a} to base {b}?", "log {a}",
         "Integrate x^{a}.", "Differentiate x^{a}.", "Solve {a}x = {b}.", "Solve x^2 = {a}.",
         "Solve the equation x - {a} = {b}.", "What is {a} in hexadecimal?",
         "Write {a} in binary.", "{a} in binary", "Convert {a} to binary.",
         "What is {a} percent of {b}?", "{a}% of {b}", "{a} mod {b}",
         "What is the remainder of {a} by {b}?",
         "What is the greatest common divisor of {a} and {b}?",
         "What is the average of {a} and {b}?", "How many primes are below {a}?",
         "Find the root of {a}.",
      "What is the square root of {a}?", "What is {a} to the power of {b}?",
      "Is {a} a prime number?",
         "Factor {a}.", "What is the logarithm of {a}?", "What is {a} modulo {b}?",
         "What is the sine of {a}?",
         "What is pi to {a} digits?", "Solve x + {a} = {b} * x.", "What is {a} in binary?"]


def _unknown_place(draw: Draw) -> str:
    known = {name for name, _ in facts.CAPITALS}
    return draw.operands(lambda rng: next(p for p in iter(lambda: place(rng),
                                                          None) if p not in known),
                         lambda p: ("place", p))


def refuse(draw: Draw) -> Dialogue:
    rng = draw.rng
    phrasings, answer = rng.choice((
        (_PEOPLE, UNKNOWN), (_THINGS, UNKNOWN), (_WORLD, UNKNOWN), (_PLACES, UNKNOWN), (_CAPITALS,
                                                                                        UNKNOWN),
                                                                                        (_NOW,
                                                                                         NO_NEWS),
        (_WRITE, NO_WRITING), (_TRANSLATE, NO_TRANSLATION), (_ADVICE, NO_ADVICE), (_LARGE,
                                                                                   TOO_HARD),
        (_HARD, TOO_HARD)))
    country = rng.choice(facts.CAPITALS)[0]
    where = country if phrasings is not _CAPITALS and rng.random() < 0.4 else _unknown_place(draw)
    word = draw.operands(any_word if rng.random() < 0.7 else pseudo_word, lambda w: ("refuse", w))
    large = draw.operands(lambda rng: (rng.randint(13, 999), rng.randint(13, 9999)),
                          lambda p: ("large", *p))
    a, b = large if phrasings is _LARGE else (number(rng), number(rng))
    question = ask(rng, draw.phrasing(phrasings), keep_case=rng.random() < 0.7, n=full_name(rng),
                   w=word,
                   p=where, t=rng.choice(_TOPICS), l=rng.choice(_LANGUAGES), v=rng.choice(_VERBS),
                   j=rng.choice(_KINDS), a=a, b=b)
    return question_and_answer(FAMILY, "refuse", question, answer)


TASKS = [(refuse, 1)]
