"""A model that a server has, loaded or not."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TypeAlias

from akunu.model import Model
from akunu.options.text_options import LoadOptions
from akunu.server.catalogue.created import CreatedModel
from akunu.server.catalogue.presets import Preset
from akunu.speech.model import SpeechModel

Loaded: TypeAlias = Model | SpeechModel


@dataclass(slots=True, eq=False)
class ServedModel:
    """A model by the name that requests have; it may be loaded or not."""

    name: str
    source: str
    """What `akunu.load` takes."""
    options: LoadOptions
    aliases: tuple[str, ...] = ()
    """Other names by which requests find it."""
    is_pinned: bool = False
    """Whether it stays loaded once it is, unless a request unloads it."""
    preset: Preset = field(default_factory=Preset)
    is_discovered: bool = False
    """Whether it was found on this machine: the command line does not name it."""
    creation: CreatedModel | None = None
    """What a request created; None: it is a model in files."""
    created: int = field(default_factory=lambda: int(time.time()))
    model: Loaded | None = None
    is_speech: bool | None = None
    """Whether it takes audio; None: no one has looked, or it is not on this machine yet."""
    adapter_scales: dict[str, float] = field(default_factory=dict)
    """Adapters of requests that name none, set by POST /lora-adapters; none has the scale 0."""
    n_users: int = 0
    loading: asyncio.Task[Loaded] | None = None
    unloading: asyncio.Future[None] | None = None
    idle_timer: asyncio.TimerHandle | None = None
    n_bytes: int = 0
    """What it takes, or has reserved while it is being loaded."""
    known_bytes: int = 0
    """What it took when it was loaded last."""
    last_used: float = 0.0
    keep_seconds: float | None = None
    """How long the last request wanted it to stay loaded without requests, or for ever (infinity);
    None: as the server says."""

    @property
    def text_model(self) -> Model | None:
        """The model where it is loaded and writes, embeds or ranks texts."""
        return self.model if isinstance(self.model, Model) else None

    @property
    def adapters(self) -> tuple[str, ...]:
        """Names of its adapters, by which requests ask for them after the model's: `base:poet`."""
        return tuple(dict(self.options.adapters or {}))

    def hold(self, model: Loaded) -> None:
        """Take a model that was loaded, and let it answer as the preset says."""
        self.model = model
        if isinstance(model, Model) and self.preset.sampling:
            pipeline = model._pipeline
            pipeline.sampling_defaults = {**pipeline.sampling_defaults, **self.preset.sampling}

    @property
    def state(self) -> str:
        """Whether it is loaded, by llama.cpp's names.

        >>> ServedModel("small", "ember", LoadOptions()).state
        'unloaded'
        """
        if self.model is not None:
            return "loaded"
        return "unloaded" if self.loading is None else "loading"

    @property
    def is_unused(self) -> bool:
        """Whether it is neither loaded nor about to be."""
        return self.state == "unloaded" and not self.n_users

    @property
    def can_go(self) -> bool:
        """Whether it may be unloaded to make room."""
        return self.model is not None and not self.n_users and not self.is_pinned
