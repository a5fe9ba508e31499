"""A model file that is cut while the model is loaded ends the model with an error, not the process.

Each case runs in a process of its own: what is tested is that it survives.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from random_models import build

PREAMBLE = """
import faulthandler, os, signal, sys, threading
import numpy as np
import akunu
from akunu._core import GgufFile
from akunu.errors import AkunuError

path = sys.argv[1]
size = os.path.getsize(path)

def error_of(run):
    try:
        run()
    except AkunuError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"

def load():
    return akunu.load(path, device="cpu", context=512, threads=2)
"""

DURING_GENERATION = """
model = load()
began = threading.Event()
def cut():
    began.wait()
    os.truncate(path, 5000)
cutter = threading.Thread(target=cut)
cutter.start()
def generate():
    while True:  # until the file is cut
        for _ in model.generate([1, 2, 3], max_tokens=400, stream=True):
            began.set()
print(error_of(generate))
cutter.join()
print(error_of(lambda: model.generate([1, 2, 3], max_tokens=4)))
print(error_of(lambda: model.logits([1, 2, 3])))
os.truncate(path, size)
print(error_of(lambda: model.generate([1, 2, 3], max_tokens=4)))
model.close()
print(error_of(lambda: load()))
"""

BETWEEN_TEXTS = """
model, other = load(), akunu.load("ember", threads=1, context=256)
os.truncate(path, size - 1)
print(error_of(lambda: model.generate([1, 2, 3], max_tokens=4)))
print(error_of(lambda: other.generate("Hi", max_tokens=4)))
"""

METADATA = """
file = GgufFile(path)
os.truncate(path, 10)
print(error_of(lambda: file["tokenizer.ggml.tokens"]))
print(error_of(lambda: file.get("general.architecture")))
print(error_of(lambda: GgufFile(path)))
"""

FAULTHANDLER_AFTER = """
model = load()
faulthandler.enable()
os.truncate(path, 5000)
print(error_of(lambda: model.generate([1, 2, 3], max_tokens=4)))
"""

FAULTHANDLER_WORKS = """
faulthandler.enable()
model = load()
sys.stdout.flush()
faulthandler._sigsegv() if sys.argv[2] == "SIGSEGV" else os.kill(os.getpid(), signal.SIGBUS)
"""

HANDLER_COMES_AND_GOES = """
import ctypes
libc = ctypes.CDLL(None)
libc.signal.restype = ctypes.c_void_p
libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
def handler():  # reading it with signal() replaces it: put it back
    found = libc.signal(signal.SIGBUS, None)
    libc.signal(signal.SIGBUS, found)
    return found
print(handler())
model = load()
model.close()
del model
import gc; gc.collect()
print(handler())
"""


def run(script: str, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if "FAULTHANDLER" not in key}
    return subprocess.run(
        [sys.executable, "-c", PREAMBLE + script, str(path), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )


def lines_of(script: str, path: Path) -> list[str]:
    done = run(script, path)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.splitlines()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return build("llama-32", tmp_path / "model.gguf", seed=1).path


def test_a_file_cut_while_text_is_generated(path: Path) -> None:
    during, after, logits, restored, again = lines_of(DURING_GENERATION, path)
    size = path.stat().st_size
    assert during == after == logits
    cut = f"the file was cut from {size} to 5000 bytes while it was in use; load it again"
    assert during == f"DeviceError: {path}: {cut}"
    assert restored.startswith(f"DeviceError: {path}: a part of the file could not be read")
    assert again != "no error"  # it grew back as zeros


def test_a_file_cut_between_two_texts_ends_its_model_only(path: Path) -> None:
    size = path.stat().st_size
    cut, other = lines_of(BETWEEN_TEXTS, path)
    assert cut.startswith(f"DeviceError: {path}: the file was cut from {size} to {size - 1} bytes")
    assert other == "no error"


def test_metadata_of_a_file_that_was_cut(path: Path) -> None:
    tokens, architecture, again = lines_of(METADATA, path)
    assert tokens.startswith(f"ModelFormatError: {path}: the file was cut from ")
    assert architecture == tokens
    assert again.startswith(
        f"ModelFormatError: {path}, byte 8: the number of tensors needs 8 bytes"
    )


def test_a_faulthandler_that_is_enabled_later_does_not_end_the_process(path: Path) -> None:
    (line,) = lines_of(FAULTHANDLER_AFTER, path)
    assert line.startswith(f"DeviceError: {path}: the file was cut from ")


@pytest.mark.parametrize("name", ["SIGBUS", "SIGSEGV"])
def test_faulthandler_still_reports_what_is_not_ours(path: Path, name: str) -> None:
    done = run(FAULTHANDLER_WORKS, path, name)
    assert done.returncode < 0
    assert "Fatal Python error: " in done.stderr
    assert 'File "<string>", line' in done.stderr


def test_the_handler_comes_with_a_model_and_goes_with_it(path: Path) -> None:
    before, after = lines_of(HANDLER_COMES_AND_GOES, path)
    assert before == after == "None"
