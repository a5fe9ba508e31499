"""Filling JSON from a sentence: keys are asked for, the values stand in the text."""

import json

from . import facts
from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .word_lists import lines
from .words import COMMON, first_name, full_name, place, pseudo_word

FAMILY = "json"
COLOURS = "red blue green yellow black white pink orange purple grey brown silver".split()
JOBS = (
    "baker doctor teacher pilot farmer nurse painter cook driver singer builder writer "
    "dentist gardener tailor waiter lawyer plumber student engineer judge clerk actor miner "
    "carpenter butcher florist librarian sailor soldier barber"
).split()
ITEMS = (
    "apples pens books cups lamps chairs shirts shoes bottles candles boxes tickets plates "
    "batteries notebooks socks hats forks knives towels pillows mugs bags balls stamps eggs "
    "lemons bricks tables clocks keys phones rulers screws"
).split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()
EVENTS = (
    "meeting lunch dinner party concert class interview call workshop picnic lecture "
    "rehearsal game dentist wedding exam match training breakfast talk tour"
).split()
CLUBS = "chess football tennis music garden cooking drama hiking".split()
FOODS = "pizza soup rice pasta salad bread cheese cake fish apples curry noodles".split()
ANIMALS = "dog cat horse rabbit parrot hamster goat".split()


def clock_time(rng) -> str:
    return f"{rng.randint(7, 22)}:{rng.choice((0, 15, 30, 45, 5, 10, 20, 50)):02d}"


def city(rng) -> str:
    return rng.choice(facts.CAPITALS)[1] if rng.random() < 0.35 else place(rng)


def _surname(rng) -> str:
    return rng.choice(COMMON if rng.random() < 0.5 else [pseudo_word(rng, 8)]).capitalize()


def name(rng) -> str:
    """A first name, with or without a surname that may be a word."""
    if rng.random() < 0.25:
        return f"{first_name(rng)} {_surname(rng)}"
    return full_name(rng)


def _pet(rng) -> str:
    return first_name(rng) if rng.random() < 0.4 else pseudo_word(rng, 6).capitalize()


# key names (any of which may be asked for), how to draw a value, how a clause says it
_PERSON = [
    (("name", "name", "full_name", "person", "who"), name, None),
    (
        ("age", "age", "years"),
        lambda rng: rng.randint(3, 99),
        [
            "is {v} years old",
            "is {v}",
            "is aged {v}",
            "turned {v}",
            "just turned {v}",
            "has turned {v}",
            "will be {v} in May",
        ],
    ),
    (
        ("city", "city", "town", "home", "residence"),
        city,
        [
            "lives in {v}",
            "comes from {v}",
            "is from {v}",
            "has a house in {v}",
            "moved to {v}",
            "has moved to {v}",
            "stays in {v}",
        ],
    ),
    (
        ("job", "job", "profession", "work", "occupation"),
        lambda rng: rng.choice(JOBS),
        [
            "works as a {v}",
            "is a {v}",
            "has a job as a {v}",
            "became a {v}",
            "wants to be a {v}",
            "is working as a {v}",
        ],
    ),
    (
        ("color", "colour", "favorite_color", "favourite_colour"),
        lambda rng: rng.choice(COLOURS),
        [
            "likes {v} best",
            "has {v} as favourite colour",
            "loves the colour {v}",
            "likes the color {v}",
            "always wears {v}",
            "prefers {v}",
        ],
    ),
    (
        ("pet", "pet_name", "dog"),
        _pet,
        [
            "has a pet called {v}",
            "has a dog named {v}",
            "has a dog called {v}",
            "owns a dog named {v}",
            "has a dog whose name is {v}",
            "walks a dog named {v}",
        ],
    ),
    (
        ("phone", "number", "telephone"),
        lambda rng: f"{rng.randint(100, 999)}-{rng.randint(100, 9999)}",
        [
            "can be called at {v}",
            "has the number {v}",
            "has the phone number {v}",
            "can be reached at {v}",
        ],
    ),
    (
        ("club", "group", "hobby"),
        lambda rng: rng.choice(CLUBS),
        ["is in the {v} club", "joined the {v} club", "goes to the {v} club", "leads the {v} club"],
    ),
    (
        ("food", "dish", "favorite_food"),
        lambda rng: rng.choice(FOODS),
        ["likes to eat {v}", "loves {v}", "eats {v} every day", "cooks {v}"],
    ),
    (
        ("country", "nation"),
        lambda rng: rng.choice(facts.CAPITALS)[0],
        ["was born in {v}", "grew up in {v}", "travels to {v}", "has family in {v}"],
    ),
    (
        ("email", "mail"),
        lambda rng: f"{pseudo_word(rng, 6)}@{pseudo_word(rng, 5)}.com",
        ["has the email {v}", "can be mailed at {v}", "writes from {v}"],
    ),
]
_ORDER = [
    (("customer", "name", "buyer", "client"), name, None),
    (
        ("quantity", "count", "amount", "number"),
        lambda rng: rng.randint(2, 99),
        [
            "orders {v} {item}",
            "buys {v} {item}",
            "wants {v} {item}",
            "ordered {v} {item}",
            "bought {v} {item}",
            "needs {v} {item}",
            "takes {v} {item}",
            "would like {v} {item}",
        ],
    ),
    (("item", "product", "article", "what"), lambda rng: rng.choice(ITEMS), ["{item}"]),
    (
        ("price", "total", "cost"),
        lambda rng: rng.randint(2, 400),
        [
            "pays {v} euros",
            "spends {v} dollars",
            "paid {v} euros",
            "pays {v} dollars for them",
            "has to pay {v} euros",
            "spent {v} euros",
        ],
    ),
    (
        ("day", "weekday", "delivery"),
        lambda rng: rng.choice(DAYS),
        ["wants them on {v}", "gets them on {v}", "needs them by {v}", "picks them up on {v}"],
    ),
    (
        ("city", "town", "address"),
        city,
        ["lives in {v}", "has them sent to {v}", "is from {v}", "wants them sent to {v}"],
    ),
]
_EVENT = [
    (("event", "title", "what", "name"), lambda rng: rng.choice(EVENTS), None),
    (
        ("day", "day", "weekday"),
        lambda rng: rng.choice(DAYS),
        ["is on {v}", "takes place on {v}", "will be on {v}", "was moved to {v}", "happens on {v}"],
    ),
    (
        ("time", "time", "start", "hour"),
        clock_time,
        ["starts at {v}", "begins at {v}", "is at {v}", "will start at {v}"],
    ),
    (
        ("place", "location", "where", "room"),
        city,
        ["is held in {v}", "takes place in {v}", "will be in {v}", "happens in {v}"],
    ),
    (
        ("host", "person", "with", "speaker"),
        first_name,
        ["is led by {v}", "is hosted by {v}", "is with {v}", "was planned by {v}"],
    ),
    (
        ("guests", "people", "seats"),
        lambda rng: rng.randint(2, 80),
        ["has {v} guests", "is for {v} people", "has {v} seats", "has room for {v} people"],
    ),
    (("month", "in"), lambda rng: rng.choice(MONTHS), ["is in {v}", "takes place in {v}"]),
    (
        ("price", "fee", "cost"),
        lambda rng: rng.randint(2, 90),
        ["costs {v} euros", "costs {v} dollars"],
    ),
]
_THING = [
    (
        ("item", "product", "object", "thing"),
        lambda rng: rng.choice(
            [
                "car",
                "bike",
                "sofa",
                "lamp",
                "table",
                "phone",
                "book",
                "coat",
                "boat",
                "clock",
                "piano",
            ]
        ),
        None,
    ),
    (
        ("color", "colour"),
        lambda rng: rng.choice(COLOURS),
        ["is {v}", "is painted {v}", "comes in {v}"],
    ),
    (
        ("price", "cost", "value"),
        lambda rng: rng.randint(2, 950),
        ["costs {v} euros", "costs {v} dollars", "is sold for {v} euros", "is worth {v} dollars"],
    ),
    (("weight", "kg"), lambda rng: rng.randint(2, 90), ["weighs {v} kg", "has a weight of {v} kg"]),
    (
        ("year", "built"),
        lambda rng: rng.randint(1950, 2026),
        ["was made in {v}", "is from {v}", "was built in {v}"],
    ),
    (("owner", "belongs_to"), name, ["belongs to {v}", "is owned by {v}", "was bought by {v}"]),
    (("city", "place", "location"), city, ["stands in {v}", "was made in {v}", "is sold in {v}"]),
]
_KINDS = (_PERSON, _ORDER, _EVENT, _THING)
_ASK = lines("records", "ask")
_FORM = lines("records", "form")


def _joined(clauses: list[str]) -> str:
    return clauses[0] if len(clauses) == 1 else ", ".join(clauses[:-1]) + " and " + clauses[-1]


def _told(rng, start: str, clauses: list[str], pronoun: str) -> str:
    """The clauses as one sentence, or as several with a pronoun."""
    if len(clauses) > 1 and rng.random() < 0.35:
        cut = rng.randint(1, len(clauses) - 1)
        return f"{start} {_joined(clauses[:cut])}. {pronoun} {_joined(clauses[cut:])}."
    return f"{start} {_joined(clauses)}."


def _sentence(rng, kind: int) -> tuple[str, dict[str, object]]:
    """A sentence or two, and the fields stated under freely chosen key names."""
    fields = _KINDS[kind]
    chosen = sorted(rng.sample(range(1, len(fields)), rng.randint(1, 3)))
    if kind == 1:
        chosen = sorted({1, 2, *chosen})
    item = rng.choice(ITEMS)
    values: dict[str, object] = {}
    clauses = []
    subject = fields[0][1](rng)
    values[rng.choice(fields[0][0])] = subject
    if kind != 1:
        rng.shuffle(chosen)
    for at in chosen:
        names, make, clause_forms = fields[at]
        value = item if kind == 1 and at == 2 else make(rng)
        key = rng.choice([n for n in names if n not in values] or [f"{names[0]}_{at}"])
        values[key] = value
        if not (kind == 1 and at == 2):
            clauses.append(rng.choice(clause_forms).format(v=value, item=item))
    if kind >= 2:
        start = rng.choice(("The {}", "The {}", "Our {}", "The new {}")).format(subject)
        pronoun = "It"
    else:
        start, pronoun = str(subject), rng.choice(("She", "He"))
        if kind == 0 and rng.random() < 0.15:
            start = f"{rng.choice(('My friend', 'My sister', 'My brother', 'Our teacher'))} {start}"
    return _told(rng, start, clauses, pronoun), values


def fill(draw: Draw) -> Dialogue:
    rng = draw.rng
    text, values = draw.operands(
        lambda rng: _sentence(rng, rng.choice((0, 0, 0, 1, 1, 2, 2, 3))), lambda p: ("json", p[0])
    )
    if rng.random() < 0.15:
        text = text.rstrip(".")
    keys = list(values)
    if rng.random() < 0.5:
        rng.shuffle(keys)
    keys = keys[: rng.randint(1 if rng.random() < 0.2 else 2, max(2, min(4, len(keys))))]
    answer = json.dumps({key: values[key] for key in keys}, ensure_ascii=False)
    if rng.random() < 0.3:
        form = json.dumps({key: 0 if isinstance(values[key], int) else "" for key in keys})
        question = ask(rng, rng.choice(_FORM), keep_case=True, form=form, text=text)
    else:
        shown = rng.choice(
            (
                _joined(keys),
                ", ".join(keys),
                _joined([f'"{k}"' for k in keys]),
                "the " + _joined(keys),
            )
        )
        question = ask(rng, rng.choice(_ASK), keep_case=True, keys=shown, text=text)
    return question_and_answer(FAMILY, "fill JSON", question, answer)


TASKS = [(fill, 1)]
