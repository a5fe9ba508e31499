"""What is typed is a question or a command, and ends where it looks as if it did."""

from __future__ import annotations

from akunu.cli.conversation.entry import Entry, is_open, parse_entry
from lines import each_line


@each_line(
    ("typed", "entry"),
    [
        ("What is it?", Entry("What is it?")),
        ("  What is it?  ", Entry("What is it?")),
        ("/exit", Entry("/exit", "/exit")),
        ("/?", Entry("/?", "/?")),
        ("/undo  2 ", Entry("/undo  2", "/undo", "2")),
        (" /exit", Entry("/exit")),
        ("/etc/hosts is what?", Entry("/etc/hosts is what?")),
        ("/exit\nrm -r .", Entry("/exit\nrm -r .")),
        ("/save a\n/exit", Entry("/save a\n/exit")),
        ("/exit\n", Entry("/exit", "/exit")),
        ("/sys Be\nbrief.", Entry("/sys Be\nbrief.", "/sys", "Be\nbrief.")),
        ('/save """a\nb"""', Entry('/save """a\nb"""', "/save", "a\nb")),
        ('"""/exit"""', Entry("/exit")),
        ('"""\n  a\nb\n"""', Entry("  a\nb")),
        ("\n    a = 1\n    b = 2\n", Entry("    a = 1\n    b = 2")),
        ('"""doc"""\nx = """y"""', Entry('"""doc"""\nx = """y"""')),
        ('""""""', Entry("")),
        ("", Entry("")),
    ],
)
def test_what_is_typed_is_a_question_or_a_command(typed: str, entry: Entry) -> None:
    assert parse_entry(typed) == entry


@each_line(
    ("typed", "opened"),
    [
        ("What?", False),
        ('"""', True),
        ('""""""', False),
        ('"""a', True),
        ('  """a\nb', True),
        ('"""a\nb"""', False),
        ('"""a""" ', False),
        ('/system """Be', True),
        ('/system """Be\nbrief."""', False),
        ('a """', False),
    ],
)
def test_three_quotation_marks_wait_for_three_more(typed: str, opened: bool) -> None:
    assert is_open(typed) == opened
