"""Options that several commands have together: a command takes what they say as one parameter."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from akunu.cli import options
from akunu.options.text_options import LoadOptions

if TYPE_CHECKING:
    from akunu.cli.output_constraint import OutputConstraint

Command = TypeVar("Command", bound=Callable[..., Any])

Loading = Callable[[], LoadOptions]
"""Checks and returns how a model is loaded; raises UsageError."""
GivenForm = Callable[[], "OutputConstraint | None"]
"""Reads and returns the form of the text; raises UsageError."""

_LOADING_ENCODER: Final[Mapping[str, tuple[Any, Any]]] = {  # type and default
    "context": (options.Context, None),
    "threads": (options.Threads, None),
    "device": (options.Device, "auto"),
    "gpu_memory": (options.GpuMemory, None),
}
_LOADING: Final[Mapping[str, tuple[Any, Any]]] = {
    **_LOADING_ENCODER,
    "gpus": (options.Gpus, 1),
    "kv_type": (options.KvType, "f16"),
}
_DISK: Final[Mapping[str, tuple[Any, Any]]] = {
    "cache_dir": (options.CacheDir, None),
    "cache_size": (options.CacheSize, None),
}
_ADAPTERS: Final[Mapping[str, tuple[Any, Any]]] = {
    "adapters": (options.Adapters, None),
    "mmproj": (options.Mmproj, None),
    "draft": (options.Draft, None),
    "prediction_head": (options.PredictionHead, False),
    **_DISK,
}
_FORM: Final[Mapping[str, tuple[Any, Any]]] = {
    "schema": (options.Schema, None),
    "weaken_schema": (options.WeakenSchema, False),
    "json_object": (options.JsonObject, False),
    "regex": (options.Regex, None),
    "choice": (options.Choice, None),
    "grammar": (options.Rules, None),
}


def takes_loading(command: Command) -> Command:
    """Give a command --context, --threads, --device, --gpu-memory, --gpus, --kv-type."""
    return _with_options(command, "load", _LOADING, options.load_options)


def takes_loading_encoder(command: Command) -> Command:
    """Likewise without --gpus and --kv-type: an encoder is on one, and has no cache."""
    return _with_options(command, "load", _LOADING_ENCODER, options.load_options)


def takes_loading_with_disk(command: Command) -> Command:
    """Likewise, and --cache-dir and --cache-size."""
    return _with_options(command, "load", {**_LOADING, **_DISK}, options.load_options)


def takes_loading_with_adapters(command: Command) -> Command:
    """Likewise, and --adapter, --mmproj, --draft and --prediction-head."""
    return _with_options(command, "load", {**_LOADING, **_ADAPTERS}, options.load_options)


def takes_form(command: Command) -> Command:
    """Give a command the options that say what a text may be in place of its `form`."""
    return _with_options(command, "form", _FORM, _form)


def _form(*, weaken_schema: bool, **given: Any) -> OutputConstraint | None:
    from akunu.cli.output_constraint import constraint_of_options

    return constraint_of_options(**given, weaken=weaken_schema)


def _with_options(
    command: Command,
    parameter: str,
    declared: Mapping[str, tuple[Any, Any]],
    make: Callable[..., Any],
) -> Command:
    """Put options in the place of a parameter, which gets what makes something of their values."""
    signature = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def called(**given: Any) -> Any:
        values = {name: given.pop(name) for name in declared}
        return command(**given, **{parameter: functools.partial(make, **values)})

    shown: list[inspect.Parameter] = []
    for each in signature.parameters.values():
        if each.name != parameter:
            shown.append(each)
            continue
        shown += [
            inspect.Parameter(name, each.kind, default=default, annotation=kind)
            for name, (kind, default) in declared.items()
        ]
    called.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in shown}
    return called  # type: ignore[return-value]
