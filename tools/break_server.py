"""What happens to a server, and to files, when the machine under them fails.

    python -m tools.break_server [NAME ...] [--table FILE]

Each trial starts real processes on this machine, does something to them, and looks whether what
must happen happened. It needs Linux; as root it also mounts a small disk, and processes that must
not write somewhere are nobody's. Clock jumps need libfaketime (Debian: faketime). The
exit code is the number of trials that failed; tests/server/break_server.md has what happened.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

_ROOT: Final = Path(__file__).parents[1]
_NOBODY: Final = 65534
_FAKETIME: Final = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
_HELLO: Final = [{"role": "user", "content": "Spell apple."}]
_CHATS: Final = "/v1/chat/completions"


class Skipped(Exception):  # noqa: N818  # no error
    """A trial that cannot be made here."""


@dataclass(frozen=True)
class Trial:
    """One way to break something."""

    done: str
    must: str
    run: Callable[[Path], str]
    """Takes an empty folder; returns what happened, AssertionError where that must not."""


def body(**more: Any) -> dict[str, Any]:
    return {"messages": _HELLO, "max_tokens": 8, **more}


@contextmanager
def serving(
    folder: Path,
    *arguments: str,
    limit: Callable[[], None] | None = None,
    user: int | None = None,
    **environment: str,
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server process and its address; its log is in `folder`."""
    log = folder / "log"
    with open(log, "w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "akunu", "serve", *arguments],
            stderr=file,
            cwd=folder,
            preexec_fn=limit,
            user=user,
            text=True,
            env={
                **os.environ,
                "HOME": str(folder),
                "XDG_STATE_HOME": str(folder / "state"),
                "AKUNU_SERVE_PORT": "0",
                **environment,
            },
        )
    try:
        for _ in range(600):
            if found := re.search(r"akunu: serving .* at (\S+)/v1", log.read_text()):
                yield process, found[1]
                break
            if process.poll() is not None:
                raise AssertionError(f"it ended with {process.returncode}: {last_line(log)}")
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()


def last_line(log: Path) -> str:
    lines = [line for line in log.read_text().splitlines() if line.strip()]
    return lines[-1] if lines else ""


def answers(address: str, **more: Any) -> int:
    return httpx.post(address + _CHATS, json=body(**more), timeout=60).status_code


def texts_under_way(address: str) -> int:
    text = httpx.get(address + "/metrics", timeout=60).text
    return sum(map(int, re.findall(r"(?m)^akunu_texts_(?:running|waiting)\{[^}]*\} (\d+)", text)))


def in_threads(n: int, act: Callable[[int], Any]) -> list[Any]:
    """What so many calls at once return, or raise."""
    found: list[Any] = [None] * n

    def one(index: int) -> None:
        try:
            found[index] = act(index)
        except Exception as error:
            found[index] = error

    threads = [threading.Thread(target=one, args=(index,)) for index in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


# --- SIGTERM --------------------------------------------------------------------------------------


def sigterm(folder: Path, *, again: bool = False) -> str:
    with serving(folder, "--drain-seconds", "1") as (process, address):
        assert answers(address) == 200
        began = [0.0]

        def end() -> None:
            deadline = time.monotonic() + 20
            while texts_under_way(address) < 24 and time.monotonic() < deadline:
                time.sleep(0.05)
            began[0] = time.monotonic()
            process.send_signal(signal.SIGTERM)
            if again:
                time.sleep(0.2)
                process.send_signal(signal.SIGTERM)

        threading.Thread(target=end).start()

        def stream(index: int) -> str:
            asked = body(stream=index % 2 == 0, ignore_eos=True, max_tokens=100_000)
            asked["context_overflow"] = "shift"
            return httpx.post(address + _CHATS, json=asked, timeout=60).text

        told = in_threads(24, stream)
        code = process.wait(timeout=30)
        seconds = time.monotonic() - began[0]
    errors = [each for each in told if isinstance(each, Exception)]
    stopped = [each for each in told if isinstance(each, str) and "server_stopping" in each]
    assert not errors, errors[0]
    assert len(stopped) == len(told), told
    assert code == 0, code
    assert seconds < 6, seconds
    return (
        f"{len(stopped)} of 24 were told `server_stopping`; it ended after {seconds:.1f} s with 0"
    )


# --- the disk -------------------------------------------------------------------------------------


def needs_root() -> None:
    if os.geteuid() != 0:
        raise Skipped("needs root")


def read_only_cache(folder: Path) -> str:
    needs_root()
    folder.chmod(0o777)
    cache = folder / "cache"
    cache.mkdir(mode=0o555)
    try:
        with serving(folder, "--cache-dir", str(cache), user=_NOBODY) as (_, address):
            status = answers(address)
        told = f"it serves, and answers {status}"
        assert status in (200, 500), status
    except AssertionError as error:
        told = str(error)
    log = (folder / "log").read_text()
    assert "Traceback" not in log, log
    assert str(cache) in log, log
    return f"{told}; the log says `{last_line(folder / 'log')}`".replace(str(folder), "DIR")


def cache_that_becomes_read_only(folder: Path) -> str:
    needs_root()
    folder.chmod(0o777)
    cache = folder / "cache"
    cache.mkdir()
    os.chown(cache, _NOBODY, _NOBODY)
    with serving(folder, "--cache-dir", str(cache), user=_NOBODY) as (process, address):
        assert answers(address) == 200
        for each in [cache, *(path for path in cache.rglob("*") if path.is_dir())]:
            each.chmod(0o555)
        statuses = [
            answers(address, messages=[{"role": "user", "content": f"{n} " * 300}])
            for n in range(4)
        ]
        assert process.poll() is None
    assert statuses == [200] * 4, statuses
    return "all requests are answered"


def small_disk(folder: Path, mebibytes: int) -> Path:
    needs_root()
    disk = folder / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "akunu", str(disk)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Skipped(f"no disk can be mounted here: {done.stderr.strip()}")
    return disk


def source_of(folder: Path) -> Path:
    sys.path[:0] = [str(_ROOT / "tests"), str(_ROOT / "tests" / "e2e")]
    from ember_in_halves import rewritten  # type: ignore[import-not-found]

    found: Path = rewritten(folder / "ember-f16.gguf")
    return found


def quantise(source: Path, target: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "akunu", "quantize", str(source), str(target), "q8_0"]
    return subprocess.run(command, capture_output=True, text=True, **options)


def full_disk_while_quantising(folder: Path) -> str:
    source, disk = source_of(folder), small_disk(folder, 1)
    try:
        done = quantise(source, disk / "out.gguf")
        left = [path.name for path in disk.iterdir()]
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    return refused_cleanly(done, left, folder)


def disk_that_fills_while_quantising(folder: Path) -> str:
    source, disk = source_of(folder), small_disk(folder, 12)

    def fill() -> None:
        deadline = time.monotonic() + 30
        while not any(disk.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.001)
        with suppress(OSError), open(disk / "filler", "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 65536)

    filling = threading.Thread(target=fill)
    filling.start()
    try:
        done = quantise(source, disk / "out.gguf")
        filling.join()
        left = [path.name for path in disk.iterdir() if path.name != "filler"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    return refused_cleanly(done, left, folder)


def file_limit_while_quantising(folder: Path) -> str:
    source, target = source_of(folder), folder / "out"
    target.mkdir()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, 1 << 19))

    done = quantise(source, target / "out.gguf", preexec_fn=limit)
    return refused_cleanly(done, [path.name for path in target.iterdir()], folder)


def refused_cleanly(done: subprocess.CompletedProcess[str], left: list[str], folder: Path) -> str:
    told = done.stderr.strip().splitlines()
    assert done.returncode in (1, 2), (done.returncode, done.stderr)
    assert "Traceback" not in done.stderr, done.stderr
    assert left == [], left
    return f"exit code {done.returncode}, no file is left: `{told[-1]}`".replace(str(folder), "DIR")


def full_disk_under_the_journal(folder: Path) -> str:
    disk = small_disk(folder, 1)
    try:
        with serving(folder, "--journal", str(disk / "journal")) as (process, address):
            filler = disk / "filler"
            with suppress(OSError), open(filler, "wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)
            failed = httpx.post(
                address + _CHATS, json=body(), headers={"idempotency-key": "a"}, timeout=60
            )
            assert answers(address) == 200  # without a key nothing is kept
            filler.unlink()
            again = httpx.post(
                address + _CHATS, json=body(), headers={"idempotency-key": "a"}, timeout=60
            )
            assert process.poll() is None
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    message = failed.json()["error"]["message"]
    assert failed.status_code == 500
    assert str(folder) not in failed.text
    assert str(disk) in (folder / "log").read_text()
    assert again.status_code == 200
    return f"500, `{message}`, and the path in the log; with room again 200"


# --- limits ---------------------------------------------------------------------------------------


def little_memory(folder: Path) -> str:
    told = []
    for mebibytes in (200, 300, 340, 360, 400, 600, 1500):

        def limit(n: int = mebibytes << 20) -> None:
            resource.setrlimit(resource.RLIMIT_AS, (n, n))

        sub = folder / str(mebibytes)
        sub.mkdir()
        try:
            with serving(sub, "--context", "4096", limit=limit) as (process, address):
                statuses = in_threads(8, lambda _, to=address: answers(to))
                kinds = sorted({each if isinstance(each, int) else repr(each) for each in statuses})
                ended = process.poll()
                assert ended is None, f"{mebibytes} MiB: {ended}, {(sub / 'log').read_text()}"
                assert httpx.get(address + "/health", timeout=60).status_code == 200
                assert all(kind in (200, 500, 503) for kind in kinds), kinds
                told.append(f"{mebibytes} MiB: answers {', '.join(map(str, kinds))}")
        except AssertionError as error:
            if "it ended with" not in str(error):
                raise
            log = (sub / "log").read_text()
            assert "Traceback" not in log or "MemoryError" in log or "OSError" in log, log
            if "it ended with -" in str(error):  # a signal
                raise
            told.append(f"{mebibytes} MiB: {error}")
    return "; ".join(told)


def few_files(folder: Path) -> str:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    with serving(folder, limit=limit) as (process, address):
        assert answers(address) == 200
        host, _, port = address.removeprefix("http://").partition(":")
        held = []
        for _ in range(200):
            with suppress(OSError):
                held.append(socket.create_connection((host, int(port)), timeout=1))
        time.sleep(1.0)
        assert process.poll() is None
        for each in held:
            each.close()
        deadline = time.monotonic() + 20
        while True:
            try:
                status = answers(address)
                break
            except httpx.HTTPError:
                assert time.monotonic() < deadline
                time.sleep(0.2)
    n_lines = len((folder / "log").read_text().splitlines())
    assert status == 200
    assert n_lines < 2000, n_lines
    return f"{len(held)} connections were held; when they are gone it answers {status}"


# --- a pull that is interrupted -------------------------------------------------------------------


def interrupted_pull(folder: Path) -> str:
    sys.path[:0] = [str(_ROOT / "tests"), str(_ROOT / "tests" / "hub")]
    from hub_server import Repo, serve  # type: ignore[import-not-found]

    content = (_ROOT / "python/akunu/data/ember-q8_0.gguf").read_bytes()
    hub, server = serve()
    hub.repos["small/Ember-GGUF"] = Repo({"ember-q8_0.gguf": content})
    environment = {**os.environ, "HOME": str(folder), "HF_ENDPOINT": hub.address}
    environment |= {"HF_HOME": str(folder / "hf"), "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-m", "akunu", "pull", "small/Ember-GGUF"]
    try:
        told = []
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            reached = threading.Event()

            def slowly(sent: int, seen: threading.Event = reached) -> None:
                if sent > 2 << 20:  # of 11 MB, from where the one before was interrupted
                    seen.set()
                    time.sleep(0.05)

            hub.on_content = slowly
            process = subprocess.Popen(
                command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            assert reached.wait(60), "no content was asked for"
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            assert "Traceback" not in errors, errors
            found = list(folder.rglob("snapshots/*/ember-q8_0.gguf"))
            assert not found, found
            told.append(f"{number.name}: {process.returncode}")
        hub.on_content = None
        hub.requests.clear()
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        went_on = any(hub.contents())
    finally:
        server.shutdown()
        server.server_close()
    (path,) = folder.rglob("snapshots/*/ember-q8_0.gguf")
    digests = [hashlib.sha256(data).hexdigest() for data in (path.read_bytes(), content)]
    assert digests[0] == digests[1]
    where = "where it was" if went_on else "from the beginning"
    return f"{', '.join(told)}; nothing half is taken for a model, the next pull goes on {where}"


# --- the clock ------------------------------------------------------------------------------------


def clock_jumps(folder: Path) -> str:
    if not Path(_FAKETIME).exists():
        raise Skipped("needs libfaketime")
    clock = folder / "clock"
    clock.write_text("+0d")
    environment = {
        "LD_PRELOAD": _FAKETIME,
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    options = ("--journal", str(folder / "journal"), "--rate-limit", "1000")
    with serving(folder, *options, **environment) as (process, address):
        assert answers(address) == 200
        asked = body(stream=True, ignore_eos=True, max_tokens=900)
        for jump in ("+400d", "-400d", "+0d"):
            lines, last = 0, ""
            with httpx.stream("POST", address + _CHATS, json=asked, timeout=60) as answer:
                for line in answer.iter_lines():
                    lines += 1
                    if lines == 20:
                        clock.write_text(jump)
                    last = line or last
            assert last == "data: [DONE]", last
            kept = [
                httpx.post(
                    address + _CHATS, json=body(), headers={"idempotency-key": jump}, timeout=60
                )
                for _ in range(2)
            ]
            assert [each.status_code for each in kept] == [200, 200]
            days = round((kept[0].json()["created"] - time.time()) / 86400)
            assert f"{days:+}d" == jump, days  # the server's clock is the one that jumped
            assert kept[1].headers.get("idempotent-replayed") == "true"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    return "streams end as ever, kept answers are replayed, it ends with 0"


TRIALS: Final[dict[str, Trial]] = {
    "sigterm": Trial(
        "SIGTERM while 24 texts are written, 12 as streams",
        "all are told an error by name within `drain_seconds`, exit code 0",
        sigterm,
    ),
    "sigterm_twice": Trial(
        "two SIGTERMs 0.2 s apart under the same load",
        "the same, at once",
        lambda folder: sigterm(folder, again=True),
    ),
    "read_only_cache": Trial(
        "`--cache-dir` that the user may not write",
        "a message that names the folder; no traceback",
        read_only_cache,
    ),
    "cache_becomes_read_only": Trial(
        "`--cache-dir` that becomes read-only while it serves",
        "requests are answered",
        cache_that_becomes_read_only,
    ),
    "quantize_full_disk": Trial(
        "`akunu quantize` onto a disk of 1 MiB",
        "a message, an exit code, no part of a file is left",
        full_disk_while_quantising,
    ),
    "quantize_disk_fills": Trial(
        "`akunu quantize` onto a disk that something else fills meanwhile",
        "the same",
        disk_that_fills_while_quantising,
    ),
    "quantize_file_limit": Trial(
        "`akunu quantize` under `ulimit -f` (512 KiB)",
        "the same",
        file_limit_while_quantising,
    ),
    "journal_full_disk": Trial(
        "a full disk under `--journal`",
        "500 without a path, the path in the log; other requests and later ones are answered",
        full_disk_under_the_journal,
    ),
    "little_memory": Trial(
        "`ulimit -v` from 200 to 1500 MiB, 8 requests at once",
        "it does not start and says why, or answers or refuses each; no crash",
        little_memory,
    ),
    "few_files": Trial(
        "`ulimit -n 64` and 200 connections",
        "it lives on and answers afterwards, with a short log",
        few_files,
    ),
    "interrupted_pull": Trial(
        "SIGKILL, SIGTERM, SIGINT in the middle of `akunu pull`",
        "nothing half is a model; the next pull goes on and the file is whole",
        interrupted_pull,
    ),
    "clock_jumps": Trial(
        "the wall clock jumps by 400 days, both ways, within streams",
        "streams, kept answers and the end are as ever",
        clock_jumps,
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.break_server")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TRIALS))
    parser.add_argument("--table", type=Path, help="write what happened as Markdown")
    arguments = parser.parse_args()
    rows, n_failed = [], 0
    for name in arguments.names or TRIALS:
        trial = TRIALS[name]
        folder = Path(tempfile.mkdtemp(prefix="akunu-break-"))
        try:
            happened = trial.run(folder)
        except Skipped as error:
            happened = f"not tried: {error}"
        except Exception as error:
            n_failed += 1
            happened = f"FAILED: {type(error).__name__}: {str(error)[:2000]}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(json.dumps({"trial": name, "happened": happened}), flush=True)
        rows.append(f"| `{name}`: {trial.done} | {trial.must} | {happened} |")
    if arguments.table is not None:
        head = "| what was done | what must happen | what happened |\n|---|---|---|\n"
        arguments.table.write_text(head + "\n".join(rows) + "\n")
    return n_failed


if __name__ == "__main__":
    sys.exit(main())
