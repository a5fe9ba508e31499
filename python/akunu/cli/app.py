"""The commands and their options; each is carried out by the module of its name."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from akunu.cli import commands, options
from akunu.cli.encoder_commands import embed, rank
from akunu.cli.help_pages import GroupedCommand, with_help_all
from akunu.cli.making_commands import (
    CONVERT_HELP,
    IMATRIX_HELP,
    QUANTIZE_HELP,
    convert,
    imatrix,
    quantize,
)
from akunu.cli.measuring_commands import (
    BENCH_HELP,
    PERPLEXITY_HELP,
    bench,
    benchmark,
    perplexity,
    profile,
)
from akunu.cli.options import adapters_of, one_model, sampling_of, thinking_option
from akunu.cli.reply.output import ReplyOptions
from akunu.cli.server_commands import ray, serve, show_servers, stop_servers
from akunu.cli.shared_options import (
    GivenForm,
    Loading,
    takes_form,
    takes_loading,
)
from akunu.cli.speech_commands import LISTEN_HELP, TRANSCRIBE_HELP, listen, transcribe
from akunu.cli.terminal import console
from akunu.cli.version import show_version
from akunu.options.declarations import ADVANCED
from akunu.options.text_options import SamplingOptions

_CHAT_HELP = """Talk to a model.

Without a question, it opens a conversation. With a question, as an argument or on standard input,
it answers once. The reply goes to standard output, everything else to standard error. If the
question contains {stdin}, or is -, standard input is read in its place.

The default of a sampling option is the setting in the model's file, if it has one."""

_COMPLETE_HELP = """Continue a text.

The prompt comes from --prompt, --file or standard input. The completion goes to standard output."""

FirstModel = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="The model, as in --model. Default: ember.",
        autocompletion=options.complete_model,
        show_default=False,
    ),
]
_SERVE_HELP = """Serve models over OpenAI's HTTP API.

MODEL is a model as in other commands, or NAME=MODEL to choose its name. Without MODEL, it serves
ember and every model that `akunu list` shows. An option can also be set in the table [serve] of
akunu.toml (port = 8000) or in the environment (AKUNU_SERVE_PORT=8000). API keys come from api_keys
in that table, from AKUNU_SERVE_API_KEYS or from --api-key-file."""

_RAY_HELP = """Serve models with replicas on a Ray cluster.

Without --cluster, the command starts a cluster and stops it at the end. Models and settings are
those of `akunu serve`. The settings that only `akunu ray` has can also be set in the table [ray] of
akunu.toml or in the environment (AKUNU_RAY_REPLICAS=2). A request goes to the replica that has its
prefix in the KV cache."""

PromptText = Annotated[str | None, typer.Option("--prompt", "-p", metavar="TEXT", help="The text.")]


def akunu_app() -> typer.Typer:
    """Return the program `akunu`."""
    app = _new_app(add_completion=True)
    app.callback()(_options)

    def command(*name: str, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return lambda run: app.command(*name, cls=GroupedCommand, **more)(with_help_all(run))

    command(help=_CHAT_HELP)(chat)
    command("run", help="The same as chat.")(chat)
    command(help=_COMPLETE_HELP)(complete)
    command(help=_SERVE_HELP)(serve)
    command(help=_RAY_HELP)(ray)
    command("ps")(show_servers)
    command("stop")(stop_servers)
    command()(embed)
    command()(rank)
    command(help=TRANSCRIBE_HELP)(transcribe)
    command(help=LISTEN_HELP)(listen)
    command()(tokenize)
    command()(inspect)
    command(help=BENCH_HELP)(bench)
    command("benchmark", hidden=True)(benchmark)
    command()(profile)
    command(help=PERPLEXITY_HELP)(perplexity)
    command(help=CONVERT_HELP)(convert)
    command(help=QUANTIZE_HELP)(quantize)
    command(help=IMATRIX_HELP)(imatrix)
    command()(pull)
    command("list")(list_models)
    command("ls", hidden=True)(list_models)
    command("remove")(remove_models)
    command("rm", hidden=True)(remove_models)
    command()(plan)
    command()(devices)
    command()(doctor)
    return app


def chat_app() -> typer.Typer:
    """Return the program `akunu-chat`."""
    app = _new_app(add_completion=False)
    app.command(help=_CHAT_HELP, cls=GroupedCommand)(with_help_all(chat))
    return app


_LEAST_COLUMNS_OF_PANELS = 96  # with fewer, Typer's panels leave no room for names of options


def _new_app(*, add_completion: bool) -> typer.Typer:
    columns = shutil.get_terminal_size().columns  # rich believes COLUMNS too
    has_panels = console.shows_styles(sys.stdout) and columns >= _LEAST_COLUMNS_OF_PANELS
    is_plain = console.is_terminal(sys.stdout) and not has_panels
    return typer.Typer(
        add_completion=add_completion,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich" if has_panels else None,
        context_settings={"terminal_width": min(columns, 100)} if is_plain else None,
    )


def _show_version(wanted: bool) -> None:
    if wanted:
        show_version()
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Run language models on your own machine."""


@options.takes_sampling
@takes_form
@takes_loading
def chat(
    first: FirstModel = None,
    rest: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="Answer this question and exit."),
    ] = None,
    model: options.NamedModel = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt",
            "-p",
            metavar="TEXT",
            help="Answer this question and exit. - or {stdin} in it is standard input.",
        ),
    ] = None,
    images: Annotated[
        list[Path] | None,
        typer.Option("--image", metavar="FILE", help="An image for the question. May be repeated."),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            "--system",
            "-s",
            metavar="TEXT",
            help="System message: instructions for the conversation.",
        ),
    ] = None,
    thinking: Annotated[
        str | None,
        typer.Option(
            "--thinking",
            metavar="on|off|LEVEL",
            help="Let a reasoning model think before it answers: on, off, or a level such as low.",
        ),
    ] = None,
    thinking_budget: Annotated[
        int | None,
        options.count(
            "--thinking-budget",
            help="End thinking after this many tokens. Range: 0 or more.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    no_think: Annotated[
        bool,
        typer.Option("--no-think", help="The same as --thinking off.", rich_help_panel=ADVANCED),
    ] = False,
    markdown: Annotated[
        bool,
        typer.Option(
            help="Format bold text, lists, tables and code of a reply at a terminal.",
            rich_help_panel=ADVANCED,
        ),
    ] = True,
    show_thinking: Annotated[
        bool,
        typer.Option(
            "--show-thinking",
            help="Show the model's thinking in full, not in one line.",
            rich_help_panel=ADVANCED,
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show time, speed and cache use of each reply.")
    ] = False,
    loop_guard: options.LoopGuard = True,
    *,
    form: GivenForm,
    continues: Annotated[
        bool, typer.Option("--continue", "-c", help="Continue the last conversation.")
    ] = False,
    conversation: Annotated[
        Path | None,
        typer.Option(
            "--load",
            metavar="FILE",
            help="Continue a conversation that /save wrote.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep/--no-keep",
            help="Keep the conversation for --continue.",
            rich_help_panel=ADVANCED,
        ),
    ] = True,
    load: Loading,
    **sampling: Any,
) -> int:
    """Talk to a model."""

    def run() -> int:
        chosen_load = load()
        given = {**sampling_of(sampling), **adapters_of(chosen_load)}
        return commands.chat.ChatCommand(
            arguments=[word for word in (first, *(rest or ())) if word is not None],
            model=model,
            prompt=prompt,
            images=images or [],
            system=system,
            thinking=thinking_option(thinking, no_think=no_think),
            thinking_budget=thinking_budget,
            continues=continues,
            conversation=conversation,
            keeps=keep,
            load=chosen_load,
            given=given,
            form=form(),
            reply=ReplyOptions(
                markdown=markdown,
                show_thinking=show_thinking,
                verbose=verbose,
                loop_guard=loop_guard,
            ),
        ).run()

    return console.reported(run)


@options.takes_sampling
@takes_form
@takes_loading
def complete(
    first: FirstModel = None,
    model: options.NamedModel = None,
    prompt: PromptText = None,
    file: options.TextFile = None,
    parse_special: Annotated[
        bool,
        typer.Option(
            "--parse-special",
            help="Read names of control tokens in the text as these tokens.",
            rich_help_panel=ADVANCED,
        ),
    ] = False,
    *,
    form: GivenForm,
    n: Annotated[
        int | None,
        options.count("--n", help="Generate this many completions. Range: 1 or more. Default: 1."),
    ] = None,
    loop_guard: options.LoopGuard = True,
    load: Loading,
    json: options.Json = False,
    **sampling: Any,
) -> int:
    """Continue a text."""

    def run() -> int:
        chosen_load = load()
        chosen = SamplingOptions(**sampling_of(sampling), **adapters_of(chosen_load))
        return commands.complete.complete_text(
            one_model(first, model),
            prompt,
            file,
            chosen_load,
            chosen,
            form=form(),
            n=n,
            parse_special=parse_special,
            loop_guard=loop_guard,
            as_json=json,
        )

    return console.reported(run)


def tokenize(
    first: FirstModel = None,
    model: options.NamedModel = None,
    prompt: PromptText = None,
    file: options.TextFile = None,
    special: Annotated[
        bool,
        typer.Option(
            help="Add the control tokens that the model expects around a text, such as BOS."
        ),
    ] = True,
    parse_special: Annotated[
        bool,
        typer.Option(
            "--parse-special",
            help="Read names of control tokens in the text as these tokens.",
            rich_help_panel=ADVANCED,
        ),
    ] = False,
    json: options.Json = False,
) -> int:
    """Show the tokens of a text."""

    def run() -> int:
        return commands.tokenize.show_tokens(
            one_model(first, model),
            prompt,
            file,
            special=special,
            parse_special=parse_special,
            as_json=json,
        )

    return console.reported(run)


@takes_loading
def inspect(
    model: options.Model = "ember",
    *,
    load: Loading,
    template: Annotated[
        bool,
        typer.Option(
            "--template",
            help="Show a conversation as the chat template writes it, and what the template knows.",
        ),
    ] = False,
    json: options.Json = False,
) -> int:
    """Show the contents of a model file and the memory it needs."""

    def run() -> int:
        if template:
            return commands.inspect_template.show_template(model, load(), as_json=json)
        return commands.inspect.show_model(model, load(), as_json=json)

    return console.reported(run)


def pull(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="org/repo, org/repo:Q4_K_M, org/repo:file.gguf or an https address.",
        ),
    ],
) -> int:
    """Download a model. It comes from the Hugging Face hub or an https address."""

    def run() -> int:
        return commands.pull.pull_model(model)

    return console.reported(run)


def list_models(json: options.Json = False) -> int:
    """List the models on this machine. Those of Ollama and LM Studio are included."""

    def run() -> int:
        return commands.models.list_models(as_json=json)

    return console.reported(run)


def remove_models(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL", help="Names that `akunu list` shows; org/repo removes all files of it."
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> int:
    """Remove models from the caches of Hugging Face and akunu."""

    def run() -> int:
        return commands.models.remove_models(models, is_sure=yes)

    return console.reported(run)


@takes_loading
def plan(
    first: FirstModel = None,
    model: options.NamedModel = None,
    *,
    load: Loading,
    speed: Annotated[
        bool,
        typer.Option(
            "--speed/--no-speed", help="Measure the bandwidth of the memory, to estimate the speed."
        ),
    ] = True,
    json: options.Json = False,
) -> int:
    """Estimate the memory and speed of a model here. It need not be downloaded."""

    def run() -> int:
        return commands.plan.show_plan(
            one_model(first, model), load(), with_speed=speed, as_json=json
        )

    return console.reported(run)


def devices() -> int:
    """Show the devices of this machine. It also names kernels that are not installed."""
    return console.reported(commands.devices.show_devices)


def doctor(*, cache_dir: options.CacheDir = None) -> int:
    """Check this installation. It shows versions, devices, settings and an answer of Ember."""

    def run() -> int:
        return commands.doctor.examine(cache_dir)

    return console.reported(run)
