"""The commands of speech; each is carried out by the module of its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from akunu.cli import commands, options
from akunu.cli.terminal import console
from akunu.cli.text_input import as_unicode
from akunu.errors import ArgumentError
from akunu.options.declarations import ADVANCED
from akunu.speech.vocabulary.languages import language_code

TRANSCRIBE_HELP = """Transcribe speech in audio and video files.

The text goes to standard output as it is recognised. With --output, each file gets a file of text
in that folder. FILE may be WAV, FLAC, MP3, Ogg, Opus (akunu[audio]), M4A, WebM or a video
(akunu[av]); - is standard input."""

SpeechModel = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="A Whisper model: a directory, a GGUF file, a .bin of whisper.cpp or org/repo.",
        autocompletion=options.complete_model,
        show_default=False,
    ),
]
Language = Annotated[
    str | None,
    typer.Option(
        "--language",
        "-l",
        metavar="LANG",
        help="Language of the speech, such as de or german. Default: detected.",
    ),
]
Prompt = Annotated[
    str | None,
    typer.Option(
        "--prompt",
        metavar="TEXT",
        help="Text that comes before the speech: its style and spelling guide the model.",
    ),
]
Hotwords = Annotated[
    str | None,
    typer.Option(
        "--hotwords", metavar="TEXT", help="Words that are likely in the speech, such as names."
    ),
]
Translate = Annotated[bool, typer.Option("--translate", help="Translate to English.")]
Detector = Annotated[
    str, typer.Option(metavar="KIND", help="How speech is detected. Range: energy or silero.")
]
VadModel = Annotated[
    Path | None,
    typer.Option(
        "--vad-model", metavar="FILE", help="The model file of the detector silero (ONNX)."
    ),
]


def transcribe(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="An audio or video file. May be repeated."),
    ] = None,
    *,
    model: SpeechModel,
    formats: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMATS",
            help="Formats of the text, one or more of txt,srt,vtt,tsv,json,lrc,csv.",
        ),
    ] = "txt",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write files to this folder."),
    ] = None,
    language: Language = None,
    translate: Translate = False,
    prompt: Prompt = None,
    hotwords: Hotwords = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Sampling temperature. Range: 0 or more. Default: 0; higher if a result is poor.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    beam_size: Annotated[
        int,
        options.count(
            "--beam-size", help="Beams of the search; 1 is greedy and faster. Range: 1 or more."
        ),
    ] = 5,
    batch: Annotated[
        int,
        options.count(
            "--batch",
            help="Transcribe this many parts at a time. Above 1, a part does not use the text "
            "before it. Range: 1 to 256.",
        ),
    ] = 1,
    jobs: Annotated[
        int,
        options.count(
            "--jobs", "-j", help="Transcribe this many files at a time. Range: 1 or more."
        ),
    ] = 1,
    words: Annotated[
        bool, typer.Option("--words", help="Add the start and end of each word.")
    ] = False,
    max_line_width: Annotated[
        int | None,
        options.count(
            "--max-line-width",
            help="Most characters in a line of a subtitle; needs --words. Range: 1 or more.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    max_line_count: Annotated[
        int | None,
        options.count(
            "--max-line-count",
            help="Most lines of a subtitle; needs --words. Range: 1 or more.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    max_words: Annotated[
        int | None,
        options.count(
            "--max-words",
            help="Most words of a subtitle; needs --words. Range: 1 or more.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    highlight_words: Annotated[
        bool,
        typer.Option(
            "--highlight-words",
            help="Underline each word while it is spoken; needs --words.",
            rich_help_panel=ADVANCED,
        ),
    ] = False,
    vad: Annotated[bool, typer.Option(help="Transcribe only the parts with speech.")] = True,
    detector: Detector = "energy",
    vad_model: VadModel = None,
    channels: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="Transcribe all channels together or each one alone. Range: mix or apart.",
        ),
    ] = "mix",
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    skip_existing: Annotated[
        bool, typer.Option("--skip-existing", help="Skip files whose text exists.")
    ] = False,
    threads: options.Threads = None,
    device: options.Device = "auto",
) -> int:
    """Transcribe speech in audio and video files."""

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


LISTEN_HELP = """Transcribe speech from a microphone while it is spoken.

Final text goes to standard output. A terminal also shows the text that may still change, dimmed. A
pause ends a line. Ctrl-C stops after the last words."""


def listen(
    model: SpeechModel = "",
    microphone: Annotated[
        str | None,
        typer.Option(
            "--microphone",
            metavar="NAME",
            help="Name or number of the microphone. Default: the system's.",
        ),
    ] = None,
    list_them: Annotated[
        bool, typer.Option("--list", help="List the microphones of this machine and exit.")
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            metavar="NUMBER",
            help="Stop after this many seconds. Range: above 0. Default: at Ctrl-C.",
        ),
    ] = None,
    language: Language = None,
    translate: Translate = False,
    prompt: Prompt = None,
    hotwords: Hotwords = None,
    vad: Annotated[bool, typer.Option(help="Detect speech; skip silence.")] = True,
    detector: Detector = "energy",
    vad_model: VadModel = None,
    threads: options.Threads = None,
    device: options.Device = "auto",
) -> int:
    """Transcribe speech from a microphone while it is spoken."""

    def run() -> int:
        if list_them:
            return commands.listen.show_microphones()
        if not model:
            raise console.UsageError(
                "the model is missing: -m MODEL, a Whisper model such as openai/whisper-tiny"
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
        raise console.UsageError("--vad-model needs --detector silero")
    if not vad and detector != "energy":
        raise console.UsageError("--no-vad and --detector contradict each other")
    found["vad"] = detector if vad else False
    if vad_model is not None:
        found["vad_model"] = vad_model.expanduser()
    return found
