"""Options that do not exist, answered with the one that was meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from akunu.errors import MisuseError

Function = TypeVar("Function", bound=Callable[..., Any])
Options = TypeVar("Options")

# What other programs call our options, where the names are not alike.
_OTHER_NAMES = {
    "temp": "temperature",
    **dict.fromkeys(("max_length", "n_predict", "num_predict"), "max_tokens"),
    **dict.fromkeys(("max_completion_tokens", "max_new_tokens"), "max_tokens"),
    **dict.fromkeys(("num_return_sequences", "best_of"), "n"),
    **dict.fromkeys(("response_format", "json_schema", "guided_json"), "schema"),
    "guided_regex": "regex",
    "guided_choice": "choice",
    **dict.fromkeys(("guided_grammar", "gbnf"), "grammar"),
    "functions": "tools",
    "function_call": "tool_choice",
    **dict.fromkeys(("repeat_penalty", "penalty_repeat"), "repetition_penalty"),
    **dict.fromkeys(("typical", "typ_p"), "typical_p"),
    **dict.fromkeys(("sampler_order", "sampler_seq"), "samplers"),
    **dict.fromkeys(("repeat_last_n", "penalty_last_n"), "penalty_window"),
    **dict.fromkeys(("n_ctx", "num_ctx", "ctx_size", "max_model_len"), "context"),
    **dict.fromkeys(("n_threads", "num_thread"), "threads"),
    **dict.fromkeys(("enable_thinking", "reasoning_effort", "think"), "thinking"),
    "chat_template_kwargs": "template_variables",
    **dict.fromkeys(("thinking_budget_tokens", "budget_tokens"), "thinking_budget"),
    **dict.fromkeys(("tensor_parallel_size", "tp_size", "num_gpus"), "gpus"),
    **dict.fromkeys(("gpu_memory_utilization", "n_gpu_layers", "n_cpu_moe"), "gpu_memory"),
    **dict.fromkeys(("type_k", "type_v", "cache_type_k", "kv_cache_dtype"), "kv_type"),
}


def explains_typos(function: Function) -> Function:
    """Have a callable answer an option that it does not have with the one that was meant.

    >>> @explains_typos
    ... def play(*, speed: float = 1.0) -> None: ...
    >>> play(sped=2)
    Traceback (most recent call last):
    ...
    akunu.errors.MisuseError: play() has no option 'sped'; did you mean 'speed'?
    """
    signature = inspect.signature(function)
    names = [p.name for p in signature.parameters.values() if p.kind is not p.POSITIONAL_ONLY]
    called = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @wraps(function)
    def checked(*arguments: Any, **options: Any) -> Any:
        if not options.keys() <= set(names):
            unknown = next(name for name in options if name not in names)
            raise MisuseError(f"{called}() has no option {unknown!r}; {_advice(unknown, names)}")
        return function(*arguments, **options)

    return cast(Function, checked)


def _advice(unknown: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches  # only for the error

    meant = _OTHER_NAMES.get(unknown.lower())
    if meant not in names:
        meant = next(iter(get_close_matches(unknown.lower(), names, 1)), None)
    if meant is not None:
        return f"did you mean {meant!r}?"
    return f"its options are {', '.join(name for name in names if name != 'self')}"


def explains_typos_of_init(options: type[Options]) -> type[Options]:
    """Do the same for what makes an object."""
    options.__init__ = explains_typos(options.__init__)  # type: ignore[method-assign]
    return options
