"""The commands of encoders: vectors of texts, and documents in order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from akunu.cli import commands, options
from akunu.cli.shared_options import Loading, takes_loading
from akunu.cli.terminal import console


@takes_loading
def embed(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="An encoder: a file, a directory or the name of a model."
        ),
    ],
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="A text. May be repeated.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="A file with a text on each line; - is standard input.",
        ),
    ] = None,
    json_lines: options.JsonLines = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE.npy", help="Write a NumPy array to this file."
        ),
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", metavar="TEXT", help="Put this before each text.")
    ] = None,
    pooling: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="How to combine the vectors of tokens. Range: mean, cls, last or max. "
            "Default: the model's setting.",
        ),
    ] = None,
    normalize: Annotated[
        bool | None, typer.Option(help="Scale vectors to length 1. Default: the model's setting.")
    ] = None,
    dimensions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Keep this many numbers of each vector. Range: 1 or more. Default: all.",
        ),
    ] = None,
    truncate: Annotated[
        bool, typer.Option("--truncate", help="Cut texts that are longer than the context.")
    ] = False,
    precision: Annotated[
        str,
        typer.Option(
            metavar="KIND", help="Number format. Range: float32, float16, int8 or binary."
        ),
    ] = "float32",
    *,
    load: Loading,
) -> int:
    """Compute embeddings of texts. Each is a line of JSON; -o writes a NumPy file."""

    def run() -> int:
        return commands.embed.show_embeddings(
            model,
            texts or [],
            file,
            load(),
            output=output,
            json_lines=json_lines,
            arguments={
                "prompt": prompt,
                "pooling": pooling,
                "normalize": normalize,
                "dimensions": dimensions,
                "truncate": truncate,
                "precision": precision,
            },
        )

    return console.reported(run)


@takes_loading
def rank(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A cross-encoder: a file, a directory or the name of a model."
        ),
    ],
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query.")],
    documents: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="A document. May be repeated.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="A file with a document on each line; - is standard input.",
        ),
    ] = None,
    json_lines: options.JsonLines = False,
    top_k: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Keep this many of the best documents. Range: 1 or more. Default: all.",
        ),
    ] = None,
    normalize: Annotated[
        bool | None,
        typer.Option(
            help="Map scores to the range 0 to 1, or keep the scores that the model computes. "
            "Default: the model's setting."
        ),
    ] = None,
    instruction: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The instruction of the search task (Qwen3-Reranker)."),
    ] = None,
    truncate: Annotated[
        bool, typer.Option("--truncate", help="Cut documents that are longer than the context.")
    ] = False,
    *,
    load: Loading,
) -> int:
    """Rank documents by how well they answer a query.

    Writes a line of JSON for each document, the best first.
    """

    def run() -> int:
        return commands.rank.show_ranking(
            model,
            query,
            documents or [],
            file,
            load(),
            json_lines=json_lines,
            arguments={
                "top_k": top_k,
                "normalize": normalize,
                "instruction": instruction,
                "truncate": truncate,
            },
        )

    return console.reported(run)
