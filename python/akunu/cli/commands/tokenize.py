"""`akunu tokenize`: the tokens of a text."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from akunu import _core
from akunu.cli.loading import model_path
from akunu.cli.terminal import console
from akunu.cli.text_input import text_of
from akunu.tokenizers.tokenizer import Tokenizer


def show_tokens(
    model_name: str,
    prompt: str | None,
    path: Path | None,
    *,
    special: bool,
    parse_special: bool,
    as_json: bool,
) -> int:
    """Write one line per token to stdout, id and piece; or all of them as JSON.

    Only the tokenizer is read, so files without weights do as well.
    """
    text = text_of(prompt, path, command="tokenize")
    tokenizer = _tokenizer_of(model_path(model_name))
    for note in tokenizer.notes:
        console.say(f"akunu: {note}")
    ids = tokenizer.encode(text, add_special=special, parse_special=parse_special)
    if as_json:
        tokens = [{"id": index, "piece": _piece(tokenizer, index)} for index in ids]
        json.dump({"count": len(ids), "tokens": tokens}, sys.stdout, ensure_ascii=False)
        print()
        return 0
    width = len(str(max(ids, default=0)))
    lines = [f"{index:>{width}}  {_quoted(tokenizer.token_bytes(index))}" for index in ids]
    console.write("".join(f"{line}\n" for line in lines))
    return 0


def _tokenizer_of(path: Path) -> Tokenizer:
    """Return the tokenizer of a GGUF file, a directory, or a safetensors file in one."""
    if any((path / name).is_file() for name in ("tokenizer.json", "tokenizer.model")):
        return Tokenizer.from_directory(path)
    if _core.is_model_directory(os.fspath(path)):
        return Tokenizer.from_directory(path if path.is_dir() else path.parent)
    return Tokenizer.from_gguf(path)


def _piece(tokenizer: Tokenizer, index: int) -> str | list[int]:
    """Return a token's text, or its bytes where they are not UTF-8, as llama.cpp's server does."""
    spelled = tokenizer.token_bytes(index)
    try:
        return spelled.decode()
    except UnicodeDecodeError:
        return list(spelled)


def _quoted(spelled: bytes) -> str:
    r"""Return a token as text between quotes, as in JSON; bytes of no character are \xNN."""
    try:
        return json.dumps(spelled.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        escaped = spelled.decode("utf-8", "backslashreplace")
        return '"' + escaped.replace('"', '\\"') + '"'
