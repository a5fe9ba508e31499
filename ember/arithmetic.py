"""Sums, differences, products, comparison and sorting of whole numbers to three digits."""

from .dialogue import Dialogue, Draw, question_and_answer
from .noise import ask
from .wordings import expanded
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
    "What is {a} plus {b}?", "Add {a} and {b}.", "[Calculate|Compute] {a} + {b}.",
    "What is the [sum|total] of {a} and {b}?", "How much is {a} and {b} together?",
    "What do [you|I|we] get if [you|I|we] add {a} and {b}?", "Can you add {a} and {b}?",
    "How much is {a} [+|plus|and] {b}?", "{a} and {b} [together|added|in total|summed up]",
    "Add {b} to {a}.", "[Put|Add] {a} and {b} together.", "I [want|would like] {a} plus {b}.",
    "If I add {b} to {a}, [what is it|what comes out|how much is that]?", "{a} plus {b} is what?",
    "What does {a} + {b} [equal|make|give]?", "{a} + {b} [makes|equals|gives|is] ...",
    "[Work out|Solve|Sum|Do] {a} + {b}", "Add these: {a}, {b}", "{a} added to {b}",
    "total of {a} and {b}", "The sum of {a} and {b}, what is it?", "{a}, {b}: the sum?",
    "What would {a} plus {b} be?", "Can you [calculate|compute|do|solve] {a}+{b}?",
    "What number is {a} plus {b}?", "I have {a} and get {b}, what is the total?",
    "What's the result of {a} + {b}?", "[answer|result] of {a}+{b}", "{a} more than {b}",
]


def addition(draw: Draw) -> Dialogue:
    a, b = _pair(draw, "add")
    phrasing = draw.rng.choice(_ADD)
    question = ask(draw.rng, phrasing, a=a, b=b)
    return question_and_answer(FAMILY, "addition", question, f"{a} + {b} = {a + b}")


_SUBTRACT = [
    "What is {a} - {b}?", "{a} - {b}", "{a}-{b}", "{a} - {b} =", "{a} minus {b}", "{a}-{b}=?",
    "What is {a} minus {b}?", "[Calculate|Compute] {a} - {b}.", "Subtract {b} from {a}.",
    "[Take|Remove|Deduct] {b} from {a}.", "Take {b} away from {a}.", "{a} take away {b}",
    "What is left of {a} if you take away {b}?", "How much is {a} minus {b}?", "{a} − {b}",
    "What is the difference of {a} and {b}?", "How much is {a} less {b}?", "{a} less {b}",
    "If I [take|subtract|remove] {b} from {a}, [what is it|what comes out|what stays]?",
    "What does {a} - {b} [equal|make|give]?", "{a} - {b} [makes|equals|gives|is] ...",
    "[Work out|Solve|Do] {a} - {b}", "{a} minus {b} is what?", "{b} subtracted from {a}",
    "What remains when I take {b} from {a}?", "What would {a} minus {b} be?", "{b} less than {a}",
    "Can you [calculate|compute|do|solve|subtract] {a}-{b}?", "I have {a} and lose {b}. Left?",
    "How much is left when {b} is taken from {a}?", "What number is {a} minus {b}?",
    "What's the result of {a} - {b}?", "[answer|result] of {a}-{b}", "reduce {a} by {b}",
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
    "{a} multiplied by {b}", "[Work out|Compute|Solve|Do] {a} [×|*|x|times] {b}",
    "What does {a} [×|*|x] {b} [equal|make|give]?", "{a} [×|*|x] {b} [equals|makes|is] ...",
    "What is {a} multiplied [by|with] {b}?", "{a} by {b} multiplied", "the product of {a} and {b}",
    "How much do {a} times {b} make?", "{a} × {b}", "{a}×{b}", "{a}·{b}", "{a} * {b} = ?",
    "If I multiply {a} by {b}, [what is it|what comes out]?", "{a} times {b} is what?",
    "I need {a} times {b}.", "Can you [calculate|compute|do] {a} [times|x|*] {b}?",
    "What is {a} groups of {b}?", "[answer|result] of {a} * {b}", "{a} x {b} = ?",
    "Can you multiply {a} and {b}?", "What do you get if you multiply {a} by {b}?",
    "Multiply {a} and {b}.", "How much would {a} times {b} be?", "What would {a} × {b} be?",
    "What's the result of {a} times {b}?", "{a} multiplied with {b}, how much is that?",
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


_QUOTIENTS = ("{a} / {b}", "{a}/{b}", "{a} ÷ {b}", "{a}÷{b}", "{a} : {b}", "{a} divided by {b}")
PRODUCTS = ("{a} × {b}", "{a}×{b}", "{a} * {b}", "{a}*{b}", "{a} x {b}", "{a}x{b}", "{a}·{b}",
             "{a} times {b}", "{a} multiplied by {b}")


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


_DIVIDE = [
    "What is {a} / {b}?", "{a} / {b}", "{a}/{b}", "{a} divided by {b}", "{a} ÷ {b}",
    "What is {a} divided by {b}?", "Divide {a} by {b}.", "Calculate {a} / {b}.", "{a} : {b}",
    "{a} over {b}", "[Work out|Compute|Solve|Do] {a} [/|÷|divided by] {b}", "{a}/{b}=?",
    "How often does {b} go into {a}?", "How many times does {b} fit into {a}?",
    "What does {a} [/|÷] {b} [equal|make|give]?", "{a} [/|÷] {b} [equals|makes|is] ...",
    "Can you [divide {a} by {b}|do {a} / {b}]?", "{a} split into {b} parts is how much each?",
    "What do you get if you divide {a} by {b}?", "[answer|result] of {a} / {b}", "{a}÷{b}",
    "What's the result of {a} divided by {b}?", "{a} shared by {b}", "{a} divided in {b} parts",
    "How much is {a} divided by {b}?", "{a} / {b} =", "What is {a} ÷ {b}?",
    "What would {a} divided by {b} be?", "If {a} is divided by {b}, what is the result?",
    "{a} divided by {b} is what?",
]
_DIVISION = expanded([
    *_DIVIDE, *calculated(_QUOTIENTS),
    "[Divide|Split|Share] {a} [by|into] {b}[| parts| equal parts].",
    "How [often|many times] [does|will|can] {b} [go|fit] [in|into] {a}?",
    "[Can you|Could you|I want you to|Please] divide {a} by {b}",
])


def division(draw: Draw) -> Dialogue:
    """The table backwards: seen facts, held-out phrasing."""
    a, b = draw.rng.randint(0, 12), draw.rng.randint(1, 12)
    question = ask(draw.rng, draw.phrasing(_DIVISION), a=a * b, b=b)
    return question_and_answer(FAMILY, "division", question, f"{a * b} / {b} = {a}")


_LARGER = [
    "Which is [larger|bigger|greater|more], {a} or {b}?", "Which number is bigger: {a} or {b}?",
    "What is [more|larger|bigger|greater|higher], {a} or {b}?", "Larger: {a} or {b}?",
    "{a} or {b}, which is [bigger|larger|greater|more]?", "bigger number: {a}, {b}",
    "Of {a} and {b}, which is the larger number?", "Tell me the [bigger|larger] of {a} and {b}.",
    "Which of {a} and {b} is [larger|bigger|greater|higher]?", "{a} vs {b}, which is more?",
    "Compare {a} and {b}.", "[What|Which] is the [larger|bigger|greater|higher] of {a} and {b}?",
    "Compare {a} with {b}: which is larger?", "the larger one of {a} and {b}", "max of {a} and {b}",
    "Between {a} and {b}, which is [larger|bigger|greater]?", "who is bigger, {a} or {b}?",
    "Which of these two is [larger|bigger|greater]: {a}, {b}", "Pick the larger: {a} or {b}",
    "Which is the bigger number, {a} or {b}?", "Is {a} or {b} the [larger|bigger|greater] number?",
]
_SMALLER = [
    "Which is [smaller|less|lower], {a} or {b}?", "Which number is smaller: {a} or {b}?",
    "What is [less|lower|smaller], {a} or {b}?", "{a} or {b}, which is [smaller|less|lower]?",
    "Smaller: {a} or {b}?", "{a} vs {b}, which is less?", "smaller number: {a}, {b}",
    "Of {a} and {b}, which is the smaller number?", "Tell me the smaller of {a} and {b}.",
    "Which of {a} and {b} is [smaller|less|lower]?", "min of {a} and {b}",
    "[What|Which] is the [smaller|lower|lesser] of {a} and {b}?", "the smaller one of {a} and {b}",
    "Between {a} and {b}, which is [smaller|less|lower]?", "Pick the smaller: {a} or {b}",
    "Which of these two is [smaller|lower]: {a}, {b}", "Which is the smaller number, {a} or {b}?",
    "Is {a} or {b} the [smaller|lower] number?", "Compare {a} with {b}: which is smaller?",
]
_IS_LARGER = [
    "Is {a} [larger|bigger|greater|more|higher] than {b}?", "{a} > {b}?", "{a} larger than {b}?",
    "Is {a} > {b}?", "Is the number {a} [larger|bigger|greater] than {b}?",
    "Is it true that {a} is [larger|bigger|greater|more] than {b}?", "{a} is more than {b}, right?",
    "Does {a} come after {b} when counting?", "{a} is bigger than {b}, yes or no?",
    "Tell me if {a} is [larger|bigger|more] than {b}.", "Is {a} above {b}?",
    "Do you think {a} is [larger|bigger|greater] than {b}?", "{a} [greater|bigger] than {b}?",
]
_IS_SMALLER = [
    "Is {a} [smaller|less|lower] than {b}?", "Is {a} < {b}?", "{a} < {b}?", "Is {a} below {b}?",
    "Is it true that {a} is [smaller|less|lower] than {b}?", "{a} is less than {b}, right?",
    "{a} is smaller than {b}, yes or no?", "Tell me if {a} is [smaller|less] than {b}.",
    "{a} smaller than {b}?", "Is the number {a} [smaller|lower] than {b}?",
    "Do you think {a} is [smaller|less] than {b}?", "Does {a} come before {b} when counting?",
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
    elif kind < 0.7:
        phrasing, answer = draw.rng.choice(_SMALLER), f"{low} is smaller than {high}."
    elif kind < 0.8:
        phrasing = draw.rng.choice(_IS_SMALLER)
        answer = f"Yes, {a} is smaller than {b}." if a < b else f"No, {a} is larger than {b}."
    else:
        phrasing = draw.rng.choice(_IS_LARGER)
        answer = f"Yes, {a} is larger than {b}." if a > b else f"No, {a} is smaller than {b}."
    return question_and_answer(FAMILY, "comparison", ask(draw.rng, phrasing, a=a, b=b), answer)


_SORT = [
    "Sort these numbers: {items}", "Sort {items}.", "Put these [numbers |]in order: {items}",
    "Order {items} from smallest to largest.", "Sort from small to large: {items}",
    "Arrange {items} in ascending order.", "Sort ascending: {items}", "Can you sort {items}?",
    "sort {items}", "sort: {items}", "Put {items} in [the right|ascending|numerical] order.",
    "Sort the numbers {items}.", "[Order|Arrange|Sort|Rank] these: {items}", "{items} sorted",
    "{items} in order[ please|]", "Sort {items} from [low to high|smallest to biggest].",
    "{items}: sort them[ please|]", "List {items} from [lowest to highest|least to greatest].",
    "Can you put {items} in order?", "[order|arrange] {items}", "{items} from small to big",
    "Which order do {items} have, smallest first?", "smallest to largest: {items}",
    "Could you sort this list? {items}", "Sort the list {items}", "I need {items} in order.",
    "Bring {items} into order.", "Here are some numbers, sort them: {items}",
    "Start with the smallest and order {items}", "lowest first: {items}",
]
_SORT_DOWN = [
    "Sort these numbers from largest to smallest: {items}", "Sort {items} in descending order.",
    "Order {items} from large to small.", "Sort descending: {items}", "descending: {items}",
    "Sort {items} from high to low.", "Arrange {items} from the largest down.",
    "[Sort|Order|Arrange|Rank|List] {items} from [largest|biggest|highest] to [smallest|lowest].",
    "[Sort|Order|Put|Arrange] {items}, [largest|biggest|greatest] first.", "{items}, largest first",
    "Put {items} in [descending|reverse] order.", "Sort backwards, from big to small: {items}",
    "largest to smallest: {items}", "Can you sort {items} from [big to small|high to low]?",
    "Sort {items} the other way, largest first.", "{items} from big to small",
    "Start with the biggest and order {items}", "{items} in descending order",
]


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


_LARGEST = [
    "What is the [largest|biggest|highest|greatest] of {items}?", "maximum of {items}",
    "Find the [largest|biggest] number: {items}", "largest of {items}?", "max {items}",
    "Which of these is the [biggest|largest|highest]: {items}?", "biggest number of {items}",
    "What is the maximum of {items}?", "Give me the [biggest|largest|highest] of {items}.",
    "Which number is the [largest|biggest|highest|greatest]: {items}",
    "{items}, which is the most?",
    "Among {items}, which is the [largest|biggest]?", "{items}: what is the [largest|maximum]?",
    "Out of {items}, which number is the largest?", "Pick the [largest|biggest] from {items}.",
    "the largest number in the list {items}", "Who is the biggest of {items}?",
    "What's the highest number here: {items}", "highest in {items}",
]
_SMALLEST = [
    "What is the [smallest|lowest|least] of {items}?", "minimum of {items}", "smallest of {items}?",
    "Find the smallest number: {items}", "Which of these is the [smallest|lowest]: {items}?",
    "What is the minimum of {items}?", "Give me the [smallest|lowest] of {items}.", "min {items}",
    "Which number is the [smallest|lowest]: {items}", "{items}, which is the least?",
    "Among {items}, which is the [smallest|lowest]?", "{items}: what is the [smallest|minimum]?",
    "Out of {items}, which number is the smallest?", "Pick the [smallest|lowest] from {items}.",
    "the smallest number in the list {items}", "What's the lowest number here: {items}",
    "lowest in {items}", "smallest number of {items}",
]


def extreme(draw: Draw) -> Dialogue:
    items = _numbers(draw, "extreme")
    largest = draw.rng.random() < 0.5
    question = ask(draw.rng, draw.rng.choice(_LARGEST if largest else _SMALLEST),
                   items=listed(draw, items))
    answer = f"The largest is {max(items)}." if largest else f"The smallest is {min(items)}."
    return question_and_answer(FAMILY, "largest of a list", question, answer)


_THINGS = ("apples books coins marbles stamps cards pencils shells eggs cookies stones tickets "
           "oranges buttons balloons flowers toys keys plates candles cars birds fish sweets pens "
           "shirts hats chairs cups bottles lemons nuts boats dogs cats bags photos").split()
_GAIN = [
    "{name} has {a} {things} and [gets|buys|finds|wins|receives] {b} more. How many {things} does "
    "{name} have [now|in total|then|altogether]?",
    "{name} has {a} {things} and [buys|gets|finds|picks] {b} more. How many is that?",
    "There are {a} {things} in a box. {name} puts in {b} more. How many are there now?",
    "{name} has {a} {things} and finds {b} more. How many {things} in total?",
    "I have {a} {things} and [get|buy|find|make] {b} more[.|,] how many do I have [now|then]?",
    "There are {a} {things} on the table and {b} on the floor. How many {things} are there?",
    "If {name} has {a} {things} and {other} has {b}, how many do they have together?",
    "{name} [bought|made|found|sold|ate] {a} {things} on Monday and {b} on Tuesday. How many [in "
    "total|altogether|is that]?",
    "I had {a} {things}, then my friend gave me {b}. How many [now|do I have]?",
    "{a} {things} and then {b} more {things}, how many is that?",
    "A box holds {a} {things}, another one {b}. How many {things} in both boxes?",
    "We saw {a} {things} and later {b} more. How many did we see?",
    "{a} people are on a bus and {b} get on. How many people are on the bus?",
    "On a farm there are {a} cows and {b} pigs. How many animals is that?",
    "{name} is {a} years old. How old is {name} in {b} years?",
    "{name} pays {a} euros for the {things} and {b} euros for a bag. How much is that?",
    "In the room are {a} men and {b} women. How many people are there?",
    "{name} read {a} pages yesterday and {b} today. How many pages [is that|in all]?",
]
_LOSE = [
    "{name} has {a} {things} and [gives away|loses|sells|breaks|eats] {b}. How many {things} are "
    "left?",
    "{name} has {a} {things} and loses {b}. How many does {name} have left?",
    "There are {a} {things} in a box. {name} takes {b}[ out|]. How many are left?",
    "{name} had {a} {things} and [sold|lost|ate|gave away|used] {b}[.|,] how many [remain|are "
    "left|does {name} still have]?",
    "I have {a} {things} and [give away|lose|sell|use|throw away] {b}[.|,] how many do I have "
    "left?",
    "I had {a} {things} and [lost|sold|gave you|used] {b}. How many are left?",
    "Of {a} {things}, {b} are broken. How many are [fine|whole|good]?",
    "There were {a} {things} and {b} of them are gone. How many are still [here|there]?",
    "{name} wants {a} {things} and has {b}. How many more does {name} need?",
    "{a} people are at a party and {b} go home. How many stay?",
    "A book has {a} pages. I read {b}. How many pages are left?",
    "{name} has {a} euros and [spends|pays] {b}. How much is left?",
    "I had {a} euros and paid {b}. What do I have left?",
    "{a} cars stand in the street, {b} drive away. How many cars remain?",
    "{name} picked {a} {things} and gave {other} {b} of them. How many does {name} keep?",
    "The shop has {a} {things}. It sells {b} of them today. How many are left in the shop?",
]


def story(draw: Draw) -> Dialogue:
    a, b = draw.operands(lambda rng: (number(rng, 2), number(rng, 2)),
                         lambda p: ("story", *sorted(p)))
    gains = draw.rng.random() < 0.5
    if not gains:
        a, b = max(a, b), min(a, b)
    things = draw.rng.choice(_THINGS)
    question = ask(draw.rng, draw.rng.choice(_GAIN if gains else _LOSE), keep_case=True,
                   name=first_name(draw.rng), other=first_name(draw.rng), a=a, b=b, things=things)
    answer = f"{a} + {b} = {a + b}" if gains else f"{a} - {b} = {a - b}"
    return question_and_answer(FAMILY, "story", question, answer)


_PARITY = [
    "Is {a} even or odd?", "Is {a} odd or even?", "Even or odd: {a}?", "{a}: even or odd?",
    "Is {a} an [even|odd] number?", "Is {a} [even|odd]?", "Tell me if {a} is [even|odd].",
    "Is the number {a} even or odd?", "What is {a}, odd or even?", "{a} is even or odd?",
    "Would you call {a} even or odd?", "odd or even, {a}", "{a} [even|odd]?",
]
_DOUBLE = ["What is double {a}?", "Double {a}.", "What is twice {a}?", "double {a}", "twice {a}",
           "What is {a} doubled?", "two times {a}", "{a} doubled", "Can you double {a}?",
           "the double of {a}", "If I double {a}, what do I get?", "How much is twice {a}?"]
_HALF = ["What is half of {a}?", "Halve {a}.", "What is {a} halved?", "half of {a}", "half {a}",
         "What is the half of {a}?", "one half of {a}", "Can you halve {a}?", "{a} halved",
         "How much is half of {a}?", "Give me half of {a}.", "If I halve {a}, what do I get?"]
_NEXT = ["What comes after {a}?", "[Which|What] number comes [right |]after {a}?",
         "What is the next number after {a}?", "number after {a}", "next number after {a}?",
         "What is one more than {a}?", "[Which|What] number follows {a}?", "What follows {a}?",
         "I counted to {a}, what is next?", "{a}, and then?", "Which number is next after {a}?",
         "Count one up from {a}."]
_PREVIOUS = ["What comes before {a}?", "[Which|What] number comes [right |just |]before {a}?",
             "What is the number before {a}?", "number before {a}", "What is one less than {a}?",
             "Which number is just before {a}?", "What is the previous number of {a}?",
             "When I count, what comes before {a}?", "Count one down from {a}.",
             "Which number precedes {a}?", "the number in front of {a}",
             "What is the number in front of {a}?"]


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


_THREE = ["{a} + {b} + {c}", "What is {a} + {b} + {c}?", "{a}+{b}+{c}", "Add {a}, {b} and {c}.",
          "What is the sum of {a}, {b} and {c}?", "{a} plus {b} plus {c}", "{a}+{b}+{c}=",
          "How much is {a} and {b} and {c}?", "What is {a} plus {b} plus {c}?",
          "Sum up {a}, {b}, {c}", "total of {a}, {b} and {c}", "Add these up: {a}, {b}, {c}"]


def three_numbers(draw: Draw) -> Dialogue:
    """A sum of three numbers to two digits, in two steps."""
    def make(rng):
        return tuple(number(rng, 2) for _ in range(3))

    a, b, c = draw.operands(make, lambda items: ("three", *sorted(items)))
    question = ask(draw.rng, draw.rng.choice(_THREE), a=a, b=b, c=c)
    answer = f"{a} + {b} + {c} = {a + b} + {c} = {a + b + c}"
    return question_and_answer(FAMILY, "three numbers", question, answer)


TASKS = [(addition, 5), (subtraction, 5), (multiplication, 5), (times_table, 2.5), (division, 2.5),
         (comparison, 3), (sorting, 4), (extreme, 1.5), (story, 3), (small_steps, 2.5),
         (three_numbers, 1)]
