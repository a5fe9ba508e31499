"""What a preprocessed .metal file holds: kernels, instantiations, constants, who uses what."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import source as msl
from .source import Constant, Declaration, Instantiation, Kernel, Token, error


@dataclass(slots=True)
class HostFunction:
    """A function that the host can name."""

    host_name: str
    expression: str  # how C++ names it: f or f<X>
    kernel: Kernel
    declaration: Declaration  # where its host name stands
    constants: list[Constant] = field(default_factory=list)  # function constants that it may read


@dataclass(slots=True)
class Program:
    """One .metal file."""

    text: str
    declarations: list[Declaration]
    functions: list[HostFunction]
    constants: list[Constant]  # function constants
    derived: list[Constant]  # constants whose value depends on function constants, in order


def read(text: str) -> Program:
    """Parses the preprocessed text of a .metal file."""
    declarations = msl.parse(text)
    kernels: dict[str, Kernel] = {}
    instantiations: list[Instantiation] = []
    variables: list[Constant] = []
    for declaration in declarations:
        if declaration.kind == "instantiation":
            instantiations.append(_instantiation(declaration))
        elif declaration.kind == "variable":
            variables.append(_variable(declaration))
        elif declaration.kind == "function":
            kernel = _kernel(declaration)
            if kernel is None:
                continue
            if kernel.name in kernels:
                raise error(declaration.tokens[0], f"a second kernel {kernel.name}")
            kernels[kernel.name] = kernel
    constants = [variable for variable in variables if variable.index is not None]
    _check_constants(constants)
    derived = _derived(variables, constants)
    functions = _functions(kernels, instantiations)
    for function in functions:
        used = reachable(declarations, function)
        function.constants = [constant for constant in constants if constant.name in used]
    return Program(text, declarations, functions, constants, derived)


def _functions(
    kernels: dict[str, Kernel], instantiations: list[Instantiation]
) -> list[HostFunction]:
    functions = [
        HostFunction(kernel.host_name or kernel.name, kernel.name, kernel, kernel.declaration)
        for kernel in kernels.values()
        if not kernel.is_template
    ]
    for instantiation in instantiations:
        found = kernels.get(instantiation.base)
        if found is None or not found.is_template:
            raise error(
                instantiation.declaration.tokens[0],
                f"{instantiation.host_name}: {instantiation.base} is no template of a kernel",
            )
        functions.append(
            HostFunction(
                instantiation.host_name, instantiation.function, found, instantiation.declaration
            )
        )
    seen: set[str] = set()
    for function in functions:
        if function.host_name in seen:
            raise error(function.declaration.tokens[0], f"a second function {function.host_name}")
        seen.add(function.host_name)
    return functions


def _kernel(declaration: Declaration) -> Kernel | None:
    tokens = declaration.tokens
    start = 0
    is_template = False
    while tokens[start].text == "template":
        start = msl.closing_angle(tokens, start + 1) + 1
        is_template = True
    open_paren = start
    while tokens[open_paren].text != "(":
        if msl.is_attribute(tokens, open_paren):
            open_paren = msl.closing(tokens, open_paren)
        open_paren += 1
    head = tokens[start:open_paren]
    found = msl.attributes(head)
    words = [token.text for token in msl.without_attributes(head)]
    if "kernel" not in found and "kernel" not in words:
        return None
    name = tokens[open_paren - 1]
    unknown = set(found) - {"kernel", "host_name", "max_total_threads_per_threadgroup"}
    if unknown:
        raise error(name, f"kernel {name.text}: attribute `{min(unknown)}` is not known")
    if "void" not in words:
        raise error(name, f"kernel {name.text}: a kernel returns void")
    if declaration.body < 0:
        raise error(name, f"kernel {name.text}: declared without a body")
    host_name = None
    if "host_name" in found:
        at, arguments = found["host_name"]
        host_name = msl.literal(arguments, at)
    close = msl.closing(tokens, open_paren)
    parameters = [
        msl.parse_parameter(part, name.text)
        for part in msl.split_parameters(tokens[open_paren + 1 : close])
    ]
    seen: dict[tuple[str, int], str] = {}
    for parameter in parameters:
        if parameter.kind == "built_in":
            continue
        key = (parameter.kind, parameter.index)
        if key in seen:
            raise error(
                parameter.token,
                f"kernel {name.text}: {seen[key]} and {parameter.name} are both "
                f"[[{parameter.kind}({parameter.index})]]",
            )
        seen[key] = parameter.name
    return Kernel(name.text, declaration, parameters, is_template, host_name)


def _instantiation(declaration: Declaration) -> Instantiation:
    tokens = declaration.tokens[1:-1]
    found = msl.attributes(tokens)
    plain = msl.without_attributes(tokens)
    first = declaration.tokens[0]
    if "host_name" not in found:
        raise error(first, "an instantiation of a kernel needs [[host_name(...)]]")
    at, arguments = found["host_name"]
    host_name = msl.literal(arguments, at)
    if len(plain) < 4 or plain[0].text != "decltype":
        raise error(
            first,
            f"{host_name}: write `template [[host_name(...)]] [[kernel]] decltype(f<X>) f<X>;`",
        )
    function = plain[msl.closing(plain, 1) + 1 :]
    angle = next((i for i, token in enumerate(function) if token.text == "<"), 0)
    if angle == 0:
        raise error(first, f"{host_name}: names no template")
    return Instantiation(
        host_name,
        " ".join(token.text for token in function),
        function[angle - 1].text,
        declaration,
    )


def _variable(declaration: Declaration) -> Constant:
    tokens = declaration.tokens
    found = msl.attributes(tokens)
    index = None
    if "function_constant" in found:
        at, arguments = found["function_constant"]
        index = msl.number(arguments, at, msl.MAX_CONSTANT_INDEX)
    plain = msl.without_attributes(tokens)
    equals = next((i for i, token in enumerate(plain) if token.text == "="), len(plain) - 1)
    name = next(iter(declaration.names))
    name_at = max(i for i, token in enumerate(plain[:equals]) if token.text == name)
    skip = {"constant", "static", "const", "constexpr"}
    type_text = " ".join(token.text for token in plain[:name_at] if token.text not in skip)
    value = " ".join(token.text for token in plain[equals + 1 : -1])
    words = {token.text for token in plain[:name_at]}
    if "constant" not in words:
        raise error(tokens[0], f"{name}: a variable at program scope is `constant`")
    if index is not None and type_text not in ("uint", "bool"):
        raise error(tokens[0], f"{name}: a function constant is uint or bool, not {type_text}")
    return Constant(name, type_text, index, value, declaration)


def _check_constants(constants: list[Constant]) -> None:
    seen: dict[int, str] = {}
    for constant in constants:
        assert constant.index is not None
        if constant.index in seen:
            raise error(
                constant.declaration.tokens[0],
                f"{seen[constant.index]} and {constant.name} are both "
                f"function_constant({constant.index})",
            )
        seen[constant.index] = constant.name


def _derived(variables: list[Constant], constants: list[Constant]) -> list[Constant]:
    """Program-scope constants computed from function constants."""
    names = {constant.name for constant in constants}
    derived: list[Constant] = []
    for variable in variables:
        if variable.index is not None:
            continue
        equals = [i for i, t in enumerate(variable.declaration.tokens) if t.text == "="]
        after = variable.declaration.tokens[equals[0] :] if equals else []
        if any(token.text in names for token in after):
            names.add(variable.name)
            derived.append(variable)
            first: Token = variable.declaration.tokens[0]
            if "[" in (t.text for t in variable.declaration.tokens[: equals[0]]):
                raise error(first, f"{variable.name}: an array cannot depend on function constants")
    return derived


def reachable(declarations: list[Declaration], function: HostFunction) -> set[str]:
    """Names that a function may use, by itself or through what it names."""
    by_name: dict[str, list[Declaration]] = {}
    for declaration in declarations:
        for name in declaration.names:
            by_name.setdefault(name, []).append(declaration)
    seen: set[str] = set()
    todo = set(function.kernel.declaration.words) | set(function.declaration.words)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for declaration in by_name.get(name, []):
            todo |= declaration.words - seen
    return seen
