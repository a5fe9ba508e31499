"""What `pip install .` puts on a machine, and what importing it does."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import files, version
from pathlib import Path

import pytest
from cli_support import CHECKOUT

import akunu
from lines import each_line


def test_the_tests_run_against_the_installed_package() -> None:
    package = Path(akunu.__file__).resolve()
    assert not package.is_relative_to(CHECKOUT / "python")
    assert akunu.__version__ == version("akunu")


def test_the_package_holds_the_model_the_types_and_the_licence() -> None:
    installed = {str(path) for path in files("akunu") or []}
    assert "akunu/data/ember-q8_0.gguf" in installed
    assert "akunu/py.typed" in installed
    assert "akunu/_core.pyi" in installed
    for name in ("LICENSE", "THIRD_PARTY_NOTICES.txt"):
        assert any(path.endswith(f"licenses/{name}") for path in installed)


def run_python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def test_importing_akunu_loads_nothing_heavy() -> None:
    loaded = run_python("import akunu, sys; print(*sys.modules)").split()
    heavy = {"numpy", "tokenizers", "jinja2", "typer", "rich", "huggingface_hub"}
    heavy |= {"akunu._core", "akunu.loading", "akunu.model"}
    assert not heavy & set(loaded)


def test_importing_akunu_changes_nothing() -> None:
    changed = run_python(
        """
import locale, logging, os, resource, signal, sys, threading, warnings

def state():
    return {
        "threads": threading.active_count(),
        "tasks": len(os.listdir("/proc/self/task")),
        "environment": dict(os.environ),
        "signals": [signal.getsignal(number) for number in signal.valid_signals()],
        "limits": resource.getrlimit(resource.RLIMIT_NOFILE),
        "warnings": list(warnings.filters),
        "handlers": list(logging.getLogger().handlers),
        "locale": locale.setlocale(locale.LC_ALL),
        "hooks": (sys.excepthook, sys.displayhook, len(sys.meta_path), len(sys.path)),
        "directory": os.getcwd(),
    }

before = state()
import akunu
after = state()
print([key for key in before if before[key] != after[key]])

import jinja2, jinja2.sandbox, numpy, tokenizers  # which may do as they like
before = state()
for name in akunu.__all__:  # and neither do the modules behind the names
    getattr(akunu, name)
after = state()
print([key for key in before if before[key] != after[key]])
"""
    )
    assert changed.split() == ["[]", "[]"]


def imported(statement: str) -> set[str]:
    """The libraries that a statement imports, but for those of Python."""
    program = f"""
import sys
before = set(sys.modules)
{statement}
new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*(new - sys.stdlib_module_names))
"""
    return {name for name in run_python(program).split() if not name.startswith("_")}


def test_importing_akunu_imports_no_library() -> None:
    assert imported("import akunu") == {"akunu"}


def test_a_model_needs_no_library_of_the_command_line_or_the_server() -> None:
    needed = {"akunu", "jinja2", "markupsafe", "numpy", "tokenizers"}
    assert imported("import akunu; akunu.Model") == needed


@each_line("name", akunu.__all__)
def test_every_public_name_is_there_and_listed(name: str) -> None:
    value = getattr(akunu, name)
    assert name in dir(akunu)
    assert isinstance(value, str) or value.__doc__


def test_nothing_else_is_listed() -> None:
    assert {name for name in dir(akunu) if not name.startswith("__")} <= set(akunu.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        akunu.nothing  # noqa: B018
