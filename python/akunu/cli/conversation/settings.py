"""Sampling options by name and as text: what /set and /show are about."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from akunu.cli.options import ESCAPES, value_of
from akunu.cli.wording import refusal
from akunu.errors import ArgumentError
from akunu.model import Model
from akunu.options.declarations import declared_of
from akunu.options.sampling_options import declared_options
from akunu.options.text_options import LoadOptions, SamplingOptions

THINKING: Final = "thinking"
THINKING_BUDGET: Final = "thinking_budget"
"""What is set of the conversation, next to options of sampling."""

_FIELDS: Final = {
    field.name: field
    for field in fields(SamplingOptions)
    if "set" in declared_options()[field.name].calls
}

# What other programs call them.
_OTHER_NAMES: Final = {
    other: name for name in _FIELDS for other in declared_options()[name].other_names
}
# The options that are set when a model is loaded.
_AT_LOAD: Final = {
    other: "--" + name.replace("_", "-")
    for name, declared in declared_of(LoadOptions).items()
    if "chat" in declared.calls and name not in _FIELDS
    for other in (name, *declared.other_names)
}

WIDTH: Final = max(map(len, _FIELDS))


def names() -> list[str]:
    """Return the names of all options that a chat has, in the order of SamplingOptions."""
    return list(_FIELDS)


def field_name(name: str, others: Sequence[str] = ()) -> str:
    """Return the field of SamplingOptions that a person means; raises ArgumentError.

    `others`: names that the error lists besides.

    >>> field_name("top-k"), field_name("num_predict")
    ('top_k', 'max_tokens')
    """
    plain = name.lower().lstrip("-").replace("-", "_")
    plain = _OTHER_NAMES.get(plain, plain)
    if plain in _FIELDS:
        return plain
    if plain in _AT_LOAD:
        raise ArgumentError(f"{name} is set when akunu starts: akunu chat {_AT_LOAD[plain]} ...")
    all_names = (*_FIELDS, *others)
    close = difflib.get_close_matches(plain, all_names, n=1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    raise ArgumentError(f"there is no option {name}{meant}; there are: {', '.join(all_names)}")


def changed(given: Mapping[str, Any], name: str, text: str) -> dict[str, Any]:
    """Return the options with one more, as a person wrote it; "default" removes an option.

    Raises ArgumentError for an unknown name, and for a value that makes no sense; the error says
    what is allowed.

    >>> changed({"top_k": 40}, "temperature", "0.8")
    {'top_k': 40, 'temperature': 0.8}
    >>> changed({"top_k": 40}, "top_k", "default")
    {}
    >>> changed({}, "top_p", "2")
    Traceback (most recent call last):
    ...
    akunu.errors.ArgumentError: top_p is 2; it must be a number from 0 (excluded) to 1
    """
    field = field_name(name)
    rest = {key: value for key, value in given.items() if key != field}
    if text.lower() == "default":
        return rest
    value: Any = _value(field, text)
    try:
        SamplingOptions(**{field: value})
    except ArgumentError as error:
        raise ArgumentError(refusal(error)) from None
    return {**rest, field: value}


def escapes_in(name: str, text: str) -> str:
    r"""Return how the escapes of a value are read, as a sentence continues; "" where it has none.

    >>> escapes_in("stop", r"\n"), escapes_in("stop", "END"), escapes_in("top_k", "3")
    (' (\\n is a newline)', '', '')
    """
    if declared_options()[field_name(name)].metavar != "TEXT" or text[:1] in '"[':
        return ""
    found = dict.fromkeys(re.findall(r"\\.", text))
    return f" ({', '.join(f'{each} is {ESCAPES[each][1]}' for each in found)})" if found else ""


def budget_of(text: str) -> int | None:
    """Return how many tokens of thoughts a person allows; raises ArgumentError.

    >>> budget_of("200"), budget_of("none")
    (200, None)
    """
    if text.strip().lower() in ("none", "off", "default"):
        return None
    try:
        return int(text)
    except ValueError:
        raise ArgumentError(
            f"{THINKING_BUDGET} is '{text}'; it must be an integer from 0 up, or none"
        ) from None


def thinking_refused(error: ArgumentError, dashes: str = "") -> str:
    """Return an error about thinking in the words of the command line, or of /set.

    `dashes`: written before the names of options.

    >>> thinking_refused(ArgumentError("thinking is True; this model knows 'low'"), "--")
    '--thinking is on; this model knows low'
    """
    text = re.sub(r"\bFalse\b", "off", re.sub(r"\bTrue\b", "on", str(error)))
    text = re.sub(r"'(\w+)'", r"\1", text)
    budget = f"{dashes}thinking-budget" if dashes else THINKING_BUDGET
    text = re.sub(r"\bthinking_budget\b", budget, text)
    return re.sub(r"\bthinking is\b", f"{dashes}thinking is", text)


def thinking_text(thinking: bool | str | None) -> str:
    """Return it as a person writes it.

    >>> thinking_text(True), thinking_text("low"), thinking_text(None)
    ('on', 'low', 'up to the model  (default)')
    """
    if thinking is None:
        return "up to the model  (default)"
    return thinking if isinstance(thinking, str) else "on" if thinking else "off"


def shown(value: object) -> str:
    """Return a value as a person reads and writes it."""
    if value is None or value == ():
        return "none"
    if isinstance(value, tuple) and isinstance(value[0], tuple):
        return " ".join(f"{token}={bias:g}" for token, bias in value)
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple) and isinstance(value[0], int):
        return " ".join(map(str, value))
    if isinstance(value, tuple) and set(value) <= set(SamplingOptions().samplers):
        return ",".join(value)
    if isinstance(value, tuple):
        return json.dumps(value[0] if len(value) == 1 else list(value), ensure_ascii=False)
    return f"{value:g}" if isinstance(value, float) else str(value)


def described(field: str, model: Model, given: Mapping[str, Any]) -> str:
    """Return an option's value now, and where it comes from."""
    if field in given:
        value, source = given[field], ""
    elif field in model.sampling_defaults:
        value, source = model.sampling_defaults[field], "  (from the model file)"
    else:
        value, source = _FIELDS[field].default, "  (default)"
    value = getattr(SamplingOptions(**{field: value}), field)
    return f"{shown(value)}{source}"


def adapter_weights(text: str) -> dict[str, object]:
    """Return weights by the names of adapters; one without a number has 1.

    >>> adapter_weights("poet terse=0.5")
    {'poet': 1.0, 'terse': 0.5}
    """
    pairs = (each.partition("=") for each in text.split())
    weights: dict[str, object] = {}
    for name, equals, weight in pairs:
        try:
            weights[name] = float(weight) if equals else 1.0
        except ValueError:
            weights[name] = weight  # SamplingOptions says what it must be
    return weights


def _value(field: str, text: str) -> object:
    """Return a text as the number, text or nothing that it is; SamplingOptions judges it."""
    default, metavar = _FIELDS[field].default, declared_options()[field].metavar
    if not metavar:
        return {"on": True, "true": True, "off": False, "false": False}.get(text.lower(), text)
    if metavar == "NAME,NAME":
        return value_of(field, text, field)
    if text.lower() in ("none", "off"):
        return () if isinstance(default, tuple) else None
    if metavar == "NAME=NUMBER":
        return adapter_weights(text)
    if metavar != "TEXT" and declared_options()[field].is_list:
        return value_of(field, text.split(), field)
    if metavar == "TEXT" and text[0] in '"[':
        try:
            return json.loads(text)
        except ValueError as error:
            raise ArgumentError(f"{field}: {text} is not JSON: {error}") from None
    if metavar == "TEXT":
        return value_of(field, [text], field)[0]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
