"""`akunu quantize`: a model's file in another number format."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from akunu.cli.loading import model_path
from akunu.cli.output_file import report_made, some, thread_count, write_made
from akunu.cli.terminal import console
from akunu.cli.terminal.progress import Progress
from akunu.common.atomic_file import check_target
from akunu.convert.gguf_writer import Value
from akunu.convert.importance import ImportanceMatrix, missing_from, unseen_note
from akunu.convert.model_source import files_read, open_source
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES, format_named, recipe_named
from akunu.convert.sizing import wishes_for_size
from akunu.convert.sources import ModelSource
from akunu.errors import ArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeCommand:
    """What the command line says."""

    source: str
    target: Path
    type_name: str | None
    bits: float | None
    most_bytes: int | None
    imatrix: Path | None
    output_type: str | None
    embedding_type: str | None
    tensors: Sequence[str]
    pure: bool
    allow_requantize: bool
    force: bool
    threads: int | None
    as_json: bool

    def run(self) -> int:
        """Write the file, and a report on it to stdout."""
        wishes = self._wishes()
        threads = thread_count(self.threads)
        path = model_path(self.source)
        started = time.monotonic()
        file = open_source(path)
        target = self.target.expanduser()
        matrix_files = [] if self.imatrix is None else [self.imatrix]
        check_target(target, force=self.force, sources=[*files_read(file, path), *matrix_files])
        matrix = None if self.imatrix is None else ImportanceMatrix.read(self.imatrix)
        if self.type_name is None:
            wishes = self._mixed(file, wishes, matrix, threads)
        work = Quantization(
            file,
            wishes,
            None if matrix is None else matrix.means,
            [] if matrix is None else _provenance(self.imatrix, matrix),
        )
        for note in _notes(work, matrix):
            console.say(f"akunu: {note}")
        write_made(work, target, threads=threads, force=self.force)
        report_made(path, target, work, time.monotonic() - started, as_json=self.as_json)
        return 0

    def _mixed(
        self, file: ModelSource, wishes: Wishes, matrix: ImportanceMatrix | None, threads: int
    ) -> Wishes:
        at = (0, 1)

        def on_tensor(number: int, count: int) -> None:
            nonlocal at
            at = (number, count)

        with Progress(lambda: f"measuring tensor {at[0] + 1} of {at[1]}"):
            return wishes_for_size(
                file,
                wishes,
                file_bytes=self.most_bytes,
                bits=self.bits,
                importance=None if matrix is None else matrix.means,
                threads=threads,
                on_tensor=on_tensor,
            )

    def _wishes(self) -> Wishes:
        given = [self.type_name, self.bits, self.most_bytes]
        if sum(each is not None for each in given) != 1:
            raise console.UsageError("set one of TYPE, --bits and --bytes")
        if self.bits is not None and not 0 < self.bits <= 16:
            raise console.UsageError(f"--bits is {self.bits:g}; it must be above 0, up to 16")
        if self.most_bytes is not None and self.most_bytes < 1:
            raise console.UsageError(f"--bytes is {self.most_bytes}; it must be 1 or more")
        if self.type_name is None and (self.pure or self.output_type or self.embedding_type):
            raise console.UsageError(
                "--pure, --output-type and --embedding-type need a TYPE; --bits and --bytes choose "
                "the formats, except those that --tensor sets"
            )

        def chosen(name: str | None, option: str) -> str | None:
            return None if name is None else format_named(name, option)

        try:
            return Wishes(
                recipe=RECIPES["F16"] if self.type_name is None else recipe_named(self.type_name),
                output_type=chosen(self.output_type, "--output-type"),
                embedding_type=chosen(self.embedding_type, "--embedding-type"),
                tensor_types=_tensor_types(self.tensors),
                pure=self.pure,
                allow_requantize=self.allow_requantize,
            )
        except ArgumentError as error:
            raise console.UsageError(str(error)) from None


def _tensor_types(given: Sequence[str]) -> Mapping[str, str]:
    types = {}
    for each in given:
        name, separator, type_name = each.rpartition("=")
        if not separator or not name:
            raise console.UsageError(f"--tensor is '{each}'; it must be NAME=TYPE")
        if name in types:
            raise console.UsageError(f"--tensor names {name} twice")
        types[name] = format_named(type_name, f"--tensor {name}")
    return types


def _provenance(path: Path | None, matrix: ImportanceMatrix) -> list[Value]:
    """What llama-quantize writes about an importance matrix."""
    return [
        Value.of("quantize.imatrix.file", "" if path is None else path.name),
        Value.of("quantize.imatrix.dataset", ", ".join(matrix.datasets)),
        Value.of("quantize.imatrix.entries_count", len(matrix.means)),
        Value.of("quantize.imatrix.chunks_count", matrix.chunks),
    ]


def _notes(work: Quantization, matrix: ImportanceMatrix | None) -> list[str]:
    """Say which tensors are not as one would expect, and why."""
    fallen: dict[tuple[str, str], list[str]] = {}
    for step in work.steps:
        if step.fell_back:
            fallen.setdefault((step.wished, step.plan.type_name), []).append(step.plan.name)
    notes = list(work.file.notes)
    for (wished, became), names in fallen.items():
        notes.append(
            f"{became} in place of {wished}, whose blocks do not fit these rows: {some(names)}"
        )
    if matrix is not None:
        changed = [step.plan.name for step in work.steps if step.is_changed]
        unseen = missing_from(matrix, changed)
        if unseen:
            notes.append(f"--imatrix has no numbers for {some(unseen)}")
        if note := unseen_note(matrix.unseen, matrix.means):
            notes.append(f"--imatrix: {note}")
    return notes
