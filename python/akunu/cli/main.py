"""The commands, their options and their exit codes.

0: done. 1: an error, one line on stderr. 2: the command line makes no sense. 130: interrupted.
141: whoever read the output went away.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from akunu.cli import console
from akunu.errors import ArgumentError
from akunu.options import LoadOptions, SamplingOptions

_CHAT_HELP = """Talk to a model.

With --prompt, or with text on standard input, it answers once: the reply goes to standard output,
everything else to standard error. With both, the text on standard input follows the prompt."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `akunu` with these arguments (default: the process's); return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return _run(_build_app(), given or ["--help"], "akunu")


def chat_main(arguments: Sequence[str] | None = None) -> int:
    """Run `akunu-chat`, which is `akunu chat`; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    app = _new_app()
    app.command(help=_CHAT_HELP)(chat)
    return _run(app, given, "akunu-chat")


def chat(
    model: Annotated[
        str, typer.Argument(help="A GGUF file, or ember, the small model inside the package.")
    ] = "ember",
    prompt: Annotated[str | None, typer.Option(help="Answer this, and leave.")] = None,
    system: Annotated[
        str | None, typer.Option(help="What the model shall know before you speak.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="The most tokens per reply; default: no limit.")
    ] = None,
    temperature: Annotated[
        float, typer.Option(help="0 takes the most likely words; higher surprises more.")
    ] = 0.0,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same reply.")] = None,
    context: Annotated[
        int | None, typer.Option(help="Tokens that a conversation may have; default: what fits.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Threads of the CPU; default: one per core.")
    ] = None,
    device: Annotated[str, typer.Option(help="A name that `akunu devices` shows.")] = "auto",
    kv_type: Annotated[str, typer.Option(help="Number format of the cache: f16 or f32.")] = "f16",
) -> int:
    """Talk to a model."""

    def run() -> int:
        try:
            load = LoadOptions(device=device, context=context, threads=threads, kv_type=kv_type)
            sampling = SamplingOptions(max_tokens=max_tokens, temperature=temperature, seed=seed)
        except ArgumentError as error:
            raise console.UsageError(str(error)) from None
        from akunu.cli.chat import ChatCommand

        return ChatCommand(
            model=model, prompt=prompt, system=system, load=load, sampling=sampling
        ).run()

    return console.reported(run)


def devices() -> int:
    """Show the devices of this machine, and what akunu makes of them."""
    from akunu.cli.devices import show_devices

    return console.reported(show_devices)


def _show_version(wanted: bool) -> None:
    if wanted:
        from akunu import __version__

        print(f"akunu {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Run language models on your own machine."""


def _new_app() -> typer.Typer:
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich" if console.is_terminal(sys.stdout) else None,
    )


def _build_app() -> typer.Typer:
    app = _new_app()
    app.callback()(_options)
    app.command(help=_CHAT_HELP)(chat)
    app.command()(devices)
    return app


def _run(app: typer.Typer, arguments: list[str], program: str) -> int:
    console.prepare_streams()

    def run() -> int:
        try:
            result: Any = app(arguments, prog_name=program, standalone_mode=False)
        except Exception as error:
            # Typer's usage errors: its own classes or click's, depending on its version.
            message = getattr(error, "format_message", None)
            if message is None:
                raise
            raise console.UsageError(f"{message()} ({program} --help explains)") from None
        return result if isinstance(result, int) else 0

    return console.reported(run)
