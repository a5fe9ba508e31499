"""A text that goes round in circles is noticed; one that repeats itself for a reason is not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from akunu.cli.conversation.loop_guard import LoopGuard
from lines import each_line


def noticed_after(text: str, piece: int = 5) -> int | None:
    """How many characters of a text it takes; None where it is not noticed."""
    guard = LoopGuard()
    for at in range(0, len(text), piece):
        if guard.push(text[at : at + piece]):
            return at + piece
    return None


# What small models wrote, always taking the most likely token, until their context was full.
CIRCLES = {
    "a word": "Once upon a time" + " time" * 500,
    "a clause": "The dragon came. " + "and they were said to be the greatest of all, " * 60,
    "a row of a table": "| Country | Capital | Population |\n|---|---|---|\n"
    + "| Antarctica | Antarctica | 2.1 billion |\n" * 60,
    "items of a list": "".join(f"{n}. A building's foundation\n" for n in range(1, 90)),
    "sentences": ("It is also critical, " + "and essential for all living organisms. ") * 30,
    "paragraphs": ("First, it says this. " + "0123456789 " * 70 + "Then that.\n\n") * 7,
    "lines of code": "def f():\n" + "    result.append(result)\n" * 90,
    "nothing but a mark": "Well" + "!" * 6000,
}

REASONS = {
    "laughter": "ha " * 60,
    "zeros": "[" + "0, " * 300 + "0]",
    "a table of bytes": ("0x00, " * 16 + "\n") * 32,
    "a drawing": (".#" * 20 + "\n") * 20,
    "a rule": "-" * 400,
    "yes and no": "| yes | no | yes |\n" * 40,
    "a refrain": "".join(
        f"Verse {n} tells of {n} ships that went {n} ways.\nRow, row, row your boat,\n"
        "gently down the stream.\n\n"
        for n in range(12)
    ),
    "bottles of beer": "".join(
        f"{n} bottles of beer on the wall, {n} bottles of beer.\nTake one down and pass it "
        f"around, {n - 1} bottles of beer on the wall.\n"
        for n in range(99, 0, -1)
    ),
    "squares": "".join(f"The square of {n} is {n * n}.\n" for n in range(100)),
    "counting": "".join(f"{n}\n" for n in range(1000)),
    "items that differ": "".join(f"{n}. Use of brick {chr(97 + n % 26)}\n" for n in range(60)),
    "a punishment": "I will not talk in class.\n" * 20,
    "cards of a page": '<div class="card"><h2>Title</h2><p>Lorem ipsum</p></div>\n' * 7,
    "a sentence": "The quick brown fox jumps over the lazy dog.",
    "nothing": "",
}


@each_line("name", CIRCLES)
def test_a_circle_is_noticed(name: str) -> None:
    text = CIRCLES[name]
    after = noticed_after(text)
    assert after is not None
    assert after < len(text)


@each_line("name", REASONS)
def test_what_is_repeated_for_a_reason_is_let_be(name: str) -> None:
    for piece in (1, 3, 7):
        assert noticed_after(REASONS[name], piece) is None


@each_line("name", CIRCLES)
def test_the_same_is_noticed_behind_a_long_text(name: str) -> None:
    before = " ".join(str(n * n) for n in range(2000))
    assert noticed_after(before) is None
    assert noticed_after(before + CIRCLES[name], 40) is not None


@given(st.text(max_size=300))
def test_a_text_that_is_not_repeated_is_no_circle(text: str) -> None:
    assert noticed_after(text) is None
