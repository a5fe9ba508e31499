"""Whether a model would load, and what it would take: the engine says, of an outline or a file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias, TypeVar

from akunu import _core
from akunu.errors import AkunuError, OutOfMemoryError
from akunu.hub.header_file import Read, write_headers
from akunu.options.text_options import LoadOptions

Result = TypeVar("Result")
LoadCheck: TypeAlias = Callable[[Path, str, LoadOptions], str]
"""Raises what loading a file or an outline would raise, under the name that the user knows.

Else it returns what loading will take, in a sentence. `akunu.loading.refuse_unloadable` is one.
"""


@contextmanager
def headers_only(parts: Sequence[tuple[str, int, Read]], shown: str) -> Iterator[Path]:
    """Yield a file or folder that is like a model but for its weights.

    `parts`: name, size, how to read. Raises what the fetch and the header raise.
    """
    with tempfile.TemporaryDirectory(prefix="akunu-") as folder:
        paths = []
        is_directory = parts[0][0] == "config.json"
        for name, size, read in parts:
            path = Path(folder) / (name if is_directory else name.rpartition("/")[2])
            path.parent.mkdir(exist_ok=True)
            write_headers(read, size, path, shown if len(parts) == 1 else name)
            paths.append(path)
        yield Path(folder) if is_directory else paths[0]


def named(run: Callable[[], Result], path: Path, shown: str) -> Result:
    """Return what `run` returns; an error's message says `shown` where it said the path."""
    try:
        return run()
    except AkunuError as error:
        message = str(error)
        if str(path) != shown:  # an outline, which lies where no one knows
            message = message.replace(str(path), shown).replace(f"{path.parent}/", "")
        raise type(error)(message) from None


def why_not_loadable(path: Path) -> str:
    """Return why the engine does not load a file, "" if it does; memory is not looked at.

    Quick, as neither the vocabulary nor a whole context is prepared.
    """
    try:
        _core.NativeLoad(
            str(path),
            device="cpu",
            context=1,
            threads=1,
            kv_type="f16",
            kv_memory=None,
            prefix_cache=False,
            max_waiting=1,
        ).result().close()
    except OutOfMemoryError:
        return ""  # another day, or on a larger machine
    except (AkunuError, OSError) as error:
        return str(error).removeprefix(str(path)).lstrip(":, ")  # the caller has the path
    return ""
