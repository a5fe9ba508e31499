"""The linter of prose: what it refuses, where it looks, and how it counts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.english.counts import ROOT, complaints, counts_of, place_of, recorded
from tools.english.rules import RULES, exceptions, hits
from tools.english.texts import Text, texts_of

REFUSED = {
    "fronted-of": (
        "Of the weights, only the embedding is read.",
        "One image. Of other models the text part runs.",
        "Gemma 3 reads images; of other models, the text part runs.",
    ),
    "so-many": (
        "Penalties look at so many of the latest tokens.",
        "Choose among so few tokens.",
        "A stream that is silent for so long gets a comment.",
        "Texts under way have so long to end.",
    ),
    "told-asked-given": (
        "The server is told the port.",
        "Tokens that were asked for are returned.",
        "The path must be given.",
        "Options are being given twice.",
    ),
    "is-said": ("Leave out a keyword; it is said.", "What the choice was is said, too."),
    "becomes-of": ("This is what becomes of a message.", "What became of it is in the log."),
    "beside-behind": (
        "The index lies beside the model.",
        "Behind the prompt comes the completion.",
        "Padding behind the last row is zero.",
    ),
    "goes-on": ("The text goes on after that.", "A session that went on has the same bits."),
    "who-for-software": (
        "Whoever read the output closed it.",
        "Nobody uses the cache.",
        "Somebody may wait.",
        "A thread who waits holds no lock.",
        "The header says who asks.",
    ),
    "of-its-own": ("Each has a thread of its own.", "Experts have matrices of their own."),
    "clause-without-noun": (
        "It reads what is left of the file.",
        "The best of what is left.",
        "It keeps what comes before.",
        "What is secret has no option on the command line.",
        "Refuses what has no vocabulary.",
    ),
    "is-no": ("A value that is no number is refused.", "This is no file of kernels."),
}

PLAIN = (
    "Of course, the file may be missing.",
    "The size of the cache depends on the context length.",
    "There are so many tokens in the prompt that it does not fit.",
    "So far, 12 models are tested.",
    "You are asked for the path of the model.",
    "The server runs behind a reverse proxy.",
    "Nginx is in front; akunu is behind the proxy.",
    "Next to the model lies its index.",
    "The result goes on standard output; the layer goes on the second GPU.",
    "People who use Ollama find the same names here.",
    "Users who send two requests get two answers.",
    "Each request has its own thread.",
    "What does this option do?",
    "Shows what the model computes and what it needs.",
    "What it does, its range and its default.",
    "There is no limit, and there were no errors.",
    "The value is no longer valid; it is no larger than 7.",
    "The model became faster.",
)


@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_each_construction_is_refused(rule: str) -> None:
    for sentence in REFUSED[rule]:
        assert rule in {hit.rule for hit in hits(sentence)}, sentence


@pytest.mark.parametrize("sentence", PLAIN)
def test_plain_sentences_are_not(sentence: str) -> None:
    assert not list(hits(sentence))


def test_a_help_text_may_have_thirty_words_in_a_sentence() -> None:
    fits = " ".join(["word"] * 30) + "."
    assert not list(hits(f"{fits} {fits}", is_help=True))
    assert [hit.rule for hit in hits(f"One {fits}", is_help=True)] == ["long-help"]
    assert not list(hits(f"One {fits}"))


def test_exceptions_are_few_and_each_would_be_refused() -> None:
    assert len(exceptions()) < 20
    for phrase in exceptions():
        assert any(rule.pattern.search(phrase) for rule in RULES), phrase


def read(folder: Path, name: str, text: str) -> list[Text]:
    path = folder / name
    path.write_text(text)
    return list(texts_of(path))


def test_a_page_is_paragraphs_items_and_cells_without_code(tmp_path: Path) -> None:
    page = "# Title\n\nOne\ntwo `goes on`.\n- item\n  more\n\n| a | b c |\n"
    page += "```sh\nnot read\n```\nlast\n"
    assert read(tmp_path, "page.md", page) == [
        (1, "Title", False),
        (3, "One two X.", False),
        (5, "item more", False),
        (8, "a", False),
        (8, "b c", False),
        (12, "last", False),
    ]


PROGRAM = '''\
"""The module.

>>> no prose here
"""
# One sentence
# on two lines.
name = "identifier"
x = f"a sentence with {name} in it " + "and one more sentence"  # a comment
option(0, check, "The help of an option.")
def f(): run(help="Help of a flag.")
CHAT_HELP = "Help of a command."
'''


def test_a_program_is_comments_docstrings_and_sentences(tmp_path: Path) -> None:
    found = read(tmp_path, "program.py", PROGRAM)
    assert {text.text for text in found if not text.is_help} == {
        "The module.",
        "One sentence on two lines.",
        "a comment",
        "a sentence with X in it",
        "and one more sentence",
    }
    assert {text.text for text in found if text.is_help} == {
        "The help of an option.",
        "Help of a flag.",
        "Help of a command.",
    }
    without = {text.text for text in texts_of(tmp_path / "program.py", strings=False)}
    assert without == {"The module.", "One sentence on two lines.", "a comment"}


def test_cpp_is_comments_and_messages(tmp_path: Path) -> None:
    code = (
        '// One\n// two.\nint x;  // of x\nfail("the file " \n     "is too short");\n/* block */\n'
    )
    texts = [text.text for text in read(tmp_path, "code.cpp", code)]
    assert texts == ["One two.", "of x", "block", "the file is too short"]


def test_a_number_may_only_shrink_and_is_lowered_when_it_does(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("The text goes on. Nobody reads it.\n")
    counts = counts_of(tmp_path, ["README.md"])
    assert counts == {"README.md": 2}
    assert complaints(counts, recorded("2 README.md\n")) == []
    (more,) = complaints(counts, {})
    assert "README.md: 2 constructions that docs/glossary.md refuses, 0 recorded" in more
    (fewer,) = complaints(counts, {"README.md": 3})
    assert "lower the number: 3 are recorded, 2 are left" in fewer
    (gone,) = complaints({}, {"docs/gone.md": 1})
    assert "docs/gone.md: lower the number" in gone


def test_files_of_the_package_and_pages_are_counted_one_by_one() -> None:
    assert place_of("docs/adding/model.md") == "docs/adding/model.md"
    assert place_of("tests/unit/check.h") == "tests/unit/"
    assert place_of("tools/options.py") == "tools/options.py"


def test_the_glossary_has_every_rule() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    for name in [*(rule.name for rule in RULES), "long-help"]:
        assert f"| `{name}` |" in page, name
