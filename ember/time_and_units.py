"""Days, months, dates within a year, clock times, durations and units."""

from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .word_lists import lines
from .wordings import expanded

FAMILY = "time and units"
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()
LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

_DAY_AFTER = lines("time_and_units", "day_after")
_DAY_BEFORE = lines("time_and_units", "day_before")


def weekday(draw: Draw) -> Dialogue:
    n, day = draw.operands(
        lambda rng: (rng.randint(2, rng.choice((8, 14, 30))), rng.randrange(7)),
        lambda p: ("weekday", *p),
    )
    after = draw.rng.random() < 0.6
    question = ask(
        draw.rng, draw.rng.choice(_DAY_AFTER if after else _DAY_BEFORE), n=n, d=DAYS[day]
    )
    target = DAYS[(day + n if after else day - n) % 7]
    weeks, rest = divmod(n, 7)
    steps = f"{n} days = {weeks} × 7 + {rest}: " if weeks else ""
    return question_and_answer(FAMILY, "weekday", question, f"{steps}{target}")


_MONTH_AFTER = lines("time_and_units", "month_after")
_MONTH_BEFORE = lines("time_and_units", "month_before")


def month(draw: Draw) -> Dialogue:
    n, at = draw.operands(
        lambda rng: (rng.randint(2, 11), rng.randrange(12)), lambda p: ("month", *p)
    )
    after = draw.rng.random() < 0.6
    question = ask(
        draw.rng, draw.rng.choice(_MONTH_AFTER if after else _MONTH_BEFORE), n=n, m=MONTHS[at]
    )
    target = (at + n if after else at - n) % 12
    sign = "+" if after else "-"
    wrapped = at + 1 + (n if after else -n)
    steps = f"{at + 1} {sign} {n} = {wrapped}"
    if not 1 <= wrapped <= 12:
        steps += f", month {target + 1}"
    return question_and_answer(FAMILY, "month", question, f"{steps}: {MONTHS[target]}")


_DATE = lines("time_and_units", "date")


def date(draw: Draw) -> Dialogue:
    """Within a year, and not across the end of February, which depends on the year."""

    def make(rng):
        at = rng.choice([m for m in range(11) if m != 1])
        return at, rng.randint(1, LENGTHS[at]), rng.randint(2, 28)

    at, day, n = draw.operands(make, lambda p: ("date", *p))
    ordinal = f"{day}{'th' if 10 < day < 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"
    month = MONTHS[at]
    shown = draw.rng.choice(
        (
            f"{month} {day}",
            f"{day} {month}",
            f"{month} {day}",
            f"{day} {month}",
            f"{month} {ordinal}",
            f"{ordinal} of {month}",
            f"the {ordinal} of {month}",
            f"{day}. {month}",
            f"{month[:3]} {day}",
        )
    )
    question = ask(draw.rng, draw.rng.choice(_DATE), n=n, d=shown)
    total = day + n
    if total <= LENGTHS[at]:
        answer = f"{day} + {n} = {total}: {MONTHS[at]} {total}"
    else:
        rest = total - LENGTHS[at]
        answer = f"{day} + {n} = {total}, minus {LENGTHS[at]} = {rest}: {MONTHS[at + 1]} {rest}"
    return question_and_answer(FAMILY, "date", question, answer)


def _clock(minutes: int) -> str:
    return f"{minutes // 60 % 24}:{minutes % 60:02d}"


_LATER = lines("time_and_units", "later")


def clock(draw: Draw) -> Dialogue:
    def make(rng):
        return rng.randrange(24) * 60 + rng.randrange(60), rng.choice(
            (rng.randint(1, 59), rng.randint(1, 11) * 5)
        )

    start, n = draw.operands(make, lambda p: ("clock", *p))
    question = ask(draw.rng, draw.rng.choice(_LATER), n=n, t=_clock(start))
    minutes = start % 60
    answer = f"{minutes} + {n} = {minutes + n}"
    if minutes + n >= 60:
        answer += f", minus 60 = {minutes + n - 60}"
    return question_and_answer(FAMILY, "clock", question, f"{answer}: {_clock(start + n)}")


_SPAN = lines("time_and_units", "span")


def span(draw: Draw) -> Dialogue:
    def make(rng):
        return rng.randrange(22) * 60 + rng.randrange(60), rng.randint(5, 59)

    start, n = draw.operands(make, lambda p: ("span", *p))
    question = ask(draw.rng, draw.rng.choice(_SPAN), a=_clock(start), b=_clock(start + n))
    first, second = start % 60, (start + n) % 60
    if second >= first:
        steps = f"{second} - {first} = {n}"
    else:
        steps = f"{60 - first} + {second} = {n}" if second else f"60 - {first} = {n}"
    return question_and_answer(FAMILY, "span", question, f"{steps}: {n} minutes")


_TO_HOURS = lines("time_and_units", "to_hours")
_TO_MINUTES = lines("time_and_units", "to_minutes")


def hours_and_minutes(draw: Draw) -> Dialogue:
    n = draw.operands(lambda rng: rng.randint(61, 599), lambda n: ("hours", n))
    hours, minutes = divmod(n, 60)
    if draw.rng.random() < 0.5:
        question = ask(draw.rng, draw.rng.choice(_TO_HOURS), n=n)
        answer = f"{n} = {hours} × 60 + {minutes}: {hours} h {minutes} min"
    else:
        question = ask(draw.rng, draw.rng.choice(_TO_MINUTES), h=hours, m=minutes)
        answer = f"{hours} × 60 + {minutes} = {hours * 60} + {minutes} = {n} minutes"
    return question_and_answer(FAMILY, "hours and minutes", question, answer)


UNITS = [  # names of the bigger unit, names of the smaller one, how many
    (("km", "km", "kilometers", "kilometres"), ("m", "m", "meters", "metres"), 1000),
    (("m", "m", "meters", "metres"), ("cm", "cm", "centimeters", "centimetres"), 100),
    (("cm", "cm", "centimeters", "centimetres"), ("mm", "mm", "millimeters", "millimetres"), 10),
    (("kg", "kg", "kilograms", "kilos"), ("g", "g", "grams"), 1000),
    (("t", "tons", "tonnes"), ("kg", "kg", "kilograms", "kilos"), 1000),
    (("l", "liters", "litres"), ("ml", "ml", "milliliters", "millilitres"), 1000),
    (("hours",), ("minutes",), 60),
    (("minutes",), ("seconds",), 60),
    (("weeks",), ("days",), 7),
    (("years",), ("months",), 12),
    (("days",), ("hours",), 24),
    (("euros", "dollars"), ("cents",), 100),
    (("dozen",), ("pieces", "eggs"), 12),
    (("feet",), ("inches",), 12),
    (("yards",), ("feet",), 3),
]
_CONVERT = lines("time_and_units", "convert")


def units(draw: Draw) -> Dialogue:
    def make(rng):
        big, small, factor = rng.choice(UNITS)
        longest = 99 if factor in (10, 100, 1000) else 12
        return big, small, factor, rng.randint(2, rng.choice((10, longest)))

    bigs, smalls, factor, n = draw.operands(make, lambda p: ("units", p[0][0], p[1][0], *p[2:]))
    big, small = draw.rng.choice(bigs), draw.rng.choice(smalls)
    if factor in (10, 100, 1000) and draw.rng.random() < 0.4:
        question = ask(draw.rng, draw.rng.choice(_CONVERT), n=n * factor, big=small, small=big)
        answer = f"{n * factor} / {factor} = {n} {big}"
    else:
        question = ask(draw.rng, draw.rng.choice(_CONVERT), n=n, big=big, small=small)
        steps = f"{n * 20} + {n * 4} = " if factor == 24 else ""
        answer = f"{n} × {factor} = {steps}{n * factor} {small}"
    return question_and_answer(FAMILY, "units", question, answer)


_ONE = [
    ("an hour", "minutes", 60),
    ("a minute", "seconds", 60),
    ("a day", "hours", 24),
    ("a week", "days", 7),
    ("a year", "months", 12),
    ("a year", "weeks", 52),
    ("a year", "days", 365),
    ("a leap year", "days", 366),
    ("a kilometer", "meters", 1000),
    ("a meter", "centimeters", 100),
    ("a centimeter", "millimeters", 10),
    ("a kilogram", "grams", 1000),
    ("a ton", "kilograms", 1000),
    ("a liter", "milliliters", 1000),
    ("a foot", "inches", 12),
    ("a yard", "feet", 3),
    ("a dozen", "pieces", 12),
    ("a euro", "cents", 100),
    ("a dollar", "cents", 100),
    ("a century", "years", 100),
    ("a decade", "years", 10),
    ("a millennium", "years", 1000),
]
_OF_ONE = expanded(
    [
        "How many {small} are [there |]in {big}?",
        "How many {small} [does|has] {big} have?",
        "{small} in {big}",
        "{big} has how many {small}?",
        "How many {small} make {big}?",
        "How many {small} [is|are] {big}?",
        "number of {small} in {big}",
        "{big} in {small}",
        "What is {big} in {small}?",
        "{big}, how many {small} is that?",
        "How long is {big} in {small}?",
        "How many {small} go into {big}?",
        "Tell me how many {small} {big} has.",
        "{big} is how many {small}?",
        "Of how many {small} is {big} made?",
        "[Tell me|Do you know|I want to know|Can you tell me|I forgot] how many {small} "
        "[{big} has|are in {big}|make {big}|{big} is]",
        "[The number|How big is the number] of {small} in {big}[?|, what is it?]",
        "[{big}|In {big}][: | - |, ]how many {small}[?| are there?| is it?]",
        "[Count|Give me|What is the number of|I need] the {small} [in|of] {big}",
    ]
)


def unit_fact(draw: Draw) -> Dialogue:
    """How much one unit is: a table, so the phrasing is held out and not the fact."""
    big, small, factor = draw.rng.choice(_ONE)
    one = big.replace("an ", "one ").replace("a ", "one ", 1) if draw.rng.random() < 0.2 else big
    question = ask(draw.rng, draw.phrasing(_OF_ONE), big=one, small=small)
    answer = f"{big[0].upper()}{big[1:]} has {factor} {small}."
    return question_and_answer(FAMILY, "unit fact", question, answer)


_LEAP = lines("time_and_units", "leap")


def leap_year(draw: Draw) -> Dialogue:
    year = draw.operands(lambda rng: rng.randint(1901, 2099), lambda y: ("leap", y))
    question = ask(draw.rng, draw.rng.choice(_LEAP), y=year)
    answer = f"Yes, {year} is a leap year." if year % 4 == 0 else f"No, {year} is not a leap year."
    return question_and_answer(FAMILY, "leap year", question, answer)


TASKS = [
    (weekday, 3),
    (month, 2),
    (date, 3),
    (clock, 3),
    (span, 2),
    (hours_and_minutes, 2),
    (units, 4),
    (unit_fact, 1.2),
    (leap_year, 0.7),
]
