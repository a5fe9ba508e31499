"""The commands of speech; each is carried out by the module of its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from akunu.cli import commands, options
from akunu.cli.terminal import console
from akunu.cli.text_input import as_unicode
from akunu.errors import ArgumentError
from akunu.speech.vocabulary.languages import language_code

TRANSCRIBE_HELP = """Write down what is said in audio and video files.

The text goes to standard output as it comes. With --output, files are written there, each named as
the one that it is of; a file appears when all of it is written, or not at all. FILE may be WAV,
FLAC, MP3, Ogg, Opus (akunu[audio]), M4A, WebM or a video (akunu[av]); - is standard input."""

SpeechModel = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="A Whisper model: a directory, GGUF, a .bin of whisper.cpp, org/repo.",
        autocompletion=options.complete_model,
        show_default=False,
    ),
]
Language = Annotated[
    str | None,
    typer.Option("--language", "-l", metavar="LANG", help="de, or german; default: detected."),
]
Prompt = Annotated[
    str | None,
    typer.Option("--prompt", metavar="TEXT", help="As if it had been said before."),
]
Hotwords = Annotated[
    str | None, typer.Option("--hotwords", metavar="TEXT", help="Words to expect.")
]
Translate = Annotated[bool, typer.Option("--translate", help="Write English.")]
Detector = Annotated[str, typer.Option(metavar="KIND", help="What finds speech: energy or silero.")]
VadModel = Annotated[
    Path | None, typer.Option("--vad-model", metavar="FILE", help="The file of silero.")
]


def transcribe(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Audio or video; several may follow."),
    ] = None,
    *,
    model: SpeechModel,
    formats: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMATS",
            help="One or more of txt,srt,vtt,tsv,json,lrc,csv.",
        ),
    ] = "txt",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write files into this folder."),
    ] = None,
    language: Language = None,
    translate: Translate = False,
    prompt: Prompt = None,
    hotwords: Hotwords = None,
    temperature: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Only this one; default: 0, higher where that fails."),
    ] = None,
    beam_size: Annotated[
        int, options.count("--beam-size", help="Beams of the search; 1 is greedy and quicker.")
    ] = 5,
    batch: Annotated[
        int,
        options.count(
            "--batch", help="So many stretches of speech at a time, each without what was before."
        ),
    ] = 1,
    jobs: Annotated[
        int, options.count("--jobs", "-j", help="Transcribe so many files at once.")
    ] = 1,
    words: Annotated[bool, typer.Option("--words", help="With the times of words.")] = False,
    max_line_width: Annotated[
        int | None,
        options.count("--max-line-width", help="Characters of a subtitle's line; needs --words."),
    ] = None,
    max_line_count: Annotated[
        int | None, options.count("--max-line-count", help="Lines of a subtitle; likewise.")
    ] = None,
    max_words: Annotated[
        int | None, options.count("--max-words", help="Words of a subtitle; likewise.")
    ] = None,
    highlight_words: Annotated[
        bool,
        typer.Option("--highlight-words", help="Underline each word in its time; likewise."),
    ] = False,
    vad: Annotated[bool, typer.Option(help="Read only the parts that have speech.")] = True,
    detector: Detector = "energy",
    vad_model: VadModel = None,
    channels: Annotated[
        str, typer.Option(metavar="HOW", help="mix them, or apart: each for itself.")
    ] = "mix",
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
    skip_existing: Annotated[
        bool, typer.Option("--skip-existing", help="Leave out what is written already.")
    ] = False,
    threads: options.Threads = None,
    device: options.Device = "auto",
) -> int:
    """Write down what is said in audio and video files."""

    def run() -> int:
        load = options.load_options(device=device, threads=threads)
        arguments = speech_arguments(
            language=language,
            translate=translate,
            prompt=prompt,
            hotwords=hotwords,
            vad=vad,
            detector=detector,
            vad_model=vad_model,
        )
        if temperature is not None:
            arguments["temperature"] = temperature
        arguments |= {"beam_size": beam_size, "batch": batch, "word_timestamps": words}
        layout = {
            "max_line_width": max_line_width,
            "max_line_count": max_line_count,
            "max_words": max_words,
            "highlight_words": highlight_words,
        }
        if channels not in ("mix", "apart"):
            raise console.UsageError(f"--channels is '{channels}'; it must be mix or apart")
        return commands.transcribe.TranscribeCommand(
            files=files or [],
            model=model,
            load=load,
            formats=[each.strip() for each in formats.split(",") if each.strip()] or ["txt"],
            output=output,
            apart=channels == "apart",
            force=force,
            skips=skip_existing,
            jobs=jobs,
            layout=layout,
            arguments=arguments,
        ).run()

    return console.reported(run)


LISTEN_HELP = """Write down what is said into a microphone, as it is said.

Confirmed text goes to standard output; at a terminal, what may still change follows it, dimmed. A
pause ends a line. Ctrl-C ends it all, once the last words are written."""


def listen(
    model: SpeechModel = "",
    microphone: Annotated[
        str | None,
        typer.Option("--microphone", metavar="NAME", help="Its name or number."),
    ] = None,
    list_them: Annotated[
        bool, typer.Option("--list", help="Show the microphones of this machine, and leave.")
    ] = False,
    seconds: Annotated[
        float | None, typer.Option("--seconds", metavar="NUMBER", help="Listen for so long.")
    ] = None,
    language: Language = None,
    translate: Translate = False,
    prompt: Prompt = None,
    hotwords: Hotwords = None,
    vad: Annotated[bool, typer.Option(help="Tell speech from silence.")] = True,
    detector: Detector = "energy",
    vad_model: VadModel = None,
    threads: options.Threads = None,
    device: options.Device = "auto",
) -> int:
    """Write down what is said into a microphone, as it is said."""

    def run() -> int:
        if list_them:
            return commands.listen.show_microphones()
        if not model:
            raise console.UsageError(
                "which model? -m MODEL: a Whisper model, such as openai/whisper-tiny"
            )
        return commands.listen.ListenCommand(
            model=model,
            load=options.load_options(device=device, threads=threads),
            microphone=microphone,
            seconds=seconds,
            arguments=speech_arguments(
                language=language,
                translate=translate,
                prompt=prompt,
                hotwords=hotwords,
                vad=vad,
                detector=detector,
                vad_model=vad_model,
            ),
        ).run()

    return console.reported(run)


def speech_arguments(
    *,
    language: str | None,
    translate: bool,
    prompt: str | None,
    hotwords: str | None,
    vad: bool,
    detector: str,
    vad_model: Path | None,
) -> dict[str, Any]:
    """Return arguments of `SpeechModel.transcribe`; raises UsageError."""
    found: dict[str, Any] = {"task": "translate" if translate else "transcribe"}
    try:
        if language is not None:
            found["language"] = language_code(language)
    except ArgumentError as error:
        raise console.UsageError(f"--{error}") from None
    if prompt is not None:
        found["prompt"] = as_unicode(prompt, "--prompt")
    if hotwords is not None:
        found["hotwords"] = as_unicode(hotwords, "--hotwords")
    if detector not in ("energy", "silero"):
        raise console.UsageError(f"--detector is '{detector}'; it must be energy or silero")
    if vad_model is not None and detector != "silero":
        raise console.UsageError("--vad-model goes with --detector silero")
    if not vad and detector != "energy":
        raise console.UsageError("--no-vad and --detector contradict each other")
    found["vad"] = detector if vad else False
    if vad_model is not None:
        found["vad_model"] = vad_model.expanduser()
    return found
