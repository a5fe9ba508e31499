"""Several turns, where a later one needs an earlier one."""

from . import arithmetic, letters, small_talk, tables, time_and_units
from .dialogue import Dialogue, Draw, Message
from .noise import ask
from .records import ITEMS
from .told_facts import FACTS, FEW_VALUES
from .word_lists import lines
from .words import first_name

FAMILY = "multi-turn"


def _turns(task: str, *texts: str) -> Dialogue:
    roles = ("user", "assistant")
    messages: list[Message] = [{"role": roles[at % 2], "content": t} for at, t in enumerate(texts)]
    return Dialogue(FAMILY, task, messages)


def _between(draw: Draw) -> list[Message]:
    """Up to two other questions, so that the fact is not always in the line before."""
    messages: list[Message] = []
    for _ in range(draw.rng.choice((0, 0, 1, 1, 2))):
        make = draw.rng.choice(
            (
                arithmetic.addition,
                tables.fact,
                letters.spell,
                arithmetic.comparison,
                small_talk.talk,
                time_and_units.units,
                arithmetic.times_table,
            )
        )
        messages += make(draw).messages
    return messages


def remember(draw: Draw) -> Dialogue:
    """One or two facts told, then asked for."""
    rng = draw.rng
    chosen = rng.sample(FACTS, rng.choice((1, 1, 2)))
    told: list[str] = []
    asked: list[str] = []
    for tell, reply, recall, answer, make in chosen:
        fixed = any(part in answer for part in FEW_VALUES)
        value = make(rng) if fixed else draw.operands(make, lambda v: ("told", v))
        told += [ask(rng, rng.choice(tell), keep_case=True, v=value), reply.format(v=value)]
        asked = [ask(rng, rng.choice(recall)), answer.format(v=value)] + (
            [] if rng.random() < 0.7 else asked
        )
    dialogue = _turns("remember", *told)
    dialogue.messages += _between(draw) + _turns("", *asked).messages
    return dialogue


_MORE = [
    (
        "+",
        [
            "Add {n} to that.",
            "Plus {n}.",
            "And {n} more?",
            "Now add {n}.",
            "Add {n}.",
            "+ {n}",
            "+{n}",
            "Add {n} more.",
            "and plus {n}?",
            "Add another {n}.",
            "Put {n} on top.",
            "And if I add {n}?",
            "What if I add {n}?",
            "Increase it by {n}.",
            "Then add {n}.",
            "And {n} added to it?",
        ],
    ),
    (
        "-",
        [
            "Take {n} away.",
            "Minus {n}.",
            "Now subtract {n}.",
            "Subtract {n}.",
            "- {n}",
            "-{n}",
            "Take away {n}.",
            "And minus {n}?",
            "Remove {n}[ from it|].",
            "Take {n} off.",
            "And {n} less?",
            "What if I take {n} away?",
            "Reduce it by {n}.",
            "Then subtract {n}.",
            "Now minus {n}.",
        ],
    ),
    (
        "2",
        [
            "Double it.",
            "And twice that?",
            "Now double that.",
            "Double that.",
            "times 2",
            "Twice that?",
            "And doubled?",
            "Now double it.",
            "What is double that?",
            "Two times that?",
            "x2",
            "And if I double it?",
            "How much is that doubled?",
            "Times two.",
        ],
    ),
]
_START_SUM = [
    "What is {a} + {b}?",
    "{a} + {b}",
    "{a} plus {b}",
    "Add {a} and {b}.",
    "{a}+{b}",
    "What is {a} plus {b}?",
    "How much is {a} + {b}?",
    "Calculate {a} + {b}.",
]


def chain(draw: Draw) -> Dialogue:
    rng = draw.rng
    a, b = draw.operands(
        lambda rng: (rng.randint(2, 300), rng.randint(2, 300)), lambda p: ("chain", *sorted(p))
    )
    if rng.random() < 0.25 and a > b:
        question = rng.choice(("{a} - {b}", "What is {a} - {b}?", "{a} minus {b}", "{a}-{b}"))
        total, sign = a - b, "-"
    else:
        question, total, sign = rng.choice(_START_SUM), a + b, "+"
    texts = [ask(rng, question, a=a, b=b), f"{a} {sign} {b} = {total}"]
    for _ in range(rng.choice((1, 1, 2))):
        sign, forms = rng.choice([m for m in _MORE if m[0] == "+" or 0 < total < 500])
        n = rng.randint(1, min(total, 99)) if sign == "-" else rng.randint(1, 99)
        result = total + n if sign == "+" else total - n if sign == "-" else 2 * total
        shown = f"2 × {total}" if sign == "2" else f"{total} {sign} {n}"
        texts += [ask(rng, rng.choice(forms), n=n), f"{shown} = {result}"]
        total = result
    return _turns("chained sums", *texts)


_HAVE = lines("conversation", "have")
_GET = [
    "I [buy|get|find|make|take] {b} more",
    "I get {b} more",
    "Now {b} more arrive",
    "I got {b} more",
    "I bought {b} more",
    "My friend gives me {b} more",
    "{b} more come",
    "I add {b}",
    "Somebody brings {b} more",
    "I was given another {b}",
    "Then I find {b} more",
]
_GIVE = [
    "I give away {b}",
    "I lose {b} of them",
    "I sell {b}",
    "I lost {b}",
    "I sold {b}",
    "{b} break",
    "I give {b} to a friend",
    "I throw away {b}",
    "{b} are stolen",
    "I gave {b} to my sister",
    "I use {b} of them",
    "I have to return {b}",
    "{b} of them get lost",
]
_HOW_MANY = lines("conversation", "how_many")


def stock(draw: Draw) -> Dialogue:
    """“I have 12 apples.” … “I bought 5 more.” … “How many?”"""
    rng = draw.rng
    a, b = draw.operands(
        lambda rng: (rng.randint(5, 99), rng.randint(2, 60)), lambda p: ("stock", *p)
    )
    item = rng.choice(ITEMS)
    gains = rng.random() < 0.5 or a < b
    texts = [ask(rng, rng.choice(_HAVE), a=a, item=item), f"You have {a} {item}."]
    total = a + b if gains else a - b
    told = rng.choice(_GET if gains else _GIVE) + rng.choice(_HOW_MANY)
    texts += [
        ask(rng, told, b=b),
        f"{a} {'+' if gains else '-'} {b} = {total}, so you have {total} {item}.",
    ]
    return _turns("stock", *texts)


_THEN = [
    (
        [
            "And backwards?",
            "Now spell it backwards.",
            "And in reverse?",
            "Now turn it around.",
            "And the other way round?",
            "Reverse it.",
            "backwards?",
            "Now backwards.",
            "Say it backwards.",
            "What is it backwards?",
            "And from the back?",
            "Can you reverse it?",
            "Write it backwards.",
            "And what is that backwards?",
            "Flip it.",
        ],
        letters.reply_backwards,
    ),
    (
        [
            "How many letters is that?",
            "And how many letters does it have?",
            "How many letters?",
            "And how long is it?",
            "Count the letters.",
            "How many letters has it got?",
            "Its length?",
            "How many letters are in it?",
            "And the number of letters?",
            "Count its letters.",
            "How long is that word?",
            "How many letters are that?",
        ],
        letters.reply_length,
    ),
    (
        [
            "Spell it.",
            "And how is it spelled?",
            "Now spell it.",
            "Can you spell it?",
            "Spell that word.",
            "And spelled?",
            "How do you spell that?",
            "Spell it out.",
            "Now letter by letter.",
            "Give me its letters.",
            "How do I spell it?",
            "What are its letters?",
        ],
        letters.spelled,
    ),
    (
        [
            "And in capitals?",
            "Now in capital letters.",
            "Make it uppercase.",
            "In capital letters?",
            "Now in capitals.",
            "And in upper case?",
            "Uppercase please.",
            "Put it in capitals.",
            "Can you write that in capitals?",
            "All in capitals.",
            "And with capital letters?",
            "Turn it into capitals.",
        ],
        lambda w: f"{letters.spelled(w.upper())}: {w.upper()}",
    ),
]
_FIRST_ASKED = [
    (
        [
            "Spell {w}.",
            "Spell the word {w}.",
            "spell {w}",
            "How do you spell {w}?",
            "Can you spell {w}?",
        ],
        letters.spelled,
    ),
    (
        [
            "How many letters does {w} have?",
            "How many letters are in {w}?",
            "Count the letters in {w}.",
            "How long is the word {w}?",
        ],
        letters.reply_length,
    ),
    (
        ["What is {w} backwards?", "Spell {w} backwards.", "Reverse {w}.", "{w} backwards"],
        letters.reply_backwards,
    ),
]


def same_word(draw: Draw) -> Dialogue:
    rng = draw.rng
    w = letters.word(draw)
    phrasings, first_reply = rng.choice(_FIRST_ASKED)
    texts = [ask(rng, rng.choice(phrasings), w=letters.typed(draw, w)), first_reply(w)]
    for asked, reply in rng.sample(_THEN, rng.choice((1, 1, 2))):
        texts += [ask(rng, rng.choice(asked)), reply(w)]
    return _turns("same word", *texts)


_NAMES = {
    "capital",
    "continent",
    "opposite",
    "plural",
    "symbol",
    "past",
    "atomic number",
    "language",
    "young",
    "sound",
    "legs",
    "colour",
    "sides",
    "month length",
    "roman",
    "number word",
}
_AND = lines("conversation", "and")


def same_question(draw: Draw) -> Dialogue:
    """“What is the capital of France?” … “And Italy?”"""
    rng = draw.rng
    table = rng.choice([table for table in tables.TABLES if table.name in _NAMES])
    texts: list[str] = []
    for at, (key, value) in enumerate(rng.sample(table.facts, rng.choice((2, 2, 3)))):
        if at:
            animal = table.name in ("young", "sound", "legs", "sides") and rng.random() < 0.7
            shown = tables.with_article(key) if animal else key
            question = ask(rng, rng.choice(_AND), k=shown)
        else:
            question = tables.asked(draw, table, draw.phrasing(table.phrasings), key, value)
        texts += [question, tables.answer_of(table, key, value)]
    return _turns("same question", *texts)


_WHO = lines("conversation", "who")
_MEASURES = [
    (["is {v} years old", "is {v}", "is aged {v}", "turned {v}"], "older", "younger", 80),
    (
        ["has {v} coins", "has {v} euros", "owns {v} coins", "has {v} dollars"],
        "richer",
        "poorer",
        99,
    ),
    (["is {v} cm tall", "is {v} cm", "measures {v} cm"], "taller", "shorter", 199),
    (["weighs {v} kg", "has {v} kg", "has a weight of {v} kg"], "heavier", "lighter", 120),
    (
        ["runs {v} km an hour", "drives {v} km an hour", "goes {v} km an hour"],
        "faster",
        "slower",
        140,
    ),
]


def which_of_two(draw: Draw) -> Dialogue:
    """The reply says both numbers before it compares them."""
    rng = draw.rng
    forms, more, less, top = rng.choice(_MEASURES)
    a, b = draw.operands(lambda rng: rng.sample(range(5, top), 2), lambda p: ("two", *p))
    one, two = draw.operands(lambda rng: (first_name(rng), first_name(rng)), lambda p: ("two", *p))
    if one == two:
        return which_of_two(draw)
    form = rng.choice(forms)
    joined = rng.choice((". ", ". ", ", ", " and ", ", but ", " while "))
    told = f"{one} {form.format(v=a)}{joined}{two} {form.format(v=b)}."
    asked_more = rng.random() < 0.5
    larger, smaller = max(a, b), min(a, b)
    if asked_more:
        who, word = (one if a > b else two), more
        compared = f"{larger} is larger than {smaller}"
    else:
        who, word = (one if a < b else two), less
        compared = f"{smaller} is smaller than {larger}"
    question = ask(rng, rng.choice(_WHO), more=word, one=one, two=two, keep_case=True)
    answer = f"{one} {a}, {two} {b}. {compared}: {who} is {word}."
    if rng.random() < 0.55:
        if rng.random() < 0.15:
            told = told.lower() if rng.random() < 0.3 else told.rstrip(".") + ","
            answer = (
                answer
                if told[-1] == ","
                else answer.replace(one, one.lower()).replace(two, two.lower())
            )
        return _turns("which of two", f"{told} {question}", answer)
    return _turns("which of two", told, "I will remember that.", question, answer)


def aside(draw: Draw) -> Dialogue:
    """A question and its answer, then thanks, praise, doubt or good-bye; or the other way round."""
    rng = draw.rng
    made = rng.choice(
        (
            arithmetic.addition,
            tables.fact,
            letters.spell,
            arithmetic.multiplication,
            letters.backwards,
            time_and_units.units,
        )
    )(draw)
    talked = small_talk.talk(draw)
    first, second = (talked, made) if rng.random() < 0.3 else (made, talked)
    return Dialogue(FAMILY, "small talk between", first.messages + second.messages)


TASKS = [
    (remember, 4.5),
    (chain, 3),
    (stock, 2),
    (same_word, 3),
    (same_question, 3),
    (which_of_two, 3),
    (aside, 2),
]
