"""Several turns, where a later one needs an earlier one."""

from . import arithmetic, letters, tables
from .dialogue import Dialogue, Draw, Message
from .noise import ask
from .records import COLOURS, ITEMS
from .words import any_word, first_name, place

FAMILY = "multi-turn"


def _turns(task: str, *texts: str) -> Dialogue:
    roles = ("user", "assistant")
    messages: list[Message] = [{"role": roles[at % 2], "content": t} for at, t in enumerate(texts)]
    return Dialogue(FAMILY, task, messages)


_FACTS = [  # what is told, the reply, how to ask for it, the answer, the value
    (["My name is {v}.", "I am {v}.", "I'm called {v}.", "Hello, my name is {v}.", "Hi, I am {v}."],
     "Nice to meet you, {v}!", ["What is my name?", "Do you remember my name?", "Who am I?",
                                "What's my name?", "What was my name again?"],
     "Your name is {v}.", first_name),
    (["I live in {v}.", "I come from {v}.", "My home is {v}.", "My city is {v}."],
     "I will remember: {v}.",
     ["Where do I live?", "Where is my home?", "What is my city?", "In which place do I live?"],
     "You live in {v}.", place),
    (["My favourite colour is {v}.", "I like {v} best of all colours.",
      "The colour I like is {v}."],
     "I will remember: {v}.", ["What is my favourite colour?", "Which colour do I like?",
                               "What colour do I like best?"],
     "Your favourite colour is {v}.", lambda rng: rng.choice(COLOURS)),
    (["My dog is called {v}.", "I have a dog named {v}.", "My dog's name is {v}."],
     "I will remember: {v}.",
     ["What is my dog called?", "What is the name of my dog?", "What's my dog's name?"],
     "Your dog is called {v}.", first_name),
    (["Remember the word {v}.", "The secret word is {v}.", "Keep this word in mind: {v}"],
     "I will remember: {v}.", ["What was the word?", "Which word did I tell you?",
                               "What is the secret word?"],
     "The word is {v}.", any_word),
    (["Remember the number {v}.", "My number is {v}.", "Keep the number {v} in mind."],
     "I will remember: {v}.", ["What was the number?", "Which number did I tell you?",
                               "What is my number?"],
     "The number is {v}.", lambda rng: str(arithmetic.number(rng))),
]


def _between(draw: Draw) -> list[Message]:
    """Up to two other questions, so that the fact is not always in the line before."""
    messages: list[Message] = []
    for _ in range(draw.rng.choice((0, 0, 1, 1, 2))):
        make = draw.rng.choice((arithmetic.addition, tables.fact, letters.spell,
                                arithmetic.comparison))
        messages += make(draw).messages
    return messages


def remember(draw: Draw) -> Dialogue:
    """One or two facts told, then asked for."""
    rng = draw.rng
    chosen = rng.sample(_FACTS, rng.choice((1, 1, 2)))
    told: list[str] = []
    asked: list[str] = []
    for tell, reply, recall, answer, make in chosen:
        value = rng.choice(COLOURS) if "colour" in answer else draw.operands(make,
                                                                             lambda v: ("told", v))
        told += [ask(rng, rng.choice(tell), keep_case=True, v=value), reply.format(v=value)]
        asked = [ask(rng, rng.choice(recall)),
                 answer.format(v=value)] + ([] if rng.random() < 0.7 else asked)
    dialogue = _turns("remember", *told)
    dialogue.messages += _between(draw) + _turns("", *asked).messages
    return dialogue


_MORE = [("Add {n} to that.", "+"), ("Plus {n}.", "+"), ("And {n} more?", "+"), ("Now add {n}.",
                                                                                 "+"),
         ("Take {n} away.", "-"), ("Minus {n}.", "-"), ("Now subtract {n}.", "-"), ("Double it.",
                                                                                    "2"),
         ("And twice that?", "2"), ("Now double that.", "2")]


def chain(draw: Draw) -> Dialogue:
    rng = draw.rng
    a, b = draw.operands(lambda rng: (rng.randint(2, 300), rng.randint(2, 300)),
                         lambda p: ("chain", *sorted(p)))
    texts = [ask(rng, rng.choice(("What is {a} + {b}?", "{a} + {b}", "{a} plus {b}",
                                  "Add {a} and {b}.")), a=a, b=b),
             f"{a} + {b} = {a + b}"]
    total = a + b
    for _ in range(rng.choice((1, 1, 2))):
        form, sign = rng.choice([m for m in _MORE if m[1] == "+" or 0 < total < 500])
        n = rng.randint(1, min(total, 99)) if sign == "-" else rng.randint(1, 99)
        result = total + n if sign == "+" else total - n if sign == "-" else 2 * total
        shown = f"2 × {total}" if sign == "2" else f"{total} {sign} {n}"
        texts += [ask(rng, form, n=n), f"{shown} = {result}"]
        total = result
    return _turns("chained sums", *texts)


def stock(draw: Draw) -> Dialogue:
    """“I have 12 apples.” … “I bought 5 more.” … “How many?”"""
    rng = draw.rng
    a, b = draw.operands(lambda rng: (rng.randint(5, 99), rng.randint(2, 60)), lambda p: ("stock",
                                                                                          *p))
    item = rng.choice(ITEMS)
    gains = rng.random() < 0.6 or a < b
    texts = [ask(rng, rng.choice(("I have {a} {item}.", "There are {a} {item} here.",
                                  "I own {a} {item}.")),
                 a=a, item=item), f"You have {a} {item}."]
    total = a + b if gains else a - b
    more = ("I buy {b} more.", "I get {b} more.", "Now {b} more arrive.")
    fewer = ("I give away {b}.", "I lose {b} of them.", "I sell {b}.")
    ending = rng.choice((" How many do I have now?", " How many are there now?",
                         " How many is that?"))
    texts += [ask(rng, rng.choice(more if gains else fewer) + ending, b=b),
              f"{a} {'+' if gains else '-'} {b} = {total}, so you have {total} {item}."]
    return _turns("stock", *texts)


_THEN = [
    (["And backwards?", "Now spell it backwards.", "And in reverse?", "Now turn it around."],
     letters.reply_backwards),
    (["How many letters is that?", "And how many letters does it have?", "How many letters?"],
     letters.reply_length),
    (["Spell it.", "And how is it spelled?", "Now spell it."], letters.spelled),
    (["And in capitals?", "Now in capital letters.", "Make it uppercase."],
     lambda w: f"{letters.spelled(w.upper())}: {w.upper()}"),
]


def same_word(draw: Draw) -> Dialogue:
    rng = draw.rng
    w = letters.word(draw)
    first = rng.choice((("Spell {w}.", letters.spelled(w)), ("How many letters does {w} have?",
                                                             letters.reply_length(w)),
                        ("What is {w} backwards?", letters.reply_backwards(w)),
                        ("Spell the word {w}.", letters.spelled(w))))
    texts = [ask(rng, first[0], w=w), first[1]]
    for asked, reply in rng.sample(_THEN, rng.choice((1, 1, 2))):
        texts += [ask(rng, rng.choice(asked)), reply(w)]
    return _turns("same word", *texts)


_NAMES = {"capital": "capital", "continent": "continent", "opposite": "opposite",
          "plural": "plural",
          "symbol": "symbol", "past": "past", "atomic number": "atomic number",
          "language": "language"}
_AND = ["And {k}?", "And of {k}?", "What about {k}?", "And for {k}?", "and {k}", "How about {k}?"]


def same_question(draw: Draw) -> Dialogue:
    """“What is the capital of France?” … “And Italy?”"""
    rng = draw.rng
    table = rng.choice([table for table in tables.TABLES if table.name in _NAMES])
    texts: list[str] = []
    for at, (key, value) in enumerate(rng.sample(table.facts, rng.choice((2, 2, 3)))):
        phrasing = rng.choice(_AND) if at else draw.phrasing(table.phrasings)
        answer = table.answer.format(k=key, v=value)
        texts += [ask(rng, phrasing, k=key, v=value), answer[0].upper() + answer[1:]]
    return _turns("same question", *texts)


_WHO = ["Who is {more}?", "Who of them is {more}?", "Which of the two is {more}?"]
_MEASURES = [("is {v} years old", "older", "younger", 80), ("has {v} coins", "richer", "poorer",
                                                            99),
             ("is {v} cm tall", "taller", "shorter", 199), ("weighs {v} kg", "heavier", "lighter",
                                                            120)]


def which_of_two(draw: Draw) -> Dialogue:
    rng = draw.rng
    form, more, less, top = rng.choice(_MEASURES)
    a, b = draw.operands(lambda rng: rng.sample(range(5, top), 2), lambda p: ("two", *p))
    one, two = draw.operands(lambda rng: (first_name(rng), first_name(rng)), lambda p: ("two", *p))
    if one == two:
        return which_of_two(draw)
    told = f"{one} {form.format(v=a)}. {two} {form.format(v=b)}."
    larger, smaller = (one, two) if a > b else (two, one)
    asked_more = rng.random() < 0.5
    who, word = (larger, more) if asked_more else (smaller, less)
    question = ask(rng, rng.choice(_WHO), more=word)
    answer = f"{max(a, b)} is larger than {min(a, b)}: {who} is {word}."
    if rng.random() < 0.5:
        return _turns("which of two", f"{told} {question}", answer)
    return _turns("which of two", told, "I will remember that.", question, answer)


TASKS = [(remember, 4), (chain, 3), (stock, 2), (same_word, 3), (same_question, 3), (which_of_two,
                                                                                     3)]
