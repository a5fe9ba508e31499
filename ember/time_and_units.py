"""Days, months, dates within a year, clock times, durations and units."""

from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .wordings import expanded

FAMILY = "time and units"
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = ("January February March April May June July August September October November "
          "December").split()
LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

_DAY_AFTER = ["[What|Which] day is {n} days after {d}?",
              "[What|Which] day comes {n} days after {d}?",
              "If today is {d}, what day is it in {n} days?", "{n} days after {d}",
              "{d} + {n} days",
              "It is {d}. [What|Which] day will it be in {n} days?", "{n} days from {d}",
              "What day is {d} plus {n} days?", "Today is {d}. What day [is it|comes] in {n} days?",
              "It's {d} today, what weekday is it {n} days from now?", "{d} in {n} days",
              "[What|Which] weekday is {n} days [after|from|later than] {d}?",
              "Which day of the week is it {n} days after {d}?", "In {n} days, if it is {d} now?",
              "If it is {d} [today|now], which day [will it be|is it] {n} days later?",
              "My holiday starts in {n} days and today is {d}. Which weekday is that?",
              "Today is {d}. I have to pay in {n} days. What day is that?",
              "On {d} I said: in {n} days. Which day did I mean?", "Count {n} days on from {d}.",
              "{n} days later than {d}, what day is it?"]
_DAY_BEFORE = ["[What|Which] day is {n} days before {d}?",
               "[What|Which] day was {n} days before {d}?",
               "If today is {d}, what day was it {n} days ago?", "{n} days before {d}",
               "{d} - {n} days",
               "It is {d}. [What|Which] day was it {n} days ago?",
               "What day is {d} minus {n} days?",
               "It's {d} today, what weekday was {n} days ago?", "{n} days earlier than {d}",
               "[What|Which] weekday was {n} days before {d}?", "{d}, {n} days ago",
               "Which day of the week was it {n} days before {d}?",
               "Today is {d}, and {n} days ago?",
               "If it is {d} now, which day was {n} days earlier?", "Count {n} days back from {d}.",
               "Today is {d}. I bought it {n} days ago. What day was that?"]


def weekday(draw: Draw) -> Dialogue:
    n, day = draw.operands(lambda rng: (rng.randint(2, rng.choice((8, 14, 30))), rng.randrange(7)),
                           lambda p: ("weekday", *p))
    after = draw.rng.random() < 0.6
    question = ask(draw.rng, draw.rng.choice(_DAY_AFTER if after else _DAY_BEFORE), n=n,
                   d=DAYS[day])
    target = DAYS[(day + n if after else day - n) % 7]
    weeks, rest = divmod(n, 7)
    steps = f"{n} days = {weeks} × 7 + {rest}: " if weeks else ""
    return question_and_answer(FAMILY, "weekday", question, f"{steps}{target}")


_MONTH_AFTER = ["[What|Which] month is {n} months after {m}?", "{n} months after {m}",
                "[What|Which] month comes {n} months after {m}?", "{m} plus {n} months",
                "{m} + {n} months",
                "If it is {m}, which month is it in {n} months?", "{n} months from {m}",
                "It is {m}. [What|Which] month [will it be|is it] in {n} months?",
                "{m} in {n} months",
                "[What|Which] month is it {n} months after {m}?", "Count {n} months on from {m}.",
                "If it's {m} now, what month will it be in {n} months?",
                "{n} months later than {m}",
                "We are in {m}. Which month is in {n} months?",
                "A baby comes {n} months after {m}. In which month?"]
_MONTH_BEFORE = ["[What|Which] month is {n} months before {m}?", "{n} months before {m}",
                 "[What|Which] month was {n} months before {m}?", "{m} minus {n} months",
                 "If it is {m}, which month was it {n} months ago?", "{m} - {n} months",
                 "It is {m}. [What|Which] month was it {n} months ago?",
                 "Count {n} months back from {m}.",
                 "[What|Which] month was it {n} months before {m}?", "{n} months earlier than {m}",
                 "If it's {m} now, what month was {n} months ago?", "{m}, {n} months ago",
                 "We are in {m}. Which month was {n} months ago?"]


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


_DATE = ["[What|Which] date is {n} days after {d}?", "[What|Which] date comes {n} days after {d}?",
         "{d} plus {n} days", "If today is {d}, what is the date in {n} days?",
         "{n} days after {d}",
         "What is the date {n} days after {d}?", "{d} + {n} days", "{n} days from {d}",
         "It is {d}. What is the date in {n} days?",
         "Today is {d}. [What|Which] date is in {n} days?",
         "If it is {d} [now|today], [what|which] date will it be in {n} days?",
         "{n} days later than {d}",
         "What will be the date {n} days after {d}?",
         "Today is {d}, what date [will it be|comes] {n} "
         "days later?", "Starting on {d}, which date is {n} days later?",
         "{d}, and {n} days later?",
         "Which day of the month is {n} days after {d}?",
         "My trip starts on {d} and takes {n} days. "
         "On which date does it end?", "The bill of {d} must be paid within {n} days. Until when?",
         "Count {n} days on from {d}.", "The date {n} days after {d}?"]


def date(draw: Draw) -> Dialogue:
    """Within a year, and not across the end of February, which depends on the year."""
    def make(rng):
        at = rng.choice([m for m in range(11) if m != 1])
        return at, rng.randint(1, LENGTHS[at]), rng.randint(2, 28)

    at, day, n = draw.operands(make, lambda p: ("date", *p))
    ordinal = f"{day}{'th' if 10 < day < 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"
    month = MONTHS[at]
    shown = draw.rng.choice((f"{month} {day}", f"{day} {month}", f"{month} {day}", f"{day} {month}",
                             f"{month} {ordinal}", f"{ordinal} of {month}",
                             f"the {ordinal} of {month}",
                             f"{day}. {month}", f"{month[:3]} {day}"))
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
          "{t} plus {n} minutes", "What is {n} minutes later than {t}?", "{n} minutes after {t}",
          "If it is {t} now, what time is it {n} minutes later?", "{t} + {n} min",
          "{n} min after {t}",
          "What time [is it|will it be] {n} minutes after {t}?",
          "It's {t}. Which time is in {n} minutes?",
          "What is the time {n} minutes after {t}?", "{t} and {n} minutes more, what time is that?",
          "If it's {t}, what will the clock say in {n} minutes?", "{n} minutes from {t}",
          "The [lesson|film|meeting|game] starts at {t} and [takes|lasts] {n} minutes. When does "
          "it end?",
          "The [bus|train|plane] leaves at {t} and [takes|needs] {n} minutes. When does it arrive?",
          "I start at {t} and need {n} minutes. When am I done?", "{t} in {n} minutes",
          "I leave at {t}, the way takes {n} minutes. When am I there?",
          "The cake goes into the oven at {t} for {n} minutes. When is it ready?",
          "My watch shows {t}. What does it show {n} minutes later?", "Add {n} minutes to {t}.",
          "We meet {n} minutes after {t}. What time is that?", "{t}, {n} minutes later?"]


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


_SPAN = ["How many minutes is it from {a} to {b}?", "minutes from {a} to {b}",
         "{a} to {b} in minutes",
         "How many minutes are there between {a} and {b}?", "minutes between {a} and {b}",
         "How long is it from {a} [to|until|till] {b}?", "From {a} to {b}, how many minutes?",
         "How long is the time from {a} to {b}?", "How much time is [there |]between {a} and {b}?",
         "{a} until {b}, how long is that?", "How many minutes [pass|go by] from {a} to {b}?",
         "It is {a}. How many minutes until {b}?", "How many minutes from {a} [to|till|until] {b}?",
         "A [lesson|film|game|meeting] from {a} to {b} takes how many minutes?",
         "{a}-{b}, how long?",
         "The [lesson|break|game|show] begins at {a} and ends at {b}. How long is it?",
         "The [bus|train|plane] leaves at {a} and arrives at {b}. How long does it take?",
         "I came at {a} and left at {b}. How many minutes was I there?",
         "What's the time between {a} and {b} in minutes?", "How long do I wait from {a} to {b}?"]


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


_TO_HOURS = ["How many hours and minutes are {n} minutes?", "{n} minutes in hours and minutes",
             "Convert {n} minutes to hours and minutes.", "{n} minutes in hours",
             "{n} min to hours",
             "What is {n} minutes in hours and minutes?", "How many hours [is|are] {n} minutes?",
             "{n} minutes, how many hours and minutes [is that|are they]?", "{n} minutes to hours",
             "Write {n} minutes as hours and minutes.",
             "A film takes {n} minutes. How many hours is it?",
             "{n} min in hours and min", "Turn {n} minutes into hours and minutes.",
             "How long is {n} minutes in hours?", "Give {n} minutes in hours and minutes."]
_TO_MINUTES = ["How many minutes are {h} hours and {m} minutes?",
               "{h} hours {m} minutes in minutes",
               "Convert {h} h {m} min to minutes.", "{h} h {m} min in minutes",
               "{h}h {m}min in minutes",
               "What is {h} hours and {m} minutes in minutes?",
               "{h} hours and {m} minutes to minutes",
               "How many minutes [has|does] a film of {h} hours and {m} minutes[ have|]?",
               "{h} hours and {m} minutes, how many minutes is that?",
               "How many minutes are {h} h {m} min?",
               "A trip takes {h} hours and {m} minutes. How many minutes is it?",
               "Turn {h} hours {m} minutes into minutes.",
               "Give {h} hours and {m} minutes in minutes.",
               "Write {h} hours {m} minutes as minutes."]


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
    (("hours",), ("minutes",), 60), (("minutes",), ("seconds",), 60), (("weeks",), ("days",), 7),
    (("years",), ("months",), 12), (("days",), ("hours",), 24),
    (("euros", "dollars"), ("cents",), 100), (("dozen",), ("pieces", "eggs"), 12),
    (("feet",), ("inches",), 12), (("yards",), ("feet",), 3),
]
_CONVERT = ["How many {small} are {n} {big}?", "Convert {n} {big} [to|into] {small}.",
            "{n} {big} to {small}",
            "{n} {big} in {small}", "What is {n} {big} in {small}?", "{n} {big} = ? {small}",
            "How many {small} [are |]in {n} {big}?", "{n} {big}, how many {small} is that?",
            "How many {small} [do|does] {n} {big} [have|make]?", "How many {small} is {n} {big}?",
            "{n} {big} are how many {small}?", "How much is {n} {big} in {small}?",
            "{n} {big} as {small}",
            "I have {n} {big}. How many {small} is that?", "Turn {n} {big} into {small}.",
            "Give me {n} {big} in {small}.", "{n} {big} into {small}",
            "{n} {big} equals how many {small}?",
            "How many {small} [are there in|go into|make up|make] {n} {big}?",
            "Change {n} {big} to {small}.", "If I have {n} {big}, how many {small} do I have?",
            "Express {n} {big} in {small}.", "What are {n} {big} in {small}?"]


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


_ONE = [("an hour", "minutes", 60), ("a minute", "seconds", 60), ("a day", "hours", 24),
        ("a week", "days", 7), ("a year", "months", 12), ("a year", "weeks", 52),
        ("a year", "days", 365), ("a leap year", "days", 366), ("a kilometer", "meters", 1000),
        ("a meter", "centimeters", 100), ("a centimeter", "millimeters", 10),
        ("a kilogram", "grams", 1000), ("a ton", "kilograms", 1000), ("a liter", "milliliters",
        1000),
        ("a foot", "inches", 12), ("a yard", "feet", 3), ("a dozen", "pieces", 12),
        ("a euro", "cents", 100), ("a dollar", "cents", 100), ("a century", "years", 100),
        ("a decade", "years", 10), ("a millennium", "years", 1000)]
_OF_ONE = expanded([
           "How many {small} are [there |]in {big}?", "How many {small} [does|has] {big} have?",
           "{small} in {big}", "{big} has how many {small}?", "How many {small} make {big}?",
           "How many {small} [is|are] {big}?", "number of {small} in {big}", "{big} in {small}",
           "What is {big} in {small}?", "{big}, how many {small} is that?",
           "How long is {big} in {small}?",
           "How many {small} go into {big}?", "Tell me how many {small} {big} has.",
           "{big} is how many {small}?", "Of how many {small} is {big} made?",
           "[Tell me|Do you know|I want to know|Can you tell me|I forgot] how many {small} "
           "[{big} has|are in {big}|make {big}|{big} is]",
           "[The number|How big is the number] of {small} in {big}[?|, what is it?]",
           "[{big}|In {big}][: | - |, ]how many {small}[?| are there?| is it?]",
           "[Count|Give me|What is the number of|I need] the {small} [in|of] {big}"])


def unit_fact(draw: Draw) -> Dialogue:
    """How much one unit is: a table, so the phrasing is held out and not the fact."""
    big, small, factor = draw.rng.choice(_ONE)
    one = big.replace("an ", "one ").replace("a ", "one ", 1) if draw.rng.random() < 0.2 else big
    question = ask(draw.rng, draw.phrasing(_OF_ONE), big=one, small=small)
    answer = f"{big[0].upper()}{big[1:]} has {factor} {small}."
    return question_and_answer(FAMILY, "unit fact", question, answer)


_LEAP = ["Is {y} a leap year?", "Was {y} a leap year?", "Leap year: {y}?", "leap year {y}",
         "Is the year {y} a leap year?", "{y}, leap year?", "Is {y} a leap year, yes or no?",
         "Will {y} be a leap year?", "Tell me if {y} is a leap year.", "{y} is a leap year, right?",
         "Does {y} have a 29 February?", "Was the year {y} a leap year?", "Has {y} 366 days?",
         "Did {y} have 366 days?"]


def leap_year(draw: Draw) -> Dialogue:
    year = draw.operands(lambda rng: rng.randint(1901, 2099), lambda y: ("leap", y))
    question = ask(draw.rng, draw.rng.choice(_LEAP), y=year)
    answer = f"Yes, {year} is a leap year." if year % 4 == 0 else f"No, {year} is not a leap year."
    return question_and_answer(FAMILY, "leap year", question, answer)


TASKS = [(weekday, 3), (month, 2), (date, 3), (clock, 3), (span, 2), (hours_and_minutes, 2),
         (units, 4), (unit_fact, 1.2), (leap_year, 0.7)]
