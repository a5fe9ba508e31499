"""What a caller may choose: frozen, and refused with a sentence when it makes no sense.

`SamplingOptions` and `LoadOptions` are declared in their own files; here is what calls make of
the keyword arguments they take.

>>> from akunu import SamplingOptions
>>> SamplingOptions(temperature=0.7, top_p=0.9).top_p
0.9
>>> SamplingOptions(top_p=2)
Traceback (most recent call last):
...
akunu.errors.ArgumentError: top_p is 2; it must be a number from 0 (excluded) to 1
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, TypeAlias, cast

from akunu.common.checks import refusal
from akunu.common.typos import Function, explains_typos
from akunu.errors import ArgumentError, MisuseError
from akunu.grammar.structure import (
    STRUCTURE_DEFAULTS,
    Structure,
    StructureArgument,
    StructureArguments,
    structure_argument,
)
from akunu.options.arguments import SamplingArguments
from akunu.options.load_options import LoadOptions
from akunu.options.sampling_options import SamplingOptions

__all__ = [
    "ChatArguments",
    "LoadOptions",
    "SamplingOptions",
    "TextArguments",
    "TextOptions",
    "ToolsArgument",
    "lists_load_options",
    "lists_sampling_options",
    "refuses_options_of_load",
    "sampling_options",
]


class TextArguments(SamplingArguments, StructureArguments, total=False):
    """The keyword arguments of `generate` and `chat` that say how a text comes about."""


ToolsArgument: TypeAlias = Sequence[Mapping[str, Any] | Callable[..., Any]] | None
"""What `chat` takes as `tools`: descriptions in OpenAI's or Anthropic's form, or functions."""


class ChatArguments(TextArguments, total=False):
    """The keyword arguments that `chat` takes next to those in its signature."""

    tool_choice: str | Mapping[str, Any] | None
    parallel_tool_calls: bool
    thinking: bool | str | None
    thinking_budget: int | None
    template_variables: Mapping[str, Any] | None
    continue_final_message: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions(SamplingOptions):
    """How the next token is chosen, and what form the text has; made by `sampling_options`."""

    structure: Structure | None = None
    form: StructureArgument | None = None
    """The form before it is compiled; None where there is none, or it is."""

    def compiled(self) -> TextOptions:
        """Return the options with their form compiled.

        Raises what `StructureArgument.compiled` does.
        """
        if self.form is None:
            return self
        return replace(self, structure=self.form.compiled(), form=None)


def sampling_options(
    options: SamplingOptions | None, arguments: Mapping[str, object]
) -> TextOptions:
    """Return the options that a call gave, as an object, as keyword arguments, or as both.

    Among the arguments may be one that says what form the text has; it is not compiled yet. Raises
    ArgumentError where the two speak of the same field, and for several forms.
    """
    given = {name: each for name, each in arguments.items() if name in STRUCTURE_DEFAULTS}
    others = {name: each for name, each in arguments.items() if name not in STRUCTURE_DEFAULTS}
    chosen = {}
    if options is not None:
        if not isinstance(options, SamplingOptions):
            raise refusal("options", options, "a SamplingOptions", "or None")
        chosen = {
            each.name: getattr(options, each.name)
            for each in fields(options)
            if getattr(options, each.name) != each.default
        }
    for name, value in others.items():
        if name in chosen:
            raise ArgumentError(
                f"{name} is set twice: {chosen[name]!r} in options and {value!r} as an argument"
            )
    sampling = cast("dict[str, Any]", {**chosen, **others})
    if given:
        sampling["form"] = structure_argument(given)
    return TextOptions(**sampling)


def lists_sampling_options(function: Function) -> Function:
    """Have `help` show the fields of SamplingOptions, and forms, instead of `**sampling`.

    Another name is answered as `explains_typos` does.
    """
    kinds = StructureArguments.__annotations__
    forms = [(name, default, kinds[name]) for name, default in STRUCTURE_DEFAULTS.items()]
    return _listing(function, [*_listed(SamplingOptions), *forms])


def lists_load_options(function: Function) -> Function:
    """Likewise the fields of LoadOptions instead of `**options`."""
    return _listing(function, _listed(LoadOptions))


def refuses_options_of_load(function: Function) -> Function:
    """Have a callable say of an option of `load` that it lacks that only a load has it.

    Other names are answered as `explains_typos` does.
    """
    explained = explains_typos(function)
    taken = inspect.signature(function).parameters
    elsewhere = {each.name for each in fields(LoadOptions)} - {*taken}

    @wraps(function)
    def checked(*arguments: Any, **chosen: Any) -> Any:
        for name in chosen:
            if name in elsewhere:
                raise MisuseError(
                    f"{function.__name__}() has no option {name!r}: that is decided when the model "
                    f"is loaded; akunu.load(model.path, {name}=...) loads it once more"
                )
        return explained(*arguments, **chosen)

    return cast(Function, checked)


def _listed(options: type[Any]) -> list[tuple[str, Any, Any]]:
    """Return names, defaults and types."""
    return [(each.name, each.default, each.type) for each in fields(options)]


def _listing(function: Function, listed: Sequence[tuple[str, Any, Any]]) -> Function:
    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, default, kind in listed
    ]
    shown = signature.replace(parameters=[*kept, *added])
    function.__signature__ = shown  # type: ignore[attr-defined]  # what inspect.signature reads
    return explains_typos(function)
