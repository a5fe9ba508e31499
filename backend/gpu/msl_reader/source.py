"""Reads preprocessed Metal Shading Language: tokens, declarations, kernels and their arguments.

Only as much of the language as is needed to find kernels and program-scope constants; what lies
inside functions stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ADDRESS_SPACES = ("device", "constant", "threadgroup", "thread")

BUILT_INS = (
    "thread_position_in_grid",
    "threads_per_grid",
    "threadgroup_position_in_grid",
    "threadgroups_per_grid",
    "thread_position_in_threadgroup",
    "threads_per_threadgroup",
    "thread_index_in_threadgroup",
    "simdgroup_index_in_threadgroup",
    "thread_index_in_simdgroup",
    "simdgroups_per_threadgroup",
    "threads_per_simdgroup",
)

MAX_BUFFER_INDEX = 30
MAX_THREADGROUP_INDEX = 7
MAX_CONSTANT_INDEX = 63

_TOKEN = re.compile(
    r"""
    (?P<marker>^[ \t]*\#[^\n]*)
  | (?P<space>\s+)
  | (?P<string>"(?:\\.|[^"\\])*")
  | (?P<character>'(?:\\.|[^'\\])*')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[0-9A-Za-z_.'])*)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<symbol>::|->|&&|\|\||[=!<>+\-*/%&|^]=|.)
    """,
    re.VERBOSE | re.MULTILINE,
)
_MARKER = re.compile(r"\s*#\s*(?:line\s+)?([0-9]+)\s+\"([^\"]*)\"")


class SourceError(Exception):
    """Something in a .metal file that cannot be accepted, with its place."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, number, string or symbol and where it came from."""

    text: str
    kind: str
    start: int  # offset in the preprocessed text
    end: int
    file: str
    line: int

    @property
    def place(self) -> str:
        """`file:line`, as compilers write it."""
        return f"{self.file}:{self.line}"


@dataclass(slots=True)
class Parameter:
    """One parameter of a kernel."""

    name: str
    token: Token
    space: str | None  # device, constant or threadgroup; None for a built-in
    kind: str  # buffer, threadgroup or built_in
    index: int  # of the buffer or threadgroup memory
    built_in: str
    condition: str | None  # X of function_constant(X)
    is_reference: bool


@dataclass(slots=True)
class Declaration:
    """A declaration at namespace scope."""

    tokens: list[Token]
    namespace: tuple[str, ...]
    names: set[str] = field(default_factory=set)  # that it declares
    kind: str = "other"  # function, type, variable, instantiation, other
    body: int = -1  # index of the `{` of a function

    @property
    def words(self) -> set[str]:
        """Every word in it."""
        return {token.text for token in self.tokens if token.kind == "word"}


@dataclass(slots=True)
class Kernel:
    """A kernel function or template."""

    name: str
    declaration: Declaration
    parameters: list[Parameter]
    is_template: bool
    host_name: str | None


@dataclass(slots=True)
class Instantiation:
    """`template [[host_name("...")]] [[kernel]] decltype(f<X>) f<X>;`."""

    host_name: str
    function: str  # f<X>
    base: str  # f
    declaration: Declaration


@dataclass(slots=True)
class Constant:
    """A program-scope constant."""

    name: str
    type_text: str
    index: int | None  # of [[function_constant(index)]]
    value_text: str  # its initializer
    declaration: Declaration


def error(token: Token, message: str) -> SourceError:
    """The error `message` at the place of `token`."""
    return SourceError(f"{token.place}: error: {message}")


def tokenize(text: str) -> list[Token]:
    """The tokens of preprocessed text; line markers say where each comes from."""
    tokens: list[Token] = []
    file, line = "?", 1
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        found = match.group()
        if kind == "marker":
            marker = _MARKER.match(found)
            if marker:
                line, file = int(marker.group(1)) - 1, marker.group(2)
            continue
        if kind != "space":
            tokens.append(Token(found, kind, match.start(), match.end(), file, line))
        line += found.count("\n")
    return tokens


_PAIRS = {"(": ")", "[": "]", "{": "}"}


def closing(tokens: list[Token], start: int) -> int:
    """Index of the bracket that closes the one at `start`."""
    stack: list[str] = []
    for index in range(start, len(tokens)):
        text = tokens[index].text
        if text in _PAIRS:
            stack.append(_PAIRS[text])
        elif stack and text == stack[-1]:
            stack.pop()
            if not stack:
                return index
        elif text in (")", "]", "}"):
            raise error(tokens[index], f"`{text}` closes nothing")
    raise error(tokens[start], f"`{tokens[start].text}` is never closed")


def closing_angle(tokens: list[Token], start: int) -> int:
    """Index of the `>` that closes the `<` at `start`."""
    depth, index = 0, start
    while index < len(tokens):
        text = tokens[index].text
        if text in _PAIRS:
            index = closing(tokens, index)
        elif text == "<":
            depth += 1
        elif text == ">":
            depth -= 1
            if depth == 0:
                return index
        elif text == ";":
            break
        index += 1
    raise error(tokens[start], "`<` is never closed")


def is_attribute(tokens: list[Token], index: int) -> bool:
    """Whether `[[` begins at `index`."""
    return (
        index + 1 < len(tokens)
        and tokens[index].text == "["
        and tokens[index + 1].text == "["
        and tokens[index].end == tokens[index + 1].start
    )


def parse(text: str) -> list[Declaration]:
    """The declarations at namespace scope."""
    tokens = tokenize(text)
    result: list[Declaration] = []
    namespace: list[str] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.text == ";":
            index += 1
        elif token.text == "}":
            if not namespace:
                raise error(token, "`}` closes nothing")
            namespace.pop()
            index += 1
        elif token.text == "namespace" and tokens[index + 2].text == "{":
            namespace.append(tokens[index + 1].text)
            index += 3
        elif token.text == "namespace" and tokens[index + 1].text == "{":
            raise error(token, "an unnamed namespace is not needed here: give it a name")
        elif token.text == "namespace" and tokens[index + 2].text == "::":
            raise error(token, "C++14 has no nested namespace definition")
        else:
            index, declaration = _declaration(tokens, index, tuple(namespace))
            result.append(declaration)
    return result


def _declaration(
    tokens: list[Token], start: int, namespace: tuple[str, ...]
) -> tuple[int, Declaration]:
    index = start
    while tokens[index].text == "template" and tokens[index + 1].text == "<":
        index = closing_angle(tokens, index + 1) + 1
    head = tokens[index].text
    is_instantiation = head == "template"
    is_type = head in ("struct", "class", "union", "enum")
    names: set[str] = set()
    if is_type:
        after = index + 1
        while is_attribute(tokens, after):
            after = closing(tokens, after) + 1
        if tokens[after].text in ("class", "struct"):
            after += 1
        names.add(tokens[after].text)
    body, initialized, parens = -1, False, -1
    while index < len(tokens):
        text = tokens[index].text
        if text == ";":
            break
        if text == "=" and parens < 0:
            initialized = True
        elif text == "<" and parens < 0 and not initialized and tokens[index - 1].kind == "word":
            index = closing_angle(tokens, index)
        elif is_attribute(tokens, index):
            index = closing(tokens, index)
        elif text == "(" and parens < 0 and not initialized:
            parens = index
            index = closing(tokens, index)
        elif text == "{":
            if parens >= 0 and not initialized and not is_type:
                body = index
            index = closing(tokens, index)
            if body >= 0:
                break
        elif text in _PAIRS:
            index = closing(tokens, index)
        index += 1
    if index >= len(tokens):
        raise error(tokens[start], "this declaration has no end")
    whole = tokens[start : index + 1]
    declaration = Declaration(whole, namespace, names)
    if is_instantiation:
        declaration.kind = "instantiation"
    elif head in ("using", "typedef"):
        declaration.kind = "type"
        declaration.names = _alias_names(whole, head)
    elif head == "static_assert":
        declaration.kind = "other"
    elif is_type:
        declaration.kind = "type"
    elif parens >= 0:
        declaration.kind = "function"
        declaration.names = {tokens[parens - 1].text}
        declaration.body = body - start if body >= 0 else -1
    else:
        declaration.kind = "variable"
        declaration.names = {_variable_name(whole)}
    return index + 1, declaration


def _alias_names(tokens: list[Token], head: str) -> set[str]:
    if head == "using" and len(tokens) > 2 and tokens[2].text == "=":
        return {tokens[1].text}
    if head == "typedef":
        return {tokens[-2].text}
    return set()


def _variable_name(tokens: list[Token]) -> str:
    name = ""
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.text in ("=", ";", "{") or token.text == "[":
            break
        if token.text == "<" and tokens[index - 1].kind == "word":
            index = closing_angle(tokens, index)
        elif token.kind == "word":
            name = token.text
        index += 1
    return name


def attributes(tokens: list[Token]) -> dict[str, tuple[Token, list[Token]]]:
    """Every attribute among `tokens` at any depth zero: name -> (its token, its arguments)."""
    found: dict[str, tuple[Token, list[Token]]] = {}
    index = 0
    while index < len(tokens):
        if not is_attribute(tokens, index):
            index += 1
            continue
        end = closing(tokens, index)
        inside = tokens[index + 2 : end - 1]
        at = 0
        while at < len(inside):
            name = inside[at]
            arguments: list[Token] = []
            at += 1
            if at < len(inside) and inside[at].text == "(":
                close = closing(inside, at)
                arguments = inside[at + 1 : close]
                at = close + 1
            if name.text in found:
                raise error(name, f"attribute `{name.text}` twice")
            found[name.text] = (name, arguments)
            if at < len(inside) and inside[at].text == ",":
                at += 1
        index = end + 1
    return found


def without_attributes(tokens: list[Token]) -> list[Token]:
    """`tokens` without what stands in `[[ ]]`."""
    result: list[Token] = []
    index = 0
    while index < len(tokens):
        if is_attribute(tokens, index):
            index = closing(tokens, index) + 1
        else:
            result.append(tokens[index])
            index += 1
    return result


def literal(tokens: list[Token], at: Token) -> str:
    """The value of adjacent string literals."""
    if not tokens or any(token.kind != "string" for token in tokens):
        raise error(at, f"`{at.text}` takes a string literal")
    return "".join(token.text[1:-1] for token in tokens)


def number(tokens: list[Token], at: Token, limit: int) -> int:
    """The index in `buffer(n)` and its like."""
    if len(tokens) != 1 or not tokens[0].text.isdigit():
        raise error(at, f"`{at.text}` takes a whole number")
    value = int(tokens[0].text)
    if value > limit:
        raise error(at, f"`{at.text}({value})`: the largest is {limit}")
    return value


def split_parameters(tokens: list[Token]) -> list[list[Token]]:
    """Splits at commas outside every bracket."""
    result: list[list[Token]] = [[]]
    index = 0
    while index < len(tokens):
        token = tokens[index]
        end = index
        if token.text in _PAIRS:
            end = closing(tokens, index)
        elif token.text == "<":
            end = closing_angle(tokens, index)
        elif token.text == ",":
            result.append([])
            index += 1
            continue
        result[-1].extend(tokens[index : end + 1])
        index = end + 1
    return [part for part in result if part]


def parse_parameter(tokens: list[Token], kernel: str) -> Parameter:
    """One parameter of the kernel `kernel`."""
    found = attributes(tokens)
    plain = without_attributes(tokens)
    names = [token for token in plain if token.kind == "word"]
    if not names:
        raise error(tokens[0], f"kernel {kernel}: a parameter has no name")
    name = names[-1]
    spaces = [token.text for token in plain if token.text in ADDRESS_SPACES]
    is_reference = plain[-2].text == "&" if len(plain) > 1 else False
    is_pointer = plain[-2].text == "*" if len(plain) > 1 else False
    where = f"kernel {kernel}, parameter {name.text}"
    condition = None
    if "function_constant" in found:
        at, arguments = found.pop("function_constant")
        if len(arguments) != 1 or arguments[0].kind != "word":
            raise error(at, f"{where}: function_constant takes the name of a bool constant")
        condition = arguments[0].text
    if len(found) != 1:
        raise error(
            name, f"{where}: needs one attribute such as [[buffer(n)]], has {len(found) or 'none'}"
        )
    ((attribute, (at, arguments)),) = found.items()
    if attribute in BUILT_INS:
        if spaces or is_pointer or is_reference or condition or arguments:
            raise error(at, f"{where}: {attribute} is passed by value")
        return Parameter(name.text, name, None, "built_in", 0, attribute, None, False)
    if attribute not in ("buffer", "threadgroup"):
        raise error(at, f"{where}: attribute `{attribute}` is not known")
    if not (is_pointer or is_reference):
        raise error(name, f"{where}: what is bound is a pointer or a reference")
    if len(spaces) != 1:
        raise error(name, f"{where}: needs one address space, has {len(spaces) or 'none'}")
    if attribute == "buffer" and spaces[0] not in ("device", "constant"):
        raise error(name, f"{where}: a buffer is `device` or `constant`, not `{spaces[0]}`")
    if attribute == "threadgroup" and (spaces[0] != "threadgroup" or is_reference):
        raise error(name, f"{where}: [[threadgroup(n)]] takes a `threadgroup` pointer")
    limit = MAX_BUFFER_INDEX if attribute == "buffer" else MAX_THREADGROUP_INDEX
    index = number(arguments, at, limit)
    return Parameter(name.text, name, spaces[0], attribute, index, "", condition, is_reference)
