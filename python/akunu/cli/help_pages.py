"""The help of a command: options in groups; only --help-all shows the last group."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

import typer
import typer.core

from akunu.options.declarations import ADVANCED, MEMORY, SAMPLING, USUAL
from akunu.server.settings import LIMITS

Command = TypeVar("Command", bound=Callable[..., Any])

_ORDER: Final = (USUAL, SAMPLING, MEMORY, LIMITS, ADVANCED)
_SHOWS_ALL: Final = "akunu.shows_all"


def with_help_all(command: Command) -> Command:
    """Give a command the option --help-all, which shows the help with every option."""
    signature = inspect.signature(command, eval_str=True)
    flag = inspect.Parameter(
        "help_all", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_HelpAll
    )
    parameters = [*signature.parameters.values(), flag]

    def called(*, help_all: bool = False, **given: Any) -> Any:
        return command(**given)

    called.__name__, called.__doc__ = command.__name__, command.__doc__
    called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called  # type: ignore[return-value]


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta[_SHOWS_ALL] = True
        typer.echo(context.get_help())
        raise typer.Exit


_HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", callback=_show_all, is_eager=True, help="Show every option and exit."
    ),
]


class GroupedCommand(typer.core.TyperCommand):
    """A command whose options are shown in groups."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        """Make the command; its help names --help-all only if --help leaves options out."""
        super().__init__(*arguments, **more)
        shows_all = all(_group(each) != ADVANCED for each in self.params)
        for option in self.params:
            if option.name == "help_all":
                option.hidden = shows_all  # type: ignore[attr-defined]  # of options, not arguments

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, without the last group unless --help-all is set."""
        shown = copy.copy(self)
        params = sorted(self.params, key=lambda param: _ORDER.index(_group(param)))
        shown.params = [
            each for each in params if ctx.meta.get(_SHOWS_ALL) or _group(each) != ADVANCED
        ]
        n_left = len(params) - len(shown.params)
        if n_left:
            more = "1 more option" if n_left == 1 else f"{n_left} more options"
            shown.epilog = f"{ctx.command_path} --help-all shows {more}."
        super(GroupedCommand, shown).format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options in groups; rich, if it is used, does this itself."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                is_argument = param.param_type_name == "argument"
                title = "Arguments" if is_argument else _group(param) or "Options"
                name = record[0].partition(" <")[0] if is_argument else record[0]  # without a type
                sections.setdefault(title, []).append((name, record[1]))
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _group(param: Any) -> str:
    return getattr(param, "rich_help_panel", None) or USUAL
