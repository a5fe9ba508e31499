"""`akunu embed`: vectors of texts, from arguments, lines of a file, or standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from akunu.cli.loading import load_model
from akunu.cli.terminal import console
from akunu.cli.terminal.progress import counted
from akunu.cli.text_input import as_unicode, text_of
from akunu.common.atomic_file import atomic_write, check_target
from akunu.errors import ContextOverflowError
from akunu.options.text_options import LoadOptions


def show_embeddings(
    model_name: str,
    given: list[str],
    path: Path | None,
    load: LoadOptions,
    *,
    output: Path | None,
    json_lines: bool,
    arguments: dict[str, Any],
) -> int:
    """Write a line of JSON for each text to stdout, or all vectors to a `.npy` file.

    `arguments`: of `Model.embed`.
    """
    if output is not None and output.suffix != ".npy":
        raise console.UsageError(f"--output is {output}; its name must end with .npy")
    if output is not None:  # before the work, not after it
        check_target(output, force=True, sources=[] if path is None else [path])
    texts = texts_of(given, path, json_lines=json_lines)
    with (
        load_model(model_name, load) as model,
        counted("embedding", len(texts), "texts") as count,
        truncation_as_option(),
    ):
        vectors = model.embed(texts, progress=count, **arguments)
    if output is not None:
        with atomic_write(output, force=True) as file:
            np.save(file, vectors)
        return 0
    for index, vector in enumerate(vectors):
        json.dump({"index": index, "embedding": vector.tolist()}, sys.stdout)
        print()
    return 0


@contextmanager
def truncation_as_option() -> Iterator[None]:
    """Have errors name the option that cuts long texts, not the argument of Python."""
    try:
        yield
    except ContextOverflowError as error:
        raise ContextOverflowError(str(error).replace("truncate=True", "--truncate")) from None


def texts_of(
    given: list[str], path: Path | None, *, json_lines: bool, command: str = "embed"
) -> list[str]:
    """Return the texts of arguments, or of a file's lines; a note counts the empty lines it skips.

    `json_lines`: each line is a JSON string, or an object with one as "text". Raises UsageError.
    """
    if given and path is not None:
        raise console.UsageError("texts are set by arguments and by --file: use one of them")
    if given:
        return [as_unicode(text, "a text") for text in given]
    options = "arguments or --file"
    # Not splitlines(): it also splits where Unicode has separators, which are part of a text.
    lines = text_of(None, path, command=command, options=options).split("\n")
    if not lines[-1]:  # after the last newline there is no line
        lines.pop()
    numbered = [(n, line.removesuffix("\r")) for n, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise console.UsageError("there is no text: every line is empty")
    if n_empty := len(lines) - len(numbered):
        lines_left = "1 empty line is" if n_empty == 1 else f"{n_empty} empty lines are"
        console.say(f"akunu: {lines_left} skipped, also in the numbers of texts")
    if not json_lines:
        return [line for _, line in numbered]
    return [_from_json(line, number) for number, line in numbered]


def _from_json(line: str, number: int) -> str:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise console.UsageError(f"line {number} is not JSON: {error}") from None
    text = found.get("text") if isinstance(found, dict) else found
    if not isinstance(text, str):
        raise console.UsageError(f'line {number} must be a JSON string, or an object with a "text"')
    return text
