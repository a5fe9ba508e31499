"""The commands that make model files; each is carried out by the module of its name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from akunu.cli import commands, options
from akunu.cli.terminal import console

CONVERT_HELP = """Write a Hugging Face or MLX directory as a GGUF file.

Numbers stay in the format that they have, or all matrices are written as --type: any that
`quantize` knows. Tokenizer, chat template and sampling settings become keys of the file.
OUT appears when all of it is written, or not at all."""

QUANTIZE_HELP = """Write a model's file in another number format.

TYPE is written as for llama-quantize: Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q4_0, IQ4_XS, F16 and so on.
In its place, --bits or --bytes ask for the mix of formats with the least error in that size.
OUT appears when all of it is written, or not at all."""

_Threads = Annotated[
    int | None, options.count("--threads", "-t", help="Threads of the CPU; default: one per core.")
]
_Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")]


def convert(
    source: Annotated[
        str,
        typer.Argument(metavar="DIR", help="A directory, or one safetensors file in it."),
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    type_name: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="Of the matrices: F16, Q8_0 and so on."),
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
            help="A GGUF file or a directory in F32, F16 or BF16, or the name of a model.",
        ),
    ],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    type_name: Annotated[
        str | None,
        typer.Argument(metavar="TYPE", help="Such as Q4_K_M; none with --bits or --bytes."),
    ] = None,
    bits: Annotated[
        float | None,
        typer.Option("--bits", metavar="BITS", help="The best mix of so many bits per weight."),
    ] = None,
    most_bytes: Annotated[
        int | None, options.count("--bytes", help="The best mix for a file of so many bytes.")
    ] = None,
    imatrix: Annotated[
        Path | None,
        typer.Option("--imatrix", metavar="FILE", help="How much each column counts."),
    ] = None,
    output_type: Annotated[
        str | None,
        typer.Option("--output-type", metavar="TYPE", help="Of the output matrix."),
    ] = None,
    embedding_type: Annotated[
        str | None,
        typer.Option("--embedding-type", metavar="TYPE", help="Of the token embedding."),
    ] = None,
    tensor: Annotated[
        list[str] | None,
        typer.Option("--tensor", metavar="NAME=TYPE", help="Of one tensor; may be repeated."),
    ] = None,
    pure: Annotated[
        bool, typer.Option("--pure", help="Every matrix in the same format, no mix.")
    ] = False,
    allow_requantize: Annotated[
        bool,
        typer.Option("--allow-requantize", help="Take a file that is quantised: errors add up."),
    ] = False,
    force: _Force = False,
    threads: _Threads = None,
    json: options.Json = False,
) -> int:
    """Write a model's file in another number format."""

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


IMATRIX_HELP = """Measure which columns of a model's matrices count.

`akunu quantize --imatrix` reads the result. The model, in F32, F16 or BF16, reads the text TEXT in
chunks of --context tokens; written are the mean squares of what each matrix is multiplied with, as
llama-imatrix writes them."""


def imatrix(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A GGUF file, or the name of a model.")
    ],
    text: Annotated[
        Path, typer.Argument(metavar="TEXT", help="A file with the text; - is standard input.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write.")],
    context: Annotated[int, options.count("--context", help="Tokens of a chunk.")] = 512,
    chunks: Annotated[int | None, options.count("--chunks", help="Only this many chunks.")] = None,
    force: _Force = False,
    threads: _Threads = None,
    device: options.Device = "auto",
) -> int:
    """Measure which columns of a model's matrices count."""

    def run() -> int:
        load = options.load_options(device=device, context=context, threads=threads)
        return commands.imatrix.write_imatrix(model, text, output, load, chunks=chunks, force=force)

    return console.reported(run)
