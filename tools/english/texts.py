"""The prose in a file: paragraphs, comments, docstrings, and strings that have sentences."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

MARKDOWN: Final = (".md",)
PYTHON: Final = (".py", ".pyi")
SLASHES: Final = (".cpp", ".h", ".cu", ".cuh", ".metal", ".inc", ".c", ".swift", ".js")
HASHES: Final = (".sh", ".toml", ".yml", ".cmake", ".txt")
LEAST_WORDS: Final = 3  # of a string that may be a sentence


class Text(NamedTuple):
    """A paragraph, a comment or a string: one line, with code replaced by X."""

    line: int
    text: str
    is_help: bool = False


def texts_of(path: Path, *, strings: bool = True) -> Iterator[Text]:
    """Yield the texts of a file, if its kind has prose; `strings`: those of Python, too."""
    if path.name == "CMakeLists.txt" or (path.suffix in HASHES and path.suffix != ".txt"):
        yield from _comments(path.read_text("utf-8").splitlines(), r"(?:^|\s)#(?!\[)\s?(.*)$")
    elif path.suffix in MARKDOWN:
        yield from _markdown(path.read_text("utf-8"))
    elif path.suffix in PYTHON:
        yield from _python(path.read_text("utf-8"), strings)
    elif path.suffix in SLASHES:
        text = path.read_text("utf-8")
        yield from _comments(text.splitlines(), r"(?:^|\s)(?://[/!]?<?|/?\*+(?!/))\s(.*?)(?:\*/)?$")
        yield from _quoted(text)


def plain(text: str) -> str:
    """Return a text in one line, code and addresses replaced by X, without marks of Markdown.

    >>> plain("The *size* of `a b`,\\n in [bytes](x.md)")
    'The size of X, in bytes'
    """
    text = re.sub(r"``?[^`]+``?", "X", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"[*_]{1,2}(\S(?:[^*_]*\S)?)[*_]{1,2}", r"\1", text)
    return " ".join(text.split())


def _markdown(text: str) -> Iterator[Text]:
    def blanked(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    text = re.sub(r"^([ ]*)```.*?^\1```$", blanked, text, flags=re.MULTILINE | re.DOTALL)
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        begins = re.match(r"\s*(?:[-*+]|\d+\.|#+|>)\s+(.*)", line)
        if begins or not line.strip() or line.lstrip().startswith("|"):
            if lines:
                yield Text(number - len(lines), plain(" ".join(lines)))
            lines = []
        if line.lstrip().startswith("|"):
            yield from (Text(number, plain(cell)) for cell in re.split(r"(?<!\\)\|", line) if cell)
        elif line.strip():
            lines.append(begins[1] if begins else line)


def _comments(lines: Iterable[str], pattern: str) -> Iterator[Text]:
    """Yield comments; those of lines that follow one another are one."""
    found: list[str] = []
    number = 0
    for number, line in enumerate(lines, 1):
        comment = re.search(pattern, line)
        whole = comment is not None and not line[: comment.start()].strip()
        if found and not whole:
            yield Text(number - len(found), plain(" ".join(found)))
            found = []
        if comment is not None:
            if whole:
                found.append(comment[1])
            else:
                yield Text(number, plain(comment[1]))
    if found:
        yield Text(number - len(found) + 1, plain(" ".join(found)))


def _quoted(text: str) -> Iterator[Text]:
    """Yield strings of C++ and Swift that may be sentences; neighbours are one."""
    for match in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', text):
        joined = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', match[0]))
        if _is_sentence(joined):
            yield Text(text.count("\n", 0, match.start()) + 1, plain(joined))


def _is_sentence(text: str) -> bool:
    return len(re.findall(r"[A-Za-z]{2,}", text)) >= LEAST_WORDS and " " in text.strip()


def _python(source: str, strings: bool) -> Iterator[Text]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [""] * (source.count("\n") + 2)
    for token in tokens:
        if token.type == tokenize.COMMENT:
            before = token.line[: token.start[1]]
            comments[token.start[0] - 1] = (before if before.strip() else "") + token.string
    yield from _comments((each if "#" in each else "" for each in comments), r"#:?\s?(.*)$")
    tree = ast.parse(source)
    docstrings = _docstrings(tree)
    helps = {id(each) for each in _helps(tree)}
    formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for node in formatted for part in node.values}
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or id(node) in parts:
            continue
        text = _string(node)
        if isinstance(node, ast.Constant) and id(node) in docstrings:
            for line, paragraph in _paragraphs(node):
                yield Text(line, plain(paragraph))
        elif strings and text is not None and _is_sentence(text):
            yield Text(node.lineno, plain(text), id(node) in helps)


def _paragraphs(node: ast.Constant) -> Iterator[tuple[int, str]]:
    """Yield paragraphs of a docstring, without examples."""
    lines: list[str] = []
    is_example = False
    for number, line in enumerate([*str(node.value).splitlines(), ""], node.lineno):
        is_example = bool(line.strip()) and (is_example or line.lstrip().startswith(">>>"))
        if line.strip() and not is_example:
            lines.append(line)
        elif lines:
            yield number - len(lines), " ".join(lines)
            lines = []


def _docstrings(tree: ast.AST) -> set[int]:
    """Return the strings that stand alone: docstrings of modules, functions and attributes."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }


def _helps(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield help texts: `help=`, constants whose names end in HELP, what `option` declares."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "help":
            yield node.value
        if isinstance(node, ast.Assign) and _name(node.targets[0]).endswith("HELP"):
            yield node.value
        if isinstance(node, ast.Call) and _name(node.func) == "option" and len(node.args) > 2:
            yield node.args[2]


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _string(node: ast.AST) -> str | None:
    """Return a string; what is formatted into it is X."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
        )
    return None
