"""Questions outside what Ember learned, and a plain “Sorry, …” instead of an invention."""

from collections.abc import Sequence

from . import arithmetic, facts, tables
from .arithmetic import number
from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .word_lists import lines
from .wordings import expanded
from .words import COMMON, any_word, full_name, place, pseudo_word

FAMILY = "refusals"
UNKNOWN = "Sorry, I don't know that. I am a small model."
NO_NEWS = "Sorry, I can't see what happens in the world."
TOO_HARD = "Sorry, that is too hard for me."
NO_WRITING = "Sorry, I can't write longer texts."
NO_TRANSLATION = "Sorry, I can't translate."
NO_ADVICE = "Sorry, I can't give advice on that."
ENGLISH_ONLY = "Sorry, I only speak English."
_LANGUAGES = (
    "French German Spanish Italian Latin Dutch Chinese Japanese Russian Greek Arabic "
    "Polish "
    "Turkish Hindi Swedish Korean Portuguese Finnish Danish Hungarian"
).split()
_VERBS = (
    "fly sing grow burn move shine melt sleep break sink work eat fall fight swim die travel "
    "jump bark float explode glow freeze hurt smell"
).split()
_KINDS = (
    "blue strong old famous rare big heavy fast beautiful expensive warm dangerous round "
    "cold "
    "sad green red tall deep popular important hot healthy difficult"
).split()
_TOPICS = lines("refusals", "topics")
_FAMOUS = lines("refusals", "famous")
_WORKS = lines("refusals", "works")
_SIGHTS = lines("refusals", "sights")
_PRODUCTS = (
    "a laptop|a new car|a Tesla|a house|a Playstation|a coffee|a phone|a ticket|a bike|"
    "a pair of shoes|a watch|a dog|a kilo of gold|a flight|a stamp|a pizza|a hotel room|"
    "a litre of petrol|a television|an Xbox"
).split("|")
_TOOLS = (
    "windows|docker|python|git|excel|word|photoshop|android|my printer|the wifi|a server|"
    "my keyboard|ubuntu|chrome|a database|numpy|node|my phone|my router|firefox"
).split("|")
_CODE = ("Python|Java|C|C++|JavaScript|Rust|Go|HTML|CSS|SQL|bash|PHP|Ruby|Swift|Haskell").split("|")

_WORLD = lines("refusals", "world")
_PEOPLE = lines("refusals", "people")
_THINGS = lines("refusals", "things")
_PLACES = lines("refusals", "places")
# Of a place that no table knows, in the tables' own wordings: the subject decides, not the form.
_CAPITALS = ["capital", "capital", "country of a capital", "continent", "language"]
_NOW = lines("refusals", "now")
_WRITE = lines("refusals", "write")
_TRANSLATE = lines("refusals", "translate")
_SENTENCES = lines("refusals", "sentences")
_FOREIGN = lines("refusals", "foreign")
_ADVICE = lines("refusals", "advice")
_LARGE = expanded(
    [
        "What is the product of {a} and {b}?",
        "Calculate {a} * {b}.",
        "Compute {a} × {b}.",
        "{a}*{b}",
        "{a}x{b}",
        "{a} x {b}",
        "Can you multiply {a} and {b}?",
        "{a}×{b}",
        "{a} * {b} = ?",
        "What is {a} multiplied by {b}?",
        "{a} multiplied by {b}",
        "How much would {a} times {b} be?",
        "What does {a} x {b} make?",
        "product of {a} and {b}",
        "Multiply {a} with {b}.",
        "{a}*{b}=?",
        "What is {a} × {b}?",
        "{a} * {b}",
        "{a} times {b}",
        "Multiply {a} by {b}.",
        "What is {a} * {b}?",
        "What is {a} x {b}?",
        "How much is {a} times {b}?",
        "[Work out|Solve|Do] {a} [x|*|times] {b}",
        *arithmetic.calculated(arithmetic.PRODUCTS),
    ]
)
_HARD = lines("refusals", "hard")
_GROUPS: list[tuple[Sequence[str], str, float]] = [
    (_PEOPLE, UNKNOWN, 1.3),
    (_THINGS, UNKNOWN, 1.5),
    (_WORLD, UNKNOWN, 1.5),
    (_PLACES, UNKNOWN, 1),
    (_CAPITALS, UNKNOWN, 1),
    (_NOW, NO_NEWS, 1.2),
    (_WRITE, NO_WRITING, 1.3),
    (_TRANSLATE, NO_TRANSLATION, 1),
    (_FOREIGN, ENGLISH_ONLY, 0.7),
    (_ADVICE, NO_ADVICE, 1.2),
    (_LARGE, TOO_HARD, 0.8),
    (_HARD, TOO_HARD, 1.2),
]
_WEIGHTS = [weight for *_, weight in _GROUPS]
_NOUNS = [word for word in COMMON if word != "ember"]


def _unknown_place(draw: Draw) -> str:
    known = {name for name, _ in facts.CAPITALS}
    return draw.operands(
        lambda rng: next(p for p in iter(lambda: place(rng), None) if p not in known),
        lambda p: ("place", p),
    )


def _person(draw: Draw) -> str:
    return draw.rng.choice(_FAMOUS) if draw.rng.random() < 0.5 else full_name(draw.rng)


def refuse(draw: Draw) -> Dialogue:
    rng = draw.rng
    phrasings, answer, _ = rng.choices(_GROUPS, _WEIGHTS)[0]
    country = rng.choice(facts.CAPITALS)[rng.randrange(2)]
    if phrasings is _CAPITALS:
        table, unknown = tables.BY_NAME[rng.choice(_CAPITALS)], _unknown_place(draw)
        wording = draw.phrasing(table.phrasings)
        question = tables.asked(draw, table, wording, unknown, unknown)
        return question_and_answer(FAMILY, "refuse", question, answer)
    where = country if rng.random() < 0.5 else _unknown_place(draw)
    word = draw.operands(any_word if rng.random() < 0.7 else pseudo_word, lambda w: ("refuse", w))
    large = draw.operands(
        lambda rng: (rng.randint(13, 999), rng.randint(13, 9999)), lambda p: ("large", *p)
    )
    a, b = large if phrasings is _LARGE else (number(rng), number(rng))
    if phrasings is _LARGE and rng.random() < 0.3:
        a, b = b, a
    elif phrasings is _HARD and rng.random() < 0.3:
        a = rng.randint(1000, 9999)
    question = ask(
        rng,
        draw.phrasing(phrasings),
        keep_case=rng.random() < 0.6,
        n=_person(draw),
        w=word,
        p=where,
        t=rng.choice(_TOPICS),
        l=rng.choice(_LANGUAGES),
        v=rng.choice(_VERBS),
        j=rng.choice(_KINDS),
        a=a,
        b=b,
        f=rng.choice(_WORKS),
        s=rng.choice(_SIGHTS),
        m=rng.choice(_PRODUCTS),
        i=rng.choice(_TOOLS),
        o=rng.choice(_TOOLS),
        c=rng.choice(_CODE),
        e=rng.choice(_SENTENCES),
        u=pseudo_word(rng),
        x=rng.choice(_NOUNS),
        y=rng.randint(1000, 2030),
    )
    return question_and_answer(FAMILY, "refuse", question, answer)


TASKS = [(refuse, 1)]
