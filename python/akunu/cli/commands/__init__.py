"""The commands, a module each.

A module is imported when its command runs (`commands.embed.show_embeddings(...)`), so that
`akunu --help` and a mistyped option take none of the time that models take.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = [
    "bench",
    "bench_texts",
    "chat",
    "complete",
    "convert",
    "devices",
    "doctor",
    "embed",
    "imatrix",
    "inspect",
    "inspect_template",
    "listen",
    "models",
    "perplexity",
    "plan",
    "profile",
    "pull",
    "quantize",
    "rank",
    "ray",
    "serve",
    "servers",
    "tokenize",
    "transcribe",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from akunu.cli.commands import (
        bench,
        bench_texts,
        chat,
        complete,
        convert,
        devices,
        doctor,
        embed,
        imatrix,
        inspect,
        inspect_template,
        listen,
        models,
        perplexity,
        plan,
        profile,
        pull,
        quantize,
        rank,
        ray,
        serve,
        servers,
        tokenize,
        transcribe,
    )


def __getattr__(name: str) -> ModuleType:
    """Import a command's module where it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
