"""Files of transcriptions: txt, srt, vtt, tsv and json as Whisper's program has them, lrc, csv."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

from akunu.common.checks import flag, integer
from akunu.errors import ArgumentError
from akunu.speech.segments import Segment, Word

_LONG_PAUSE = 3.0
"""Seconds without a word after which lines that flow on begin a new subtitle."""


class Transcribed(Protocol):
    """What is written to a file: `akunu.Transcription`."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """In the order of their times."""

    @property
    def words(self) -> tuple[Word, ...] | None:
        """Words of all segments; None where they were not asked for."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dicts and numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtitleLayout:
    """How srt and vtt set words into lines; all of it needs the times of words."""

    max_line_width: int | None = None
    """Characters of a line; longer ones are broken between words."""
    max_line_count: int | None = None
    """Lines of a subtitle. With `max_line_width`, subtitles no longer end where segments end."""
    max_words: int | None = None
    """Words of a subtitle; without the other two."""
    highlight_words: bool = False
    """A subtitle for every word, which is underlined in it."""

    def __post_init__(self) -> None:
        """Raise ArgumentError for values that make no sense."""
        for name in ("max_line_width", "max_line_count", "max_words"):
            if getattr(self, name) is not None:
                integer(name, getattr(self, name), 1)
        flag("highlight_words", self.highlight_words)
        if self.max_words is not None and (self.max_line_width or self.max_line_count):
            raise ArgumentError(
                "max_words cannot be used with max_line_width or max_line_count: both set the end "
                "of a subtitle"
            )

    @property
    def needs_words(self) -> bool:
        """Whether anything is requested that only times of words can give."""
        return self != SubtitleLayout()


def subtitle_layout(given: Mapping[str, Any]) -> SubtitleLayout:
    """Return the layout that has these fields; ArgumentError for unknown ones."""
    known = [each.name for each in fields(SubtitleLayout)]
    for name in given:
        if name not in known:
            raise ArgumentError(f"a subtitle's layout has no {name!r}; it has {', '.join(known)}")
    return SubtitleLayout(**given)


def render(transcription: Transcribed, format: str, layout: SubtitleLayout) -> str:
    """Return the text of a file of one of `FORMATS`; ArgumentError for another format."""
    if format not in FORMATS:
        raise ArgumentError(f"format is {format!r}; it must be one of {', '.join(FORMATS)}")
    is_laid_out = layout.needs_words and format in ("srt", "vtt")
    if is_laid_out and transcription.segments and transcription.words is None:
        raise ArgumentError(
            "a layout of subtitles needs times of words: set word_timestamps=True, or --words"
        )
    return _WRITERS[format](transcription, layout)


def timestamp(seconds: float, *, hours: bool, marker: str) -> str:
    """Return a time as `[hours:]minutes:seconds` and milliseconds after the marker."""
    rest, milliseconds = divmod(round(max(0.0, seconds) * 1000), 1000)
    rest, second = divmod(rest, 60)
    hour, minute = divmod(rest, 60)
    shown = f"{hour:02d}:" if hours or hour else ""
    return f"{shown}{minute:02d}:{second:02d}{marker}{milliseconds:03d}"


def _txt(transcription: Transcribed, _: SubtitleLayout) -> str:
    return "".join(f"{_text_of(segment)}\n" for segment in transcription.segments)


def _srt(transcription: Transcribed, layout: SubtitleLayout) -> str:
    return "".join(
        f"{number}\n{_span(start, end, hours=True, marker=',')}\n{text}\n\n"
        for number, (start, end, text) in enumerate(_cues(transcription, layout, str), 1)
    )


def _vtt(transcription: Transcribed, layout: SubtitleLayout) -> str:
    def escaped(text: str) -> str:  # what WebVTT takes for an entity or a tag
        return text.replace("&", "&amp;").replace("<", "&lt;")

    return "WEBVTT\n\n" + "".join(
        f"{_span(start, end, hours=False, marker='.')}\n{text}\n\n"
        for start, end, text in _cues(transcription, layout, escaped)
    )


def _text_of(segment: Segment) -> str:
    """Return a segment's text, with its channel in front where channels were apart."""
    text = segment.text.strip()
    return text if segment.channel is None else f"(channel {segment.channel}) {text}"


def _span(start: float, end: float, *, hours: bool, marker: str) -> str:
    first = timestamp(start, hours=hours, marker=marker)
    return f"{first} --> {timestamp(end, hours=hours, marker=marker)}"


def _tsv(transcription: Transcribed, _: SubtitleLayout) -> str:
    return "start\tend\ttext\n" + "".join(
        f"{round(1000 * each.start)}\t{round(1000 * each.end)}\t"
        f"{_text_of(each).translate(_TO_SPACES)}\n"
        for each in transcription.segments
    )


def _csv(transcription: Transcribed, _: SubtitleLayout) -> str:
    file = io.StringIO()
    file.write("start,end,text\n")
    writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    for each in transcription.segments:
        writer.writerow([round(1000 * each.start), round(1000 * each.end), _text_of(each)])
    return file.getvalue()


def _lrc(transcription: Transcribed, _: SubtitleLayout) -> str:
    lines = []
    for each in transcription.segments:
        minutes, hundredths = divmod(round(each.start * 100), 6000)
        text = _text_of(each).translate(_TO_SPACES)
        lines.append(f"[{minutes:02d}:{hundredths // 100:02d}.{hundredths % 100:02d}]{text}\n")
    return "".join(lines)


def _json(transcription: Transcribed, _: SubtitleLayout) -> str:
    return json.dumps(transcription.to_dict(), ensure_ascii=False, indent=2) + "\n"


_TO_SPACES = str.maketrans("\t\n\r", "   ")
_WRITERS: dict[str, Callable[[Transcribed, SubtitleLayout], str]] = {
    "txt": _txt,
    "srt": _srt,
    "vtt": _vtt,
    "tsv": _tsv,
    "json": _json,
    "lrc": _lrc,
    "csv": _csv,
}
FORMATS = tuple(_WRITERS)
"""The formats of `render`."""


def _cues(
    transcription: Transcribed, layout: SubtitleLayout, escaped: Callable[[str], str]
) -> Iterator[tuple[float, float, str]]:
    """Yield start, end and text of each subtitle."""
    if transcription.words is None:
        for segment in transcription.segments:
            yield segment.start, segment.end, escaped(_without_arrow(_text_of(segment)))
        return
    for lines in _subtitles(transcription.segments, layout):
        words = [word for line in lines for word in line]
        pieces = [
            ("\n" if number and not index else "")
            # A line begins without the space before its first word.
            + escaped(_without_arrow(word.word if index else word.word.strip()))
            for number, line in enumerate(lines)
            for index, word in enumerate(line)
        ]
        if layout.highlight_words:
            yield from _highlighted(words, pieces)
        else:
            yield words[0].start, words[-1].end, "".join(pieces)


def _highlighted(words: list[Word], pieces: list[str]) -> Iterator[tuple[float, float, str]]:
    shown_until = words[0].start
    for index, word in enumerate(words):
        if round(shown_until * 1000) != round(word.start * 1000):
            yield shown_until, word.start, "".join(pieces)
        marked = re.sub(r"^(\s*)(.*)$", r"\1<u>\2</u>", pieces[index])
        yield word.start, word.end, "".join([*pieces[:index], marked, *pieces[index + 1 :]])
        shown_until = word.end


def _subtitles(segments: tuple[Segment, ...], layout: SubtitleLayout) -> Iterator[list[list[Word]]]:
    """Yield the lines of each subtitle."""
    width = layout.max_line_width or 1000
    flows = layout.max_line_width is not None and layout.max_line_count is not None
    lines: list[list[Word]] = []
    used = 0  # characters of the last line
    last_start: float | None = None
    for segment in segments:
        for index, word in enumerate(segment.words or ()):
            begins = index == 0 or (layout.max_words is not None and index % layout.max_words == 0)
            pauses = flows and last_start is not None and word.start - last_start > _LONG_PAUSE
            ends_subtitle = begins and bool(lines) and not flows
            last_start = word.start
            if used and used + len(word.word) <= width and not pauses and not ends_subtitle:
                lines[-1].append(word)
                used += len(word.word)
                continue
            is_full = layout.max_line_count is not None and (
                pauses or len(lines) >= layout.max_line_count
            )
            if lines and (ends_subtitle or is_full):
                yield lines
                lines = []
            lines.append([word])
            used = len(word.word.strip())
    if lines:
        yield lines


def _without_arrow(text: str) -> str:
    """Return the text without what a reader of subtitles takes for the line of times."""
    return text.replace("-->", "->")
