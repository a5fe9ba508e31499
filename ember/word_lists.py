"""The lists of words and wordings in `data/`: a file per module, `== name` before each list."""

from functools import cache
from pathlib import Path

DATA = Path(__file__).with_name("data")


@cache
def _sections(file: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (DATA / f"{file}.txt").read_text("utf-8").splitlines():
        if line.startswith("== "):
            items = found.setdefault(line[3:], [])
        elif line:
            items.append(line.replace("\\n", "\n"))
    return found


def lines(file: str, name: str) -> list[str]:
    """The list `name` of `data/FILE.txt`. A `\\n` in an item is a line break."""
    return list(_sections(file)[name])


def pairs(file: str, name: str) -> list[tuple[str, str]]:
    """A list of `key: value`."""
    return [(key, value) for key, value in (line.split(": ") for line in lines(file, name))]
