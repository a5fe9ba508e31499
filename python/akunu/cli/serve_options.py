"""The options of `akunu serve` and `akunu ray`: those that their settings declare."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer

from akunu.server.configuration import value_of_text
from akunu.server.settings import DeclaredSetting, ServerSettings, declared_settings

Command = TypeVar("Command", bound=Callable[..., Any])

_KINDS: Final = {"INTEGER": int, "BYTES": int, "SECONDS": float, "FILE": Path}
_SHORT: Final = {"port": "-p", "adapters": "--adapter"}


def takes_settings(*kinds: type) -> Callable[[Command], Command]:
    """Give a command the options of classes of settings in place of its `**settings`.

    None is: not given. What is secret has no option, since others see a command line.
    """

    def decorated(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        parameters += [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=_option(name, declared),
            )
            for kind in kinds
            for name, declared in declared_settings(kind).items()
            if not declared.is_secret
        ]
        shown = signature.replace(parameters=parameters)
        command.__signature__ = shown  # type: ignore[attr-defined]  # what inspect.signature reads
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return decorated


def _option(name: str, declared: DeclaredSetting) -> Any:
    flags = ["--" + name.replace("_", "-")]
    if name in _SHORT:
        flags.append(_SHORT[name])
    if not declared.metavar:
        if ServerSettings.__dataclass_fields__[name].default:  # it is there to be turned off
            flags = [f"{flags[0]}/--no-{flags[0][2:]}"]
        option = typer.Option(*flags, help=declared.help, show_default=False)
        return Annotated[bool | None, option]
    kind: Any = _KINDS.get(declared.metavar, str)
    if "|" in declared.metavar:  # a number or a word

        def typed(text: str) -> Any:
            return value_of_text(declared, text)

        option = typer.Option(*flags, metavar=declared.metavar, help=declared.help, parser=typed)
        return Annotated[int | None, option]
    help = declared.help + (" May be repeated." if declared.is_list else "")
    option = typer.Option(*flags, metavar=declared.metavar, help=help)
    return Annotated[list[kind] | None if declared.is_list else kind | None, option]
