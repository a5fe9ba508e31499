"""Options that several commands have: declared once, with their help."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from akunu.cli import console
from akunu.errors import ArgumentError
from akunu.options import LoadOptions, SamplingOptions


def complete_model(incomplete: str) -> list[str]:
    """Return what the shell may offer for a model: its name inside akunu, or a file's path."""
    folder, slash, start = incomplete.rpartition("/")
    found = ["ember"] if "ember".startswith(incomplete) else []
    try:
        entries = sorted(os.scandir(folder + slash or "."), key=lambda entry: entry.name)
    except OSError:
        return found
    for entry in entries:
        if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
            continue
        if entry.is_dir():
            found.append(f"{folder}{slash}{entry.name}/")
        elif entry.name.lower().endswith(".gguf"):
            found.append(f"{folder}{slash}{entry.name}")
    return found


_ESCAPES = {r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\\": "\\"}

MODEL_HELP = "A GGUF file, org/repo:Q4_K_M on the Hugging Face hub, an https address, or ember."
Model = Annotated[
    str,
    typer.Argument(
        help=MODEL_HELP,
        autocompletion=complete_model,
    ),
]
MaxTokens = Annotated[int | None, typer.Option(help="The most tokens to generate.")]
# None: not given. `akunu chat` then takes what the model's file recommends.
# None: not given. `akunu chat` then takes what the model's file recommends.
Temperature = Annotated[
    float | None,
    typer.Option(help="0 (the default) takes the most likely words; higher surprises more."),
]
TopK = Annotated[
    int | None,
    typer.Option(help="Choose among this many likely tokens; 0 (the default): among all."),
]
TopP = Annotated[
    float | None,
    typer.Option(help="Choose among the fewest tokens that reach this sum; default: 1, all."),
]
MinP = Annotated[
    float | None,
    typer.Option(
        help="Drop tokens less likely than this share of the likeliest; default: 0, none."
    ),
]
RepetitionPenalty = Annotated[
    float | None,
    typer.Option(help="Above 1 (the default): what was said lately is less likely."),
]
Seed = Annotated[int | None, typer.Option(help="The same seed gives the same text.")]
Context = Annotated[
    int | None, typer.Option(help="Tokens that one text may have; default: what fits.")
]
Threads = Annotated[int | None, typer.Option(help="Threads of the CPU; default: one per core.")]
Device = Annotated[str, typer.Option(help="A name that `akunu devices` shows.")]
KvType = Annotated[str, typer.Option(help="Number format of the cache: f16 or f32.")]
LoopGuard = Annotated[
    bool,
    typer.Option(help="Whether a text that only repeats itself is stopped (typed chat: a hint)."),
]
Json = Annotated[bool, typer.Option("--json", help="Write JSON.")]


def load_options(**options: Any) -> LoadOptions:
    """Return the checked options of a load; raises UsageError."""
    try:
        return LoadOptions(**options)
    except ArgumentError as error:
        raise console.UsageError(str(error)) from None


def given(**options: Any) -> dict[str, Any]:
    """Return the options that the command line gave: those that are not None.

    >>> given(temperature=0.0, top_k=None)
    {'temperature': 0.0}
    """
    return {name: value for name, value in options.items() if value is not None}


def sampling_options(**options: Any) -> SamplingOptions:
    """Return the checked options of a generation; raises UsageError."""
    try:
        return SamplingOptions(**options)
    except ArgumentError as error:
        raise console.UsageError(str(error)) from None


def unescaped_all(option: str, values: Sequence[str]) -> tuple[str, ...]:
    r"""Return texts with \n, \r, \t and \\ read as what they stand for.

    A shell's quotes leave them as they are typed. Raises UsageError, naming the option, for a
    backslash before anything else.

    >>> unescaped_all("--stop", [r"a\nb", r"\\n"])
    ('a\nb', '\\n')
    """
    return tuple(_unescaped(option, value) for value in values)


def _unescaped(option: str, value: str) -> str:
    def meaning(match: re.Match[str]) -> str:
        if match[0] not in _ESCAPES:
            raise console.UsageError(
                f"{option} is {value!r}: {match[0] or value} is none of \\n, \\r, \\t and \\\\"
            )
        return _ESCAPES[match[0]]

    return re.sub(r"\\.?", meaning, value, flags=re.DOTALL)
