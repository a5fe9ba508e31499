"""Waiting and Ctrl-C during a load, a prompt, a reply; and what is shown meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_support import COMMAND, ENVIRONMENT

# One thread of portable kernels takes seconds for such a prompt.
SLOW = {"AKUNU_CPU_ISA": "generic", "TERM": "xterm"}
LONG_QUESTION = "What is 12 + 7? " * 110

PROGRESS_SCRIPT = """
import sys, time
from akunu.cli.terminal.progress import Progress
with Progress(lambda: "counting to a very large number"):
    time.sleep(float(sys.argv[1]))
print("done", file=sys.stderr)
"""


def shows_progress(terminal: Any, seconds: float, **options: Any) -> str:
    script = terminal(command=[sys.executable, "-c", PROGRESS_SCRIPT, str(seconds)], **options)
    assert script.exit_code() == 0
    return str(script.shown)


def test_a_short_wait_shows_nothing(terminal: Any) -> None:
    assert shows_progress(terminal, 0.05, TERM="xterm") == "done\n"


def test_a_long_wait_shows_one_line_and_takes_it_away(terminal: Any) -> None:
    shown = shows_progress(terminal, 1.2, TERM="xterm")
    assert "\rakunu: counting to a very large number, " in shown
    *progress, end = shown.split("\r")
    assert end == "done\n"
    assert len(progress) >= 3
    assert progress[-1].strip() == ""
    assert "\n" not in "".join(progress)


def test_progress_fits_a_narrow_terminal(terminal: Any) -> None:
    shown = shows_progress(terminal, 1.0, TERM="xterm", columns=12)
    assert "\rakunu: coun" in shown
    assert max(map(len, re.split("[\r\n]", shown))) <= 11


def test_a_dumb_terminal_is_told_once(terminal: Any) -> None:
    shown = shows_progress(terminal, 1.2, TERM="dumb")
    assert shown == "akunu: counting to a very large number ...\ndone\n"


def test_progress_is_for_terminals_only() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRESS_SCRIPT, "0.8"], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("", "done\n")


def test_a_long_prompt_shows_how_far_it_is_and_ctrl_c_ends_it(terminal: Any) -> None:
    akunu = terminal("chat", "--threads", "1", "--prompt", LONG_QUESTION, **SLOW)
    akunu.wait_for(r"read \d+ of \d+ tokens")
    akunu.type("\x03")
    assert akunu.exit_code(timeout=20) == 130
    assert "Traceback" not in akunu.shown


def test_ctrl_c_while_a_prompt_is_read_stays_in_the_chat(terminal: Any, tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    messages = [
        {"role": "user", "content": LONG_QUESTION},
        {"role": "assistant", "content": "19"},
    ]
    path.write_text(
        json.dumps({"format": "akunu conversation", "version": 1, "messages": messages})
    )
    akunu = terminal("chat", "--threads", "1", **{**SLOW, "TERM": "dumb"})
    akunu.wait_for("> ")
    akunu.type(f"/load {path}\n")
    akunu.wait_for(r"loaded 1 turn.*\n> ")
    akunu.type("Hello!\n")
    akunu.wait_for(r"read \d+ of \d+ tokens \.\.\.\n")
    akunu.type("\x03")
    akunu.wait_for(r"stopped; the question is dropped\n> ", timeout=20)
    akunu.type("/stats\n")
    assert "no reply yet" in akunu.wait_for(r"\n> ")


def wait_until_mapped(process: subprocess.Popen[bytes], name: str) -> None:
    """Wait until a process has loaded a library; it has begun to work then."""
    deadline = time.monotonic() + 60
    while name not in Path(f"/proc/{process.pid}/maps").read_text():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    "library", ["_multiarray_umath", "akunu/_core", "tokenizers"], ids=lambda name: name
)
def test_ctrl_c_during_a_load_exits_with_130(library: str) -> None:
    process = subprocess.Popen(
        [*COMMAND, "chat", "--prompt", "The", "--temperature", "50"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**ENVIRONMENT, "AKUNU_CPU_ISA": "generic"},
    )
    wait_until_mapped(process, library)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
def test_ctrl_c_during_a_profile_ends_it_between_two_steps() -> None:
    process = subprocess.Popen(
        [*COMMAND, "profile", "-r", "1000000"],  # minutes, without an interrupt
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    wait_until_mapped(process, "ember-q8_0.gguf")
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"")


# As an extension module does it that is interrupted while it begins.
IMPORTED = """
import os, signal, time
seconds = 30 * {interrupts}
print("begins", flush=True)
try:
    for _ in range({interrupts}):
        os.kill(os.getpid(), signal.SIGINT)
    for _ in range(20):  # an interrupt that waits looks again every few milliseconds
        time.sleep(0.01)
except KeyboardInterrupt as error:
    raise ImportError("initialization failed") from error
print("ends", flush=True)
"""

IMPORTS = """
import sys, time
from akunu.cli.terminal import interrupts

def run():
    try:
        import slow
        time.sleep(slow.seconds)
        print("another line")
    except BaseException as error:
        print(type(error).__name__, flush=True)
        raise
    return 0

sys.exit(interrupts.guarded(run, is_process=True))
"""


@pytest.mark.parametrize(
    ("interrupts", "shown"),
    [
        (0, ["begins", "ends", "another line"]),
        (1, ["begins", "ends", "KeyboardInterrupt"]),
        (2, ["begins"]),
    ],
)
def test_an_interrupt_waits_for_an_import_and_a_second_one_does_not(
    interrupts: int, shown: list[str], tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text(IMPORTED.format(interrupts=interrupts))
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS],
        capture_output=True,
        text=True,
        timeout=60,
        env={**ENVIRONMENT, "PYTHONPATH": str(tmp_path)},
    )
    assert done.stdout.splitlines() == shown
    assert (done.returncode, done.stderr) == (130 if interrupts else 0, "")


def test_who_calls_the_command_keeps_its_handlers() -> None:
    code = """
import signal
from akunu.cli.main import main
numbers = [signal.SIGINT, signal.SIGALRM]
before = [signal.getsignal(number) for number in numbers]
print(main(["--version"]), [signal.getsignal(number) for number in numbers] == before)
signal.signal(signal.SIGINT, signal.SIG_IGN)
print(main(["--version"]), signal.getsignal(signal.SIGINT) is signal.SIG_IGN)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[1::2] == ["0 True", "0 True"]


def test_ctrl_c_while_it_waits_for_standard_input_exits_with_130() -> None:
    process = subprocess.Popen(
        [*COMMAND, "complete"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    deadline = time.monotonic() + 60
    while "S (sleeping)" not in Path(f"/proc/{process.pid}/status").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"")


def test_ctrl_c_during_a_benchmark_keeps_what_was_measured(tmp_path: Path) -> None:
    with open(tmp_path / "rows.json", "wb") as output:
        process = subprocess.Popen(
            [*COMMAND, "bench", *("-p", "8", "-n", "900", "-r", "9", "-t", "1", "-o", "json")],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            env={**ENVIRONMENT, "AKUNU_CPU_ISA": "generic"},
        )
        deadline = time.monotonic() + 60
        while not os.path.getsize(tmp_path / "rows.json"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, b"")
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    assert row["n_prompt"] == 8


def test_ctrl_d_at_a_question_and_in_a_text_leaves(terminal: Callable[..., Any]) -> None:
    akunu = terminal("chat")
    akunu.wait_for("> ")
    akunu.type('"""\n')
    akunu.wait_for(r"\n\. ")
    akunu.type("\x04")
    assert akunu.exit_code() == 0
    assert "Traceback" not in akunu.shown
