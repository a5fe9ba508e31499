"""`akunu doctor`: checks an installation, and shows what it found and chose."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import akunu
from akunu import _core
from akunu.cli.commands.devices import missing_levels, show_devices
from akunu.cli.conversation.history import history_path
from akunu.cli.terminal import console
from akunu.cli.terminal.tables import bytes_text, write_facts
from akunu.cli.wording import counted
from akunu.errors import AkunuError
from akunu.storage.disk_cache import kept_in

_DEPENDENCIES = ("numpy", "tokenizers", "jinja2", "typer", "rich")
_VARIABLES = (
    *("AKUNU_CPU_ISA", "NO_COLOR", "TERM", "LANG", "LC_ALL", "PYTHONUTF8", "XDG_STATE_HOME"),
)
_QUESTION = "What is 12 + 7?"
_ANSWER = "19"


def examine(cache_dir: str | None = None) -> int:
    """Write a report to stdout; return 1 if something does not work.

    It counts the files in `cache_dir`, writes prefixes there and reads them back.
    """
    write_facts("program", _program())
    problem = _examine_devices()
    write_facts("surroundings", _surroundings())
    problem = _try_ember() or problem
    if cache_dir is not None:
        problem = _try_disk(Path(cache_dir).expanduser().absolute()) or problem
    if problem:
        raise AkunuError(f"this does not work: {problem}")
    return 0


def _program() -> list[tuple[str, str]]:
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    return [
        ("akunu", f"{akunu.__version__} in {Path(akunu.__file__).parent}"),
        ("Python", f"{platform.python_version()} at {sys.executable}"),
        ("system", f"{system}, {' '.join(platform.libc_ver())}".rstrip(", ")),
        *[(name, _version(name)) for name in _DEPENDENCIES],
    ]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _examine_devices() -> str:
    """Write the devices and the levels of their kernels; return a problem, or ""."""
    try:
        show_devices()
        print()
        write_facts("levels of CPU kernels", _levels())
    except AkunuError as error:
        write_facts("devices", [("problem", str(error))])
        return str(error)
    return ""


def _levels() -> list[tuple[str, str]]:
    facts = []
    for level in _core.levels("cpu"):
        found = "available" if level["is_available"] else "not available here"
        if not level["is_built"]:
            found = f"not in this build, {found}"
        facts.append((level["name"], f"{found}; needs {level['needs']}"))
    missing = missing_levels()
    return [*facts, *([("missing levels", missing)] if missing else [])]


def _surroundings() -> list[tuple[str, str]]:
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else "unknown"
    return [
        ("processors", f"{os.cpu_count()} in the machine, {affinity} for this process"),
        ("standard output", _stream()),
        ("history of chats", _history()),
        *[(name, os.environ[name]) for name in _VARIABLES if name in os.environ],
    ]


def _stream() -> str:
    encoding = getattr(sys.stdout, "encoding", "unknown")
    if not console.is_terminal(sys.stdout):
        return f"no terminal, {encoding}"
    styles = "with" if console.shows_styles(sys.stdout) else "without"
    return f"a terminal {styles} colours, {encoding}"


def _history() -> str:
    path = history_path()
    if path is None:
        return "none: there is no home directory"
    if not path.exists():
        return f"{path} (not yet there)"
    mode = path.stat().st_mode & 0o777
    return f"{path}, mode {mode:o}" + ("" if mode == 0o600 else ": others can read it")


def _try_ember() -> str:
    """Load the model inside the package and ask it something; return a problem, or ""."""
    try:
        started = time.perf_counter()
        with akunu.load() as model:
            loaded = time.perf_counter() - started
            reply = model.chat([{"role": "user", "content": _QUESTION}], max_tokens=40)
            facts = [
                ("loaded in", f"{loaded * 1000:.0f} ms"),
                (_QUESTION, reply.strip()),
                ("speed", f"{reply.completion_tokens_per_second:.0f} tokens/s"),
            ]
    except (AkunuError, OSError) as error:
        write_facts("trying Ember", [("problem", str(error))])
        return str(error)
    write_facts("trying Ember", facts)
    return "" if _ANSWER in reply else f"Ember answers {reply.strip()!r} to {_QUESTION!r}"


def _try_disk(folder: Path) -> str:
    """Show what is in a `cache_dir`, keep a prompt there and find it; return what is wrong."""
    facts = [("folder", str(folder))]
    try:
        kept = kept_in(folder)
        held = f"{counted(kept.files, 'file')} of {counted(kept.models, 'model')}"
        held = f"{bytes_text(kept.bytes)} in {held}"
        facts.append(("there now", held if folder.exists() else "nothing: it is not there yet"))
        folder.mkdir(parents=True, exist_ok=True)
        facts.append(("free there", bytes_text(shutil.disk_usage(folder).free)))
        with tempfile.TemporaryDirectory(prefix="doctor-", dir=folder) as apart:
            texts = [_complete_with(apart) for _ in range(2)]
        (first, _, _), (again, n_found, notes) = texts
        if not n_found:
            why = f"prefixes that were kept in {folder} are not found again"
            raise AkunuError("; ".join((why, *notes)))
        if first != again:
            raise AkunuError(f"with prefixes from {folder} Ember writes {again!r}, not {first!r}")
        facts.append(("kept and found", f"{n_found} tokens"))
    except (AkunuError, OSError) as error:
        write_facts("prefixes on the disk", [*facts, ("problem", str(error))])
        return str(error)
    write_facts("prefixes on the disk", facts)
    return ""


def _complete_with(folder: str) -> tuple[str, int, tuple[str, ...]]:
    with akunu.load(cache_dir=folder) as model:
        reply = model.generate(_QUESTION * 8, max_tokens=4)
        return str(reply), reply.cached_tokens, model.notes
