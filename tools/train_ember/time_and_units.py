"""Days, months, dates within a year, clock times, durations and units."""

from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask

FAMILY = "time and units"
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = ("January February March April May June July August September October November "
          "December").split()
LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

_DAY_AFTER = ["What day is {n} days after {d}?", "Which day comes {n} days after {d}?",
              "If today is {d}, what day is it in {n} days?", "{n} days after {d}",
              "It is {d}. What day will it be in {n} days?", "What day is {d} plus {n} days?"]
_DAY_BEFORE = ["What day is {n} days before {d}?", "Which day was {n} days before {d}?",
               "If today is {d}, what day was it {n} days ago?", "{n} days before {d}"]


def weekday(draw: Draw) -> Dialogue:
    n, day = draw.operands(lambda rng: (rng.randint(2, 30), rng.randrange(7)),
                           lambda p: ("weekday", *p))
    after = draw.rng.random() < 0.6
    question = ask(draw.rng, draw.rng.choice(_DAY_AFTER if after else _DAY_BEFORE), n=n,
                   d=DAYS[day])
    target = DAYS[(day + n if after else day - n) % 7]
    weeks, rest = divmod(n, 7)
    steps = f"{n} days = {weeks} × 7 + {rest}: " if weeks else ""
    return question_and_answer(FAMILY, "weekday", question, f"{steps}{target}")


_MONTH_AFTER = ["What month is {n} months after {m}?", "Which month comes {n} months after {m}?",
                "{n} months after {m}", "If it is {m}, which month is it in {n} months?"]
_MONTH_BEFORE = ["What month is {n} months before {m}?", "Which month was {n} months before {m}?",
                 "{n} months before {m}", "If it is {m}, which month was it {n} months ago?"]


def month(draw: Draw) -> Dialogue:
    n, at = draw.operands(lambda rng: (rng.randint(2, 11), rng.randrange(12)),
                          lambda p: ("month", *p))
    after = draw.rng.random() < 0.6
    question = ask(draw.rng, draw.rng.choice(_MONTH_AFTER if after else _MONTH_BEFORE),
                   n=n, m=MONTHS[at])
    target = (at + n if after else at - n) % 12
    sign = "+" if after else "-"
    wrapped = at + 1 + (n if after else -n)
    steps = f"{at + 1} {sign} {n} = {wrapped}"
    if not 1 <= wrapped <= 12:
        steps += f", month {target + 1}"
    return question_and_answer(FAMILY, "month", question, f"{steps}: {MONTHS[target]}")


_DATE = ["What date is {n} days after {d}?", "Which date comes {n} days after {d}?",
         "{d} plus {n} days", "If today is {d}, what is the date in {n} days?",
         "What is the date {n} days after {d}?"]


def date(draw: Draw) -> Dialogue:
    """Within a year, and not across the end of February, which depends on the year."""
    def make(rng):
        at = rng.choice([m for m in range(11) if m != 1])
        return at, rng.randint(1, LENGTHS[at]), rng.randint(2, 28)

    at, day, n = draw.operands(make, lambda p: ("date", *p))
    shown = draw.rng.choice((f"{MONTHS[at]} {day}", f"{day} {MONTHS[at]}"))
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


_LATER = ["What time is {n} minutes after {t}?", "It is {t}. What time is it in {n} minutes?",
          "{t} plus {n} minutes", "What is {n} minutes later than {t}?",
          "If it is {t} now, what time is it {n} minutes later?"]


def clock(draw: Draw) -> Dialogue:
    def make(rng):
        return rng.randrange(24) * 60 + rng.randrange(60), rng.choice((rng.randint(1, 59),
                                                                       rng.randint(1, 11) * 5))

    start, n = draw.operands(make, lambda p: ("clock", *p))
    question = ask(draw.rng, draw.rng.choice(_LATER), n=n, t=_clock(start))
    minutes = start % 60
    answer = f"{minutes} + {n} = {minutes + n}"
    if minutes + n >= 60:
        answer += f", minus 60 = {minutes + n - 60}"
    return question_and_answer(FAMILY, "clock", question, f"{answer}: {_clock(start + n)}")


_SPAN = ["How many minutes is it from {a} to {b}?",
         "How many minutes are there between {a} and {b}?",
         "How long is it from {a} to {b}?", "From {a} to {b}, how many minutes?"]


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


_TO_HOURS = ["How many hours and minutes are {n} minutes?",
             "Convert {n} minutes to hours and minutes.",
             "What is {n} minutes in hours and minutes?", "{n} minutes in hours and minutes"]
_TO_MINUTES = ["How many minutes are {h} hours and {m} minutes?",
               "Convert {h} h {m} min to minutes.",
               "{h} hours {m} minutes in minutes", "What is {h} hours and {m} minutes in minutes?"]


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


UNITS = [("km", "m", 1000), ("m", "cm", 100), ("cm", "mm", 10), ("kg", "g", 1000), ("t", "kg",
                                                                                    1000),
         ("l", "ml", 1000), ("hours", "minutes", 60), ("minutes", "seconds", 60),
         ("weeks", "days", 7), ("years", "months", 12), ("days", "hours", 24), ("euros", "cents",
                                                                                100),
         ("dozen", "pieces", 12), ("feet", "inches", 12), ("yards", "feet", 3)]
_CONVERT = ["How many {small} are {n} {big}?", "Convert {n} {big} to {small}.",
            "{n} {big} in {small}",
            "What is {n} {big} in {small}?", "{n} {big} = ? {small}",
            "How many {small} in {n} {big}?"]


def units(draw: Draw) -> Dialogue:
    def make(rng):
        big, small, factor = rng.choice(UNITS)
        longest = 99 if factor in (10, 100, 1000) else 12
        return big, small, factor, rng.randint(2, longest)

    big, small, factor, n = draw.operands(make, lambda p: ("units", *p))
    if factor in (10, 100, 1000) and draw.rng.random() < 0.4:
        question = ask(draw.rng, draw.rng.choice(_CONVERT), n=n * factor, big=small, small=big)
        answer = f"{n * factor} / {factor} = {n} {big}"
    else:
        question = ask(draw.rng, draw.rng.choice(_CONVERT), n=n, big=big, small=small)
        steps = f"{n * 20} + {n * 4} = " if factor == 24 else ""
        answer = f"{n} × {factor} = {steps}{n * factor} {small}"
    return question_and_answer(FAMILY, "units", question, answer)


_LEAP = ["Is {y} a leap year?", "Was {y} a leap year?", "Leap year: {y}?",
         "Is the year {y} a leap year?"]


def leap_year(draw: Draw) -> Dialogue:
    year = draw.operands(lambda rng: rng.randint(1901, 2099), lambda y: ("leap", y))
    question = ask(draw.rng, draw.rng.choice(_LEAP), y=year)
    answer = f"Yes, {year} is a leap year." if year % 4 == 0 else f"No, {year} is not a leap year."
    return question_and_answer(FAMILY, "leap year", question, answer)


TASKS = [(weekday, 3), (month, 2), (date, 3), (clock, 3), (span, 2), (hours_and_minutes, 2),
         (units, 4),
         (leap_year, 0.7)]
