"""`akunu imatrix`: which columns of a model's matrices count, measured on a text."""

from __future__ import annotations

import os
from pathlib import Path

from akunu import _core
from akunu.cli.loading import model_path, refuse_encoder
from akunu.cli.terminal import console
from akunu.cli.terminal.progress import Progress
from akunu.cli.terminal.tables import write_facts
from akunu.cli.text_input import text_of
from akunu.common.atomic_file import check_target
from akunu.convert.importance import ImportanceMatrix, unseen_note
from akunu.errors import ArgumentError
from akunu.options.text_options import LoadOptions
from akunu.tokenizers.tokenizer import Tokenizer


def write_imatrix(
    name: str,
    text_file: Path,
    target: Path,
    load: LoadOptions,
    *,
    chunks: int | None,
    force: bool,
) -> int:
    """Write an importance matrix, and to stdout what it is of."""
    context = load.context or 0
    if context < 1:
        raise console.UsageError(f"--context is {context}; it must be 1 or more")
    if chunks is not None and chunks < 1:
        raise console.UsageError(f"--chunks is {chunks}; it must be 1 or more")
    path = model_path(name)
    if _core.is_model_directory(os.fspath(path)):
        raise ArgumentError(f"{path} is not a GGUF file; akunu convert writes one")
    target = target.expanduser()
    check_target(target, force=force, sources=[path, text_file])
    refuse_encoder(path, load, "imatrix")
    text = text_of(None, text_file, command="imatrix", options="TEXT")
    tokenizer = Tokenizer.from_gguf(path)
    tokens = tokenizer.encode(text)
    n_chunks = min(len(tokens) // context, chunks or len(tokens))
    if n_chunks == 0:
        raise ArgumentError(
            f"the text has {len(tokens)} tokens, less than a chunk of {context}; "
            "set a smaller --context"
        )
    done = 0
    with Progress(lambda: f"chunk {done + 1} of {n_chunks}"):
        observer = _core.InputObserver(
            os.fspath(path),
            context=context,
            device=load.device,
            threads=load.threads if isinstance(load.threads, int) else 0,
        )
        for done in range(n_chunks):
            chunk = list(tokens[done * context : (done + 1) * context])
            if tokenizer.add_bos and tokenizer.bos_id is not None:
                chunk[0] = tokenizer.bos_id
            observer.add(chunk)
    squares = observer.squares
    matrix = ImportanceMatrix.of_squares(squares, (text_file.name,), n_chunks)
    counts = {key: rows for key, (_, rows) in squares.items()}
    matrix.write(target, counts, context, force=force)
    if note := unseen_note(matrix.unseen, matrix.means):
        console.say(f"akunu: {note}")
    write_facts(
        "",
        [
            ("written", str(target)),
            ("matrices", str(len(matrix.means))),
            ("text", f"{n_chunks} chunks of {context} tokens"),
        ],
    )
    return 0
