"""`akunu listen`: transcribes a microphone while someone speaks."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from akunu.cli.speech_model import load_speech_model
from akunu.cli.terminal import console
from akunu.cli.terminal.live_rows import LiveRows
from akunu.cli.terminal.rows import Row, Span
from akunu.options.text_options import LoadOptions
from akunu.speech.input.microphone import microphones, recording
from akunu.speech.live import LiveText, LiveTranscription
from akunu.speech.mel import SAMPLE_RATE


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenCommand:
    """What a person asks for; `run` does it."""

    model: str
    load: LoadOptions
    microphone: str | None
    seconds: float | None
    """How long to listen; None: until Ctrl-C."""
    arguments: dict[str, Any]
    """Arguments of `LiveTranscription`."""

    def run(self) -> int:
        """Listen, and write; raises what loading and recording raise."""
        if self.seconds is not None and not self.seconds > 0:
            raise console.UsageError(f"--seconds is {self.seconds:g}; it must be above 0")
        shown = _open_lines()
        with load_speech_model(self.model, self.load) as model:
            live = LiveTranscription(model, **self.arguments)
            try:
                with recording(self.microphone) as blocks:
                    console.say("akunu: listening; Ctrl-C stops")
                    for samples in first_seconds(blocks, self.seconds):
                        if (said := live.feed(samples)) is not None:
                            shown.add(said)
            except KeyboardInterrupt:
                pass
            finally:
                shown.keep()
            shown.add(live.finish())
        return 0


def first_seconds(
    blocks: Iterable[NDArray[np.float32]], seconds: float | None
) -> Iterator[NDArray[np.float32]]:
    """Yield the blocks up to this many seconds, the last one cut there; None: all of them.

    A block may be longer than all that is wanted: what came while the reader was busy is one.
    """
    left = math.inf if seconds is None else round(seconds * SAMPLE_RATE)
    for samples in blocks:
        yield samples if len(samples) <= left else samples[: int(left)]
        left -= len(samples)
        if left <= 0:
            return


def show_microphones() -> int:
    """Write a line for each microphone."""
    found = microphones()
    if not found:
        console.say("akunu: PortAudio finds no microphone")
    for each in found:
        print(f"{'*' if each.is_default else ' '} {each.number}  {each.name}")
    return 0


class _PlainLines:
    """Writes confirmed text."""

    def __init__(self) -> None:
        self._is_begun = False

    def add(self, said: LiveText) -> None:
        text = said.confirmed if self._is_begun else said.confirmed.lstrip()
        self._is_begun = self._is_begun or bool(text)
        if said.is_pause and self._is_begun:
            text += "\n"
            self._is_begun = False
        if text:
            console.write(text)

    def keep(self) -> None:
        pass


class _TerminalLines:
    """Shows confirmed text and, dimmed, the text after it that may still change."""

    def __init__(self) -> None:
        width = console.terminal_size(sys.stdout)[0]
        self._painter = LiveRows(console.put, width, styles=console.shows_styles(sys.stdout))
        self._line = ""

    def add(self, said: LiveText) -> None:
        self._line += said.confirmed if self._line else said.confirmed.lstrip()
        self._show(said.tentative if self._line else said.tentative.lstrip())
        if said.is_pause and self._line:
            self._painter.settle()
            self._line = ""
            console.put("\n")
            self._painter.restart()

    def keep(self) -> None:
        """Remove the text that may still change: the last reading writes it again."""
        self._show("")

    def _show(self, tentative: str) -> None:
        spans = (
            Span(console.for_terminal(self._line)),
            Span(console.for_terminal(tentative), console.DIM),
        )
        self._painter.show([Row(tuple(each for each in spans if each.text), flows=True)])


def _open_lines() -> _PlainLines | _TerminalLines:
    return _TerminalLines() if console.shows_styles(sys.stdout) else _PlainLines()
