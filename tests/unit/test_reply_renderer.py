"""Replies on a terminal: broken at words, Markdown rendered, however they come in pieces."""

from __future__ import annotations

import re
from collections import Counter
from io import StringIO
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.markdown import Markdown
from screen_support import FULL, Screen, rendered

from akunu.cli.reply.markdown_lines import Symbols
from akunu.cli.reply.renderer import ReplyLook as Look
from akunu.cli.reply.renderer import ReplyRenderer
from akunu.cli.terminal.console import for_terminal
from akunu.cli.terminal.live_rows import LiveRows as Painter
from lines import each_line

PLAIN = Look(markdown=False, styles=False)

TEXTS = {
    "emphasis": "Some **bold and *both*** words, `some code`, ~~gone~~, 2 * 3 * 4, a_b_c, **open",
    "heading": "# The *first* one\n\nText.\n\n## Second ##\nMore text.",
    "list": """Steps:

- one is long enough to be broken at some word
  - inner
* two

1. **a**
2. b
    goes on here, and so far that it has to be broken""",
    "quote": "> a quote that is so long that it is broken into two rows\n> > inner\n\nend",
    "table": """Look:

| name | what | n |
|:--|:-:|--:|
| a | two words | 1 |
| `b` | **x** | 20 |

After it | a bar.""",
    "code": """So:

```python
def f(x):
    # a comment

    return 'text' * x
```

Done `x`.""",
    "bare code": "~~~\n**not bold**\n~~~\ntext\n\n    indented **code**\n\ntext",
    "code in a list": "1. First:\n   ```sh\n   ls -l | wc\n   ```\n2. Then `ls`.",
    "links": "See [the *docs*](https://a.example/x_y) or <https://b.example>, not [this] (one).",
    "wide": "**日本語**の文章はここで折り返されますか。 \N{FIRE} yes 한국어 문장도 그렇습니다.",
    "rules": "one\n\n---\n\n***\ntwo\n- - -\nthree",
    "long word": "x" * 100 + " and https://example.org/" + "y" * 50,
    "nearly markup": "a*b, **, _, `, |, a|b, ~, #tag, 1.5, -3, >, ``` in a line, \\*no\\* \\(x\\)",
}


@each_line("name", TEXTS)
def test_the_screen_is_the_same_however_the_text_is_cut(name: str) -> None:
    text = TEXTS[name]
    whole = rendered([text], 24).lines
    for at in range(1, len(text)):
        assert rendered([text[:at], text[at:]], 24).lines == whole, at
    assert rendered(text, 24).lines == whole


# Not "nearly markup": CommonMark takes the * of a product for emphasis.
@each_line("name", sorted(TEXTS.keys() - {"nearly markup"}))
def test_the_words_are_those_that_rich_shows(name: str) -> None:
    out = StringIO()
    text = TEXTS[name].replace("https://a.example/x_y", "")  # rich hides addresses
    Console(file=out, width=200).print(Markdown(text))
    words = Counter(re.findall(r"\w+", out.getvalue()))
    ours = Counter(re.findall(r"\w+", "\n".join(rendered([text], 200).lines)))
    for info in re.findall(r"(?m)^ *```(\w+)$", text):
        words[info] += 1  # rich does not show the language
    assert ours == words


def test_text_is_broken_at_words() -> None:
    assert rendered(["The quick brown fox jumps over."], 16).lines == [
        "The quick brown",
        "fox jumps over.",
    ]


def test_text_that_only_grows_is_written_without_moving_the_cursor() -> None:
    screen = rendered("The quick brown fox, and then some more of it.", 16, look=PLAIN)
    assert screen.written == "The quick brown\nfox, and then\nsome more of it."
    coloured = rendered(TEXTS["list"], 30).written
    assert not re.search(r"\x1b\[[^m]*[A-LN-Za-ln-z]", coloured)


def test_words_are_shown_as_soon_as_they_are_whole() -> None:
    screen = Screen(20)
    renderer = ReplyRenderer(Painter(screen.put, 20), FULL, lambda: screen.size)
    shown = []
    for piece in ("Some", " **bo", "ld** wo", "rds", "."):
        renderer.push(piece)
        shown.append(screen.lines)
    renderer.finish()
    assert shown == [[], ["Some"], ["Some bold"], ["Some bold"], ["Some bold"]]
    assert screen.lines == ["Some bold words."]


def test_bold_that_never_ends_was_text() -> None:
    screen = Screen(40)
    renderer = ReplyRenderer(Painter(screen.put, 40), FULL, lambda: screen.size)
    renderer.push("A **big house ")
    assert screen.lines == ["A big house"]
    assert screen.style_of("big")[0]
    renderer.push("stands\nthere")
    renderer.finish()
    assert screen.lines == ["A **big house stands", "there"]
    assert not screen.style_of("big")[0]


def test_styles_are_those_of_the_markup() -> None:
    screen = rendered(["**bold** *italic* `code`\n# Title"])
    assert screen.style_of("bold") == (True, False, "default")
    assert screen.style_of("italic") == (False, True, "default")
    assert screen.style_of("code") == (False, False, "cyan")
    assert screen.style_of("Title")[0]


def test_code_is_written_as_it_is_so_that_it_can_be_copied() -> None:
    code = "def f(x):\n    return [x for x in range(1_000_000)]  # longer than the terminal is wide"
    screen = rendered([f"```python\n{code}\n```"], 20)
    assert re.sub(r"\x1b\[[0-9;]*m", "", screen.written) == f"python\n{code}"
    assert screen.style_of("def")[2] == "magenta"


def test_lines_of_code_are_shown_while_they_come() -> None:
    screen = Screen(40)
    renderer = ReplyRenderer(Painter(screen.put, 40), FULL, lambda: screen.size)
    renderer.push("```python\nx = 'a")
    assert screen.lines == ["python", "x = 'a"]
    renderer.push("b'  # longer than forty columns, so it is broken\n")
    renderer.push("``")
    assert screen.lines == ["python", "x = 'ab'  # longer than forty columns, s", "o it is broken"]


def test_a_table_grows_with_its_cells() -> None:
    screen = rendered(TEXTS["table"])
    assert screen.lines == [
        "Look:",
        "",
        "name │   what    │  n",
        "─────┼───────────┼───",
        "a    │ two words │  1",
        "b    │     x     │ 20",
        "",
        "After it | a bar.",
    ]


def test_a_table_wider_than_the_terminal_is_broken_at_words() -> None:
    table = "| name | remark |\n|---|---|\n| a | a remark that is long |\n"
    assert rendered([table], 20).lines == [
        "name │ remark",
        "─────┼──────────────",
        "a    │ a remark that",
        "     │ is long",
    ]


def test_a_table_of_more_columns_than_fit_has_a_row_per_cell() -> None:
    table = "| aaaaaaa | bbbbbbb | ccccccc |\n|---|---|---|\n| 1111111 | 2222222 | 3333333 |\n"
    assert rendered([table], 15).lines == [
        "aaaaaaa:",
        "  1111111",
        "bbbbbbb:",
        "  2222222",
        "ccccccc:",
        "  3333333",
        "─",
    ]


def test_a_table_higher_than_the_screen_loses_no_line() -> None:
    table = "| n | text |\n|---|---|\n" + "".join(f"| {n} | line{n} |\n" for n in range(60))
    screen = rendered(re.findall(r"[^ ]+ ?", table), 30, height=10)
    found = re.findall(r"line(\d+)", "\n".join(screen.lines))
    assert found == [str(n) for n in range(60)]


def test_a_line_higher_than_the_screen_loses_no_word() -> None:
    words = [f"w{n}" for n in range(300)]
    text = "**" + " ".join(words) + "** end"
    screen = rendered(re.findall(r"[^ ]+ ?", text), 30, height=10)
    assert re.findall(r"\w+", "\n".join(screen.lines)) == [*words, "end"]
    assert "*" not in "".join(screen.lines)


@each_line("mark", ["**", "`", "*", "~~"])
def test_markup_that_opened_far_above_and_never_ends_does_not_come_back(mark: str) -> None:
    words = [f"w{n}" for n in range(60)]
    screen = rendered(re.findall(r"[^ ]+ ?", mark + " ".join(words)), 30)
    assert " ".join(screen.lines).split() == words


def test_text_cannot_steer_the_terminal() -> None:
    screen = rendered(["a\x1b[2Jb \x1b]0;title\x07 `\x1b[31m`"], 60)
    assert screen.lines == ["a\\x1b[2Jb \\x1b]0;title\\x07 \\x1b[31m"]


@each_line("width", [15, 60])
@each_line("name", ["emphasis", "code", "table"])
def test_a_resize_counts_from_there_on(name: str, width: int) -> None:
    text = TEXTS[name]
    for at in range(0, len(text), 4):
        screen = Screen(30)
        renderer = ReplyRenderer(Painter(screen.put, 30), FULL, lambda screen=screen: screen.size)
        renderer.push(text[:at])
        screen.resize(width)
        for character in text[at:]:
            renderer.push(character)
        renderer.finish()
        shown = Counter("".join(screen.lines))
        for character, count in Counter("".join(filter(str.isalnum, text))).items():
            # A narrower terminal may have cut rows that were there; what comes later is whole.
            missing = count - shown[character]
            assert missing <= 0 or (width < 30 and missing <= 30)


def test_behind_something_else_a_reply_goes_on_in_an_empty_row() -> None:
    screen = Screen(30)
    renderer = ReplyRenderer(Painter(screen.put, 30), FULL, lambda: screen.size)
    renderer.push("Some **bold words and ")
    screen.put("\r\n[1]+  Stopped\n$ fg\n")  # Ctrl-Z, and back
    renderer.restart()
    renderer.push("more** words, more than a row of them")
    renderer.finish()
    assert screen.lines == [
        "Some bold words and",
        "[1]+  Stopped",
        "$ fg",
        "more words, more than a row of",
        "them",
    ]
    assert screen.style_of("more") == (True, False, "default")


def test_without_styles_there_are_no_escape_codes_and_markup_stays() -> None:
    text = "# T\n**bold** text\n```python\nx = 1\n```\n| a | b |\n|---|---|\n"
    screen = rendered(text, 40, look=PLAIN)
    assert screen.written == text.rstrip("\n")


MARKDOWN = st.text(st.sampled_from("ab c\n\n*`_#>-|~1. [](x)!\\日"), max_size=60)


@settings(deadline=None, max_examples=100)
@given(MARKDOWN, st.lists(st.integers(0, 60)), st.integers(10, 40))
def test_any_text_in_any_pieces_gives_one_screen_that_has_all_of_it(
    text: str, cuts: list[int], width: int
) -> None:
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(bounds)]
    screen = rendered(pieces, width)
    assert screen.lines == rendered([text], width).lines
    shown = Counter(filter(str.isalnum, "".join(screen.lines)))
    written = Counter(filter(str.isalnum, text))
    written.pop("1", None)
    shown.pop("1", None)
    assert shown == written


@settings(deadline=None, max_examples=50)
@given(st.text(max_size=80), st.lists(st.integers(0, 80)), st.integers(10, 40))
@example(text="0000000\x1f\x1f\t\xa00", cuts=[], width=10)  # no row ends at such a space
@example(text="00000000\u2e80:", cuts=[], width=10)  # the colon takes the wide one to the next row
def test_plain_text_in_any_pieces_is_all_there(text: str, cuts: list[int], width: int) -> None:
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    written: list[str] = []
    renderer = ReplyRenderer(
        Painter(written.append, width, styles=False), PLAIN, lambda: (width, 24)
    )
    for a, b in pairwise(bounds):
        renderer.push(text[a:b])
    renderer.finish()
    assert "".join("".join(written).split()) == "".join(for_terminal(text).split())
    assert "\x1b" not in "".join(written)


def test_symbols_can_be_ascii() -> None:
    look = Look()
    assert look.symbols != Symbols()
    screen = rendered([TEXTS["list"] + "\n" + TEXTS["table"] + "\n> q\n\n---"], look=look)
    assert "\n".join(screen.lines).isascii()
