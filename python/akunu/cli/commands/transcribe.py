"""`akunu transcribe`: writes the speech in files as text, subtitles or data."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from akunu.cli.options import usage_error
from akunu.cli.speech_model import load_speech_model
from akunu.cli.terminal import console
from akunu.cli.terminal.progress import Progress
from akunu.cli.wording import reason
from akunu.common.atomic_file import atomic_write, check_target
from akunu.common.checks import in_words
from akunu.errors import AkunuError, ArgumentError
from akunu.options.text_options import LoadOptions
from akunu.speech.audio import AudioSource, load_audio
from akunu.speech.channels import transcribe_apart
from akunu.speech.model import SpeechModel
from akunu.speech.segment_stream import SegmentStream
from akunu.speech.segments import Segment
from akunu.speech.transcription import Transcription
from akunu.speech.writers import FORMATS, subtitle_layout, timestamp

STDIN: Final = "-"
OnProgress: TypeAlias = Callable[[float, float], None]


@dataclass(kw_only=True)
class TranscribeCommand:
    """What a person asks for; `run` does it."""

    files: Sequence[str]
    """Paths; "-" is standard input."""
    model: str
    load: LoadOptions
    formats: Sequence[str]
    output: Path | None
    """The folder to write to; None: standard output."""
    apart: bool
    """Whether each channel is transcribed for itself."""
    jobs: int
    """How many files are transcribed at once."""
    force: bool
    skips: bool
    """Whether existing files stay, so that only the missing ones are made."""
    layout: dict[str, Any]
    """How subtitles are set: the fields of `SubtitleLayout`."""
    arguments: dict[str, Any]
    """Arguments of `SpeechModel.transcribe`."""
    _targets: dict[str, dict[str, Path]] = field(default_factory=dict)
    """What each file is written as, by format."""

    def run(self) -> int:
        """Transcribe all files; one that cannot be read is reported, and the others continue."""
        self._check()
        left = list(self._left())
        if not left:
            return 0
        n_failed = 0
        with load_speech_model(self.model, self.load) as model, ExitStack() as ends:
            if self.jobs > 1 and len(left) > 1:
                work = ends.enter_context(self._side_by_side(model, left))
            else:
                work = partial(self._one, model, of=len(left))
            for number, name in enumerate(left):
                try:
                    work(name, number)
                except BrokenPipeError:  # the reader went away
                    raise
                except (AkunuError, OSError) as error:
                    if len(left) == 1:
                        raise
                    n_failed += 1
                    shown = reason(error)
                    console.complain(shown if name in shown else f"{name}: {shown}")
        return console.EXIT_ERROR if n_failed else 0

    def _check(self) -> None:
        """Check everything before the work; raises UsageError and ArgumentError."""
        if not self.files:
            raise console.UsageError("there is no file: name one or more, or - for standard input")
        for each in self.formats:
            if each not in FORMATS:
                raise console.UsageError(f"--format is '{each}'; it must be {in_words(FORMATS)}")
        try:
            layout = subtitle_layout(self.layout)
        except ArgumentError as error:
            raise usage_error(error) from None
        if layout.needs_words and not self.arguments["word_timestamps"]:
            raise console.UsageError("a layout of subtitles needs times of words: add --words")
        if self.jobs < 1:
            raise console.UsageError(f"--jobs is {self.jobs}; it must be 1 or more")
        if self.files.count(STDIN) > 1:
            raise console.UsageError("- is written twice: standard input can be read only once")
        if STDIN in self.files and console.is_terminal(sys.stdin):
            raise console.UsageError("- is standard input, which is a terminal: pipe audio into it")
        if self.output is None:
            if self.force or self.skips:
                raise console.UsageError("--force and --skip-existing need --output")
            if len(self.formats) > 1:
                raise console.UsageError("several formats need --output DIR for their files")
            if len(self.files) > 1 and self.formats[0] != "txt":
                raise console.UsageError(f"{self.formats[0]} of several files needs --output DIR")
            return
        self.output.mkdir(parents=True, exist_ok=True)
        sources = [Path(each) for each in self.files if each != STDIN]
        owners: dict[Path, str] = {}
        for name in self.files:
            stem = "stdin" if name == STDIN else Path(name).stem
            self._targets[name] = {}
            for form in self.formats:
                target = self.output / f"{stem}.{form}"
                other = owners.setdefault(target, name)
                if other != name or self.files.count(name) > 1:
                    raise console.UsageError(
                        f"{other} and {name} would both be written to {target}"
                    )
                if self.skips and target.exists():
                    continue
                check_target(target, force=self.force, sources=sources)
                self._targets[name][form] = target

    def _left(self) -> Iterator[str]:
        """Yield the files that are to be transcribed."""
        for name in self.files:
            if self.output is not None and not self._targets[name]:
                console.say(f"akunu: {name} is skipped: its files exist")
            else:
                yield name

    @contextmanager
    def _side_by_side(
        self, model: SpeechModel, names: Sequence[str]
    ) -> Iterator[Callable[[str, int], None]]:
        """Transcribe several files at once; yields what waits for one and tells what is in it."""
        n_done = 0

        def work(name: str) -> Transcription:
            nonlocal n_done
            began = time.monotonic()
            try:
                said = self._transcribed(model, _audio(name))
                self._write(name, said, began)
            finally:
                n_done += 1
            return said

        def wait(name: str, number: int) -> None:
            progress.above(partial(self._show_head, name, number, len(names)))
            said = begun[number].result()
            if self.output is None:
                text = said.render(self.formats[0], **self.layout)
                progress.above(partial(console.write, text))

        def describe() -> str:
            return f"transcribing {len(names)} files, {n_done} are done"

        with ThreadPoolExecutor(self.jobs) as pool, Progress(describe) as progress:
            begun = [pool.submit(work, name) for name in names]
            try:
                yield wait
            except BaseException:
                for each in begun:
                    each.cancel()
                model.close()  # ends what is under way
                raise

    def _show_head(self, name: str, number: int, of: int) -> None:
        """Say whose text follows, where several go to stdout."""
        if of > 1 and self.output is None:
            console.write(f"{'' if number == 0 else chr(10)}==> {name} <==\n")

    def _one(self, model: SpeechModel, name: str, number: int, *, of: int) -> None:
        """Transcribe one file, with its text on stdout as it comes."""
        began = time.monotonic()
        seconds = [0.0, 0.0]  # done, and all
        shown = name if of == 1 else f"{name} ({number + 1} of {of})"

        def describe() -> str:
            if not seconds[1]:
                return f"reading {shown}"
            done, whole = (timestamp(each, hours=False, marker=".")[:-4] for each in seconds)
            return f"transcribing {shown}: {done} of {whole}"

        def on_progress(done: float, whole: float) -> None:
            seconds[:] = done, whole

        with Progress(describe) as progress:
            progress.above(partial(self._show_head, name, number, of))
            if self._is_live:
                said = self._transcribed_live(model, _audio(name), on_progress, progress.above)
            else:
                said = self._transcribed(model, _audio(name), on_progress)
        if self.output is None and not self._is_live:
            console.write(said.render(self.formats[0], **self.layout))
        self._write(name, said, began)

    def _write(self, name: str, said: Transcription, began: float) -> None:
        """Write the files of one transcription and report them."""
        for form, target in self._targets.get(name, {}).items():
            with atomic_write(target, force=self.force) as file:
                file.write(said.render(form, **self.layout).encode())
        if not said.segments:
            console.say(f"akunu: {name}: no speech was found")
        if self.output is not None:
            took = time.monotonic() - began
            names = ", ".join(map(str, self._targets[name].values()))
            console.say(f"akunu: {name}: {said.duration:.1f} s in {took:.1f} s, written: {names}")

    @property
    def _is_live(self) -> bool:
        """Whether segments are shown as they come."""
        return not self.apart and (self.output is not None or self.formats[0] == "txt")

    def _transcribed(
        self, model: SpeechModel, audio: AudioSource, on_progress: OnProgress | None = None
    ) -> Transcription:
        """Return what is said, once all of it is known."""
        if self.apart:
            channels = load_audio(audio, channels="apart")
            return transcribe_apart(model, channels, progress=on_progress, **self.arguments)
        said: Transcription = model.transcribe(audio, progress=on_progress, **self.arguments)
        return said

    def _transcribed_live(
        self,
        model: SpeechModel,
        audio: AudioSource,
        on_progress: OnProgress,
        above: Callable[[Callable[[], None]], None],
    ) -> Transcription:
        """Likewise, with each segment on stdout as it comes."""
        segments: SegmentStream = model.transcribe(
            audio, stream=True, progress=on_progress, **self.arguments
        )
        try:
            for segment in segments:
                above(partial(console.write, self._line(segment)))
            return segments.result()
        finally:
            segments.cancel()

    def _line(self, segment: Segment) -> str:
        text = f"{segment.text.strip()}\n"
        if self.output is None:
            return text
        start, end = (
            timestamp(each, hours=False, marker=".") for each in (segment.start, segment.end)
        )
        return f"[{start} --> {end}] {text}"


def _audio(name: str) -> AudioSource:
    """Return what `load_audio` reads."""
    if name != STDIN:
        return name
    if sys.stdin is None:
        raise console.UsageError("- is standard input, and this process has none")
    return io.BytesIO(sys.stdin.buffer.read())
