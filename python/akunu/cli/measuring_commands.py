"""The commands that measure a model; each is carried out by the module of its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from akunu.cli import commands, options
from akunu.cli.options import load_options
from akunu.cli.terminal import console
from akunu.options.engine_limits import MAX_THREADS
from akunu.options.option_checks import AUTO

BENCH_HELP = """Measure how fast a model runs on this machine.

Options and columns follow llama-bench. A test is a prompt (pp), a completion (tg) or both (pg),
after a context of --n-depth tokens. An option takes a list with commas and may be repeated. Every
combination is measured.

With --texts, prompts are real words, sent alone and in batches as to a server. There -n is the
tokens of a reply (default: 64) and -r the rounds of each case."""

Prompts = Annotated[
    str | None,
    typer.Option(
        "--prompts",
        metavar="NAMES",
        help="Prompts of --texts: short, medium or long (32, 256 or 2048 tokens). Default: all.",
    ),
]
SideBySide = Annotated[
    list[str] | None,
    typer.Option(
        "--side-by-side",
        metavar="NUMBERS",
        help="Batch sizes of --texts. Range: 1 to 64. Default: 1,4,16.",
    ),
]
Compare = Annotated[
    Path | None,
    typer.Option(
        "--compare", metavar="FILE", help="Compare with the JSON of an earlier run of --texts."
    ),
]

PERPLEXITY_HELP = """Measure how well a model predicts a text.

The definition is llama.cpp's: chunks of --context tokens, each with BOS first if the model expects
it. Only the second half of each chunk counts."""


def bench(
    model: options.Model = "ember",
    n_prompt: Annotated[
        list[str] | None,
        typer.Option(
            "-p",
            "--n-prompt",
            metavar="NUMBERS",
            help="Tokens of a prompt. Range: 0 or more. Default: 512.",
        ),
    ] = None,
    n_gen: Annotated[
        list[str] | None,
        typer.Option(
            "-n",
            "--n-gen",
            metavar="NUMBERS",
            help="Tokens to generate. Range: 0 or more. Default: 128.",
        ),
    ] = None,
    prompt_gen: Annotated[
        list[str] | None,
        typer.Option(
            "-pg", metavar="PAIR", help="Prompt and completion in one test, such as 512,128."
        ),
    ] = None,
    n_depth: Annotated[
        list[str] | None,
        typer.Option(
            "-d",
            "--n-depth",
            metavar="NUMBERS",
            help="Tokens in the context before the test. Range: 0 or more. Default: 0.",
        ),
    ] = None,
    repetitions: Annotated[
        int, options.count("-r", "--repetitions", help="Runs per test. Range: 1 or more.")
    ] = 5,
    threads: Annotated[
        list[str] | None,
        typer.Option(
            "-t",
            "--threads",
            metavar="NUMBERS",
            help=f"CPU threads. Range: 1 to {MAX_THREADS}, or auto. Default: one per core.",
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", metavar="FORM", help="Output format. Range: md, json or csv."
        ),
    ] = "md",
    device: options.Device = "auto",
    gpus: options.Gpus = 1,
    kv_type: options.KvType = "f16",
    roofline: Annotated[
        bool,
        typer.Option(
            "--roofline",
            help="Measure memory bandwidth and peak speed; show the share that each kernel uses.",
        ),
    ] = False,
    texts: Annotated[
        bool, typer.Option("--texts", help="Measure prompts of real words, alone and in batches.")
    ] = False,
    prompts: Prompts = None,
    side_by_side: SideBySide = None,
    compare: Compare = None,
) -> int:
    """Measure how fast a model runs on this machine."""

    def run_texts() -> int:
        for name, given in (
            ("--n-prompt", n_prompt),
            ("-pg", prompt_gen),
            ("--n-depth", n_depth),
            ("--roofline", roofline),
            ("--gpus", gpus != 1),
            ("--output csv", output == "csv"),
        ):
            if given:
                raise console.UsageError(
                    f"{name} has no effect with --texts: leave one of them out"
                )
        return commands.bench_texts.BenchTextsCommand(
            model=model,
            prompts=prompts,
            side_by_side=side_by_side,
            reply_tokens=_one("--n-gen", n_gen) or 64,
            rounds=repetitions,
            threads=AUTO if threads == [AUTO] else _one("--threads", threads),
            device=device,
            kv_type=kv_type,
            json=output == "json",
            compare=compare,
        ).run()

    def run() -> int:
        if texts:
            return run_texts()
        for name, given in (
            ("--prompts", prompts),
            ("--side-by-side", side_by_side),
            ("--compare", compare),
        ):
            if given is not None:
                raise console.UsageError(f"{name} needs --texts")
        return commands.bench.BenchCommand(
            model=model,
            n_prompt=n_prompt,
            n_gen=n_gen,
            prompt_gen=prompt_gen,
            n_depth=n_depth,
            repetitions=repetitions,
            threads=threads,
            output=output,
            device=device,
            gpus=gpus,
            kv_type=kv_type,
            roofline=roofline,
        ).run()

    return console.reported(run)


def _one(option: str, given: list[str] | None) -> int | None:
    """Return the number of an option that takes several elsewhere; raises UsageError."""
    if given is None:
        return None
    try:
        (number,) = map(int, given)
    except ValueError:
        raise console.UsageError(
            f"{option} is {','.join(given)!r}; with --texts it must be one number"
        ) from None
    return number


def benchmark(
    model: options.Model = "ember",
    prompts: Prompts = None,
    side_by_side: SideBySide = None,
    reply_tokens: Annotated[
        int, options.count("-n", "--reply-tokens", help="Tokens of a reply. Range: 2 or more.")
    ] = 64,
    rounds: Annotated[
        int, options.count("-r", "--rounds", help="Rounds of each case. Range: 1 or more.")
    ] = 5,
    threads: options.Threads = None,
    device: options.Device = "auto",
    kv_type: options.KvType = "f16",
    json: options.Json = False,
    compare: Compare = None,
) -> int:
    """Measure prompts of real words: the same as `akunu bench --texts`."""

    def run() -> int:
        return commands.bench_texts.BenchTextsCommand(
            model=model,
            prompts=prompts,
            side_by_side=side_by_side,
            reply_tokens=reply_tokens,
            rounds=rounds,
            threads=threads,
            device=device,
            kv_type=kv_type,
            json=json,
            compare=compare,
        ).run()

    return console.reported(run)


def profile(
    model: options.Model = "ember",
    n_prompt: Annotated[
        int,
        options.count(
            "-p",
            "--n-prompt",
            help="Tokens of a prompt. 0: one generated token. Range: 0 or more.",
        ),
    ] = 0,
    n_depth: Annotated[
        int,
        options.count(
            "-d", "--n-depth", help="Tokens in the context before the step. Range: 0 or more."
        ),
    ] = 0,
    repetitions: Annotated[
        int, options.count("-r", "--repetitions", help="Runs of each kernel. Range: 1 or more.")
    ] = 5,
    threads: options.Threads = None,
    device: options.Device = "auto",
    kv_type: options.KvType = "f16",
    roofline: Annotated[
        bool,
        typer.Option(
            "--roofline",
            help="Measure memory bandwidth and peak speed, and show the shares reached.",
        ),
    ] = False,
    json: options.Json = False,
) -> int:
    """Show the time of each kernel in one step. Each kernel is timed alone."""

    def run() -> int:
        load = load_options(device=device, threads=threads, kv_type=kv_type)
        return commands.profile.show_profile(
            model,
            load,
            n_prompt=n_prompt,
            depth=n_depth,
            repetitions=repetitions,
            roofline=roofline,
            as_json=json,
        )

    return console.reported(run)


def perplexity(
    model: options.Model = "ember",
    file: options.TextFile = None,
    context: Annotated[
        int, options.count("--context", help="Tokens of a chunk. Range: 8 or more.")
    ] = 512,
    chunks: options.Chunks = None,
    threads: options.Threads = None,
    device: options.Device = "auto",
    kv_type: options.KvType = "f16",
    json: options.Json = False,
) -> int:
    """Measure how well a model predicts a text."""

    def run() -> int:
        load = load_options(device=device, context=context, threads=threads, kv_type=kv_type)
        return commands.perplexity.show_perplexity(model, file, load, chunks=chunks, as_json=json)

    return console.reported(run)
