"""Small tables of facts. The facts are seen in training; a fifth of the wordings is not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from . import facts
from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .table_wordings import MORE
from .word_lists import lines
from .wordings import expanded

FAMILY = "tables"


@dataclass(frozen=True, slots=True)
class Table:
    """Phrasings and the answer know {k} and {v}, and {ak}: the key with “a” or “an” before it.

    {ks} is the key's plural, {no} the value as an ordinal number.
    """

    name: str
    facts: list[tuple[str, str]]
    answer: str
    weight: float = 1.0
    phrasings: Sequence[str] = ()  # expanded, from `data/tables.txt` and `table_wordings.py`


_TABLES = [
    Table("capital", facts.CAPITALS, "The capital of {k} is {v}.", 4),
    Table(
        "country of a capital",
        facts.CAPITALS,
        "{v} is the capital of {k}.",
        2,
    ),
    Table("continent", facts.CONTINENTS, "{k} is in {v}.", 2),
    Table("language", facts.LANGUAGES, "In {k} people speak {v}.", 1.2),
    Table(
        "symbol",
        facts.ELEMENTS + facts.HEAVY,
        "The symbol of {k} is {v}.",
        2,
    ),
    Table("element", facts.ELEMENTS + facts.HEAVY, "{v} is {k}.", 1.5),
    Table(
        "atomic number",
        facts.ELEMENT_NUMBERS,
        "The atomic number of {k} is {v}.",
        1.2,
    ),
    Table("opposite", facts.OPPOSITES, "The opposite of {k} is {v}.", 2.4),
    Table("plural", facts.PLURALS, "The plural of {k} is {v}.", 1.7),
    Table("past", facts.PAST, "The past tense of {k} is {v}.", 1.7),
    Table("colour", facts.COLOURS, "The colour of {k} is {v}.", 1.2),
    Table("mix", facts.MIXES, "{k} make {v}."),
    Table("young", facts.YOUNG, "A young {k} is called a {v}.", 1.4),
    Table("sound", facts.SOUNDS, "The {k} says {v}.", 1.2),
    Table("legs", facts.LEGS, "{ak} has {v} legs.", 1.2),
    Table("sides", facts.SIDES, "{ak} has {v} sides."),
    Table(
        "planet",
        facts.PLANETS,
        "{k} is planet number {v} from the Sun.",
        0.8,
    ),
    Table(
        "planet by number",
        facts.PLANETS,
        "Planet number {v} from the Sun is {k}.",
        0.8,
    ),
    Table("month length", facts.MONTH_LENGTHS, "{k} has {v} days."),
    Table(
        "month number",
        facts.MONTH_NUMBERS,
        "{k} is month number {v}.",
        0.7,
    ),
    Table(
        "month by number",
        facts.MONTH_NUMBERS,
        "Month number {v} is {k}.",
        0.6,
    ),
    Table("next month", facts.NEXT_MONTHS, "{v} comes after {k}.", 0.6),
    Table(
        "previous month",
        facts.PREVIOUS_MONTHS,
        "{v} comes before {k}.",
        0.5,
    ),
    Table("next day", facts.NEXT_DAYS, "{v} comes after {k}.", 0.7),
    Table(
        "previous day",
        facts.PREVIOUS_DAYS,
        "{v} comes before {k}.",
        0.7,
    ),
    Table("next letter", facts.NEXT_LETTERS, "After {k} comes {v}."),
    Table(
        "previous letter",
        facts.PREVIOUS_LETTERS,
        "Before {k} comes {v}.",
        0.6,
    ),
    Table("number word", facts.NUMBER_WORDS, "{k} is {v}.", 1.2),
    Table(
        "number in words",
        facts.NUMBER_WORDS,
        "{v} is {k}.",
        0.8,
    ),
    Table("roman", facts.ROMAN, "{k} in Roman numerals is {v}.", 1.2),
    Table("roman to number", facts.ROMAN, "{v} is {k}.", 0.7),
]
TABLES = [
    replace(table, phrasings=expanded([*lines("tables", table.name), *MORE.get(table.name, [])]))
    for table in _TABLES
]
BY_NAME = {table.name: table for table in TABLES}
_WEIGHTS = [table.weight for table in TABLES]
_KEEP_CASE = {"symbol", "element", "roman to number"}
_PLURALS = dict(facts.PLURALS)
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
).split()
_SHORT = "1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th 11th 12th".split()


def with_article(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def _plural(noun: str) -> str:
    if noun in _PLURALS:
        return _PLURALS[noun]
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def _ordinal(draw: Draw, value: str) -> str:
    at = int(value) - 1 if value.isdigit() else 12
    return draw.rng.choice((_ORDINALS[at], _SHORT[at])) if at < 12 else value


def _shown(draw: Draw, table: Table, key: str) -> str:
    """A key as people type it: without “the”, in quotes, two colours with “with”."""
    if table.name == "mix":
        return key.replace(" and ", draw.rng.choice((" and ", " and ", " and ", " with ", " + ")))
    if key.startswith("the ") and table.name != "colour" and draw.rng.random() < 0.3:
        return key[4:]
    if table.name == "number word" and draw.rng.random() < 0.3:
        return key.replace("-", " ")
    quoted = table.name in ("opposite", "plural", "past") and draw.rng.random() < 0.06
    return draw.rng.choice(("'{}'", '"{}"')).format(key) if quoted else key


def answer_of(table: Table, key: str, value: str) -> str:
    text = table.answer.format(k=key, v=value, ak=with_article(key))
    return text[0].upper() + text[1:]


def asked(draw: Draw, table: Table, phrasing: str, key: str, value: str) -> str:
    shown = _shown(draw, table, key)
    return ask(
        draw.rng,
        phrasing,
        keep_case=table.name in _KEEP_CASE,
        k=shown,
        v=value,
        ak=with_article(key),
        ks=_plural(key),
        no=_ordinal(draw, value),
    )


def fact(draw: Draw, table: Table | None = None) -> Dialogue:
    table = table or draw.rng.choices(TABLES, _WEIGHTS)[0]
    key, value = draw.rng.choice(table.facts)
    question = asked(draw, table, draw.phrasing(table.phrasings), key, value)
    return question_and_answer(FAMILY, table.name, question, answer_of(table, key, value))


def _task(table: Table) -> Callable[[Draw], Dialogue]:
    def ask_about(draw: Draw) -> Dialogue:
        return fact(draw, table)

    ask_about.__name__ = table.name
    return ask_about


TASKS = [(_task(table), table.weight) for table in TABLES]
