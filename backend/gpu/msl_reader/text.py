"""The text of a .metal file: preprocessed, and without the words that C++ lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from . import source as msl
from .source import Declaration, SourceError, Token

HERE = Path(__file__).resolve().parent


def preprocess(source: Path, compiler: str, includes: list[str], depfile: Path | None) -> str:
    """The text of `source` after the preprocessor, with line markers."""
    command = [compiler, "-E", "-x", "c++", "-std=c++14", "-undef", "-nostdinc", "-nostdinc++"]
    command += ["-D__METAL_VERSION__=310", f"-I{HERE / 'empty'}"]
    command += [f"-I{folder}" for folder in includes]
    if depfile is not None:
        command += ["-MD", "-MF", str(depfile), "-MT", "OUTPUT"]
    result = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise SourceError(result.stderr.strip())
    return result.stdout


def finish_depfile(depfile: Path, output: Path) -> None:
    """Name the output, and the modules that make it: they are dependencies, too."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    backend = HERE.parents[1]
    paths = {Path(file).resolve() for file in files if file}
    modules = " ".join(str(path) for path in sorted(paths) if path.is_relative_to(backend))
    rule = depfile.read_text()
    depfile.write_text(rule.replace("OUTPUT:", f"{output}: {modules}", 1))


def edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    """`text` with each (start, end) replaced; lines stay where they are."""
    parts: list[str] = []
    at = 0
    for start, end, replacement in sorted(edits):
        parts += [text[at:start], replacement, "\n" * text[start:end].count("\n")]
        at = end
    parts.append(text[at:])
    return "".join(parts)


def attribute_edits(tokens: list[Token]) -> list[tuple[int, int, str]]:
    """Takes every `[[ ]]` out."""
    edits: list[tuple[int, int, str]] = []
    index = 0
    while index < len(tokens):
        if msl.is_attribute(tokens, index):
            end = msl.closing(tokens, index)
            edits.append((tokens[index].start, tokens[end].end, ""))
            index = end
        index += 1
    return edits


def space_edits(declaration: Declaration) -> list[tuple[int, int, str]]:
    """Takes address spaces out; `constant` becomes const."""
    edits: list[tuple[int, int, str]] = []
    tokens = declaration.tokens
    for index, token in enumerate(tokens):
        if token.kind != "word":
            continue
        if token.text == "constant":
            # Among the words before a name there may be one const.
            around = {"const", "constexpr"}
            near = {tokens[index - 1].text} if index else set()
            near |= {next_token.text for next_token in tokens[index + 1 : index + 3]}
            near |= {tokens[index - 2].text} if index > 1 else set()
            word = "" if near & around else "const"
            if declaration.kind == "variable" and index < 3:
                word = f"static {word}" if "static" not in near else word
            edits.append((token.start, token.end, word))
        elif token.text in ("device", "thread", "kernel"):
            edits.append((token.start, token.end, ""))
        elif token.text == "threadgroup":
            _check_threadgroup(tokens, index)
            edits.append((token.start, token.end, ""))
    return edits


def _check_threadgroup(tokens: list[Token], start: int) -> None:
    """Refuses a variable in threadgroup memory: `threadgroup float tile[64];`."""
    index = start + 1
    while index < len(tokens):
        text = tokens[index].text
        if text == "<":
            index = msl.closing_angle(tokens, index)
        elif text in ("*", "&", ">", ")"):
            return
        elif text in ("[", ";", "=", "{"):
            raise msl.error(
                tokens[start],
                "threadgroup memory only as an argument [[threadgroup(n)]], not as a variable",
            )
        index += 1
