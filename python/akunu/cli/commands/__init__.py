"""The commands, a module each.

A module is imported when its command runs (`commands.embed.show_embeddings(...)`), so that
`akunu --help` and a mistyped option take none of the time that models take.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from akunu.cli.commands import (
        bench as bench,
    )
    from akunu.cli.commands import (
        bench_texts as bench_texts,
    )
    from akunu.cli.commands import (
        chat as chat,
    )
    from akunu.cli.commands import (
        complete as complete,
    )
    from akunu.cli.commands import (
        convert as convert,
    )
    from akunu.cli.commands import (
        devices as devices,
    )
    from akunu.cli.commands import (
        doctor as doctor,
    )
    from akunu.cli.commands import (
        embed as embed,
    )
    from akunu.cli.commands import (
        imatrix as imatrix,
    )
    from akunu.cli.commands import (
        inspect as inspect,
    )
    from akunu.cli.commands import (
        listen as listen,
    )
    from akunu.cli.commands import (
        models as models,
    )
    from akunu.cli.commands import (
        perplexity as perplexity,
    )
    from akunu.cli.commands import (
        plan as plan,
    )
    from akunu.cli.commands import (
        profile as profile,
    )
    from akunu.cli.commands import (
        pull as pull,
    )
    from akunu.cli.commands import (
        quantize as quantize,
    )
    from akunu.cli.commands import (
        rank as rank,
    )
    from akunu.cli.commands import (
        ray as ray,
    )
    from akunu.cli.commands import (
        serve as serve,
    )
    from akunu.cli.commands import (
        servers as servers,
    )
    from akunu.cli.commands import (
        tokenize as tokenize,
    )
    from akunu.cli.commands import (
        transcribe as transcribe,
    )


def __getattr__(name: str) -> ModuleType:
    """Import a command's module where it is first used."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
