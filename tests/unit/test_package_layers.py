"""The package's shape: layers that import downwards, no circles, folders and modules of a size.

`LAYERS` is the map; docs/architecture.md says it in words. An import upwards that is
listed and not needed any more fails, too.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lines import each_line

PACKAGE = Path(__file__).parents[2] / "python" / "akunu"
pytestmark = pytest.mark.skipif(not PACKAGE.is_dir(), reason="the sources are not here")

MOST_MODULES = 25  # of a folder
MOST_LINES = 600  # of a module
MOST_INNER_IMPORTS = 20

# From the lowest to the highest: what stands in a line imports itself and the lines above it. A
# module or folder that is not named belongs to the nearest one around it that is.
LAYERS = [
    "errors model_facts",
    "cli.terminal.console cli.terminal.interrupts cli.terminal.progress cli.terminal.rows",
    "common",
    "tokenizers",
    "thinking",
    "templates.messages text.deltas text.stop_strings",
    "grammar",
    "tools text.reply_splitter",
    "templates",
    "options",
    "storage",
    "images",
    "text thread_choice",
    "embedding",
    "session",
    "model",
    "speech hub",
    "loading warm_up",
    "sentence_encoder convert",
    "langchain",
    "akunu",
    "server",
    "ray",
    "cli",
    "__main__",
]

# Imports upwards, of modules or of all below a folder, and why they are there.
UPWARDS: dict[tuple[str, str], str] = {
    ("tokenizers.tokenizer", "loading"): "Tokenizer.from_gguf takes the names that load takes",
}


@dataclass(frozen=True)
class Import:
    """An import of one module of the package by another."""

    by: str
    of: str
    line: int
    is_inner: bool
    has_reason: bool


def _modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name or "akunu"] = path
    return found


MODULES = _modules()


def _imports() -> list[Import]:
    return [each for name, path in MODULES.items() for each in _imports_of(name, path)]


def _imports_of(name: str, path: Path) -> Iterator[Import]:
    source = path.read_text()
    lines = source.splitlines()
    tree = ast.parse(source)
    inner = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert not node.level, f"{path}:{node.lineno}: imports are written in full"
            targets = [f"{node.module}.{each.name}" for each in node.names]
        else:
            continue
        near = lines[node.lineno - 1 : node.end_lineno]
        has_reason = lines[node.lineno - 2].strip().startswith("#") or "  # " in "\n".join(near)
        for of in dict.fromkeys(filter(None, map(_module_of, targets))):
            if of != name:
                yield Import(name, of, node.lineno, id(node) in inner, has_reason)


def _module_of(target: str) -> str | None:
    """The module of the package that a name is in; None for others, and for what has no layer."""
    if target.partition(".")[0] != "akunu" or target in ("akunu._core", "akunu.__version__"):
        return None
    name = target.removeprefix("akunu").lstrip(".")
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return name or "akunu"


def _layer(module: str) -> int:
    layers = {name: i for i, line in enumerate(LAYERS) for name in line.split()}
    name = module
    while name not in layers:
        assert name, f"{module} is in no line of LAYERS"
        name = name.rpartition(".")[0]
    return layers[name]


def _is_below(module: str, name: str) -> bool:
    return module == name or module.startswith(f"{name}.")


def test_packages_import_downwards_only() -> None:
    needed = set()
    wrong = []
    for each in _imports():
        if _layer(each.of) <= _layer(each.by):
            continue
        allowed = [(a, b) for a, b in UPWARDS if _is_below(each.by, a) and _is_below(each.of, b)]
        needed.update(allowed)
        if not allowed:
            wrong.append(f"{each.by}:{each.line} imports {each.of}, which is above it")
    assert not wrong, "\n".join(wrong)
    assert needed == set(UPWARDS), f"not needed any more: {set(UPWARDS) - needed}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    imported = defaultdict(set)
    for each in _imports():
        if (each.by, each.of) not in UPWARDS:
            imported[each.by].add(each.of)
    for circle in _circles(imported):
        raise AssertionError(f"a circle of imports: {' '.join(circle)}")


def _circles(imported: dict[str, set[str]]) -> Iterator[list[str]]:
    """Modules of which each is reached from each other (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> Iterator[list[str]]:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in sorted(imported[module]):
            if other not in index:
                yield from visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            circle = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(circle) > 1:
                yield sorted(circle)

    for module in MODULES:
        if module not in index:
            yield from visit(module)


def test_imports_inside_functions_are_few_and_have_a_reason() -> None:
    inner = [each for each in _imports() if each.is_inner]
    shown = [f"{each.by}:{each.line} imports {each.of}" for each in inner]
    assert len(inner) <= MOST_INNER_IMPORTS, "\n".join(shown)
    without = [f"{each.by}:{each.line} imports {each.of}" for each in inner if not each.has_reason]
    assert not without, "no comment says why:\n" + "\n".join(without)


def test_no_folder_has_too_many_modules() -> None:
    counts: dict[str, int] = defaultdict(int)
    for path in MODULES.values():
        counts[str(path.parent.relative_to(PACKAGE))] += 1
    assert not {folder: n for folder, n in counts.items() if n > MOST_MODULES}


def test_no_module_is_too_long() -> None:
    lengths = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert not {name: n for name, n in lengths.items() if n > MOST_LINES}


def test_a_public_class_name_exists_once() -> None:
    found = defaultdict(list)
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(name)
    assert not {name: modules for name, modules in found.items() if len(modules) > 1}


@each_line(
    ("module", "others"),
    [
        ("akunu", "numpy jinja2 tokenizers llguidance huggingface_hub fastapi typer asyncio"),
        ("akunu.model", "fastapi uvicorn typer rich prompt_toolkit huggingface_hub PIL jsonschema"),
        ("akunu.cli.app", "numpy jinja2 asyncio fastapi huggingface_hub akunu._core akunu.model"),
    ],
)
def test_an_import_leaves_out_what_it_does_not_need(module: str, others: str) -> None:
    code = f"import sys, {module}; print(*[m for m in {others.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
