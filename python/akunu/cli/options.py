"""Options that several commands have: declared once, with their help."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from akunu.cli.terminal import console
from akunu.cli.wording import refusal, thinking_of
from akunu.errors import ArgumentError
from akunu.options.declarations import ADVANCED, Declared, declared_of
from akunu.options.described import described
from akunu.options.sampling_options import RECOMMENDED, declared_options
from akunu.options.text_options import LoadOptions, SamplingOptions

Command = TypeVar("Command", bound=Callable[..., Any])


def complete_model(incomplete: str) -> list[str]:
    """Return what the shell may offer for a model: its name inside akunu, or a file's path."""
    folder, slash, start = incomplete.rpartition("/")
    found = ["ember"] if "ember".startswith(incomplete) else []
    try:
        entries = sorted(os.scandir(folder + slash or "."), key=lambda entry: entry.name)
    except OSError:
        return found
    for entry in entries:
        if not entry.name.startswith(start) or (entry.name.startswith(".") and not start):
            continue
        if entry.is_dir():
            found.append(f"{folder}{slash}{entry.name}/")
        elif entry.name.lower().endswith(".gguf"):
            found.append(f"{folder}{slash}{entry.name}")
    return found


ESCAPES = {
    r"\n": ("\n", "a newline"),
    r"\r": ("\r", "a carriage return"),
    r"\t": ("\t", "a tab"),
    r"\\": ("\\", "a backslash"),
}
"""What a backslash and a letter stand for in a value, and its name."""

MODEL_HELP = (
    "The model: a GGUF file, a directory, org/repo:Q4_K_M on the Hugging Face hub, an https "
    "address, or ember."
)
Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help=MODEL_HELP,
        autocompletion=complete_model,
    ),
]
NamedModel = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="MODEL", help=MODEL_HELP, autocompletion=complete_model),
]
JsonLines = Annotated[
    bool,
    typer.Option(
        "--jsonl", help='Each line of the file is a JSON string, or an object with the key "text".'
    ),
]
TextFile = Annotated[
    Path | None,
    typer.Option(
        "--file", "-f", metavar="FILE", help="Read the text from this file; - is standard input."
    ),
]


def _typed(text: object) -> object:
    """Return the number in a text, or the text itself: the check of the range refuses it."""
    for kind in (int, float):
        try:
            return kind(str(text))
        except ValueError:
            continue
    return text


def _whole(text: object) -> int:
    try:
        return int(str(text))
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a whole number") from None


def count(*names: str, help: str, **more: Any) -> Any:
    """Return an option that takes a whole number."""
    return typer.Option(*names, help=help, metavar="INTEGER", parser=_whole, **more)


def flag_of(
    name: str,
    declared: Declared,
    default: Any = None,
    *,
    is_typed: bool = True,
    is_models: bool = False,
) -> Any:
    """Return the flag of an option; one whose default is True can be turned off.

    `is_typed`: whether text that is not a number is kept, so that the option's check refuses it.
    `is_models`: whether a setting of the model's authors comes before the default.
    """
    flags = declared.flag or "--" + name.replace("_", "-")
    help = f"{declared.help} {described(declared, default, is_models=is_models)}".rstrip()
    if not declared.metavar:
        if default:
            flags = f"{flags}/--no-{flags[2:]}"
        return _grouped(*flags.split(","), help=help, group=declared.group)
    parser = None
    if declared.is_list:
        escapes = "\\n, \\t, \\\\ are escapes; may be repeated."
        help += " " + (escapes if declared.metavar == "TEXT" else "May be repeated.")
    elif "|" in declared.metavar or (is_typed and _kind(declared) is not str):
        parser = _typed
    return _grouped(
        *flags.split(","), help=help, group=declared.group, metavar=declared.metavar, parser=parser
    )


def _grouped(*flags: str, group: str, **more: Any) -> Any:
    return typer.Option(*flags, rich_help_panel=group or None, show_default=False, **more)


def flag_parameter(
    name: str, declared: Declared, default: Any, initial: Any = None, **more: bool
) -> Any:
    """Return the parameter of a command that takes an option.

    `default`: of the option; `initial`: the parameter's value without the flag; `more`: arguments
    of `flag_of`.
    """
    kind: Any = _kind(declared)
    kind = list[kind] if declared.is_list else kind
    annotation = Annotated[kind | None, flag_of(name, declared, default, **more)]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=initial, annotation=annotation
    )


def _kind(declared: Declared) -> type:
    kinds = {"": bool, "NUMBER": float, "SECONDS": float, "INTEGER": int, "BYTES": int}
    return {**kinds, "FILE": Path}.get(declared.metavar, str)


def takes_sampling(command: Command) -> Command:
    """Give a command the options of SamplingOptions in place of its `**sampling`.

    A command has those whose declaration names it.
    """
    signature = inspect.signature(command, eval_str=True)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    parameters += [
        flag_parameter(
            name,
            declared,
            SamplingOptions.__dataclass_fields__[name].default,
            is_models=command.__name__ == "chat" and name in RECOMMENDED,
        )
        for name, declared in declared_options().items()
        if command.__name__ in declared.calls
    ]
    shown = signature.replace(parameters=parameters)
    command.__signature__ = shown  # type: ignore[attr-defined]  # what inspect.signature reads
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def _load_flag(name: str) -> Any:
    default = LoadOptions.__dataclass_fields__[name].default
    return flag_of(name, declared_of(LoadOptions)[name], default)


Threads = Annotated[int | None, _load_flag("threads")]
Device = Annotated[str, _load_flag("device")]
Gpus = Annotated[int, _load_flag("gpus")]
KvType = Annotated[str, _load_flag("kv_type")]
CacheDir = Annotated[str | None, _load_flag("cache_dir")]
LoopGuard = Annotated[
    bool,
    typer.Option(
        help="Stop a reply that repeats itself without end. A typed chat shows a hint instead.",
        rich_help_panel=ADVANCED,
    ),
]
Chunks = Annotated[
    int | None,
    count("--chunks", help="Read at most this many chunks. Range: 1 or more. Default: all."),
]
Json = Annotated[bool, typer.Option("--json", help="Write the result as JSON.")]


def one_model(first: str | None, model: str | None) -> str:
    """Return the model of a command that takes it as an argument or with -m; ember without both.

    Raises UsageError where it has both.

    >>> one_model("a.gguf", None), one_model(None, None)
    ('a.gguf', 'ember')
    """
    if first is not None and model is not None:
        raise console.UsageError(f"the model is set twice: {first}, and {model} with -m")
    given = model if model is not None else first
    return "ember" if given is None else given


def thinking_option(text: str | None, *, no_think: bool) -> bool | str | None:
    """Return what --thinking and --no-think say; raises UsageError where they differ.

    >>> thinking_option("on", no_think=False), thinking_option(None, no_think=True)
    (True, False)
    """
    thinking = None if text is None else thinking_of(text)
    if no_think and thinking not in (None, False):
        raise console.UsageError(f"--thinking {text} and --no-think contradict each other")
    return False if no_think else thinking


Schema = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="JSON|FILE",
        rich_help_panel=ADVANCED,
        help="Write JSON that fits this JSON schema, or the one in a file.",
    ),
]
WeakenSchema = Annotated[
    bool,
    typer.Option(
        "--weaken-schema",
        help="Ignore keywords of --schema that cannot be enforced; a note names them.",
        rich_help_panel=ADVANCED,
    ),
]
JsonObject = Annotated[
    bool,
    typer.Option(
        "--json-object", help="Write a JSON object with any keys.", rich_help_panel=ADVANCED
    ),
]
Regex = Annotated[
    str | None,
    typer.Option(
        "--regex",
        metavar="PATTERN",
        help="Write text that matches this regular expression.",
        rich_help_panel=ADVANCED,
    ),
]
Choice = Annotated[
    list[str] | None,
    typer.Option(
        "--choice",
        metavar="TEXT",
        help="Write exactly this text, or that of another --choice. May be repeated.",
        rich_help_panel=ADVANCED,
    ),
]
Rules = Annotated[
    str | None,
    typer.Option(
        "--grammar",
        metavar="RULES|FILE",
        help="Write text that fits this grammar (GBNF or Lark), or the one in a file.",
        rich_help_panel=ADVANCED,
    ),
]


def adapter_paths(given: Sequence[str] | None) -> dict[str, str]:
    """Return paths of adapters by their names; UsageError for anything but NAME=PATH.

    >>> adapter_paths(["poet=poet.gguf"])
    {'poet': 'poet.gguf'}
    """
    paths: dict[str, str] = {}
    for each in given or ():
        name, _, path = each.partition("=")
        if not name or not path:
            raise console.UsageError(f"--adapter is '{each}'; write NAME=PATH")
        if name in paths:
            raise console.UsageError(f"--adapter: two adapters have the name {name}")
        paths[name] = path
    return paths


def adapters_of(load: LoadOptions) -> dict[str, Any]:
    """Return the option of sampling that uses every adapter that a command loads."""
    return {"adapters": dict.fromkeys(dict(load.adapters), 1.0)} if load.adapters else {}


def load_options(*, adapters: Sequence[str] | None = None, **options: Any) -> LoadOptions:
    """Return the checked options of a load; raises UsageError."""
    if adapters:
        options["adapters"] = adapter_paths(adapters)
    try:
        return LoadOptions(**options)
    except ArgumentError as error:
        raise usage_error(error) from None


def sampling_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sampling options that the command line gave; UsageError for bad ones."""
    given = {name: value for name, value in options.items() if value is not None}
    try:
        for name, value in given.items():
            given[name] = value_of(name, value, "--" + name.replace("_", "-"))
        SamplingOptions(**given)
    except ArgumentError as error:
        raise usage_error(error) from None
    return given


def value_of(name: str, value: Any, label: str) -> Any:
    """Return an option of sampling, given as a text or several, as its metavar says it is written.

    `label`: what a person calls the option. Raises ArgumentError and UsageError.
    """
    metavar = declared_options()[name].metavar
    if metavar == "TEXT":
        return unescaped_all(label, value)
    if metavar == "NAME,NAME":
        return sampler_names(value)
    if metavar == "ID":
        return [_typed(each) for each in value]
    if metavar == "ID=NUMBER":
        return biases(label, value)
    return value


def sampler_names(text: str) -> list[str]:
    """Return names between commas, between semicolons (as llama.cpp has them) or spaces.

    >>> sampler_names("top_k;top_p;temperature"), sampler_names("top_k, temperature")
    (['top_k', 'top_p', 'temperature'], ['top_k', 'temperature'])
    """
    return re.sub("[,;]", " ", text).split()


def biases(name: str, values: Sequence[str]) -> dict[int, float]:
    """Return what is added to the logits of tokens; ArgumentError for anything else.

    >>> biases("logit_bias", ["17=-2.5", "4=-inf"])
    {17: -2.5, 4: -inf}
    """
    try:
        pairs = [value.split("=") for value in values]
        taken = {int(token): float(bias) for token, bias in pairs}
        SamplingOptions(logit_bias=taken)
    except (ValueError, ArgumentError):
        given = " ".join(values)
        raise ArgumentError(
            f"{name} is '{given}'; it must be a token's id and a number, for example 17=-2.5"
        ) from None
    return taken


def usage_error(error: ArgumentError) -> console.UsageError:
    """Return the error with the option's name as it is on the command line."""
    name = error.refused[0] if error.refused else ""
    return console.UsageError(refusal(error, "--" + name.replace("_", "-")))


def unescaped_all(option: str, values: Sequence[str]) -> tuple[str, ...]:
    r"""Return texts with \n, \r, \t and \\ read as what they stand for.

    A shell's quotes leave them as they are typed. Raises UsageError, naming the option, for a
    backslash before anything else.

    >>> unescaped_all("--stop", [r"a\nb", r"\\n"])
    ('a\nb', '\\n')
    """
    return tuple(_unescaped(option, value) for value in values)


def _unescaped(option: str, value: str) -> str:
    def meaning(match: re.Match[str]) -> str:
        if match[0] not in ESCAPES:
            raise console.UsageError(
                f"{option} is '{value}': {match[0] or value} is not one of \\n, \\r, \\t and \\\\"
            )
        return ESCAPES[match[0]][0]

    return re.sub(r"\\.?", meaning, value, flags=re.DOTALL)
