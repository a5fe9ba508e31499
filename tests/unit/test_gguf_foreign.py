"""Files that are no GGUF are recognised by their content: the message says what to do."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import struct
import zipfile
from pathlib import Path

import pytest

import akunu
from akunu import _core
from akunu.errors import ArgumentError, ModelFormatError, UnsupportedModelError
from lines import each_line

LFS_POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    b"size 4661211808\n"
)
# How a model.bin of CTranslate2 begins: version, length and name of its spec.
CTRANSLATE2 = struct.pack("<IH12s", 6, 12, b"WhisperSpec") + struct.pack("<I", 3) + bytes(60)


def safetensors(header: dict[str, object]) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(8)


def zip_of(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


MODEL = UnsupportedModelError  # another format of models
OTHER = ModelFormatError
FILES: dict[str, tuple[bytes, type[Exception], list[str]]] = {
    "a Git LFS pointer": (
        LFS_POINTER,
        OTHER,
        ["Git LFS pointer", "of 4661211808 bytes", "`git lfs pull`"],
    ),
    "an HTML page": (
        b"\n<!DOCTYPE html>\n<html><title>Log in</title></html>\n",
        OTHER,
        ["an HTML page", "/resolve/"],
    ),
    "an HTML page without a doctype": (b"\xef\xbb\xbf<HTML lang=en>", OTHER, ["an HTML page"]),
    "safetensors": (
        safetensors({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}),
        MODEL,
        ["a safetensors file, and a GGUF file was asked for"],
    ),
    "PyTorch": (
        zip_of("archive/data.pkl", pickle.dumps({})),
        MODEL,
        ["a PyTorch checkpoint", "convert_hf_to_gguf.py"],
    ),
    "PyTorch before zip": (pickle.dumps({"a": 1}, protocol=2), MODEL, ["pickle", "PyTorch"]),
    "a pickle": (pickle.dumps({"a": 1}, protocol=4), MODEL, ["a Python pickle"]),
    "a JSON error": (b'{"error":"Not found"}', OTHER, ['begins with "{"error":"Not found"}"']),
    "a text": (b"Entry not found\n", OTHER, ['"Entry not found\\x0a"', "a GGUF file begins with"]),
    "gzip": (gzip.compress(b"GGUF" * 100), OTHER, [r'begins with "\x1f\x8b']),
    "zeros": (bytes(10_000), OTHER, [r'begins with "\x00\x00']),
    "empty": (b"", OTHER, ["the file is empty", "download or copy it again"]),
    "something": (b"\x7fELF" + bytes(60), OTHER, [r'begins with "\x7fELF', '"GGUF"']),
    "three letters": (
        b"GGU",
        OTHER,
        ['"GGUF" needs 4 bytes, 3 are left; the file is cut off or damaged'],
    ),
    "CTranslate2": (CTRANSLATE2, MODEL, ["a CTranslate2 model, as faster-whisper has them"]),
}


@each_line("name", list(FILES))
def test_what_is_no_gguf_file_is_named(name: str, tmp_path: Path) -> None:
    content, error_type, parts = FILES[name]
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    # akunu.load takes a safetensors file with its config.json: tests/models/test_directories.py.
    for load in (_core.GgufFile, *([akunu.load] if name != "safetensors" else [])):
        with pytest.raises(error_type) as caught:
            load(path)
        message = str(caught.value)
        assert message.startswith(f"{path}")
        assert "\n" not in message
        for part in parts:
            assert part in message


@each_line("name", [name for name in FILES if len(FILES[name][0]) < 10_000])
def test_what_is_no_gguf_file_is_refused_at_any_length(name: str, tmp_path: Path) -> None:
    content = FILES[name][0]
    path = tmp_path / "model.gguf"
    for length in range(min(len(content), 300)):
        path.write_bytes(content[:length])
        with pytest.raises((ModelFormatError, UnsupportedModelError)) as caught:
            _core.GgufFile(path)
        assert "\n" not in str(caught.value)


DIRECTORIES: dict[str, tuple[list[str], type[Exception], list[str]]] = {
    "Hugging Face": (
        ["config.json", "model.safetensors", "tokenizer.json"],
        ArgumentError,
        ["is a directory with safetensors files, and a GGUF file was asked for"],
    ),
    "PyTorch": (
        ["pytorch_model.bin"],
        UnsupportedModelError,
        ["pytorch_model.bin, a Python pickle", "convert_hf_to_gguf.py"],
    ),
    "GGUF files": (
        ["README.md", "b.Q8_0.gguf", "a.Q4_0.gguf"],
        ArgumentError,
        ["is a directory; name the file", "for example a.Q4_0.gguf"],
    ),
    "anything": (["a.txt"], ArgumentError, ["is a directory; a regular file is needed"]),
    "nothing": ([], ArgumentError, ["is a directory; a regular file is needed"]),
}


def test_a_directory_of_ctranslate2_is_not_taken_for_pickles(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.bin").write_bytes(CTRANSLATE2)
    with pytest.raises(UnsupportedModelError, match="a CTranslate2 model, as faster-whisper has"):
        akunu.load(tmp_path)


@each_line("name", list(DIRECTORIES))
def test_a_directory_is_named_by_what_is_in_it(name: str, tmp_path: Path) -> None:
    files, error_type, parts = DIRECTORIES[name]
    for file in files:
        (tmp_path / file).write_bytes(b"x")
    for load in (_core.GgufFile, *([akunu.load] if name != "Hugging Face" else [])):
        with pytest.raises(error_type) as caught:
            load(tmp_path)
        for part in [str(tmp_path), *parts]:
            assert part in str(caught.value)
