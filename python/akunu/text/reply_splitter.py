"""Splits a reply into reasoning, text and calls of tools, as it comes.

The result does not depend on how the text is cut into pieces: only what may yet become a marker
is held back, and the whitespace before it.

Stop strings are looked for in the answer alone, calls included: not in the reasoning, nor in what
stands around it.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from functools import lru_cache
from typing import Protocol

from akunu.text.deltas import Delta, ReasoningDelta, TextDelta, ToolCallCut, ToolCallDropped
from akunu.text.stop_strings import NO_STOPS, StopFinder
from akunu.thinking.markers import ThinkingMarkers
from akunu.tools.text_reader import Markers, TextReader, Waiting


class CallParser(Protocol):
    """Reads the calls of one notation; `akunu.tools` has it."""

    @property
    def openings(self) -> Sequence[str]:
        """What a call may begin with, anywhere in the text."""

    @property
    def markers(self) -> Sequence[str]:
        """All that is written around names and arguments."""

    @property
    def is_complete(self) -> bool:
        """Whether the reply may have no more calls, so that nothing can follow."""

    def read(self, reader: TextReader, out: list[Delta], *, at_start: bool) -> Waiting[bool]:
        """Read the calls that begin at the reader's place, and add what is certain to `out`.

        Returns whether there was a call, with the reader after the last one; the reader's place
        does not matter otherwise.
        """


class ReplySplitter:
    """Takes pieces of a reply and returns deltas.

    Whitespace next to a marker or a call is not part of the text.

    >>> splitter = ReplySplitter(ThinkingMarkers("<think>", "</think>"))
    >>> splitter.push("<think>Hm.</th") + splitter.push("ink>Yes.") + splitter.finish()
    [ReasoningDelta(text='Hm.'), TextDelta(text='Yes.')]
    """

    def __init__(
        self,
        thinking: ThinkingMarkers | None,
        *,
        in_reasoning: bool = False,
        calls: CallParser | None = None,
        must_call: bool = False,
    ) -> None:
        """`in_reasoning`: the prompt has opened the reasoning already; None: there is none.

        `must_call`: a grammar makes the answer nothing but calls.
        """
        self._calls = calls
        self._must_call = must_call
        self._stops = NO_STOPS
        self._is_cut = False
        self._in_answer = False
        self._passes = False  # whether all that comes is text, as nothing may interrupt the answer
        self._thinking = thinking
        self.in_reasoning = in_reasoning and thinking is not None
        """Whether reasoning has begun and not ended."""
        openings: tuple[str, ...] = ()
        silent: tuple[str, ...] = ()
        self._ends: tuple[str, ...] = ()
        if thinking is not None:
            openings = (thinking.opening, *thinking.further_openings)
            silent, self._ends = thinking.answer_openings, thinking.answer_closings
        # Before the answer whitespace is skipped, so that what the marker begins with is, too.
        self._openings = set(map(str.lstrip, openings))
        self._silent = set(map(str.lstrip, silent))
        call_openings = tuple(calls.openings) if calls else ()
        self._markers = _markers(frozenset((*self._ends, *call_openings)))
        self._parts = _markers(frozenset((*self._openings, *self._silent, *call_openings)))
        self._reader = TextReader()
        self._out: list[Delta] = []
        self.is_complete = False
        """Whether nothing of interest can follow: the reply has all calls that it may have."""
        self._has_text = False
        self._after_call = False  # and nothing but whitespace came since
        self._parser: Generator[None, None, None] = self._reply()
        next(self._parser)

    @property
    def markers(self) -> tuple[str, ...]:
        """All that is looked for: control tokens that are part of it must not be skipped."""
        thinking, calls = self._thinking, self._calls
        closing = (thinking.closing,) if thinking else ()
        around = (*self._openings, *closing, *self._silent, *self._ends)
        return (*around, *(calls.markers if calls else ()))

    def end_answers_at(self, stops: StopFinder) -> None:
        """Let the first string that this finds in an answer end the reply; before any text."""
        self._stops = stops

    def push(self, piece: str) -> list[Delta]:
        """Return what is certain now that `piece` has come; nothing after a stop string."""
        if self._passes and self._stops is NO_STOPS:
            return [TextDelta(piece)] if piece else []
        text = piece
        if self._in_answer and self._stops is not NO_STOPS:
            text = self._stops.push(piece)
        if text:
            self._reader.text += text
            next(self._parser)
            if self._calls is not None:
                self.is_complete = self._calls.is_complete
        return self._taken()

    def finish(self, *, is_cut: bool = False) -> list[Delta]:
        """Return the text that was held back, at the end of the reply.

        `is_cut`: the model had more to say. What a marker or a call had begun with is not text
        then, nor is it where a stop string has ended the reply.
        """
        if self._in_answer and self._stops is not NO_STOPS:
            self._reader.text += self._stops.finish()
        self._reader.is_over = True
        self._is_cut = is_cut
        self._reader.is_cut = is_cut or self._is_stopped
        for _ in self._parser:
            pass
        last = self._taken()
        if self._is_stopped:  # a client takes what has ended by a stop string for complete
            last = [
                ToolCallDropped(each.index) if isinstance(each, ToolCallCut) else each
                for each in last
            ]
        if self._reader.is_cut and self._must_call:
            return [delta for delta in last if not isinstance(delta, TextDelta)]
        return last

    @property
    def _is_stopped(self) -> bool:
        return self._stops.found is not None

    def _end_at_cut(self, markers: Markers) -> int:
        """Return where the text ends; where it is cut within one of these markers, before that."""
        text = self._reader.text
        return markers.begun(text) if self._is_cut else len(text)

    def _begin_answer(self) -> None:
        """From here on, which is the reader's whole text, stop strings are looked for."""
        self._in_answer = True
        if self._stops is NO_STOPS:
            return
        self._reader.text = self._stops.push(self._reader.text)
        if self._reader.is_over:
            self._reader.text += self._stops.finish()
        self._reader.at = min(self._reader.at, len(self._reader.text))

    def _end_answer(self) -> None:
        """Another part may follow; what was held back belongs to neither."""
        self._in_answer = False
        self._reader.text += self._stops.finish()

    def _taken(self) -> list[Delta]:
        out = self._out[:]
        self._out.clear()
        return out

    def _reply(self) -> Waiting[None]:
        yield
        if self.in_reasoning:
            yield from self._reader.skip_space()
            yield from self._marker_here(self._openings)  # some models open it once more
            yield from self._reasoning()
            yield from self._start(self._may_reason_again)
        else:
            yield from self._start(may_reason=True)
        while (yield from self._text()):
            pass

    @property
    def _may_reason_again(self) -> bool:
        return self._thinking is not None and bool(self._thinking.further_openings)

    def _start(self, may_reason: bool) -> Waiting[None]:
        """Read what stands only between two parts of a reply, or before the first."""
        reader = self._reader
        while True:
            reader.forget()
            yield from reader.skip_space()
            markers = self._silent | self._openings if may_reason else self._silent
            found = yield from self._marker_here(markers)
            if found in self._openings:
                self.in_reasoning = True
                yield from self._reasoning()
                may_reason = self._may_reason_again
            elif not found:
                reader.text = reader.text[: self._end_at_cut(_markers(frozenset(markers)))]
                break
        self._begin_answer()
        if self._calls is None or not (yield from self._call(at_start=True)):
            reader.at = 0

    def _marker_here(self, strings: Collection[str]) -> Waiting[str]:
        """Read one of the markers; "" where there is none."""
        reader = self._reader
        markers = _markers(frozenset(strings))
        while True:
            place, found = markers.find(reader.text, reader.at, is_over=reader.is_over)
            if place > reader.at or (found is None and reader.is_over):
                return ""
            if found is not None:
                reader.at += len(found)
                return found
            yield from reader.more()

    def _reasoning(self) -> Waiting[None]:
        """Read up to the end of the reasoning, whose opening was read."""
        assert self._thinking is not None
        reader = self._reader
        markers = _markers(frozenset((self._thinking.closing,)))
        yield from reader.skip_space()
        while True:
            place, found = markers.find(reader.text, reader.at, is_over=reader.is_over)
            if found is None:
                place = min(place, self._end_at_cut(markers))
            text = reader.text[reader.at : place]
            if found is not None or not reader.is_over:
                text = text.rstrip()
            if text:
                self._out.append(ReasoningDelta(text))
                reader.at += len(text)
            if found is not None:
                reader.at = place + len(found)
                self.in_reasoning = False
                yield from reader.skip_space()
                break
            if reader.is_over:
                break
            reader.forget()
            yield from reader.more()
        reader.forget()

    def _text(self) -> Waiting[bool]:
        """Read text up to a marker, and what the marker says; return whether there is more."""
        reader = self._reader
        place, found = self._markers.find(reader.text, 0, is_over=reader.is_over)
        if found is None:
            place = min(place, self._end_at_cut(self._markers))
        if not self._markers or (found is None and reader.is_over and not self._after_call):
            kept = place
        else:
            kept = len(reader.text[:place].rstrip())
        self._add_text(reader.text[:kept])
        reader.at = kept
        reader.forget()
        if found is None:
            self._passes = self._has_text and not self._markers
            if not reader.is_over:
                yield from reader.more()
                return True
            return False
        place -= kept
        reader.at = place + len(found)
        if found in self._ends:
            if (yield from self._is_end()):
                self._end_answer()
                yield from self._start(self._may_reason_again)
                return True
        else:
            reader.at = place
            if (yield from self._call(at_start=False)):
                return True
        self._add_text(reader.text[: place + 1])
        reader.at = place + 1
        reader.forget()
        return True

    def _is_end(self) -> Waiting[bool]:
        """Whether the marker that was read ends an answer: nothing follows, or another part."""
        reader = self._reader
        yield from reader.skip_space()
        begin = reader.at
        while True:
            place, found = self._parts.find(reader.text, begin, is_over=reader.is_over)
            if place > begin or found is not None:
                return found is not None and place == begin
            if not (yield from reader.more()):
                return True

    def _call(self, *, at_start: bool) -> Waiting[bool]:
        assert self._calls is not None
        reader = self._reader
        if not (yield from self._calls.read(reader, self._out, at_start=at_start)):
            return False
        self._after_call = True
        reader.forget()
        return True

    def _add_text(self, text: str) -> None:
        if self._after_call and not self._has_text:
            text = text.lstrip()
        if text:
            self._out.append(TextDelta(text))
            self._has_text = True
            self._after_call = self._after_call and text.isspace()


@lru_cache(maxsize=256)  # replies of a model look for the same ones
def _markers(strings: frozenset[str]) -> Markers:
    return Markers(strings)
