"""From a session to its file and back, with everything that must hold for it to continue.

The engine takes a text over from its cache only where it would compute the same bits. So a file
says which model its keys and values are of, in which format, and what computed them. Another model
or format is an error; what was computed by another version or device is left out, and read again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from akunu.errors import ArgumentError, ContextOverflowError, SessionFileError
from akunu.storage.cache_identity import (
    KeyedModel,
    akunu_version,
    computed_on,
    kv_type_of,
    layout_of,
)
from akunu.storage.session_file import SavedSession, read_session, write_session
from akunu.templates.messages import has_images

if TYPE_CHECKING:
    from akunu import _core


@dataclass(frozen=True, slots=True)
class State:
    """What a session holds. Immutable, so that a fork is another name for it."""

    tokens: tuple[int, ...] = ()
    messages: tuple[Mapping[str, Any], ...] | None = None
    """A conversation's messages, oldest first; None: the session has plain text."""
    before: State | None = None
    """The conversation before the latest append or reply."""

    def history(self) -> Iterator[State]:
        """Yield this state and those of the conversation before it, latest first."""
        state: State | None = self
        while state is not None:
            yield state
            state = state.before


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """How a conversation is rendered; the arguments of `Model.session`."""

    thinking: bool | str | None = None
    template_variables: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadedSession:
    """A session as its file has it, and what of it the cache took over."""

    settings: ChatSettings
    state: State
    notes: tuple[str, ...]
    restored_tokens: int


def save_session(model: KeyedModel, settings: ChatSettings, state: State, path: Path) -> None:
    """Write a session to a file; see `Session.save`."""
    native = model._open()
    if has_images(state.messages):
        raise ArgumentError(
            "this conversation cannot be saved, it has images: its KV cache is found by tokens, "
            "and these do not identify an image"
        )
    conversation = _conversation_of(settings, state)
    tokens = np.array(state.tokens, np.uint32)
    entries: list[int] = []
    positions = np.empty(0, np.uint8)
    # If the context is full, the last token was chosen and never read.
    n_positions = min(len(tokens), model.context)
    if n_positions:
        entries, positions = native.save_positions(tokens[:n_positions])
    header = {
        "akunu": akunu_version(),
        "model": _model_of(model),
        "kv_type": kv_type_of(native),
        "layout": layout_of(native),
        "computed_by": computed_on(native),
        "n_positions": n_positions,
        "first_entries": entries,
        "conversation": conversation,
    }
    write_session(path.resolve(), header, tokens, positions)  # a link stays a link


def load_session(model: KeyedModel, path: Path) -> LoadedSession:
    """Read a session from a file; see `Model.load_session`."""
    native = model._open()
    saved = read_session(path)
    _check_model(path, saved.header, model, native)
    n_positions = saved.header["n_positions"]
    if len(saved.tokens) > model.context + 1 or n_positions > model.context:
        raise ContextOverflowError(
            f"{path} has {len(saved.tokens)} tokens, the context holds {model.context}"
        )
    vocab_size = native.config["vocab_size"]
    if saved.tokens.size and int(saved.tokens.max()) >= vocab_size:
        raise SessionFileError(f"{path} has a token outside the vocabulary of {vocab_size}")
    settings, state = _state_of(path, saved, vocab_size)
    notes: tuple[str, ...] = ()
    n_restored = 0
    computed_by = saved.header["computed_by"]
    if computed_by != computed_on(native):
        notes = (
            f"keys and values in {path} were computed by {_described(computed_by)}, not by "
            f"{_described(computed_on(native))}; its {len(saved.tokens)} tokens are read again",
        )
    elif n_positions:
        try:
            n_restored = native.restore_positions(
                saved.tokens[:n_positions], saved.header["first_entries"], saved.positions
            )
        except ArgumentError as error:
            raise SessionFileError(f"{path} contradicts itself: {error}") from None
        if n_restored < n_positions:
            off = "" if n_restored else " (there is none with prefix_cache=False)"
            notes = (
                f"the cache had room for {n_restored} of the {n_positions} tokens in {path}{off}; "
                "the others are read again",
            )
    return LoadedSession(settings, state, notes, n_restored)


def _check_model(
    path: Path, header: Mapping[str, Any], model: KeyedModel, native: _core.NativeModel
) -> None:
    theirs, ours = header["model"], _model_of(model)
    if theirs.get("digest") != ours["digest"]:
        raise SessionFileError(
            f"{path} belongs to another model: {_named(theirs)}; this one is {_named(ours)}"
        )
    if header["kv_type"] != kv_type_of(native):
        raise SessionFileError(
            f"{path} has keys and values in {header['kv_type']}, the cache of this model has "
            f"{kv_type_of(native)}: load it with kv_type={header['kv_type']!r}"
        )
    if header["layout"] != layout_of(native):
        raise SessionFileError(
            f"{path} has keys and values in another layout than the cache of this model, perhaps "
            f"from an older akunu; start the session again"
        )


def _model_of(model: KeyedModel) -> dict[str, str]:
    config = model.config
    return {
        "name": config.name or model.path.name,
        "architecture": config.architecture,
        "digest": model._digest,
    }


def _named(model: Mapping[str, Any]) -> str:
    return f"{model.get('name')!r} ({model.get('architecture')}, {str(model.get('digest'))[:12]})"


def _described(computed_by: Mapping[str, Any]) -> str:
    return (
        f"akunu {computed_by.get('akunu')} on {computed_by.get('device')} "
        f"({computed_by.get('level')}, rotation {str(computed_by.get('rotation'))[:6]})"
    )


def _conversation_of(settings: ChatSettings, state: State) -> dict[str, Any] | None:
    """Return a conversation as JSON data: for each state, what it adds to the one before."""
    if state.messages is None:
        return None
    states = []
    before: tuple[int, ...] = ()
    for each in reversed(list(state.history())):
        n_same = _common_prefix(before, each.tokens)
        states.append([n_same, list(each.tokens[n_same:]), len(each.messages or ())])
        before = each.tokens
    found = {
        "messages": [dict(each) for each in state.messages],
        "states": states,
        "thinking": settings.thinking,
        "template_variables": dict(settings.template_variables),
    }
    try:
        if json.loads(json.dumps(found)) != found:
            raise ValueError("it would be read as another type")
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"this conversation cannot be saved, a part of it is not JSON: {error}"
        ) from None
    return found


def _common_prefix(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))


def _state_of(path: Path, saved: SavedSession, vocab_size: int) -> tuple[ChatSettings, State]:
    conversation = saved.header["conversation"]
    tokens = tuple(saved.tokens.tolist())
    if conversation is None:
        return ChatSettings(), State(tokens)
    try:
        messages = tuple(conversation["messages"])
        settings = ChatSettings(conversation["thinking"], dict(conversation["template_variables"]))
        state: State | None = None
        for n_same, tail, n_messages in conversation["states"]:
            ids = (state.tokens if state else ())[:n_same] + tuple(tail)
            if not all(type(each) is int and 0 <= each < vocab_size for each in ids):
                raise ValueError("tokens")
            state = State(ids, messages[:n_messages], state)
        if state is None or state.tokens != tokens or state.messages != messages:
            raise ValueError("states")
    except (KeyError, TypeError, ValueError) as error:
        raise SessionFileError(f"{path}: its conversation is wrong: {error}") from None
    return settings, state
