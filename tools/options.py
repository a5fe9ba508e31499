"""Writes what cannot ask for the declarations of options: types for editors, tables of pages.

    python -m tools.options

A file that is written whole says so in its first line; in another one, what is written stands
between two lines that say so. tests/unit/test_written_options.py holds all of them to the
declarations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from akunu.options.declarations import Declared, declared_of
from akunu.options.load_options import LoadOptions
from akunu.options.sampling_options import SamplingOptions
from akunu.ray.settings import RaySettings
from akunu.server.settings import ServerSettings, declared_settings

ROOT: Final = Path(__file__).parents[1]


def _default(kind: type, name: str) -> Any:
    return kind.__dataclass_fields__[name].default  # type: ignore[attr-defined]


def arguments() -> str:
    """Return python/akunu/options/arguments.py."""
    parts = [ARGUMENTS]
    for name, kind in (("SamplingArguments", SamplingOptions), ("LoadArguments", LoadOptions)):
        parts.append(
            f"\n\nclass {name}(TypedDict, total=False):\n"
            f'    """The keyword arguments that `{kind.__name__}` takes."""\n'
        )
        parts += [_argument(kind, each, declared) for each, declared in declared_of(kind).items()]
    return "".join(parts)


ARGUMENTS: Final = '''\
# Written by tools/options.py from the declarations in this folder; do not edit.
"""Keyword arguments of calls, for type checkers and editors."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from typing import Literal, TypedDict
'''


def _argument(kind: type, name: str, declared: Declared) -> str:
    accepted = declared.accepts or kind.__dataclass_fields__[name].type  # type: ignore[attr-defined]
    accepted = accepted.replace("'", '"')
    if not accepted.endswith("None"):
        accepted += " | None"
    return f'\n    {name}: {accepted}\n    """{declared.help}"""\n'


def _table(head: str, rows: Iterable[str]) -> str:
    return "\n".join(["", head, "|---|---|---|", *rows, "", ""])


def sampling_table() -> str:
    """Return the guide's table of options of sampling."""
    rows = [
        f"| `{name}` | `{_default(SamplingOptions, name)}` | {declared.help} |"
        for name, declared in declared_of(SamplingOptions).items()
    ]
    return _table("| option | default | meaning |", rows)


def load_table() -> str:
    """Return the guide's table of options of a load."""
    rows = [
        f"| `{name}` | {_shown(_default(LoadOptions, name))} | "
        f"{' '.join(filter(None, (declared.help, declared.more)))} |"
        for name, declared in declared_of(LoadOptions).items()
    ]
    return _table("| option of `load` | default | meaning |", rows)


def settings_table(kind: type) -> str:
    """Return a table of docs/serving.md."""
    rows = [
        f"| `{name}` | {_shown(_default(kind, name))} | {declared.help} |"
        for name, declared in declared_settings(kind).items()
    ]
    return _table("| setting | default | what it does |", rows)


def _shown(default: Any) -> str:
    if default is None or default == ():
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


WHOLE: Final[Mapping[str, Callable[[], str]]] = {"python/akunu/options/arguments.py": arguments}
PARTS: Final[Mapping[str, Mapping[str, Callable[[], str]]]] = {
    "docs/guide.md": {"sampling": sampling_table, "load": load_table},
    "docs/serving.md": {
        "serve": lambda: settings_table(ServerSettings),
        "ray": lambda: settings_table(RaySettings),
    },
}


def written() -> dict[str, str]:
    """Return the files as they should be, by their paths in the repository."""
    files = {path: make() for path, make in WHOLE.items()}
    for path, parts in PARTS.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        for name, make in parts.items():
            text = _with_part(path, text, name, make())
        files[path] = text
    return files


def _with_part(path: str, text: str, name: str, part: str) -> str:
    """Return a text with what stands between the two lines that name a part."""
    found = re.compile(
        rf"(^[^\n]*written by tools/options\.py: {name}\b[^\n]*\n)(.*?)(^[^\n]*end of {name}\b)",
        re.MULTILINE | re.DOTALL,
    )
    if len(found.findall(text)) != 1:
        raise ValueError(f"{path} has no lines around what tools/options.py writes: {name}")
    return found.sub(lambda lines: f"{lines[1]}{part}{lines[3]}", text)


if __name__ == "__main__":
    for each, text in written().items():
        (ROOT / each).write_text(text, encoding="utf-8")
