"""Writing results of a benchmark as they come: llama-bench's columns and keys."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any, Protocol

from akunu.cli.commands.profile import Kind
from akunu.cli.measuring.bench_plan import Test
from akunu.cli.measuring.bench_run import Result
from akunu.cli.measuring.roofline import SHARE_HEADER, Limits, Share, limits_facts, limits_line
from akunu.cli.terminal import console
from akunu.thread_choice import GENERATED_TOKENS, PROMPT_TOKENS, ThreadChoice


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject: fields that all tests of a run share."""

    build_commit: str
    """"akunu" and its version."""
    cpu_info: str
    backends: str
    isa_level: str
    model_filename: str
    model_type: str
    model_size: int
    model_n_params: int
    n_batch: int
    n_threads: int
    type_k: str
    type_v: str


@dataclass(frozen=True, slots=True)
class Kernels:
    """The commands of one step of a test, each timed alone."""

    step: Test
    kinds: list[Kind]

    @property
    def title(self) -> str:
        """Say which step it is.

        >>> Kernels(Test(0, 1, 64), []).title
        '1 generated row after 64 positions'
        """
        n_rows = self.step.n_prompt
        rows = f"{n_rows} prompt row{'s' if n_rows > 1 else ''}" if n_rows else "1 generated row"
        return f"{rows} after {self.step.n_depth} positions"

    def facts(self) -> dict[str, Any]:
        """Return them for JSON."""
        return asdict(self.step) | {"kinds": [kind.facts() for kind in self.kinds]}


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One line of the output; with the limits come shares, of the test and of its kernels."""

    subject: Subject
    result: Result
    share: Share | None = None
    limits: Limits | None = None
    kernels: Sequence[Kernels] = ()

    def facts(self) -> dict[str, Any]:
        """Return what all formats but Markdown show, in order, without the samples."""
        subject = asdict(self.subject)
        result = self.result
        facts = {
            "build_commit": subject.pop("build_commit"),
            "build_number": 0,
            "cpu_info": subject.pop("cpu_info"),
            "gpu_info": "",
            **subject,
            "n_ubatch": self.subject.n_batch,
            "use_mmap": True,
            "n_prompt": result.test.n_prompt,
            "n_gen": result.test.n_gen,
            "n_depth": result.test.n_depth,
            "test_time": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "avg_ns": result.avg_ns,
            "stddev_ns": result.stddev_ns,
            "avg_ts": result.avg_ts,
            "stddev_ts": result.stddev_ts,
        }
        return facts | (asdict(self.share) if self.share else {})


class Output(Protocol):
    """Takes rows one by one."""

    rows: int
    """How many there were so far."""

    def add(self, row: BenchRow) -> None:
        """Write a row."""

    def finish(self) -> None:
        """Write the end."""


def output_of(form: str, *, with_share: bool) -> Output:
    """Return the output of a name that `FORMS` has."""
    if form == "json":
        return _Json()
    return _Csv() if form == "csv" else _Markdown(with_share)


FORMS = ("md", "json", "csv")


class _Json:
    def __init__(self) -> None:
        self.rows = 0

    def add(self, row: BenchRow) -> None:
        facts = row.facts()
        facts["samples_ns"] = list(row.result.samples_ns)
        facts["samples_ts"] = row.result.samples_ts
        if row.limits is not None:
            facts["kernels"] = [kernels.facts() for kernels in row.kernels]
            facts["limits"] = limits_facts(row.limits)
        text = json.dumps(facts, indent=2, ensure_ascii=False).replace("\n", "\n  ")
        sys.stdout.write(f"{',' if self.rows else '['}\n  {text}")
        sys.stdout.flush()
        self.rows += 1

    def finish(self) -> None:
        print("\n]" if self.rows else "[]")


class _Csv:
    def __init__(self) -> None:
        self.rows = 0
        self._writer: Any = None

    def add(self, row: BenchRow) -> None:
        facts = row.facts()
        if self._writer is None:
            self._writer = csv.DictWriter(
                sys.stdout, list(facts), quoting=csv.QUOTE_ALL, lineterminator="\n"
            )
            header = csv.writer(sys.stdout, lineterminator="\n")
            header.writerow(facts)
        self._writer.writerow({name: int(v) if v is True else v for name, v in facts.items()})
        sys.stdout.flush()
        self.rows += 1

    def finish(self) -> None:
        pass


class _Table:
    """Writes a table line by line. Columns are a name, a width, and whether they stand right."""

    def __init__(self, *columns: tuple[str, int, bool]) -> None:
        self._columns = columns

    def begin(self) -> None:
        self.write([name for name, _, _ in self._columns])
        rules = [f"{'-' * (w - 1)}:" if right else "-" * w for _, w, right in self._columns]
        print(f"| {' | '.join(rules)} |")

    def write(self, cells: list[str]) -> None:
        shown = [
            f"{cell:>{width}}" if right else f"{cell:<{width}}"
            for cell, (_, width, right) in zip(cells, self._columns, strict=True)
        ]
        print(f"| {' | '.join(shown)} |", flush=True)


_SHARE_COLUMNS = [(name, 8, True) for name in SHARE_HEADER]


class _Markdown:
    def __init__(self, with_share: bool) -> None:
        self._table = _Table(
            ("model", 30, False),
            ("size", 10, True),
            ("params", 10, True),
            ("backend", 10, False),
            ("threads", 7, True),
            ("test", 15, True),
            ("t/s", 20, True),
            *(_SHARE_COLUMNS if with_share else []),
        )
        self.rows = 0
        self._footers: list[str] = []
        self._kernels: list[tuple[str, Kernels]] = []

    def add(self, row: BenchRow) -> None:
        if not self.rows:
            self._table.begin()
            self._footers.append(f"build: {row.subject.build_commit}")
        subject, result = row.subject, row.result
        cells = [
            subject.model_type,
            _size(subject.model_size),
            f"{subject.model_n_params / 1e6:.2f} M"
            if subject.model_n_params < 1e9
            else f"{subject.model_n_params / 1e9:.2f} B",
            subject.backends,
            str(subject.n_threads),
            result.test.name,
            f"{result.avg_ts:.2f} {console.plus_minus()} {result.stddev_ts:.2f}",
        ]
        if row.share is not None and row.limits is not None:
            cells += row.share.cells()
            line = limits_line(row.limits)
            if line not in self._footers:
                self._footers.append(line)
        self._table.write(cells)
        test = f"{result.test.name}, {subject.n_threads} threads"
        self._kernels += [(test, kernels) for kernels in row.kernels]
        self.rows += 1

    def finish(self) -> None:
        for test, kernels in self._kernels:
            print(f"\n{test}: {kernels.title}, each command alone")
            self._write_kernels(kernels)
        print()
        for line in self._footers:
            print(line)

    @staticmethod
    def _write_kernels(kernels: Kernels) -> None:
        table = _Table(
            ("command", 40, False), ("count", 5, True), ("µs each", 10, True), *_SHARE_COLUMNS
        )
        table.begin()
        for kind in kernels.kinds:
            each = f"{kind.seconds / kind.count * 1e6:.1f}"
            table.write([kind.name, str(kind.count), each, *kind.share_cells()])


def write_curve(choice: ThreadChoice) -> None:
    """Write what each number of threads reads and writes, and which one is taken."""
    table = _Table(
        ("threads", 7, True),
        ("read t/s", 10, True),
        ("written t/s", 11, True),
        (f"a turn of {PROMPT_TOKENS} read, {GENERATED_TOKENS} written", 34, True),
    )
    table.begin()
    for point in choice.points:
        turn = f"{point.turn_seconds:.2f} s{', taken' if point.threads == choice.threads else ''}"
        table.write([str(point.threads), f"{point.reading:.1f}", f"{point.writing:.2f}", turn])
    print()


def _size(count: int) -> str:
    gib = count / 2**30
    return f"{gib:.2f} GiB" if gib >= 1 else f"{count / 2**20:.2f} MiB"
