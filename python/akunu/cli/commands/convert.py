"""`akunu convert`: a directory's model as a GGUF file."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from akunu import _core
from akunu.cli.loading import model_path
from akunu.cli.output_file import report_made, thread_count, write_made
from akunu.cli.terminal import console
from akunu.common.atomic_file import check_target
from akunu.convert.directory_source import DirectorySource
from akunu.convert.model_source import files_read
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES, is_quantised, recipe_named
from akunu.errors import ArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertCommand:
    """What the command line says."""

    source: str
    target: Path
    type_name: str | None
    force: bool
    threads: int | None
    as_json: bool

    def run(self) -> int:
        """Write the file, and a report on it to stdout."""
        threads = thread_count(self.threads)
        path = model_path(self.source)
        if not _core.is_model_directory(path):
            raise ArgumentError(
                f"{path} is not a Hugging Face or MLX directory; akunu quantize reads GGUF files"
            )
        started = time.monotonic()
        source = DirectorySource(path)
        target = self.target.expanduser()
        check_target(target, force=self.force, sources=files_read(source, path))
        work = Quantization(source, self._wishes(source))
        for note in source.notes:
            console.say(f"akunu: {note}")
        write_made(work, target, threads=threads, force=self.force)
        report_made(path, target, work, time.monotonic() - started, as_json=self.as_json)
        return 0

    def _wishes(self, source: DirectorySource) -> Wishes:
        """The requested types, else those that the matrices have."""
        if self.type_name is not None:
            try:
                return Wishes(recipe=recipe_named(self.type_name), allow_requantize=True)
            except ArgumentError as error:
                raise console.UsageError(f"--type: {error}") from None
        plans = [plan for plan in source.plans if is_quantised(plan)]
        sizes: dict[str, int] = {}
        for plan in plans:
            sizes[plan.type_name] = sizes.get(plan.type_name, 0) + plan.size
        return Wishes(
            recipe=RECIPES[max(sizes, key=lambda name: sizes[name])],
            tensor_types={plan.name: plan.type_name for plan in plans},
        )
