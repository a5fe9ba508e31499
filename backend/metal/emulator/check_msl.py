"""Checks that .metal files are Metal Shading Language, as far as that can be told without a Mac.

    check_msl.py [--clang clang++] [--include DIR ...] FILE.metal ...

First a list of what MSL refuses and C++ allows: recursion, double, virtual, exceptions, new,
lambdas, and so on. Then clang reads the file with address spaces as attributes, so that a pointer
without `device`, `constant` or `threadgroup`, or with the wrong one, is an error. Prints errors as
compilers do; exits with 1 where there are any.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import generate

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "gpu"))

from msl_reader import program as programs  # noqa: E402
from msl_reader import source as msl  # noqa: E402
from msl_reader.source import Declaration, SourceError, Token  # noqa: E402
from msl_reader.text import attribute_edits, edited, preprocess  # noqa: E402

FORBIDDEN_WORDS = {
    "double": "MSL has no double",
    "bfloat": "bfloat needs Metal 3.1's own type, which older chips lack: read it as ushort",
    "virtual": "MSL has no virtual functions",
    "try": "MSL has no exceptions",
    "catch": "MSL has no exceptions",
    "throw": "MSL has no exceptions",
    "new": "MSL has no new",
    "delete": "MSL has no delete",
    "goto": "MSL has no goto",
    "typeid": "MSL has no typeid",
    "dynamic_cast": "MSL has no dynamic_cast",
    "noexcept": "MSL has no noexcept",
    "register": "MSL has no register",
    "thread_local": "MSL has no thread_local",
    "asm": "MSL has no asm",
    "__asm__": "MSL has no asm",
    "std": "MSL has no std: use metal::",
}

SPACES = {
    "device": "AKUNU_DEVICE",
    "constant": "AKUNU_CONSTANT_SPACE const",
    "threadgroup": "AKUNU_THREADGROUP",
    "thread": "",
    "kernel": "",
}

_VECTOR = re.compile(r"(packed_)?(bool|u?char|u?short|u?int|u?long|half|float)[234]$")
_UNSUFFIXED = re.compile(r"(\d+\.\d*|\.\d+)([eE][+-]?\d+)?$|\d+[eE][+-]?\d+$|0[xX].*[pP][+-]?\d+$")
_DIAGNOSTIC = re.compile(r"(?P<place>.+?:\d+):\d+: (?P<kind>error|fatal error|note): (?P<text>.*)")
# A struct in a buffer is copied by a constructor that clang only has for its own address space.
_COPY_NOTE = re.compile(
    r"candidate (constructor|function) \(the implicit (copy|move) "
    r"(constructor|assignment operator)\) not viable: .*address space"
)
# What clang says of such a copy in its first line.
_COPY_ERROR = re.compile(r"no matching constructor for initialization of|no viable overloaded '='")


def find_forbidden(declarations: list[Declaration]) -> list[SourceError]:
    """What the list of refused constructs finds."""
    found: list[SourceError] = []
    for declaration in declarations:
        tokens = declaration.tokens
        for index, token in enumerate(tokens):
            problem = _forbidden(declaration, tokens, index)
            if problem is not None:
                found.append(msl.error(token, problem))
    found += _recursion(declarations)
    return found


def _forbidden(declaration: Declaration, tokens: list[Token], index: int) -> str | None:
    token = tokens[index]
    after = tokens[index + 1].text if index + 1 < len(tokens) else ""
    before = tokens[index - 1].text if index else ""
    if token.kind == "number" and _UNSUFFIXED.match(token.text):
        return f"{token.text} is a double in C++: write {token.text}f"
    if token.kind == "word":
        if token.text in FORBIDDEN_WORDS and before not in (".", "->"):
            if token.text == "std" and after != "::":
                return None
            if token.text == "delete" and before == "=":
                return None
            return FORBIDDEN_WORDS[token.text]
        if token.text in ("struct", "class") and _is_derived(tokens, index):
            return "MSL has no derived classes"
        if (
            token.text == "static"
            and declaration.kind == "function"
            and index > declaration.body > 0
        ):
            return "MSL has no static variables in functions"
    if token.text == "[" and after != "[" and before != "[" and _is_lambda(tokens, index):
        return "MSL has no lambdas"
    is_pointer = token.text == "(" and after == "*" and index + 4 < len(tokens)
    if is_pointer and tokens[index + 2].kind == "word" and tokens[index + 3].text == ")":
        is_declarator = before not in ("(", ",", "=", "+", "-", "*", "/", "return", ";", "{", "}")
        if tokens[index + 4].text == "(" and is_declarator:
            return "MSL has no pointers to functions"
    return None


def _is_derived(tokens: list[Token], start: int) -> bool:
    for token in tokens[start + 1 : start + 8]:
        if token.text in ("{", ";", ",", "(", ")"):
            return False
        if token.text == ":":
            return True
    return False


def _is_lambda(tokens: list[Token], start: int) -> bool:
    if start == 0 or tokens[start - 1].kind in ("word", "number", "string"):
        return tokens[start - 1].text == "return" if start else False
    if tokens[start - 1].text in (")", "]", ">"):
        return False
    end = msl.closing(tokens, start)
    return end + 1 < len(tokens) and tokens[end + 1].text in ("(", "{")


def _recursion(declarations: list[Declaration]) -> list[SourceError]:
    """Functions that reach themselves; calls among functions of one name are not looked at."""
    bodies: dict[str, list[Declaration]] = {}
    for declaration in declarations:
        if declaration.kind == "function" and declaration.body > 0:
            for name in declaration.names:
                bodies.setdefault(name, []).append(declaration)
    calls: dict[str, set[str]] = {}
    for name, same in bodies.items():
        calls[name] = set()
        for declaration in same:
            tokens = declaration.tokens[declaration.body :]
            for index, token in enumerate(tokens[:-1]):
                if token.text not in bodies or tokens[index + 1].text not in ("(", "<"):
                    continue
                if tokens[index - 1].text in (".", "->", "::"):
                    continue
                if token.text != name or len(same) == 1:
                    calls[name].add(token.text)
    found: list[SourceError] = []
    for name in calls:
        seen: set[str] = set()
        todo = set(calls[name])
        while todo:
            callee = todo.pop()
            if callee not in seen:
                seen.add(callee)
                todo |= calls[callee]
        if name in seen:
            found.append(msl.error(bodies[name][0].tokens[0], f"{name} calls itself: no recursion"))
    return found


def with_address_spaces(program: programs.Program) -> str:
    """The text for clang: attributes gone, address spaces as attributes."""
    edits: list[tuple[int, int, str]] = []
    function_constants = {id(c.declaration): c for c in program.constants}
    for declaration in program.declarations:
        tokens = declaration.tokens
        constant = function_constants.get(id(declaration))
        if constant is not None:
            text = f"extern AKUNU_CONSTANT_SPACE const {constant.type_text} {constant.name};"
            edits.append((tokens[0].start, tokens[-1].end, text))
            continue
        attributes = attribute_edits(tokens)
        edits += attributes
        for index, token in enumerate(tokens):
            if any(start <= token.start < end for start, end, _ in attributes):
                continue
            replacement = _word_for_clang(tokens, index)
            if replacement is not None:
                edits.append((token.start, token.end, replacement))
    return edited(program.text, edits)


def _word_for_clang(tokens: list[Token], index: int) -> str | None:
    token = tokens[index]
    after = tokens[index + 1].text if index + 1 < len(tokens) else ""
    if token.kind == "number" and token.text[-1] in "hH" and token.text[:2] not in ("0x", "0X"):
        return f"((half){token.text[:-1]}f)"
    if token.kind != "word":
        return None
    if token.text == "constant":
        near = {t.text for t in tokens[max(0, index - 2) : index + 3]}
        is_const = near & {"const", "constexpr"}
        return "AKUNU_CONSTANT_SPACE" if is_const else SPACES["constant"]
    if token.text in SPACES:
        return SPACES[token.text]
    # Not `float4 (&values)[8]`, which declares.
    is_array = [t.text for t in tokens[index + 1 : index + 3]] in (["(", "&"], ["(", "*"])
    is_array = is_array and [t.text for t in tokens[index + 4 : index + 6]] == [")", "["]
    if _VECTOR.match(token.text) and after in ("(", "{") and not is_array:
        return f"make_{token.text}"
    return None


def clang_errors(program: programs.Program, clang: str) -> list[str]:
    """What clang refuses of the text with address spaces."""
    text = f'#include "{HERE / "msl" / "declarations.h"}"\n{with_address_spaces(program)}'
    flags = ["-fsyntax-only", "-x", "c++", "-std=c++14", "-target", "aarch64-linux-gnu"]
    flags += ["-ffreestanding", "-nostdinc", "-ferror-limit=0", "-fno-caret-diagnostics"]
    flags += [
        "-fno-exceptions",
        "-fno-rtti",
        "-ftemplate-backtrace-limit=1",
        "-Wno-everything",
        "-Werror=vla",
    ]
    flags += ["-Werror=vla-extension", "-Werror=return-type"]
    result = subprocess.run(
        [clang, *flags, "-"], input=text, capture_output=True, text=True, check=False
    )
    groups: list[list[re.Match[str]]] = []
    for line in result.stderr.splitlines():
        match = _DIAGNOSTIC.match(line)
        if match is None:
            continue
        if match["kind"] != "note":
            groups.append([])
        if groups:
            groups[-1].append(match)
    errors: list[str] = []
    for first, *notes in groups:
        is_copy = _COPY_ERROR.search(first["text"]) and any(
            _COPY_NOTE.search(note["text"]) for note in notes
        )
        if not is_copy:
            errors.append(f"{first['place']}: error: {first['text']}")
    if result.returncode != 0 and not groups:
        errors.append(result.stderr.strip())
    return errors


def check(source: Path, clang: str, includes: list[str]) -> list[str]:
    """Every error of one file."""
    try:
        text = preprocess(source, clang, includes, None)
        program = programs.read(text)
        generate.translated(program)
    except SourceError as problem:
        return [str(problem)]
    errors = [str(problem) for problem in find_forbidden(program.declarations)]
    return errors or clang_errors(program, clang)


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--clang", default="clang++")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("sources", nargs="+", type=Path)
    options = parser.parse_args()
    n_errors = 0
    for source in options.sources:
        for line in check(source, options.clang, options.include):
            print(line, file=sys.stderr)
            n_errors += 1
    print(f"{len(options.sources)} files, {n_errors} errors")
    return 1 if n_errors else 0


if __name__ == "__main__":
    sys.exit(main())
