"""`akunu pull`, `list`, `remove`, `plan` and `chat NAME`, each as a process of its own."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hub_server import TOKEN, Hub, Repo
from hub_support import Done, of_architecture, ollama_has

from akunu import _core
from akunu.cli.terminal import console
from akunu.hub.load_check import why_not_loadable

Run = Callable[..., Done]
REPO = "small/Ember-GGUF"


@pytest.fixture
def repo(hub: Hub, ember: bytes) -> Repo:
    hub.repos[REPO] = Repo({"README.md": b"# Ember", "ember-q8_0.gguf": ember})
    return hub.repos[REPO]


def names_here(run_akunu: Run) -> list[str]:
    done = run_akunu("list", "--json")
    assert done.returncode == 0, done.stderr
    return [each["name"] for each in json.loads(done.stdout)]


def test_pull_list_and_remove_go_together(hub: Hub, repo: Repo, run_akunu: Run) -> None:
    done = run_akunu("pull", REPO)
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.strip())
    assert path.name == "ember-q8_0.gguf"
    assert "akunu: ember-q8_0.gguf: the only model in it" in done.stderr
    assert "fetching ember-q8_0.gguf, 10.8 MiB" in done.stderr
    for command in ("list", "ls"):
        lines = [line.split() for line in run_akunu(command).stdout.splitlines()]
        assert [line[0] for line in lines] == ["name", "ember", f"{REPO}:Q8_0"]
        assert lines[2][1:] == ["10.8", "MiB", "Hugging", "Face", "yes"]
    done = run_akunu("rm", REPO)
    assert (done.returncode, path.exists()) == (2, True)
    assert "not a terminal" in done.stderr
    done = run_akunu("remove", f"{REPO}:q8_0", "--yes")
    assert done.returncode == 0, done.stderr
    assert "removed, 10.8 MiB are free again" in done.stderr
    assert not path.exists()
    assert names_here(run_akunu) == ["ember"]
    done = run_akunu("remove", REPO, "--yes")
    assert done.returncode == 1
    assert "`akunu list` shows" in done.stderr


def test_the_variables_of_huggingface_hub_are_honoured(
    hub: Hub, repo: Repo, start_akunu: Run, tmp_path: Path
) -> None:
    there = {"HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": TOKEN}
    repo.is_private = True
    done = start_akunu("pull", REPO, **there)  # HF_ENDPOINT is in the environment
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tmp_path / "hf/hub")
    hub.requests.clear()
    offline = {**there, "HF_HUB_OFFLINE": "1"}
    done = start_akunu("chat", f"{REPO}:Q8_0", "--prompt", "What is 2 + 2?", **offline)
    assert done.returncode == 0, done.stderr
    assert "4" in done.stdout
    done = start_akunu("pull", REPO, **offline)
    assert done.returncode == 1
    assert "HF_HUB_OFFLINE forbids the network" in done.stderr
    assert hub.requests == []


def test_chat_fetches_a_model_that_is_missing(hub: Hub, repo: Repo, run_akunu: Run) -> None:
    done = run_akunu("chat", REPO, "--prompt", "What is 2 + 2?")
    assert done.returncode == 0, done.stderr
    assert "4" in done.stdout
    assert "fetching ember-q8_0.gguf" in done.stderr


def test_remove_of_one_file_leaves_the_others_of_a_repository(
    hub: Hub, repo: Repo, run_akunu: Run, ember: bytes
) -> None:
    repo.files["ember-Q4_0.gguf"] = ember + b"\0" * 32  # the name tells the format, for us
    for wanted in ("Q8_0", "Q4_0"):
        assert run_akunu("pull", f"{REPO}:{wanted}").returncode == 0
    assert names_here(run_akunu) == ["ember", f"{REPO}:Q8_0", f"{REPO}:Q4_0"]
    assert run_akunu("remove", f"{REPO}:Q8_0", "--yes").returncode == 0
    assert names_here(run_akunu) == ["ember", f"{REPO}:Q4_0"]
    assert run_akunu("remove", REPO, "--yes").returncode == 0
    assert names_here(run_akunu) == ["ember"]


@pytest.mark.parametrize(
    ("typed", "stays"), [("y\n", False), ("n\n", True), ("", True)], ids=["yes", "no", "end"]
)
def test_remove_asks_at_a_terminal(
    hub: Hub,
    repo: Repo,
    run_akunu: Run,
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    stays: bool,
) -> None:
    path = Path(run_akunu("pull", REPO).stdout.strip())
    monkeypatch.setattr(console, "is_terminal", lambda stream: stream is sys.stdin)
    done = run_akunu("remove", REPO, stdin=typed)
    assert "remove it? [y/N]" in done.stderr
    assert path.exists() == stays
    assert done.returncode == (1 if stays else 0)
    assert ("nothing was removed" in done.stderr) == stays


def test_remove_without_a_terminal_names_no_model_as_if_it_went(
    hub: Hub, repo: Repo, run_akunu: Run
) -> None:
    path = Path(run_akunu("pull", REPO).stdout.strip())
    done = run_akunu("remove", REPO)
    assert done.returncode == 2
    assert done.stderr.startswith("akunu: error: standard input is not a terminal")
    assert path.exists()


def test_what_other_programs_own_is_listed_and_not_removed(
    hub: Hub, home: Path, run_akunu: Run, ember: bytes
) -> None:
    blob = ollama_has(home / ".ollama/models", "registry.ollama.ai/library/tiny/latest", ember)
    other = home / ".lmstudio/models/small/Mamba-GGUF/mamba-Q8_0.gguf"
    other.parent.mkdir(parents=True)
    other.write_bytes(of_architecture(ember, b"mamba"))
    listed = json.loads(run_akunu("list", "--json").stdout)
    assert [(each["name"], each["from"], each["loadable"]) for each in listed] == [
        ("ember", "package", True),
        ("small/Mamba-GGUF:Q8_0", "LM Studio", False),
        ("tiny:latest", "Ollama", True),
    ]
    assert "'mamba'" in listed[1]["problem"]
    for name, owner in (("tiny", "Ollama"), ("small/Mamba-GGUF:Q8_0", "LM Studio")):
        done = run_akunu("remove", name, "--yes")
        assert done.returncode == 1
        assert f"belongs to {owner}, so akunu does not remove it" in done.stderr
    done = run_akunu("remove", "ember", "--yes")
    assert done.returncode == 1
    assert "part of the package" in done.stderr
    assert blob.exists()
    assert other.exists()


def test_a_damaged_model_is_listed_with_the_reason_and_not_its_path_again(
    tmp_path: Path, ember: bytes
) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(ember[:200_000])
    problem = why_not_loadable(damaged)
    assert problem.startswith("byte ")
    assert "cut off or damaged" in problem
    assert str(tmp_path) not in problem


def test_models_of_an_address_are_listed_and_removed(
    hub: Hub, run_akunu: Run, home: Path, ember: bytes
) -> None:
    hub.plain["/ember.gguf"] = ember
    address = f"{hub.address}/ember.gguf"
    path = Path(run_akunu("pull", address).stdout.strip())
    assert names_here(run_akunu) == ["ember", address]
    assert run_akunu("remove", address, "-y").returncode == 0
    assert not path.exists()
    assert names_here(run_akunu) == ["ember"]


def test_a_plan_needs_the_header_only_and_equals_what_the_load_takes(
    hub: Hub, repo: Repo, run_akunu: Run
) -> None:
    done = run_akunu("plan", REPO, "--json", "--context", "512")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["name"] == f"{REPO}:Q8_0"
    assert plan["download_bytes"] == len(repo.files["ember-q8_0.gguf"])
    assert plan["chosen"] == "the only model in it"
    assert (plan["architecture"], plan["context"], plan["trained_context"]) == ("qwen3", 512, 1024)
    assert plan["speed"]["tokens_per_second_at_most"] > 0
    assert all(each for each in hub.contents())  # ranges only
    here = json.loads(run_akunu("inspect", "ember", "--json", "--context", "512").stdout)
    assert plan["memory_bytes"] == here["run"]["memory_bytes"]
    assert plan["parameters"] == here["file"]["parameters"]

    local = json.loads(run_akunu("plan", "--json", "--context", "512", "--no-speed").stdout)
    assert local["memory_bytes"] == plan["memory_bytes"]
    assert local["disk_cache"] == plan["disk_cache"]
    assert local["download_bytes"] == 0
    table = run_akunu("plan", REPO, "--no-speed", "--cache-dir", "prefixes").stdout
    assert f"{REPO}:Q8_0" in table
    assert "prefixes on the disk" in table
    assert "there now" not in table  # a header does not say which file it is of
    assert "to download      10.8 MiB" in table
    assert "memory at a context of 1024 tokens" in table


def test_a_plan_says_what_does_not_work(hub: Hub, repo: Repo, run_akunu: Run, ember: bytes) -> None:
    repo.files["ember-q8_0.gguf"] = of_architecture(ember, b"mamba")
    done = run_akunu("plan", REPO)
    assert done.returncode == 1
    assert done.stderr.strip().endswith(
        f"error: {REPO}:Q8_0: general.architecture is 'mamba'; akunu has "
        + ", ".join(family["architecture"] for family in _core.families())
    )
    assert "to download" in done.stdout
    done = run_akunu("plan", REPO, "--json")
    assert done.returncode == 1
    assert "'mamba'" in json.loads(done.stdout)["error"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pull", "ember"], "cannot be downloaded"),
        (["pull", "llama3.2:1b"], "does not download them"),
        (["pull", "small/none"], "there is no model small/none"),
        (["pull", "http://example.org/m.gguf"], "not encrypted"),
        (["chat", "small/Ember-GGUF:Q1_0", "-p", "a"], "has no 'Q1_0'"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_an_error_is_one_line_that_says_what_to_do(
    hub: Hub, repo: Repo, run_akunu: Run, arguments: list[str], message: str
) -> None:
    if arguments[0] == "chat":
        arguments = [*arguments[:2], "--prompt", "Hello"]
    done = run_akunu(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("akunu: error: ")
    assert message in line


class Held:
    """Holds contents back after some megabytes, until it is told to go on."""

    def __init__(self, hub: Hub) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        hub.on_content = self.wait

    def wait(self, sent: int) -> None:
        if sent >= 4 << 20:
            self.reached.set()
            self.go_on.wait(60)


def test_ctrl_c_ends_a_download_with_130_and_the_next_one_goes_on(
    hub: Hub, repo: Repo, run_akunu: Run, ember: bytes, home: Path
) -> None:
    held = Held(hub)
    process = subprocess.Popen(
        [sys.executable, "-m", "akunu", "pull", REPO],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert held.reached.wait(60)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    held.go_on.set()
    assert (process.returncode, output) == (130, "")
    assert "are here and stay; the next attempt continues from there" in errors
    assert "Traceback" not in errors
    [partial] = home.rglob("*.incomplete")
    here = partial.stat().st_size
    assert here > 0
    listed = json.loads(run_akunu("list", "--json").stdout)
    assert listed[1] == {
        "name": REPO,
        "path": str(partial),
        "bytes": here,
        "from": "Hugging Face",
        "loadable": False,
        "problem": "not finished: `akunu pull` continues it",
    }
    hub.requests.clear()
    done = run_akunu("pull", REPO)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).read_bytes() == ember
    assert hub.contents()[-1] == f"bytes={here}-"
    assert "of them here" in done.stderr


def test_a_terminal_shows_a_bar(hub: Hub, repo: Repo) -> None:
    held = Held(hub)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "akunu", "pull", REPO],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(slave)
    shown = ""
    while "ember-q8_0.gguf [#######             ] 3" not in shown:  # 4 of 10.8 MiB
        shown += os.read(master, 1000).decode()
    held.go_on.set()
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert output.strip().endswith("ember-q8_0.gguf")
    os.close(master)


OWN_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_ctrl_c_at_a_terminal_ends_a_chat_that_is_still_fetching(
    hub: Hub, repo: Repo, home: Path
) -> None:
    held = Held(hub)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", OWN_TERMINAL, sys.executable, "-m", "akunu", "chat", REPO],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(slave)

    def read() -> str:
        assert select.select([master], [], [], 60)[0], f"nothing behind {shown!r}"
        return os.read(master, 1000).decode()

    shown = ""
    try:
        while "[####" not in shown:
            shown += read()
        os.write(master, b"\x03")
        with suppress(OSError):  # what Linux says when the other side has closed
            while True:
                shown += read()
    finally:
        held.go_on.set()
    assert process.wait(60) == 130
    os.close(master)
    assert "Traceback" not in shown
    assert "are here and stay" in shown
    assert len(list(home.rglob("*.incomplete"))) == 1
