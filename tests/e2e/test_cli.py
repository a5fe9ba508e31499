"""The command line without a terminal: what it prints where, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_support import COMMAND, EMBER, ENVIRONMENT

import akunu
from akunu import _core
from lines import each_line

Run = Callable[..., "subprocess.CompletedProcess[str]"]

BIN = Path(sys.executable).parent
# So hot that the next token is nearly any: such a text goes on until the context is full.
LONG = ["--temperature", "50", "--seed", "3"]
# Output as in the C locale of old: Python would coerce it to UTF-8 otherwise.
ASCII_ONLY = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def assert_one_error_line(done: subprocess.CompletedProcess[str], code: int) -> str:
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("akunu: error: ")
    return line


def test_without_arguments_it_prints_help(run_akunu: Run) -> None:
    done = run_akunu()
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("Usage: akunu", "chat", "devices", "--version"):
        assert word in done.stdout


def test_the_installed_commands_answer() -> None:
    for command, word in (("akunu", "devices"), ("akunu-chat", "--prompt")):
        done = subprocess.run(
            [BIN / command, "--help"], capture_output=True, text=True, timeout=60, check=True
        )
        assert f"Usage: {command}" in done.stdout
        assert word in done.stdout


def test_akunu_chat_is_the_chat_command() -> None:
    texts = [
        subprocess.run(
            [*command, "--prompt", "Hello!", "--max-tokens", "8"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        for command in ([BIN / "akunu", "chat"], [BIN / "akunu-chat"])
    ]
    assert texts[0].strip()
    assert texts[0] == texts[1]


def test_the_version_is_the_packages(run_akunu: Run) -> None:
    done = run_akunu("--version")
    assert (done.returncode, done.stdout) == (0, f"akunu {akunu.__version__}\n")


def test_devices_names_the_cpu_and_its_kernels(run_akunu: Run) -> None:
    done = run_akunu("devices", AKUNU_CPU_ISA="generic")
    assert done.returncode == 0
    tables = {}
    tables_text = [text for text in done.stdout.split("\n\n") if text.startswith("backend")]
    for table in tables_text:  # besides, it says where a GPU is not used
        lines = (line.split("  ", 1) for line in table.splitlines())
        facts = {name: value.strip() for name, value in lines}
        tables[facts["backend"]] = facts
    assert set(tables) <= set(_core.backends())
    facts = tables["cpu"]
    assert facts["level"] == "generic"
    assert facts["memory"].endswith(" GiB")


def test_the_reply_is_the_models_and_alone_on_stdout(run_akunu: Run, ember: akunu.Model) -> None:
    done = run_akunu("chat", "--prompt", "What is 12 + 7?")
    assert done.returncode == 0
    expected = ember.chat([{"role": "user", "content": "What is 12 + 7?"}])
    assert expected.strip()
    assert done.stdout == expected.rstrip("\n") + "\n"
    assert done.stderr == ""


def test_piped_text_is_the_question(run_akunu: Run) -> None:
    by_option = run_akunu("chat", "--prompt", "Spell apple.")
    for text in ("Spell apple.", "Spell apple.\n", "Spell apple.\r\n"):
        assert run_akunu("chat", stdin=text).stdout == by_option.stdout


def test_standard_input_is_read_where_the_question_asks_for_it(
    run_akunu: Run, ember: akunu.Model
) -> None:
    question = {"role": "user", "content": "Which is first? pear, apple!"}
    expected = ember.chat([question]).rstrip("\n")
    for arguments, text in (
        (["-p", "Which is first? {stdin}!"], "pear, apple\n"),
        (["ember", "Which is first?", "{stdin}!"], "pear, apple"),
        (["-p", "-"], "Which is first? pear, apple!\r\n"),
        (["-m", "ember", "-"], "Which is first? pear, apple!"),
    ):
        done = run_akunu("chat", *arguments, stdin=text)
        assert (done.stdout.rstrip("\n"), done.stderr) == (expected, "")


def test_standard_input_beside_a_question_is_left_and_said(
    run_akunu: Run, ember: akunu.Model
) -> None:
    done = run_akunu("chat", "--prompt", "Spell apple.", stdin="pear")
    expected = ember.chat([{"role": "user", "content": "Spell apple."}])
    assert done.stdout.rstrip("\n") == expected.rstrip("\n")
    (line,) = done.stderr.splitlines()
    assert "standard input is not read" in line
    assert "{stdin}" in line


def run_with_open_input(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run akunu with a standard input that nobody writes to and nobody closes."""
    read_end, write_end = os.pipe()
    try:
        done = subprocess.run(
            [*COMMAND, *arguments],
            stdin=read_end,
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            timeout=60,
        )
    finally:
        os.close(read_end)
        os.close(write_end)
    return done


def test_an_open_standard_input_does_not_make_a_question_wait() -> None:
    done = run_with_open_input("chat", "-p", "Spell cat.")
    assert (done.returncode, done.stdout, done.stderr) == (0, "c-a-t\n", "")


def test_a_loop_of_a_shell_keeps_its_input(tmp_path: Path) -> None:
    (tmp_path / "words").write_text("cat\ndog\n")
    akunu_chat = " ".join([*COMMAND, "chat", "-p", '"Spell $word."'])
    done = subprocess.run(
        ["sh", "-c", f"while read word; do {akunu_chat}; done <words"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("c-a-t\nd-o-g\n", "")


def test_a_question_may_be_arguments_and_run_is_chat(run_akunu: Run, ember: akunu.Model) -> None:
    expected = ember.chat([{"role": "user", "content": "What is 12 + 7?"}])
    for arguments in (
        ["run", "ember", "What is 12 + 7?"],
        ["chat", "ember", "What", "is", "12", "+", "7?"],
        ["chat", "-m", "ember", "What is 12 + 7?"],
        ["chat", "-p", "What is 12 + 7?"],
    ):
        done = run_akunu(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.rstrip("\n") == expected.rstrip("\n")


def test_a_question_in_a_models_place_is_explained(run_akunu: Run) -> None:
    line = assert_one_error_line(run_akunu("chat", "What is 12 + 7?"), 2)
    assert 'no model "What is 12 + 7?"' in line
    assert "akunu chat ember QUESTION" in line
    line = assert_one_error_line(run_akunu("chat", "what", "is", "2 + 2"), 1)
    assert (
        "the model comes first: if this is the question, akunu chat ember 'what is 2 + 2'" in line
    )
    assert "the model's name is empty" in assert_one_error_line(run_akunu("chat", "  "), 2)
    line = assert_one_error_line(run_akunu("ember", "hi"), 2)
    assert "Did you mean: akunu chat ember" in line


def test_a_bad_model_is_named_before_standard_input_is_read() -> None:
    done = run_with_open_input("chat", "missing.gguf")
    assert done.returncode == 1
    assert "missing.gguf" in done.stderr


def test_options_reach_the_model(run_akunu: Run, ember: akunu.Model) -> None:
    done = run_akunu(
        *("chat", str(EMBER), "--prompt", "Hello!", "--system", "Be brief.", "--max-tokens", "6"),
        *("--temperature", "1.2", "--seed", "11", "--context", "256", "--threads", "2"),
        *("--device", "cpu", "--kv-type", "f16"),
    )
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello!"},
    ]
    stream = ember.chat(messages, max_tokens=6, temperature=1.2, seed=11, stream=True)
    assert done.stdout.rstrip("\n") == "".join(stream).rstrip("\n")
    cut = stream.finish_reason == "length"
    assert ("cut after 6 tokens" in done.stderr) == cut


def test_notes_of_the_load_go_to_stderr(run_akunu: Run) -> None:
    done = run_akunu("chat", "--prompt", "Hello!", "--context", "2048", "--max-tokens", "4")
    assert done.returncode == 0
    assert "2048" in done.stderr.splitlines()[0]
    assert "2048" not in done.stdout


def test_a_full_context_is_said_in_one_line(run_akunu: Run) -> None:
    done = run_akunu("chat", "--prompt", "word " * 50, "--context", "32")
    line = assert_one_error_line(done, 1)
    assert "32" in line


@each_line(
    "arguments",
    [
        ["chat", "--no-such-option"],
        ["chat", "--threads", "many"],
        ["chat", "--threads", "0", "--prompt", "x"],
        ["chat", "--temperature", "nan", "--prompt", "x"],
        ["chat", "--seed", "-2", "--prompt", "x"],
        ["chat", "--kv-type", "q2", "--prompt", "x"],
        ["chat", "ember", "Hello!", "--prompt", "x"],
        ["chat", "What is 12 + 7?"],
        ["chat", "-p", "-"],
        ["chat", "--continue", "--load", "talk.json", "-p", "x"],
        ["fly"],
        ["chat"],
    ],
    ids=" ".join,
)
def test_a_senseless_command_line_exits_with_2(run_akunu: Run, arguments: list[str]) -> None:
    assert_one_error_line(run_akunu(*arguments), 2)


@pytest.mark.parametrize(
    ("arguments", "help_of"),
    [
        (["chat", "--promt", "hi"], "akunu chat"),
        (["remove"], "akunu remove"),
        (["fly"], "akunu"),
    ],
)
def test_a_usage_error_names_the_help_that_explains_it(
    run_akunu: Run, arguments: list[str], help_of: str
) -> None:
    line = assert_one_error_line(run_akunu(*arguments), 2)
    assert line.endswith(f"({help_of} --help explains)")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("missing.gguf", "neither a file nor the name of a model"),
        (".", "is a directory"),
        (__file__, "test_cli.py"),
    ],
    ids=["missing", "directory", "no GGUF"],
)
def test_a_model_that_does_not_load_is_one_line(run_akunu: Run, model: str, words: str) -> None:
    assert words in assert_one_error_line(run_akunu("chat", model, "--prompt", "x"), 1)


def test_a_device_that_is_not_there_is_one_line(run_akunu: Run) -> None:
    assert_one_error_line(run_akunu("chat", "--device", "abacus", "--prompt", "x"), 1)


def test_bytes_that_are_not_utf8_are_refused(run_akunu: Run) -> None:
    assert "at byte 1" in assert_one_error_line(run_akunu("chat", stdin=b"a\xff"), 2)


def test_emoji_survive_every_locale(run_akunu: Run) -> None:
    plain = run_akunu("chat", "--prompt", "Say \N{FIRE}", "--max-tokens", "12")
    for arguments, stdin in ((["--prompt", "Say \N{FIRE}"], ""), ([], "Say \N{FIRE}")):
        done = run_akunu("chat", *arguments, "--max-tokens", "12", stdin=stdin, **ASCII_ONLY)
        assert done.returncode == 0, done.stderr
        assert done.stdout == plain.stdout.encode("ascii", "backslashreplace").decode()


def test_a_reply_that_the_locale_cannot_show_is_escaped(run_akunu: Run, ember: akunu.Model) -> None:
    # Nearly random tokens; half of the single bytes among them are no ASCII.
    reply = ember.chat(
        [{"role": "user", "content": "Hello"}], temperature=50, seed=4, max_tokens=60
    )
    assert not reply.isascii()
    done = run_akunu(
        *("chat", "--prompt", "Hello", "--temperature", "50", "--seed", "4", "--max-tokens", "60"),
        **ASCII_ONLY,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip("\n") == reply.encode("ascii", "backslashreplace").decode()


def test_an_error_with_emoji_survives_every_locale(run_akunu: Run) -> None:
    done = run_akunu("chat", "\N{FIRE}.gguf", "--prompt", "x", **ASCII_ONLY)
    assert "gguf" in assert_one_error_line(done, 1)


def test_without_a_terminal_there_are_no_colours(run_akunu: Run) -> None:
    for arguments in (["--help"], ["devices"], ["chat", "--help"], ["chat", "none.gguf"]):
        done = run_akunu(*arguments, stdin="x", TERM="xterm-256color")
        assert "\x1b" not in done.stdout + done.stderr


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    process = subprocess.Popen(
        [*COMMAND, "chat", "--prompt", "The", *LONG],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(60) == 141
    assert errors == ""


def test_a_disk_that_is_full_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "chat", "--prompt", "Hello!", "--max-tokens", "4"],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
            timeout=60,
        )
    assert done.returncode == 1
    assert done.stderr == "akunu: error: No space left on device\n"


def test_a_process_without_standard_input_and_error_works(tmp_path: Path) -> None:
    shell = " ".join([sys.executable, "-m akunu chat --prompt Hello --max-tokens 4"])
    done = subprocess.run(
        ["sh", "-c", f"exec {shell} <&- 2>&-"], stdout=subprocess.PIPE, text=True, timeout=60
    )
    assert done.returncode == 0
    assert done.stdout.strip()
    assert subprocess.run(["sh", "-c", f"exec {shell} <&- >&- 2>&-"], timeout=60).returncode == 1


def test_a_closed_standard_output_is_one_line() -> None:
    for command in ("chat --prompt Hello", "devices"):
        shell = f"exec {sys.executable} -m akunu {command} >&-"
        done = subprocess.run(["sh", "-c", shell], stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 1
        assert "akunu: error: standard output is closed" in done.stderr


def test_ctrl_c_during_a_reply_exits_with_130() -> None:
    process = subprocess.Popen(
        [*COMMAND, "chat", "--prompt", "The", *LONG],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**ENVIRONMENT, "AKUNU_CPU_ISA": "generic"},  # slow enough to be caught at it
    )
    assert process.stdout is not None
    assert process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - sent < 5
    assert errors == b""
