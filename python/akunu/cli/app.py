"""The commands and their options; each is carried out by the module of its name."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from akunu.cli import commands, options
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
from akunu.options.text_options import SamplingOptions

_CHAT_HELP = """Talk to a model.

With a question, or with one on standard input, it answers once: the reply goes to standard output,
everything else to standard error. Beside a question, standard input is read where - or {stdin} in
the question asks for it.

Sampling options that you do not give are those that the model's file recommends, if it does."""

_COMPLETE_HELP = """Let a model go on from a text.

The text comes from --prompt, --file or standard input; what follows it goes to standard output."""

FirstModel = Annotated[
    str | None,
    typer.Argument(
        metavar="MODEL",
        help="A model, as in -m; the default is ember.",
        autocompletion=options.complete_model,
        show_default=False,
    ),
]
_SERVE_HELP = """Serve models to clients of OpenAI's API.

Each MODEL is written as for other commands, or NAME=MODEL for a name of your own; the default is
ember. Every option may also stand in a file, as `port = 8000` in the table [serve] of akunu.toml,
and in the environment, as AKUNU_SERVE_PORT. API keys are set there alone: AKUNU_SERVE_API_KEYS."""

_RAY_HELP = """Serve models by replicas on a Ray cluster.

Without --cluster, one begins and ends with this command. Models and settings are those of
`akunu serve`; those of `akunu ray` alone may also stand in a table [ray] of akunu.toml, and in the
environment, as AKUNU_RAY_REPLICAS. A conversation goes to the replica that has its beginning in
its cache."""

PromptText = Annotated[
    str | None, typer.Option("--prompt", "-p", metavar="TEXT", help="The text itself.")
]


def akunu_app() -> typer.Typer:
    """Return the program `akunu`."""
    app = _new_app(add_completion=True)
    app.callback()(_options)
    app.command(help=_CHAT_HELP)(chat)
    app.command("run", help="The same as chat.")(chat)
    app.command(help=_COMPLETE_HELP)(complete)
    app.command(help=_SERVE_HELP)(serve)
    app.command(help=_RAY_HELP)(ray)
    app.command("ps")(show_servers)
    app.command("stop")(stop_servers)
    app.command()(embed)
    app.command()(rank)
    app.command(help=TRANSCRIBE_HELP)(transcribe)
    app.command(help=LISTEN_HELP)(listen)
    app.command()(tokenize)
    app.command()(inspect)
    app.command(help=BENCH_HELP)(bench)
    app.command("benchmark", hidden=True)(benchmark)
    app.command()(profile)
    app.command(help=PERPLEXITY_HELP)(perplexity)
    app.command(help=CONVERT_HELP)(convert)
    app.command(help=QUANTIZE_HELP)(quantize)
    app.command(help=IMATRIX_HELP)(imatrix)
    app.command()(pull)
    app.command("list")(list_models)
    app.command("ls", hidden=True)(list_models)
    app.command("remove")(remove_models)
    app.command("rm", hidden=True)(remove_models)
    app.command()(plan)
    app.command()(devices)
    app.command()(doctor)
    return app


def chat_app() -> typer.Typer:
    """Return the program `akunu-chat`."""
    app = _new_app(add_completion=False)
    app.command(help=_CHAT_HELP)(chat)
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
        typer.Argument(metavar="QUESTION", help="Answer this, and leave."),
    ] = None,
    model: options.NamedModel = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt",
            "-p",
            metavar="TEXT",
            help="Answer this, and leave; - or {stdin} in it stands for standard input.",
        ),
    ] = None,
    images: Annotated[
        list[Path] | None,
        typer.Option(
            "--image", metavar="FILE", help="An image that the question is about; several times."
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            "--system", "-s", metavar="TEXT", help="What the model shall know before you speak."
        ),
    ] = None,
    thinking: Annotated[
        str | None,
        typer.Option(
            "--thinking",
            metavar="on|off|LEVEL",
            help="Whether the model thinks first; some know levels: low, medium, high.",
        ),
    ] = None,
    thinking_budget: Annotated[
        int | None,
        options.count("--thinking-budget", help="Tokens of thoughts, then the model answers."),
    ] = None,
    no_think: Annotated[
        bool, typer.Option("--no-think", help="The same as --thinking off.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option(help="Whether a terminal shows bold text, lists, tables and code.")
    ] = True,
    show_thinking: Annotated[
        bool, typer.Option("--show-thinking", help="Keep thoughts, not a line about them only.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Say more about what a reply took.")
    ] = False,
    loop_guard: options.LoopGuard = True,
    *,
    form: GivenForm,
    continues: Annotated[
        bool, typer.Option("--continue", "-c", help="Go on with the last conversation.")
    ] = False,
    conversation: Annotated[
        Path | None,
        typer.Option("--load", metavar="FILE", help="Go on with a conversation that /save wrote."),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option("--keep/--no-keep", help="Whether the conversation is kept for --continue."),
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
        bool, typer.Option("--parse-special", help="Make control tokens of their names.")
    ] = False,
    *,
    form: GivenForm,
    n: Annotated[
        int | None, options.count("--n", help="Write so many texts, side by side.")
    ] = None,
    loop_guard: options.LoopGuard = True,
    load: Loading,
    json: options.Json = False,
    **sampling: Any,
) -> int:
    """Let a model go on from a text."""

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


@takes_loading
def embed(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="An encoder: a file, a directory, or a model's name."),
    ],
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="A text; several may follow.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="A text on each line; - is stdin."),
    ] = None,
    json_lines: options.JsonLines = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.npy", help="Write a NumPy array there."),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="TEXT", help="Put in front of each text.")
    ] = None,
    pooling: Annotated[
        str | None, typer.Option(metavar="KIND", help="mean, cls, last or max.")
    ] = None,
    normalize: Annotated[
        bool | None, typer.Option(help="Scale vectors to length 1, or leave them as they are.")
    ] = None,
    dimensions: Annotated[
        int | None, typer.Option(metavar="N", help="Only so many first numbers.")
    ] = None,
    truncate: Annotated[
        bool, typer.Option("--truncate", help="Cut texts that are too long for the model.")
    ] = False,
    precision: Annotated[
        str, typer.Option(metavar="KIND", help="float32, float16, int8 or binary.")
    ] = "float32",
    *,
    load: Loading,
) -> int:
    """Write the vectors of texts. Each is a line of JSON; -o writes a NumPy file."""

    def run() -> int:
        return commands.embed.show_embeddings(
            model,
            texts or [],
            file,
            load(),
            output=output,
            json_lines=json_lines,
            arguments={
                "prompt": prompt,
                "pooling": pooling,
                "normalize": normalize,
                "dimensions": dimensions,
                "truncate": truncate,
                "precision": precision,
            },
        )

    return console.reported(run)


@takes_loading
def rank(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A cross-encoder: a file's path or a name.")
    ],
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What is looked for.")],
    documents: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="A document; several may follow.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="A document a line; - is stdin."),
    ] = None,
    json_lines: options.JsonLines = False,
    top_k: Annotated[
        int | None, typer.Option(metavar="N", help="Only so many documents, the best.")
    ] = None,
    normalize: Annotated[
        bool | None, typer.Option(help="Scores from 0 to 1, or as the model computes them.")
    ] = None,
    instruction: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the search is for (Qwen3-Reranker).")
    ] = None,
    truncate: Annotated[
        bool, typer.Option("--truncate", help="Cut documents that are too long for the model.")
    ] = False,
    *,
    load: Loading,
) -> int:
    """Order documents by how well they answer a query.

    Writes a line of JSON for each, the best first.
    """

    def run() -> int:
        return commands.rank.show_ranking(
            model,
            query,
            documents or [],
            file,
            load(),
            json_lines=json_lines,
            arguments={
                "top_k": top_k,
                "normalize": normalize,
                "instruction": instruction,
                "truncate": truncate,
            },
        )

    return console.reported(run)


def tokenize(
    first: FirstModel = None,
    model: options.NamedModel = None,
    prompt: PromptText = None,
    file: options.TextFile = None,
    special: Annotated[
        bool, typer.Option(help="Add what the model expects around a text, such as BOS.")
    ] = True,
    parse_special: Annotated[
        bool, typer.Option("--parse-special", help="Make control tokens of their names.")
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
    json: options.Json = False,
) -> int:
    """Show what is in a model's file, and what it takes to run it."""

    def run() -> int:
        return commands.inspect.show_model(model, load(), as_json=json)

    return console.reported(run)


def pull(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="org/repo, org/repo:Q4_K_M, org/repo:file.gguf, or an address."
        ),
    ],
) -> int:
    """Fetch a model from the Hugging Face hub or an https address."""

    def run() -> int:
        return commands.pull.pull_model(model)

    return console.reported(run)


def list_models(json: options.Json = False) -> int:
    """Show the models on this machine. Those of Ollama and LM Studio are among them."""

    def run() -> int:
        return commands.models.list_models(as_json=json)

    return console.reported(run)


def remove_models(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL", help="Names as `akunu list` shows them; org/repo: all of it."
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without asking.")] = False,
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
        bool, typer.Option("--speed/--no-speed", help="Whether memory's bandwidth is measured.")
    ] = True,
    json: options.Json = False,
) -> int:
    """Show what a model takes to run here. It need not be downloaded yet."""

    def run() -> int:
        return commands.plan.show_plan(
            one_model(first, model), load(), with_speed=speed, as_json=json
        )

    return console.reported(run)


def devices() -> int:
    """Show the devices of this machine. What akunu makes of them is said, too."""
    return console.reported(commands.devices.show_devices)


def doctor(*, cache_dir: options.CacheDir = None) -> int:
    """Show what was found here, and try it. What was chosen is explained."""

    def run() -> int:
        return commands.doctor.examine(cache_dir)

    return console.reported(run)
