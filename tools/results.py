"""Raw results of the tools that measure, as CSV files with a line for each run.

    python -m tools.results keep zen4 floors.json compare-avx2-qwen3-0.6b-q4_0.json

takes what the tools wrote on a machine into `benchmarks/KIND.csv`, in the place of older results of
the same name. A line is an item of the list that a result consists of; numbers have nine digits. A
column `a.b` is the key b of the object a, `a[]` a list of numbers, separated by blanks.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "benchmarks"

# Of each kind: how names of its files begin, and the list of a result that becomes lines.
KINDS = {
    "speed": (("compare-", "experts-", "recurrent-", "openvino-"), "tests"),
    "scaling": (("scaling-",), "points"),
    "load": (("load",), "runs"),
    "floors": (("floors",), None),
    "few-rows": (("few-rows",), None),
    "sampling": (("sampling",), None),
}

NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")

Result = dict[str, Any]
Line = dict[str, str]


def kind_of(name: str) -> str:
    """The CSV file for results of that name."""
    for kind, (beginnings, _) in KINDS.items():
        if name.startswith(beginnings):
            return kind
    raise ValueError(
        f"{name}: a name begins with {', '.join(b for k in KINDS.values() for b in k[0])}"
    )


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.9g}"
    return json.dumps(value) if isinstance(value, str) and NUMBER.fullmatch(value) else str(value)


def _flat(values: Result, before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        elif isinstance(value, list):
            if not all(isinstance(each, int | float) for each in value):
                raise ValueError(f"a line has no place for {before}{key}, which are no numbers")
            yield f"{before}{key}[]", " ".join(map(_text, value))
        else:
            yield f"{before}{key}", _text(value)


def _value(text: str) -> Any:
    return json.loads(text) if NUMBER.fullmatch(text.strip('"')) else text


def _nested(columns: Iterable[tuple[str, str]]) -> Result:
    result: Result = {}
    for column, text in columns:
        *objects, key = column.removesuffix("[]").split(".")
        inner = result
        for each in objects:
            inner = inner.setdefault(each, {})
        is_list = column.endswith("[]")
        inner[key] = [_value(each) for each in text.split()] if is_list else _value(text)
    return result


def lines_of(machine: str, name: str, results: Sequence[Result]) -> list[Line]:
    items = KINDS[kind_of(name)][1]
    lines = []
    for result in results:
        own = {key: value for key, value in result.items() if key != items}
        for item in result[items] if items else [{}]:
            columns = dict(_flat(own)) | dict(_flat({items: item} if items else {}))
            lines.append({"machine": machine, "name": name, **columns})
    return lines


def results_of(lines: Iterable[Line], items: str | None) -> list[Result]:
    """What `lines_of` made lines of, but for digits."""
    split = []
    for line in lines:
        given = [(k, v) for k, v in line.items() if v and k not in ("machine", "name")]
        own = [(k, v) for k, v in given if not (items and k.startswith(f"{items}."))]
        split.append((own, [pair for pair in given if pair not in own]))
    if items is None:
        return [_nested(own) for own, _ in split]
    return [
        _nested(own) | {items: [_nested(item)[items] for _, item in group]}
        for own, group in itertools.groupby(split, key=lambda pair: pair[0])
    ]


def read(path: Path, names: str = "*/*") -> dict[tuple[str, str], list[Result]]:
    """Results by machine and name; of `zen4/compare-avx2-*`, those that are called so there."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    grouped = itertools.groupby(lines, key=lambda line: (line["machine"], line["name"]))
    items = KINDS[path.stem][1]
    return {
        (machine, name): results_of(group, items)
        for (machine, name), group in grouped
        if fnmatch(f"{machine}/{name}", names)
    }


def load(path: Path, names: str = "*/*") -> list[Result]:
    """The results of a file that a tool has just written, or of these names in a file of lines."""
    if path.suffix == ".csv":
        return [result for results in read(path, names).values() for result in results]
    loaded = json.loads(path.read_text(encoding="utf-8"))
    return loaded if isinstance(loaded, list) else [loaded]


def write(path: Path, results: dict[tuple[str, str], list[Result]]) -> None:
    lines = [line for key in sorted(results) for line in lines_of(*key, results[key])]
    columns = list(dict.fromkeys(column for line in lines for column in line))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(lines)


def keep(machine: str, files: Sequence[Path], folder: Path = FOLDER) -> None:
    for file in files:
        path = folder / f"{kind_of(file.stem)}.csv"
        known = read(path) if path.exists() else {}
        write(path, known | {(machine, file.stem): load(file)})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    keeping = verbs.add_parser("keep", help="take files that a tool wrote into benchmarks/")
    keeping.add_argument("machine", help="e.g. zen4; benchmarks/README.md lists them")
    keeping.add_argument("files", type=Path, nargs="+")
    arguments = parser.parse_args()
    keep(arguments.machine, arguments.files)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
