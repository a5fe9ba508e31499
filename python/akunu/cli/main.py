"""The programs `akunu` and `akunu-chat`: their arguments in, their exit code out.

0: done. 1: an error, one line on stderr. 2: the command line makes no sense. 130: interrupted.
141: the reader of the output went away.

Slow imports are inside the functions that need them, so that `akunu --version` is quick and
Ctrl-C never meets a program that is not ready for it: until `guarded` it is Python's to handle.
"""

from __future__ import annotations

import sys

try:
    from akunu.cli.terminal.interrupts import guarded
    from akunu.cli.version import show_version
except KeyboardInterrupt:
    sys.exit(130)

TYPE_CHECKING = False  # `typing` takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `akunu` with these arguments (default: the process's); return its exit code."""

    def run() -> int:
        given = list(sys.argv[1:] if arguments is None else arguments)
        if given == ["--version"]:
            return _reported(show_version)
        return _run(given or ["--help"], "akunu")

    return guarded(run, is_process=arguments is None)


def chat_main(arguments: Sequence[str] | None = None) -> int:
    """Run `akunu-chat`, which is `akunu chat`; return its exit code."""

    def run() -> int:
        return _run(list(sys.argv[1:] if arguments is None else arguments), "akunu-chat")

    return guarded(run, is_process=arguments is None)


def _run(arguments: list[str], program: str) -> int:
    from akunu.cli.terminal import console  # see above: when Ctrl-C is taken care of

    def run() -> int:
        from akunu.cli import app as apps  # see above: Typer takes its time

        app = apps.akunu_app() if program == "akunu" else apps.chat_app()
        try:
            result: object = app(arguments, prog_name=program, standalone_mode=False)
        except Exception as error:
            # Typer's errors: its own classes or click's, depending on its version.
            if type(error).__name__ == "Abort":
                raise KeyboardInterrupt from None
            message = getattr(error, "format_message", None)
            if message is None:
                raise
            context = getattr(error, "ctx", None)  # of the command that it happened in
            command = context.command_path if context is not None else program
            told = _with_chat_hint(message()) + _option_hint(message(), context)
            raise console.UsageError(f"{told} ({command} --help explains)") from None
        return result if isinstance(result, int) else 0

    return _reported(run)


def _with_chat_hint(message: str) -> str:
    """Return the message, with what to type where a model was in the place of a command.

    >>> _with_chat_hint("No such command 'Ember'. Did you mean 'embed'?")
    "No such command 'Ember'. Did you mean: akunu chat Ember"
    >>> _with_chat_hint("No such command 'caht'. Did you mean 'chat'?")
    "No such command 'caht'. Did you mean 'chat'?"
    """
    import re

    unknown = re.match(r"No such command '(.*?)'\.", message)
    name = unknown[1] if unknown else ""
    is_model = name.lower() == "ember" or "/" in name or name.lower().endswith(".gguf")
    return f"{unknown[0]} Did you mean: akunu chat {name}" if unknown and is_model else message


def _option_hint(message: str, context: Any) -> str:
    """Return which command has an option that this one lacks: chat or complete."""
    import re

    option = re.match(r"No such option: (--[a-z-]+)", message)
    if option is None or context is None or context.parent is None:
        return ""
    commands = context.parent.command.commands
    for name in ("chat", "complete"):
        known = {each for param in commands[name].params for each in param.opts}
        if name != context.info_name and option[1] in known:
            return f"; akunu {name} has it"
    return ""


def _reported(run: Callable[[], int]) -> int:
    from akunu.cli.terminal import console  # see above: when Ctrl-C is taken care of

    is_shown = sys.stdout is not None
    console.prepare_streams()
    if not is_shown:
        console.complain("standard output is closed: the result cannot be written")
        return console.EXIT_ERROR
    return console.reported(run)
