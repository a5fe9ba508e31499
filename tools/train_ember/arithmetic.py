"""Sums, differences, products, comparison and sorting of whole numbers to three digits."""

from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .words import first_name

FAMILY = "arithmetic"


def number(rng, longest: int = 3) -> int:
    """Every length equally often, so that short numbers are not rare."""
    n_digits = rng.randint(1, longest)
    return rng.randrange(10 ** (n_digits - 1) if n_digits > 1 else 0, 10**n_digits)


def _pair(draw: Draw, task: str) -> tuple[int, int]:
    return draw.operands(lambda rng: (number(rng), number(rng)), lambda p: (task, *sorted(p)))


_ADD = [
    "What is {a} + {b}?", "{a} + {b}", "{a}+{b}", "{a} + {b} =", "{a} plus {b}", "{a}+{b}=?",
    "What is {a} plus {b}?", "Add {a} and {b}.", "Calculate {a} + {b}.", "Compute {a} + {b}.",
    "What is the sum of {a} and {b}?", "How much is {a} and {b} together?",
    "What do you get if you add {a} and {b}?", "Can you add {a} and {b}?", "How much is {a} + {b}?",
]


def addition(draw: Draw) -> Dialogue:
    a, b = _pair(draw, "add")
    phrasing = draw.rng.choice(_ADD)
    question = ask(draw.rng, phrasing, a=a, b=b)
    return question_and_answer(FAMILY, "addition", question, f"{a} + {b} = {a + b}")


_SUBTRACT = [
    "What is {a} - {b}?", "{a} - {b}", "{a}-{b}", "{a} - {b} =", "{a} minus {b}", "{a}-{b}=?",
    "What is {a} minus {b}?", "Calculate {a} - {b}.", "Subtract {b} from {a}.",
    "Take {b} from {a}.",
    "What is left of {a} if you take away {b}?", "How much is {a} minus {b}?", "{a} − {b}",
    "What is the difference of {a} and {b}?", "Compute {a} - {b}.", "How much is {a} less {b}?",
]


def subtraction(draw: Draw) -> Dialogue:
    a, b = _pair(draw, "subtract")
    if a < b and draw.rng.random() < 0.8:
        a, b = b, a
    question = ask(draw.rng, draw.rng.choice(_SUBTRACT), a=a, b=b)
    return question_and_answer(FAMILY, "subtraction", question, f"{a} - {b} = {a - b}")


_MULTIPLY = [
    "What is {a} × {b}?", "{a} * {b}", "{a}*{b}", "{a} x {b}", "{a} times {b}", "{a} × {b} =",
    "What is {a} times {b}?", "What is {a} * {b}?", "Multiply {a} by {b}.", "Calculate {a} * {b}.",
    "What is the product of {a} and {b}?", "How much is {a} times {b}?", "{a}x{b}", "{a}*{b}=?",
    "Can you multiply {a} and {b}?", "What do you get if you multiply {a} by {b}?",
]


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


def times_table(draw: Draw) -> Dialogue:
    """The table to 12 × 12: facts that are seen; only the phrasing is held out."""
    a, b = draw.rng.randint(0, 12), draw.rng.randint(0, 12)
    question = ask(draw.rng, draw.phrasing(_MULTIPLY), a=a, b=b)
    return question_and_answer(FAMILY, "times table", question, f"{a} × {b} = {a * b}")


_DIVIDE = [
    "What is {a} / {b}?", "{a} / {b}", "{a}/{b}", "{a} divided by {b}", "{a} ÷ {b}",
    "What is {a} divided by {b}?", "Divide {a} by {b}.", "Calculate {a} / {b}.", "{a} : {b}",
    "How much is {a} divided by {b}?", "{a} / {b} =", "What is {a} ÷ {b}?",
]


def division(draw: Draw) -> Dialogue:
    """The table backwards: seen facts, held-out phrasing."""
    a, b = draw.rng.randint(0, 12), draw.rng.randint(1, 12)
    question = ask(draw.rng, draw.phrasing(_DIVIDE), a=a * b, b=b)
    return question_and_answer(FAMILY, "division", question, f"{a * b} / {b} = {a}")


_LARGER = [
    "Which is larger, {a} or {b}?", "Which number is bigger: {a} or {b}?",
    "What is more, {a} or {b}?",
    "Which is greater, {a} or {b}?", "Larger: {a} or {b}?", "{a} or {b}, which is bigger?",
    "Of {a} and {b}, which is the larger number?", "Tell me the bigger of {a} and {b}.",
]
_SMALLER = [
    "Which is smaller, {a} or {b}?", "Which number is smaller: {a} or {b}?",
    "What is less, {a} or {b}?", "{a} or {b}, which is smaller?", "Smaller: {a} or {b}?",
    "Of {a} and {b}, which is the smaller number?", "Tell me the smaller of {a} and {b}.",
]
_IS_LARGER = [
    "Is {a} larger than {b}?", "Is {a} bigger than {b}?", "Is {a} greater than {b}?",
    "Is {a} more than {b}?", "Is {a} > {b}?",
]


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
    elif kind < 0.75:
        phrasing, answer = draw.rng.choice(_SMALLER), f"{low} is smaller than {high}."
    else:
        phrasing = draw.rng.choice(_IS_LARGER)
        answer = f"Yes, {a} is larger than {b}." if a > b else f"No, {a} is smaller than {b}."
    return question_and_answer(FAMILY, "comparison", ask(draw.rng, phrasing, a=a, b=b), answer)


_SORT = [
    "Sort these numbers: {items}", "Sort {items}.", "Put these numbers in order: {items}",
    "Order {items} from smallest to largest.", "Sort from small to large: {items}",
    "Arrange {items} in ascending order.", "Sort ascending: {items}", "Can you sort {items}?",
]
_SORT_DOWN = [
    "Sort these numbers from largest to smallest: {items}", "Sort {items} in descending order.",
    "Order {items} from large to small.", "Sort descending: {items}",
    "Sort {items} from high to low.", "Arrange {items} from the largest down.",
]


def _numbers(draw: Draw, task: str, longest: int = 6) -> list[int]:
    def make(rng):
        n_items = rng.randint(3, longest)
        n_digits = rng.randint(1, 3)
        return [number(rng, n_digits) for _ in range(n_items)]

    return draw.operands(make, lambda items: (task, *sorted(items)))


def _listed(draw: Draw, items: list) -> str:
    return draw.rng.choice((", ", ", ", " ", ",")).join(map(str, items))


def sorting(draw: Draw) -> Dialogue:
    items = _numbers(draw, "sort")
    down = draw.rng.random() < 0.35
    phrasing = draw.rng.choice(_SORT_DOWN if down else _SORT)
    answer = ", ".join(map(str, sorted(items, reverse=down)))
    question = ask(draw.rng, phrasing, items=_listed(draw, items))
    return question_and_answer(FAMILY, "sorting", question, answer)


_LARGEST = ["What is the largest of {items}?", "Find the largest number: {items}",
            "Which of these is the biggest: {items}?", "What is the maximum of {items}?",
            "Give me the biggest of {items}."]
_SMALLEST = ["What is the smallest of {items}?", "Find the smallest number: {items}",
             "Which of these is the smallest: {items}?", "What is the minimum of {items}?",
             "Give me the smallest of {items}."]


def extreme(draw: Draw) -> Dialogue:
    items = _numbers(draw, "extreme")
    largest = draw.rng.random() < 0.5
    question = ask(draw.rng, draw.rng.choice(_LARGEST if largest else _SMALLEST),
                   items=_listed(draw, items))
    answer = f"The largest is {max(items)}." if largest else f"The smallest is {min(items)}."
    return question_and_answer(FAMILY, "largest of a list", question, answer)


_THINGS = ("apples books coins marbles stamps cards pencils shells eggs cookies stones tickets "
           "oranges buttons balloons flowers toys keys plates candles").split()
_GAIN = [
    "{name} has {a} {things} and gets {b} more. How many {things} does {name} have now?",
    "{name} has {a} {things} and buys {b} more. How many is that?",
    "There are {a} {things} in a box. {name} puts in {b} more. How many are there now?",
    "{name} has {a} {things} and finds {b} more. How many {things} in total?",
]
_LOSE = [
    "{name} has {a} {things} and gives away {b}. How many {things} are left?",
    "{name} has {a} {things} and loses {b}. How many does {name} have left?",
    "There are {a} {things} in a box. {name} takes {b}. How many are left?",
    "{name} had {a} {things} and sold {b}. How many remain?",
]


def story(draw: Draw) -> Dialogue:
    a, b = draw.operands(lambda rng: (number(rng, 2), number(rng, 2)),
                         lambda p: ("story", *sorted(p)))
    gains = draw.rng.random() < 0.5
    if not gains:
        a, b = max(a, b), min(a, b)
    things = draw.rng.choice(_THINGS)
    question = ask(draw.rng, draw.rng.choice(_GAIN if gains else _LOSE), keep_case=True,
                   name=first_name(draw.rng), a=a, b=b, things=things)
    answer = f"{a} + {b} = {a + b}" if gains else f"{a} - {b} = {a - b}"
    return question_and_answer(FAMILY, "story", question, answer)


_PARITY = ["Is {a} even or odd?", "Is {a} odd or even?", "Even or odd: {a}?",
           "Is {a} an even number?"]


def small_steps(draw: Draw) -> Dialogue:
    """Even or odd, double, half, the number before and after."""
    a = draw.operands(number, lambda a: ("step", a))
    kind = draw.rng.randrange(5)
    if kind == 0:
        phrasing, answer = draw.rng.choice(_PARITY[:3]), f"{a} is {'odd' if a % 2 else 'even'}."
    elif kind == 1:
        phrasing = draw.rng.choice(("What is double {a}?", "Double {a}.", "What is twice {a}?"))
        answer = f"2 × {a} = {2 * a}"
    elif kind == 2:
        a -= a % 2
        phrasing = draw.rng.choice(("What is half of {a}?", "Halve {a}.", "What is {a} halved?"))
        answer = f"{a} / 2 = {a // 2}"
    elif kind == 3:
        phrasing = draw.rng.choice(("What comes after {a}?", "Which number comes after {a}?",
                                    "What is the next number after {a}?"))
        answer = f"{a + 1} comes after {a}."
    else:
        a = max(a, 1)
        phrasing = draw.rng.choice(("What comes before {a}?", "Which number comes before {a}?",
                                    "What is the number before {a}?"))
        answer = f"{a - 1} comes before {a}."
    return question_and_answer(FAMILY, "small steps", ask(draw.rng, phrasing, a=a), answer)


TASKS = [(addition, 5), (subtraction, 5), (multiplication, 5), (times_table, 2), (division, 2),
         (comparison, 3), (sorting, 4), (extreme, 1.5), (story, 2), (small_steps, 2)]
