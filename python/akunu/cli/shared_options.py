"""Options that several commands have together: a command takes what they say as one parameter."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from akunu.cli import options
from akunu.cli.output_constraint import constraint_of_options
from akunu.options.declarations import declared_of
from akunu.options.load_options import LoadOptions

if TYPE_CHECKING:
    from akunu.cli.output_constraint import OutputConstraint

Command = TypeVar("Command", bound=Callable[..., Any])

Loading = Callable[[], LoadOptions]
"""Checks and returns how a model is loaded; raises UsageError."""
GivenForm = Callable[[], "OutputConstraint | None"]
"""Reads and returns the form of the text; raises UsageError."""

_FORM: Final[Mapping[str, tuple[Any, Any]]] = {
    "schema": (options.Schema, None),
    "weaken_schema": (options.WeakenSchema, False),
    "json_object": (options.JsonObject, False),
    "regex": (options.Regex, None),
    "choice": (options.Choice, None),
    "grammar": (options.Rules, None),
}


def takes_loading(command: Command) -> Command:
    """Give a command the options of a load whose declaration names it, in place of its `load`."""
    flags = [
        options.flag_parameter(name, declared, default, None if declared.is_list else default)
        for name, declared in declared_of(LoadOptions).items()
        if command.__name__ in declared.calls
        for default in [LoadOptions.__dataclass_fields__[name].default]
    ]
    return _with_options(command, "load", flags, options.load_options)


def takes_form(command: Command) -> Command:
    """Give a command the options that say what a text may be in place of its `form`."""
    flags = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _FORM.items()
    ]
    return _with_options(command, "form", flags, _form)


def _form(*, weaken_schema: bool, **given: Any) -> OutputConstraint | None:
    return constraint_of_options(**given, weaken=weaken_schema)


def _with_options(
    command: Command,
    parameter: str,
    flags: Sequence[inspect.Parameter],
    make: Callable[..., Any],
) -> Command:
    """Put options in the place of a parameter, which gets what makes something of their values."""
    signature = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def called(**given: Any) -> Any:
        values = {each.name: given.pop(each.name) for each in flags}
        return command(**given, **{parameter: functools.partial(make, **values)})

    shown: list[inspect.Parameter] = []
    for each in signature.parameters.values():
        if each.name != parameter:
            shown.append(each)
            continue
        shown += [flag.replace(kind=each.kind) for flag in flags]
    called.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in shown}
    return called  # type: ignore[return-value]
