"""Presets of models: how a model is loaded and answers, by its name, in `akunu.toml`.

[serve.models.coder]
source = "Qwen/Qwen3-8B-GGUF"
context = 32768
system = "Write Python."
sampling = {temperature = 0.2}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from akunu.errors import AkunuError, ArgumentError
from akunu.options.sampling_options import declared_options
from akunu.options.text_options import LoadOptions, SamplingOptions

_OWN: Final = ("source", "system", "sampling", "pinned", "messages", "adapter")
_LOADING: Final = frozenset(each.name for each in fields(LoadOptions)) - {"max_waiting"}
_OF_SINGLE_TEXTS: Final = frozenset(
    name
    for name, each in declared_options().items()
    if name != "max_tokens" and "server" not in each.calls
)
_PATHS: Final = ("mmproj", "draft", "cache_dir")
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})
_ROLES: Final = ("system", "user", "assistant")
_INSTRUCTING: Final = ("system", "developer")


@dataclass(frozen=True, slots=True)
class Preset:
    """What a file says of one model; what it leaves out is as the server's settings say."""

    loading: Mapping[str, Any] = field(default_factory=lambda: _NONE)
    """Options of `akunu.load`."""
    sampling: Mapping[str, Any] = field(default_factory=lambda: _NONE)
    """Options of requests that do not set them; they come before those of the model's file."""
    system: str = ""
    """The system message of conversations that have none."""
    messages: tuple[Mapping[str, str], ...] = ()
    """Examples: messages that conversations have before those of the request."""
    adapter: str = ""
    """The adapter of requests that name none."""
    is_pinned: bool = False

    def over(self, base: Preset) -> Preset:
        """Return this preset with what it leaves out from another one, except how to load."""
        return replace(
            self,
            sampling={**base.sampling, **self.sampling},
            system=self.system or base.system,
            messages=self.messages or base.messages,
            adapter=self.adapter or base.adapter,
        )

    def added(self, messages: Any) -> tuple[int, list[Mapping[str, str]]]:
        """Return the messages that a conversation gets from the preset, and the index of the first.

        System messages of the request stay in front.

        >>> Preset(system="Be brief.").added([{"role": "user", "content": "Hi"}])
        (0, [{'role': 'system', 'content': 'Be brief.'}])
        """
        if not isinstance(messages, list) or not messages:
            return 0, []  # the model's messages say what is wrong
        at = 0
        while at < len(messages) and _role(messages[at]) in _INSTRUCTING:
            at += 1
        system = [] if at or not self.system else [{"role": "system", "content": self.system}]
        return at, [*system, *self.messages]


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else None


def example_messages(where: str, given: Any) -> tuple[Mapping[str, str], ...]:
    """Return example messages that were checked; ArgumentError where they make no sense."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ArgumentError(f"{where} must be a list of messages")
    for index, each in enumerate(given):
        if not isinstance(each, dict) or _role(each) not in _ROLES:
            raise ArgumentError(f"{where}[{index}] must have a role: {', '.join(_ROLES)}")
        if not isinstance(each.get("content"), str):
            raise ArgumentError(f"{where}[{index}].content must be a text")
        if others := [key for key in each if key not in ("role", "content") and each[key]]:
            raise ArgumentError(f"{where}[{index}] has {others[0]!r}; an example is text only")
    return tuple({"role": each["role"], "content": each["content"]} for each in given)


def read_preset(name: str, table: Mapping[str, Any]) -> tuple[str, Preset]:
    """Return the source of a model and its preset; without a source it is the name.

    Raises ArgumentError for a key that does not exist, and for values that make no sense.

    >>> read_preset("small", {"source": "ember", "context": 512})[0]
    'ember'
    """
    where = f"models.{name}"
    given = {key.replace("-", "_"): value for key, value in table.items()}
    if len(given) < len(table):
        raise ArgumentError(f"{where} has a key twice, with '-' and with '_'")
    for key in given:
        if key not in _LOADING and key not in _OWN:
            is_part = isinstance(given[key], dict)  # TOML reads [serve.models.qwen2.5] as two names
            hint = f'; a name with a dot needs quotes: "{name}.{key}"' if is_part else ""
            raise ArgumentError(f"{where}: there is no key {key!r}{hint}")
    source, system = given.get("source", name), given.get("system", "")
    adapter = given.get("adapter", "")
    for key, value in (("source", source), ("system", system), ("adapter", adapter)):
        if not isinstance(value, str):
            raise ArgumentError(f"{where}.{key} is {value!r}; it must be a text")
    is_pinned = given.get("pinned", False)
    if not isinstance(is_pinned, bool):
        raise ArgumentError(f"{where}.pinned is {is_pinned!r}; it must be true or false")
    sampling = given.get("sampling", {})
    if not isinstance(sampling, dict):
        raise ArgumentError(f"{where}.sampling is {sampling!r}; it must be a table of options")
    for key in sampling:
        if key in _OF_SINGLE_TEXTS:
            raise ArgumentError(f"{where}.sampling has {key!r}, which only requests may set")
    loading = {key: given[key] for key in given if key in _LOADING}
    for key in _PATHS:
        if isinstance(loading.get(key), str):
            loading[key] = str(Path(loading[key]).expanduser())
    try:
        LoadOptions(**loading)
        SamplingOptions(**sampling)
    except AkunuError as error:
        raise ArgumentError(f"{where}: {error}") from None
    messages = example_messages(f"{where}.messages", given.get("messages", ()))
    return source, Preset(loading, sampling, system, messages, adapter, is_pinned)
