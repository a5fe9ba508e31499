"""Sums, differences, products, comparison and sorting of whole numbers to three digits."""

from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .word_lists import lines
from .wordings import expanded
from .words import first_name

FAMILY = "arithmetic"


def number(rng, longest: int = 3) -> int:
    """Every length equally often, so that short numbers are not rare."""
    n_digits = rng.randint(1, longest)
    return rng.randrange(10 ** (n_digits - 1) if n_digits > 1 else 0, 10**n_digits)


def _pair(draw: Draw, task: str) -> tuple[int, int]:
    return draw.operands(lambda rng: (number(rng), number(rng)), lambda p: (task, *sorted(p)))


_ADD = lines("arithmetic", "add")


def addition(draw: Draw) -> Dialogue:
    a, b = _pair(draw, "add")
    phrasing = draw.rng.choice(_ADD)
    question = ask(draw.rng, phrasing, a=a, b=b)
    return question_and_answer(FAMILY, "addition", question, f"{a} + {b} = {a + b}")


_SUBTRACT = lines("arithmetic", "subtract")


def subtraction(draw: Draw) -> Dialogue:
    a, b = _pair(draw, "subtract")
    if a < b and draw.rng.random() < 0.8:
        a, b = b, a
    question = ask(draw.rng, draw.rng.choice(_SUBTRACT), a=a, b=b)
    return question_and_answer(FAMILY, "subtraction", question, f"{a} - {b} = {a - b}")


_MULTIPLY = lines("arithmetic", "multiply")


def multiplication(draw: Draw) -> Dialogue:
    """One digit by two, worked out by tens and ones."""

    def make(rng):
        return rng.randint(2, 9), rng.randint(13, 99)

    digit, big = draw.operands(make, lambda p: ("multiply", *p))
    a, b = (digit, big) if draw.rng.random() < 0.5 else (big, digit)
    question = ask(draw.rng, draw.rng.choice(_MULTIPLY), a=a, b=b)
    tens, ones = big // 10 * 10, big % 10
    answer = f"{a} × {b} = {digit * tens} + {digit * ones} = {a * b}"
    return question_and_answer(FAMILY, "multiplication", question, answer)


_QUOTIENTS = ("{a} / {b}", "{a}/{b}", "{a} ÷ {b}", "{a}÷{b}", "{a} : {b}", "{a} divided by {b}")
PRODUCTS = (
    "{a} × {b}",
    "{a}×{b}",
    "{a} * {b}",
    "{a}*{b}",
    "{a} x {b}",
    "{a}x{b}",
    "{a}·{b}",
    "{a} times {b}",
    "{a} multiplied by {b}",
)


def calculated(written: tuple[str, ...]) -> list[str]:
    """Patterns for each way to write it, with and without spaces, in each question."""
    one_of = "|".join(written)
    return [
        f"[{one_of}][| =|=|=?| = ?| is| is ...| is what?| makes ...| equals ...|, what is that?]",
        f"[What is|How much is|Calculate|Compute|Work out|Solve|Do|I need|Tell me|What's|"
        f"Can you do|Can you calculate|Result of|What number is|I want to know] [{one_of}]",
        f"What [does|would|will] [{one_of}] [make|give|be|equal]?",
        f"[What is the result of|The answer of|If I calculate|Do you know] [{one_of}]?",
    ]


_TIMES_TABLE = expanded([*_MULTIPLY, *calculated(PRODUCTS)])


def times_table(draw: Draw) -> Dialogue:
    """The table to 12 × 12: facts that are seen; only the phrasing is held out."""
    a, b = draw.rng.randint(0, 12), draw.rng.randint(0, 12)
    question = ask(draw.rng, draw.phrasing(_TIMES_TABLE), a=a, b=b)
    return question_and_answer(FAMILY, "times table", question, f"{a} × {b} = {a * b}")


_DIVIDE = lines("arithmetic", "divide")
_DIVISION = expanded(
    [
        *_DIVIDE,
        *calculated(_QUOTIENTS),
        "[Divide|Split|Share] {a} [by|into] {b}[| parts| equal parts].",
        "How [often|many times] [does|will|can] {b} [go|fit] [in|into] {a}?",
        "[Can you|Could you|I want you to|Please] divide {a} by {b}",
    ]
)


def division(draw: Draw) -> Dialogue:
    """The table backwards: seen facts, held-out phrasing."""
    a, b = draw.rng.randint(0, 12), draw.rng.randint(1, 12)
    question = ask(draw.rng, draw.phrasing(_DIVISION), a=a * b, b=b)
    return question_and_answer(FAMILY, "division", question, f"{a * b} / {b} = {a}")


_LARGER = lines("arithmetic", "larger")
_SMALLER = lines("arithmetic", "smaller")
_IS_LARGER = lines("arithmetic", "is_larger")
_IS_SMALLER = lines("arithmetic", "is_smaller")


def comparison(draw: Draw) -> Dialogue:
    def make(rng):
        a = number(rng)
        close = rng.random() < 0.4  # numbers that differ late are the hard ones
        return a, max(0, min(999, a + rng.randint(-12, 12))) if close else number(rng)

    a, b = draw.operands(make, lambda p: ("compare", *sorted(p)))
    low, high = min(a, b), max(a, b)
    kind = draw.rng.random()
    if a == b:
        phrasing, answer = draw.rng.choice(_LARGER), f"{a} and {b} are equal."
    elif kind < 0.4:
        phrasing, answer = draw.rng.choice(_LARGER), f"{high} is larger than {low}."
    elif kind < 0.7:
        phrasing, answer = draw.rng.choice(_SMALLER), f"{low} is smaller than {high}."
    elif kind < 0.8:
        phrasing = draw.rng.choice(_IS_SMALLER)
        answer = f"Yes, {a} is smaller than {b}." if a < b else f"No, {a} is larger than {b}."
    else:
        phrasing = draw.rng.choice(_IS_LARGER)
        answer = f"Yes, {a} is larger than {b}." if a > b else f"No, {a} is smaller than {b}."
    return question_and_answer(FAMILY, "comparison", ask(draw.rng, phrasing, a=a, b=b), answer)


_SORT = lines("arithmetic", "sort")
_SORT_DOWN = lines("arithmetic", "sort_down")


def _numbers(draw: Draw, task: str, longest: int = 6) -> list[int]:
    def make(rng):
        n_items = rng.randint(3, longest)
        n_digits = rng.randint(1, 3)
        return [number(rng, n_digits) for _ in range(n_items)]

    return draw.operands(make, lambda items: (task, *sorted(items)))


def listed(draw: Draw, items: list) -> str:
    """Items as people type a list: commas, spaces, an “and” before the last."""
    texts = [str(item) for item in items]
    if draw.rng.random() < 0.15:
        return f"{', '.join(texts[:-1])} {draw.rng.choice(('and', 'and', 'or'))} {texts[-1]}"
    return draw.rng.choice((", ", ", ", ", ", " ", " ", ",", "; ")).join(texts)


def sorting(draw: Draw) -> Dialogue:
    items = _numbers(draw, "sort")
    down = draw.rng.random() < 0.35
    phrasing = draw.rng.choice(_SORT_DOWN if down else _SORT)
    answer = ", ".join(map(str, sorted(items, reverse=down)))
    question = ask(draw.rng, phrasing, items=listed(draw, items))
    return question_and_answer(FAMILY, "sorting", question, answer)


_LARGEST = lines("arithmetic", "largest")
_SMALLEST = lines("arithmetic", "smallest")


def extreme(draw: Draw) -> Dialogue:
    items = _numbers(draw, "extreme")
    largest = draw.rng.random() < 0.5
    question = ask(
        draw.rng, draw.rng.choice(_LARGEST if largest else _SMALLEST), items=listed(draw, items)
    )
    answer = f"The largest is {max(items)}." if largest else f"The smallest is {min(items)}."
    return question_and_answer(FAMILY, "largest of a list", question, answer)


_THINGS = (
    "apples books coins marbles stamps cards pencils shells eggs cookies stones tickets "
    "oranges buttons balloons flowers toys keys plates candles cars birds fish sweets pens "
    "shirts hats chairs cups bottles lemons nuts boats dogs cats bags photos"
).split()
_GAIN = lines("arithmetic", "gain")
_LOSE = lines("arithmetic", "lose")


def story(draw: Draw) -> Dialogue:
    a, b = draw.operands(
        lambda rng: (number(rng, 2), number(rng, 2)), lambda p: ("story", *sorted(p))
    )
    gains = draw.rng.random() < 0.5
    if not gains:
        a, b = max(a, b), min(a, b)
    things = draw.rng.choice(_THINGS)
    question = ask(
        draw.rng,
        draw.rng.choice(_GAIN if gains else _LOSE),
        keep_case=True,
        name=first_name(draw.rng),
        other=first_name(draw.rng),
        a=a,
        b=b,
        things=things,
    )
    answer = f"{a} + {b} = {a + b}" if gains else f"{a} - {b} = {a - b}"
    return question_and_answer(FAMILY, "story", question, answer)


_PARITY = lines("arithmetic", "parity")
_DOUBLE = [
    "What is double {a}?",
    "Double {a}.",
    "What is twice {a}?",
    "double {a}",
    "twice {a}",
    "What is {a} doubled?",
    "two times {a}",
    "{a} doubled",
    "Can you double {a}?",
    "the double of {a}",
    "If I double {a}, what do I get?",
    "How much is twice {a}?",
]
_HALF = [
    "What is half of {a}?",
    "Halve {a}.",
    "What is {a} halved?",
    "half of {a}",
    "half {a}",
    "What is the half of {a}?",
    "one half of {a}",
    "Can you halve {a}?",
    "{a} halved",
    "How much is half of {a}?",
    "Give me half of {a}.",
    "If I halve {a}, what do I get?",
]
_NEXT = lines("arithmetic", "next")
_PREVIOUS = lines("arithmetic", "previous")


def small_steps(draw: Draw) -> Dialogue:
    """Even or odd, double, half, the number before and after."""
    a = draw.operands(number, lambda a: ("step", a))
    kind = draw.rng.randrange(5)
    if kind == 0:
        phrasings, answer = _PARITY, f"{a} is {'odd' if a % 2 else 'even'}."
    elif kind == 1:
        phrasings, answer = _DOUBLE, f"2 × {a} = {2 * a}"
    elif kind == 2:
        a -= a % 2
        phrasings, answer = _HALF, f"{a} / 2 = {a // 2}"
    elif kind == 3:
        phrasings, answer = _NEXT, f"{a + 1} comes after {a}."
    else:
        a = max(a, 1)
        phrasings, answer = _PREVIOUS, f"{a - 1} comes before {a}."
    question = ask(draw.rng, draw.rng.choice(phrasings), a=a)
    return question_and_answer(FAMILY, "small steps", question, answer)


_THREE = [
    "{a} + {b} + {c}",
    "What is {a} + {b} + {c}?",
    "{a}+{b}+{c}",
    "Add {a}, {b} and {c}.",
    "What is the sum of {a}, {b} and {c}?",
    "{a} plus {b} plus {c}",
    "{a}+{b}+{c}=",
    "How much is {a} and {b} and {c}?",
    "What is {a} plus {b} plus {c}?",
    "Sum up {a}, {b}, {c}",
    "total of {a}, {b} and {c}",
    "Add these up: {a}, {b}, {c}",
]


def three_numbers(draw: Draw) -> Dialogue:
    """A sum of three numbers to two digits, in two steps."""

    def make(rng):
        return tuple(number(rng, 2) for _ in range(3))

    a, b, c = draw.operands(make, lambda items: ("three", *sorted(items)))
    question = ask(draw.rng, draw.rng.choice(_THREE), a=a, b=b, c=c)
    answer = f"{a} + {b} + {c} = {a + b} + {c} = {a + b + c}"
    return question_and_answer(FAMILY, "three numbers", question, answer)


TASKS = [
    (addition, 5),
    (subtraction, 5),
    (multiplication, 5),
    (times_table, 2.5),
    (division, 2.5),
    (comparison, 3),
    (sorting, 4),
    (extreme, 1.5),
    (story, 3),
    (small_steps, 2.5),
    (three_numbers, 1),
]
