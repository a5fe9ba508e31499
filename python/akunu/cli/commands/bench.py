"""`akunu bench`: how fast a model runs here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import akunu
from akunu.cli.commands.devices import device_of
from akunu.cli.commands.profile import by_kind, profile_step
from akunu.cli.loading import load_model, model_path, refuse_encoder
from akunu.cli.measuring import bench_plan
from akunu.cli.measuring.bench_output import (
    FORMS,
    BenchRow,
    Kernels,
    Output,
    Subject,
    output_of,
    write_curve,
)
from akunu.cli.measuring.bench_run import Bench
from akunu.cli.measuring.operation_counts import OperationModel
from akunu.cli.measuring.roofline import Limits, measure_limits, share_of
from akunu.cli.model_file import format_totals, parameter_count, short_count, weight_bytes
from akunu.cli.options import load_options
from akunu.cli.terminal import console
from akunu.cli.terminal.progress import Progress
from akunu.common.checks import in_words
from akunu.errors import AkunuError, UnsupportedModelError
from akunu.model import Model
from akunu.options.engine_limits import MAX_THREADS
from akunu.options.option_checks import AUTO
from akunu.storage.model_files import ModelFiles, open_model_files
from akunu.thread_choice import choose_threads, counts_on

_N_PROMPT = 512
_N_GEN = 128

# What `general.file_type` says, in llama.cpp's words.
_FILE_TYPES = {
    **{0: "all F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 32: "BF16"},
    **{10: "Q2_K - Medium", 11: "Q3_K - Small", 12: "Q3_K - Medium", 13: "Q3_K - Large"},
    **{14: "Q4_K - Small", 15: "Q4_K - Medium", 16: "Q5_K - Small", 17: "Q5_K - Medium"},
    **{18: "Q6_K", 19: "IQ2_XXS - 2.0625 bpw", 20: "IQ2_XS - 2.3125 bpw", 21: "Q2_K - Small"},
    **{22: "IQ3_XS - 3.3 bpw", 23: "IQ3_XXS - 3.0625 bpw", 25: "IQ4_NL - 4.5 bpw"},
    **{26: "IQ3_S - 3.4375 bpw", 27: "IQ3_S mix - 3.66 bpw", 28: "IQ2_S - 2.5 bpw"},
    **{29: "IQ2_M - 2.7 bpw", 30: "IQ4_XS - 4.25 bpw", 38: "MXFP4 MoE", 39: "NVFP4"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchCommand:
    """What the command line asked for; lists as they were typed."""

    model: str
    n_prompt: Sequence[str] | None
    n_gen: Sequence[str] | None
    prompt_gen: Sequence[str] | None
    n_depth: Sequence[str] | None
    repetitions: int
    threads: Sequence[str] | None
    output: str
    device: str
    gpus: int
    kv_type: str
    roofline: bool

    def run(self) -> int:
        """Measure every test and write it to stdout as soon as it is done."""
        if self.output not in FORMS:
            raise console.UsageError(f"--output is {self.output!r}; it must be {in_words(FORMS)}")
        if self.repetitions < 1:
            raise console.UsageError(f"--repetitions is {self.repetitions}; it must be 1 or more")
        tests = bench_plan.plan(
            bench_plan.numbers("--n-prompt", self.n_prompt, _N_PROMPT),
            bench_plan.numbers("--n-gen", self.n_gen, _N_GEN),
            bench_plan.pairs(self.prompt_gen),
            bench_plan.numbers("--n-depth", self.n_depth, 0),
        )
        threads: list[int | None] = [None]
        if self.threads is not None and list(self.threads) != [AUTO]:
            threads = [
                *bench_plan.numbers("--threads", self.threads, 1, lowest=1, highest=MAX_THREADS)
            ]
        path = model_path(self.model)
        try:
            bench_plan.check_positions(open_model_files(path), tests)
            self._measure(tests, threads)
        except (AkunuError, console.UsageError) as error:
            # Here the question, which loads the model, is for models that cannot be measured.
            try:
                refuse_encoder(path, load_options(device=self.device), "bench")
            except UnsupportedModelError:
                raise
            except AkunuError:  # it cannot be loaded either
                raise error from None
            raise
        return 0

    def _measure(self, tests: list[bench_plan.Test], threads: list[int | None]) -> None:
        if self.threads is not None and list(self.threads) == [AUTO]:
            threads = [self._measured_threads()]
        output = output_of(self.output, with_share=self.roofline)
        try:
            for count in threads:
                self._run_tests(tests, count, output)
        except BaseException:
            if output.rows:  # what was measured stays whole
                output.finish()
            raise
        output.finish()

    def _measured_threads(self) -> int | None:
        """Write what was measured with each number of threads; return the one to take.

        The table stands before the results, or on stderr where those are JSON or CSV.
        """
        counts = counts_on(self.device, from_one=True)
        if not counts:
            return None
        options = load_options(device=self.device, kv_type=self.kv_type)
        state = ""

        def tell(what: str) -> None:
            nonlocal state
            state = what

        with Progress(lambda: state):
            choice = choose_threads(model_path(self.model), options, counts, tell)
        with redirect_stdout(sys.stdout if self.output == "md" else sys.stderr):
            write_curve(choice)
        return choice.threads

    def _run_tests(self, tests: list[bench_plan.Test], threads: int | None, output: Output) -> None:
        path = model_path(self.model)
        file = open_model_files(path)
        options = load_options(
            device=self.device,
            context=max(test.n_positions for test in tests),
            threads=threads,
            gpus=self.gpus,
            kv_type=self.kv_type,
        )
        with load_model(self.model, options) as model:
            device = device_of(self.device)
            subject = self._subject(file, model, threads, device)
            limits: Limits | None = None
            if self.roofline:
                with Progress(lambda: "measuring bandwidth and peak"):
                    limits = measure_limits(options)
            work = OperationModel.of(
                file.tensors, model.config, self.kv_type, device["max_prompt_rows"]
            )
            bench = Bench(model)
            state = ""

            def tell(what: str) -> None:
                nonlocal state
                state = what

            for test in tests:
                with Progress(lambda: state):
                    result = bench.measure(test, self.repetitions, tell)
                if limits is None:
                    output.add(BenchRow(subject, result))
                    continue
                share = share_of(work.work(test), limits, result.avg_ns / 1e9)
                tell(f"{test.name}: kernel by kernel")
                kernels: list[Kernels] = []
                try:
                    with Progress(lambda: state):
                        for step in _steps(test, device["max_prompt_rows"]):
                            commands = profile_step(path, options, step, self.repetitions)
                            kernels.append(Kernels(step, by_kind(commands, step, work, limits)))
                finally:  # an interrupt here takes nothing from the test
                    output.add(BenchRow(subject, result, share, limits, kernels))

    def _subject(
        self, file: ModelFiles, model: Model, threads: int | None, device: dict[str, Any]
    ) -> Subject:
        tensors = file.tensors
        parameters = parameter_count(tensors)
        kind = _FILE_TYPES.get(file.get("general.file_type", -1))
        return Subject(
            build_commit=f"akunu {akunu.__version__}",
            cpu_info=str(device["name"]),
            backends=str(device["backend"]).upper(),
            isa_level=str(device["level"]),
            model_filename=str(Path(file.path)),
            model_type=" ".join(
                [
                    model.config.architecture,
                    short_count(parameters),
                    kind or format_totals(tensors)[0]["format"],
                ]
            ),
            model_size=weight_bytes(tensors),
            model_n_params=parameters,
            n_batch=int(str(device["max_prompt_rows"])),
            n_threads=threads or int(str(device["workers"])),
            type_k=self.kv_type,
            type_v=self.kv_type,
        )


def _steps(test: bench_plan.Test, prompt_rows: int) -> list[bench_plan.Test]:
    """Return the last step of a test's prompt and the first of its text, by themselves."""
    steps = []
    begin = test.n_depth + test.n_prompt
    if test.n_prompt:
        rows = min(test.n_prompt, prompt_rows)
        steps.append(bench_plan.Test(rows, 0, begin - rows))
    if test.n_gen:
        steps.append(bench_plan.Test(0, 1, begin))
    return steps
