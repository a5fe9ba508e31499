"""The stub of the native module says what the native module has: names, arguments, defaults."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import akunu
from akunu import _core
from lines import each_line

STUB = ast.parse((Path(akunu.__file__).parent / "_core.pyi").read_text())


def stub_names(body: list[ast.stmt]) -> dict[str, ast.stmt]:
    return {node.name: node for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}


def stub_constants() -> set[str]:
    """Names of the module that are neither classes nor functions."""
    return {
        node.target.id
        for node in STUB.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def native_names(owner: object) -> set[str]:
    """Names that are ours: neither Python's nor pybind11's."""
    common = {"__getattribute__", "__new__", "__doc__", "__module__", "__init__"}
    return {
        name
        for name in vars(owner)
        if name not in common
        and not name.startswith(("_pybind11", "__pybind11"))
        and (not name.startswith("__") or callable(getattr(owner, name)))
    }


def stub_signature(function: ast.FunctionDef) -> list[str]:
    """Names in order, `*` before the keyword-only ones, `=` after those with a default."""
    arguments = function.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    first_default = len(positional) - len(arguments.defaults)
    shown = [
        name + ("=" if index >= first_default else "") for index, name in enumerate(positional)
    ]
    if arguments.kwonlyargs:
        shown.append("*")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        shown.append(argument.arg + ("=" if default is not None else ""))
    if arguments.kwarg:
        shown.append(f"**{arguments.kwarg.arg}")
    return shown[1:] if shown[:1] == ["self"] else shown


def native_signature(function: object) -> list[str]:
    """The same, from the line that pybind11 writes at the top of a docstring."""
    line = (getattr(function, "__doc__", "") or "").strip().splitlines()[0]
    inner = line[line.index("(") + 1 : line.rindex(") ->")]
    while re.search(r"[\[(][^\[\]()]*[\])]", inner):  # the commas of types are not arguments'
        inner = re.sub(r"[\[(][^\[\]()]*[\])]", "", inner)
    shown = []
    for argument in inner.split(","):
        name = argument.split(":")[0].strip()
        if name and name != "self":
            shown.append(name + ("=" if "=" in argument else ""))
    return shown


CLASSES = [name for name, node in stub_names(STUB.body).items() if isinstance(node, ast.ClassDef)]


def test_the_stub_has_every_name_of_the_module_and_no_other() -> None:
    native = {name for name in vars(_core) if not name.startswith("_")}
    assert stub_names(STUB.body).keys() | stub_constants() == native


@each_line("name", CLASSES)
def test_the_stub_has_every_member_and_no_other(name: str) -> None:
    node = stub_names(STUB.body)[name]
    assert isinstance(node, ast.ClassDef)
    in_stub = set(stub_names(node.body)) - {"__init__"}
    assert in_stub == native_names(getattr(_core, name)) - {"__repr__", "__hash__"}


@each_line("name", CLASSES)
def test_members_take_the_arguments_that_the_stub_says(name: str) -> None:
    node = stub_names(STUB.body)[name]
    assert isinstance(node, ast.ClassDef)
    for member, function in stub_names(node.body).items():
        assert isinstance(function, ast.FunctionDef)
        native = vars(getattr(_core, name))[member]
        if any(isinstance(d, ast.Name) and d.id == "property" for d in function.decorator_list):
            assert isinstance(native, property), member
        elif not member.startswith("__") or member == "__init__":
            assert stub_signature(function) == native_signature(native), member


def test_functions_take_the_arguments_that_the_stub_says() -> None:
    for name, function in stub_names(STUB.body).items():
        if isinstance(function, ast.FunctionDef):
            assert stub_signature(function) == native_signature(getattr(_core, name)), name
