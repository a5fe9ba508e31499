"""Filling JSON from a sentence: keys are asked for, the values stand in the text."""

import json

from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .words import first_name, full_name, place, pseudo_word

FAMILY = "json"
COLOURS = "red blue green yellow black white pink orange purple grey brown silver".split()
JOBS = ("baker doctor teacher pilot farmer nurse painter cook driver singer builder writer "
        "dentist gardener tailor waiter").split()
ITEMS = ("apples pens books cups lamps chairs shirts shoes bottles candles boxes tickets plates "
         "batteries notebooks socks").split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
EVENTS = ("meeting lunch dinner party concert class interview call workshop picnic lecture "
          "rehearsal game dentist").split()
CLUBS = "chess football tennis music garden cooking drama hiking".split()


def clock_time(rng) -> str:
    return f"{rng.randint(7, 22)}:{rng.choice((0, 15, 30, 45, 5, 10, 20, 50)):02d}"


# key names (any of which may be asked for), how to draw a value, how a clause says it
_PERSON = [
    (("name", "name", "full_name", "person"), full_name, None),
    (("age", "age", "years"), lambda rng: rng.randint(3, 99), ["is {v} years old", "is {v}",
                                                               "is aged {v}"]),
    (("city", "city", "town", "home"), place, ["lives in {v}", "comes from {v}", "is from {v}"]),
    (("job", "job", "profession", "work"), lambda rng: rng.choice(JOBS),
     ["works as a {v}", "is a {v}", "has a job as a {v}"]),
    (("color", "colour", "favorite_color"), lambda rng: rng.choice(COLOURS),
     ["likes {v} best", "has {v} as favourite colour", "loves the colour {v}"]),
    (("pet", "pet_name"), lambda rng: pseudo_word(rng, 6).capitalize(),
     ["has a pet called {v}", "has a dog named {v}", "has a cat named {v}"]),
    (("phone", "number"), lambda rng: f"{rng.randint(100, 999)}-{rng.randint(100, 9999)}",
     ["can be called at {v}", "has the number {v}"]),
    (("club", "group"), lambda rng: rng.choice(CLUBS), ["is in the {v} club",
                                                        "joined the {v} club"]),
]
_ORDER = [
    (("customer", "name", "buyer"), full_name, None),
    (("quantity", "count", "amount"), lambda rng: rng.randint(2, 99), ["orders {v} {item}",
                                                                       "buys {v} {item}",
                                                                       "wants {v} {item}"]),
    (("item", "product", "article"), lambda rng: rng.choice(ITEMS), ["{item}"]),
    (("price", "total", "cost"), lambda rng: rng.randint(2, 400), ["pays {v} euros",
                                                                   "spends {v} dollars"]),
    (("day", "weekday", "delivery"), lambda rng: rng.choice(DAYS), ["wants them on {v}",
                                                                    "gets them on {v}"]),
    (("city", "town", "address"), place, ["lives in {v}", "has them sent to {v}"]),
]
_EVENT = [
    (("event", "title", "what"), lambda rng: rng.choice(EVENTS), None),
    (("day", "day", "weekday"), lambda rng: rng.choice(DAYS), ["is on {v}", "takes place on {v}"]),
    (("time", "time", "start"), clock_time, ["starts at {v}", "begins at {v}"]),
    (("place", "location", "where", "room"), place, ["is held in {v}", "takes place in {v}"]),
    (("host", "person", "with"), first_name, ["is led by {v}", "is hosted by {v}"]),
    (("guests", "people", "seats"), lambda rng: rng.randint(2, 80), ["has {v} guests",
                                                                     "is for {v} people"]),
]
_ASK = [
    "Extract {keys} as JSON: {text}", "Give me JSON with {keys} from this: {text}",
    "Fill in JSON with the keys {keys}. Text: {text}", "{text} Write this as JSON with {keys}.",
    "Return {keys} as JSON. {text}", "Turn this into JSON with {keys}: {text}",
    "{text} Give {keys} as JSON.", "Read the text and return JSON with {keys}.\n{text}",
    "Make a JSON object with {keys}: {text}", "JSON with {keys}, please: {text}",
]
_FORM = [
    "Fill this JSON: {form} {text}", "Complete {form} from this text: {text}",
    "{text} Fill in {form}.",
    "Use this form: {form}\n{text}",
]


def _joined(clauses: list[str]) -> str:
    return clauses[0] if len(clauses) == 1 else ", ".join(clauses[:-1]) + " and " + clauses[-1]


def _sentence(draw: Draw, kind: int) -> tuple[str, dict[str, object]]:
    """One sentence, and the fields it states under freely chosen key names."""
    rng = draw.rng
    fields = (_PERSON, _ORDER, _EVENT)[kind]
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
        name = rng.choice([n for n in names if n not in values] or [f"{names[0]}_{at}"])
        values[name] = value
        if not (kind == 1 and at == 2):
            clauses.append(rng.choice(clause_forms).format(v=value, item=item))
    start = f"The {subject}" if kind == 2 else str(subject)
    return f"{start} {_joined(clauses)}.", values


def fill(draw: Draw) -> Dialogue:
    text, values = draw.operands(lambda _: _sentence(draw, draw.rng.randrange(3)),
                                 lambda p: ("json", p[0]))
    keys = list(values)
    if draw.rng.random() < 0.5:
        draw.rng.shuffle(keys)
    keys = keys[: draw.rng.randint(1 if draw.rng.random() < 0.2 else 2, max(2, min(4, len(keys))))]
    answer = json.dumps({key: values[key] for key in keys}, ensure_ascii=False)
    if draw.rng.random() < 0.3:
        form = json.dumps({key: 0 if isinstance(values[key], int) else "" for key in keys})
        question = ask(draw.rng, draw.rng.choice(_FORM), keep_case=True, form=form, text=text)
    else:
        shown = draw.rng.choice((_joined(keys), ", ".join(keys), _joined([f'"{k}"' for k in keys])))
        question = ask(draw.rng, draw.rng.choice(_ASK), keep_case=True, keys=shown, text=text)
    return question_and_answer(FAMILY, "fill JSON", question, answer)


TASKS = [(fill, 1)]
