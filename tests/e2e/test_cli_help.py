"""The help of commands: its groups, and the range and default of each option as they are."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import typer.main

from akunu import ArgumentError, LoadOptions, SamplingOptions
from akunu.cli.app import akunu_app
from akunu.cli.main import main
from akunu.options import sampling_defaults
from akunu.options.declarations import Declared, declared_of
from akunu.options.sampling_options import RECOMMENDED, declared_options
from akunu.ray.settings import RaySettings
from akunu.server.settings import ServerSettings, declared_settings

Run = Callable[..., "subprocess.CompletedProcess[str]"]
PROGRAM: Any = typer.main.get_command(akunu_app())
KINDS: tuple[type[Any], ...] = (SamplingOptions, LoadOptions, ServerSettings, RaySettings)
SIZES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def helps(command: str) -> dict[str, str]:
    """Return the help of each option by its name in Python."""
    return {param.name: param.help or "" for param in PROGRAM.commands[command].params}


def declarations(command: str) -> Iterator[tuple[str, Declared, type[Any]]]:
    if command in ("serve", "ray"):
        kinds = (ServerSettings, RaySettings) if command == "ray" else (ServerSettings,)
        for kind in kinds:
            for name, declared in declared_settings(kind).items():
                if not declared.is_secret:
                    yield name, declared, kind
        return
    shown = helps(command)
    command = "chat" if command == "run" else command
    for name, declared in declared_options().items():
        if command in declared.calls:
            yield name, declared, SamplingOptions
    for name, declared in declared_of(LoadOptions).items():
        is_shown = shown.get(name, "").startswith(declared.help)
        if (command in declared.calls or is_shown) and name != "adapters":
            yield name, declared, LoadOptions


ALL = [
    pytest.param(command, name, declared, kind, id=f"{command}-{name}")
    for command in PROGRAM.commands
    for name, declared, kind in declarations(command)
]


def accepts(kind: type[Any], name: str, value: Any) -> bool:
    more = {"cache_dir": "/tmp"} if name == "cache_size" else {}
    try:
        kind(**{name: value, **more})
    except ArgumentError as error:
        # Another option may be what does not fit.
        return error.refused is None or error.refused[0] != name
    return True


@pytest.mark.parametrize(("command", "name", "declared", "kind"), ALL)
def test_the_range_in_a_help_text_is_the_range(
    command: str, name: str, declared: Declared, kind: type[Any]
) -> None:
    text = helps(command)[name]
    numbers = re.search(r"Range: (above )?(-?[\d.]+)(?:,? (?:up )?to ([\d.]+)| or more)", text)
    if declared.metavar in ("NUMBER", "INTEGER", "SECONDS", "BYTES"):
        assert numbers or "Range: 0, or 0.0001 to 10000." in text, text
    if not numbers:
        return
    lowest, highest = float(numbers[2]), float(numbers[3] or 10**7)
    if declared.metavar in ("INTEGER", "BYTES", "INTEGER|auto"):
        lowest, highest = int(lowest), int(highest)
    step = 1 if isinstance(lowest, int) else 1e-3
    assert accepts(kind, name, highest)
    assert accepts(kind, name, lowest) == (numbers[1] is None)
    assert accepts(kind, name, -1) == ("; -1: " in text or lowest < -1)
    assert not accepts(kind, name, lowest - step - (lowest - step == -1 and "; -1: " in text))
    if numbers[3]:
        assert not accepts(kind, name, highest + step)


@pytest.mark.parametrize(("command", "name", "declared", "kind"), ALL)
def test_names_in_a_help_text_are_those_that_are_taken(
    command: str, name: str, declared: Declared, kind: type[Any]
) -> None:
    listed = re.search(r"Range: ((?:[a-z]\w*, )*[a-z]\w* or \w+)\.", helps(command)[name])
    allowed = getattr(declared.check, "allowed", None)
    assert (listed is not None) == (allowed is not None)
    if listed is not None:
        names = re.split(", | or ", listed[1])
        assert all(accepts(kind, name, each) for each in names)
        assert not accepts(kind, name, "another")


@pytest.mark.parametrize(("command", "name", "declared", "kind"), ALL)
def test_the_default_in_a_help_text_is_the_default(
    command: str, name: str, declared: Declared, kind: type[Any]
) -> None:
    default = kind.__dataclass_fields__[name].default
    found = re.search(r"Default: (.+?)\.(?= |$)", helps(command)[name])
    if (default is None or default == () or default is False) and not declared.default_is:
        assert found is None
        return
    assert found is not None
    said = found[1].removeprefix("the model's setting, or ")
    is_models = said != found[1]
    assert is_models == (command in ("chat", "run") and name in RECOMMENDED)
    if declared.default_is:
        assert said == declared.default_is
    elif isinstance(default, bool):
        assert said == "on"
    elif size := re.fullmatch(r"(\d+) ([KMG]iB)", said):
        assert int(size[1]) * SIZES[size[2]] == default
    elif isinstance(default, (int, float)):
        assert math.isclose(float(said), default)
    else:
        assert said == default


def test_defaults_of_models_are_those_that_files_may_set() -> None:
    assert set(RECOMMENDED) == set(sampling_defaults._OPTIONS.values())


NUMBERS = ("INTEGER", "N", "NUMBER", "NUMBERS", "BITS")
"""What options that take numbers have as their metavar."""
DECLARED = {(command, name) for param in ALL for command, name, *_ in [param.values]}
OTHERS = [
    pytest.param(command, param, id=f"{command}-{param.name}")
    for command in PROGRAM.commands
    for param in PROGRAM.commands[command].params
    if param.metavar in NUMBERS and (command, param.name) not in DECLARED
]
LATE = {"thinking_budget", "dimensions", "top_k", "beam_size", "batch", "temperature"}
"""Options that are checked when the model is there: other tests refuse their values."""
REQUIRED = {
    "quantize": ["in", "out"],
    "convert": ["in", "out"],
    "imatrix": ["ember", "text", "-o", "out"],
    "transcribe": ["a.wav", "-m", "none", "--words"],
    "listen": ["-m", "none"],
}
MORE = {
    ("quantize", "threads"): ["Q8_0"],
    ("bench", "side_by_side"): ["--texts", "--prompts", "short"],
    ("benchmark", "side_by_side"): ["--prompts", "short"],
}
"""Arguments without which another one is refused first."""


@pytest.mark.parametrize(("command", "param"), OTHERS)
def test_the_help_of_another_number_has_its_range(
    command: str, param: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = re.search(r"Range: (above )?(\d+)(?: to (\d+)|, up to (\d+)| or more|)", param.help)
    assert numbers, param.help
    if param.name in LATE:
        return
    more = MORE.get((command, param.name), [])
    highest = numbers[3] or numbers[4]
    for value in (int(numbers[2]) - (not numbers[1]), *([int(highest) + 1] if highest else [])):
        given = [command, *REQUIRED.get(command, []), *more, param.opts[-1], str(value)]
        assert main(given) == 2
        said = capsys.readouterr().err
        assert re.search(f"{value}'?; it must be", said), said
        assert said.startswith(tuple(f"akunu: error: {flag} is" for flag in param.opts)), said


@pytest.mark.parametrize("command", PROGRAM.commands)
def test_the_help_has_each_default(command: str) -> None:
    for param in PROGRAM.commands[command].params:
        if param.param_type_name == "option" and param.default not in (None, False, (), [], ""):
            shown = f"{param.help}" + ("[default: " if param.show_default else "")
            assert "default" in shown.lower(), (param.name, shown)


def shown_groups(command: str) -> bool:
    return any(p.rich_help_panel == "Advanced" for p in PROGRAM.commands[command].params)


GROUPED = [command for command in PROGRAM.commands if shown_groups(command)]
UNGROUPED = [command for command in PROGRAM.commands if not shown_groups(command)]


@pytest.mark.parametrize("command", GROUPED)
def test_help_shows_the_first_groups_and_names_the_option_for_the_rest(
    run_akunu: Run, command: str
) -> None:
    short, whole = (run_akunu(command, flag).stdout for flag in ("--help", "--help-all"))
    assert "Advanced:" not in short
    assert "Advanced:" in whole
    options = {flag for param in PROGRAM.commands[command].params for flag in param.opts[:1]}
    options = {each for each in options if each.startswith("-")}
    shown = {each for each in options if re.search(rf"^ +(-\w, )?{each}\b", short, re.M)}
    assert all(re.search(rf"^ +(-\w+, )?{each}\b", whole, re.M) for each in options)
    last = short.strip().splitlines()[-1].strip()
    n_left = len({*PROGRAM.commands[command].params}) - len(
        [p for p in PROGRAM.commands[command].params if p.rich_help_panel != "Advanced"]
    )
    more = "1 more option" if n_left == 1 else f"{n_left} more options"
    assert last == f"akunu {command} --help-all shows {more}."
    assert shown < options


@pytest.mark.parametrize("command", UNGROUPED)
def test_help_all_of_a_command_without_hidden_options_is_its_help(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    help_text = capsys.readouterr().out
    assert main([command, "--help-all"]) == 0
    assert capsys.readouterr().out == help_text
    assert "--help-all" not in help_text


def test_the_help_of_a_chat_begins_with_the_ten_options_that_are_used_most(run_akunu: Run) -> None:
    shown = run_akunu("chat", "--help").stdout
    sections = re.split(r"^(\w[\w ]+):\n", shown, flags=re.MULTILINE)
    titles = sections[1::2]
    assert titles == ["Arguments", "Options", "Sampling", "Memory and devices"]
    first = re.findall(r"^  (?:-\w, )?--([\w-]+)", sections[4], re.MULTILINE)
    assert len(first) == 12
    assert first[-2:] == ["help-all", "help"]
