"""The options of `akunu serve` and `akunu ray`: those that their settings declare."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from akunu.cli.options import flag_parameter
from akunu.server.settings import declared_settings

Command = TypeVar("Command", bound=Callable[..., Any])


def takes_settings(*kinds: type) -> Callable[[Command], Command]:
    """Give a command the options of classes of settings in place of its `**settings`.

    None means: not set. A secret setting has no option, since others see a command line.
    """

    def decorated(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        parameters += [
            flag_parameter(name, declared, default, is_typed=False)
            for kind in kinds
            for name, declared in declared_settings(kind).items()
            if not declared.is_secret
            for default in [kind.__dataclass_fields__[name].default]  # type: ignore[attr-defined]
        ]
        shown = signature.replace(parameters=parameters)
        command.__signature__ = shown  # type: ignore[attr-defined]  # what inspect.signature reads
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return decorated
