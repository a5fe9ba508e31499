"""The commands that make model files; each is carried out by the module of its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from akunu.cli import commands, options
from akunu.cli.terminal import console
from akunu.options.engine_limits import MAX_THREADS

CONVERT_HELP = """Write a Hugging Face or MLX directory as a GGUF file.

Weights keep their number format, or --type sets one for all matrices. The tokenizer, the chat
template and the sampling settings become keys of the file. If the command fails, it leaves no
file."""

QUANTIZE_HELP = """Write a model file in another number format.

TYPE is a name of llama-quantize: Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q4_0, IQ4_XS, F16 and others. With
--bits or --bytes instead of TYPE, the command chooses a format for each matrix, for the smallest
error in that size. If the command fails, it leaves no file."""

_Threads = Annotated[
    int | None,
    options.count(
        "--threads",
        "-t",
        help=f"CPU threads. Range: 1 to {MAX_THREADS}. Default: one per core.",
    ),
]
_Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


def convert(
    source: Annotated[
        str,
        typer.Argument(metavar="DIR", help="A model directory, or one safetensors file in it."),
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    type_name: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Number format of all matrices, as for `akunu quantize`. Default: unchanged.",
        ),
    ] = None,
    force: _Force = False,
    threads: _Threads = None,
    json: options.Json = False,
) -> int:
    """Write a directory as a GGUF file."""

    def run() -> int:
        return commands.convert.ConvertCommand(
            source=source,
            target=target,
            type_name=type_name,
            force=force,
            threads=threads,
            as_json=json,
        ).run()

    return console.reported(run)


def quantize(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN",
            help="A model in F32, F16 or BF16: a GGUF file, a directory or a name.",
        ),
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    type_name: Annotated[
        str | None,
        typer.Argument(
            metavar="TYPE", help="The number format, such as Q4_K_M; not with --bits or --bytes."
        ),
    ] = None,
    bits: Annotated[
        float | None,
        typer.Option(
            "--bits",
            metavar="BITS",
            help="Choose formats with this many bits per weight on average. "
            "Range: above 0, up to 16.",
        ),
    ] = None,
    most_bytes: Annotated[
        int | None,
        options.count(
            "--bytes", help="Choose formats for a file of this many bytes. Range: 1 or more."
        ),
    ] = None,
    imatrix: Annotated[
        Path | None,
        typer.Option(
            "--imatrix", metavar="FILE", help="Importance of each column, from `akunu imatrix`."
        ),
    ] = None,
    output_type: Annotated[
        str | None,
        typer.Option("--output-type", metavar="TYPE", help="Number format of the output matrix."),
    ] = None,
    embedding_type: Annotated[
        str | None,
        typer.Option(
            "--embedding-type", metavar="TYPE", help="Number format of the token embedding."
        ),
    ] = None,
    tensor: Annotated[
        list[str] | None,
        typer.Option(
            "--tensor", metavar="NAME=TYPE", help="Number format of one tensor. May be repeated."
        ),
    ] = None,
    pure: Annotated[
        bool, typer.Option("--pure", help="Use TYPE for every matrix; do not mix formats.")
    ] = False,
    allow_requantize: Annotated[
        bool,
        typer.Option("--allow-requantize", help="Accept a quantised model. Its errors add up."),
    ] = False,
    force: _Force = False,
    threads: _Threads = None,
    json: options.Json = False,
) -> int:
    """Write a model file in another number format."""

    def run() -> int:
        return commands.quantize.QuantizeCommand(
            source=source,
            target=target,
            type_name=type_name,
            bits=bits,
            most_bytes=most_bytes,
            imatrix=imatrix,
            output_type=output_type,
            embedding_type=embedding_type,
            tensors=tensor or [],
            pure=pure,
            allow_requantize=allow_requantize,
            force=force,
            threads=threads,
            as_json=json,
        ).run()

    return console.reported(run)


IMATRIX_HELP = """Measure which columns of a model's matrices are important.

`akunu quantize --imatrix` reads the result. The model, in F32, F16 or BF16, reads TEXT in chunks of
--context tokens. The file has the mean square of each column of each matrix's input, in the format
of llama-imatrix."""


def imatrix(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="A GGUF file, a directory or the name of a model."),
    ],
    text: Annotated[
        Path, typer.Argument(metavar="TEXT", help="A file with the text; - is standard input.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")
    ],
    context: Annotated[
        int, options.count("--context", help="Tokens of a chunk. Range: 1 or more.")
    ] = 512,
    chunks: options.Chunks = None,
    force: _Force = False,
    threads: _Threads = None,
    device: options.Device = "auto",
) -> int:
    """Measure which columns of a model's matrices are important."""

    def run() -> int:
        load = options.load_options(device=device, context=context, threads=threads)
        return commands.imatrix.write_imatrix(model, text, output, load, chunks=chunks, force=force)

    return console.reported(run)
