"""Compare what both engines predict with exact arithmetic on the same weights.

The reference is the forward pass of tests/models/numpy_forward.py in double, on the weights as the
package `gguf` dequantises them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tools.compare import divergence, report
from tools.compare.engine_process import EngineProcess
from tools.compare.quantise import dequantise, quantise
from tools.compare.texts import Chunks, Text, read_text

import akunu

_TEST_MODELS = Path(__file__).parents[2] / "tests" / "models"

BEGIN = "<!-- accuracy: begin -->"
END = "<!-- accuracy: end -->"

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """What one engine's logits are like beside the exact ones; means over all tokens."""

    divergence: float  # KL(reference || engine), nats a token
    agreement: float  # share of tokens with the same most likely next one
    perplexity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One model, in one number format, on one text."""

    model: str
    kv_type: str
    n_tokens: int
    perplexity: float  # of the reference
    akunu: Engine
    peer: Engine
    ratio: float  # of divergences: below 1, akunu is nearer to the reference
    ratio_interval: tuple[float, float]  # 90 %
    median_ratio: float  # of the divergences of the token in the middle


Logits = NDArray[np.float32]


def engine_logits(
    python: str, worker: str, model: Path, chunks: Chunks, *, kv_type: str, threads: int
) -> Logits:
    """Logits `[n_chunks, n, vocab_size]` from a process that ends with this call."""
    with (
        tempfile.TemporaryDirectory() as folder,
        EngineProcess(python, worker, model, context=len(chunks[0]), threads=threads) as engine,
    ):
        output = Path(folder) / "logits.npy"
        engine.ask({"chunks": chunks, "kv_type": kv_type, "output": str(output)})
        result: Logits = np.load(output)
    return result


def reference_logits(model: Path, chunks: Chunks) -> NDArray[np.float64]:
    """Logits `[n_chunks, n, vocab_size]` in double, on the dequantised weights."""
    # Here, as it needs the package `gguf`, which other commands do without.
    sys.path.insert(0, str(_TEST_MODELS))
    from numpy_forward import NumpyModel

    exact = NumpyModel(model)
    return np.stack([exact.logits(chunk) for chunk in chunks])


def judge(
    name: str,
    text: Text,
    reference: NDArray[np.float64],
    ours: Logits,
    theirs: Logits,
    *,
    kv_type: str,
) -> Result:
    """Both engines' logits beside the reference, all `[n_chunks, n, vocab_size]`."""

    def flat(logits: Any) -> Any:
        return logits.reshape(-1, logits.shape[-1])

    def perplexity(logits: Any) -> float:
        return divergence.perplexity(
            [
                divergence.negative_log_likelihoods(*chunk)
                for chunk in zip(logits, text.chunks, text.counted, strict=True)
            ]
        )

    per_token = [divergence.divergence(flat(reference), flat(each)) for each in (ours, theirs)]
    engines = [
        Engine(
            divergence=float(divergences.mean()),
            agreement=float(divergence.agreement(flat(reference), flat(logits)).mean()),
            perplexity=perplexity(logits),
        )
        for logits, divergences in zip((ours, theirs), per_token, strict=True)
    ]
    return Result(
        model=name,
        kv_type=kv_type,
        n_tokens=len(per_token[0]),
        perplexity=perplexity(reference),
        akunu=engines[0],
        peer=engines[1],
        ratio=engines[0].divergence / engines[1].divergence,
        ratio_interval=divergence.ratio_interval(*per_token),
        median_ratio=float(np.median(per_token[0]) / np.median(per_token[1])),
    )


def compare(
    model: Path,
    text: Text,
    *,
    peer: str,
    name: str,
    kv_types: Sequence[str] = ("f16",),
    threads: int = 1,
) -> list[Result]:
    """A result for each type of cache."""
    engines = {
        kv_type: [
            engine_logits(python, worker, model, text.chunks, kv_type=kv_type, threads=threads)
            for python, worker in ((sys.executable, "akunu_logits"), (peer, "llama_cpp_logits"))
        ]
        for kv_type in kv_types
    }
    reference = reference_logits(model, text.chunks)
    return [
        judge(name, text, reference, ours, theirs, kv_type=kv_type)
        for kv_type, (ours, theirs) in engines.items()
    ]


_HEADER = (
    "| model | cache | KL, akunu | KL, llama.cpp | ratio | 90 % | median | top-1, akunu "
    "| top-1, llama.cpp | perplexity | akunu | llama.cpp |",
    "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
)


def markdown(results: Sequence[dict[str, Any]]) -> str:
    """A table of results, as `dataclasses.asdict` makes them."""
    rows = []
    for each in results:
        ours, theirs = each["akunu"], each["peer"]
        low, high = each["ratio_interval"]
        cells = [
            each["model"],
            each["kv_type"],
            f"{ours['divergence']:.2e}",
            f"{theirs['divergence']:.2e}",
            f"{each['ratio']:.3f}",
            f"{low:.2f} to {high:.2f}",
            f"{each['median_ratio']:.3f}",
            f"{100 * ours['agreement']:.2f} %",
            f"{100 * theirs['agreement']:.2f} %",
            f"{each['perplexity']:.4f}",
            *(f"{100 * (e['perplexity'] / each['perplexity'] - 1):+.3f} %" for e in (ours, theirs)),
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join([*_HEADER, *rows])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="+", help='GGUF files, or "ember"')
    parser.add_argument(
        "--peer",
        required=True,
        metavar="PYTHON",
        help="an interpreter with llama-cpp-python or, without --formats, xllamacpp",
    )
    parser.add_argument(
        "--formats", default="", help="e.g. Q4_0,Q4_K_M: let llama.cpp write the models in these"
    )
    parser.add_argument("--pure", action="store_true", help="every matrix in the same format")
    parser.add_argument(
        "--text", default="random", help='"random", "dialogues" (Ember\'s), or a file (%(default)s)'
    )
    parser.add_argument("--context", type=int, default=512, help="tokens in a chunk (%(default)s)")
    parser.add_argument("--chunks", type=int, default=8, help="(%(default)s)")
    parser.add_argument("--kv-type", default="f16,f32", help="f16, f32 or both (%(default)s)")
    parser.add_argument("-t", "--threads", type=int, default=1, help="(%(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="also save the results as JSON")
    parser.add_argument("--write", type=Path, help="put the table into this document")


def run(arguments: argparse.Namespace) -> int:
    results: list[dict[str, Any]] = []
    formats = [name for name in arguments.formats.split(",") if name]
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models:
            path = EMBER if model == "ember" else Path(model)
            tokenizer = akunu.Tokenizer.from_gguf(path)
            text = read_text(
                tokenizer, arguments.text, length=arguments.context, n_chunks=arguments.chunks
            )
            cases = {path.stem: path}
            if formats:
                base = Path(folder) / f"{path.stem}.gguf"
                dequantise(path, base)
                cases = {}
                for name in formats:
                    written = Path(folder) / f"{path.stem}-{name}.gguf"
                    quantise(base, written, name, peer=arguments.peer, pure=arguments.pure)
                    cases[f"{model} {name}{', pure' if arguments.pure else ''}"] = written
            for name, case in cases.items():
                print(f"{name} ...", file=sys.stderr, flush=True)
                results += [
                    asdict(result)
                    for result in compare(
                        case,
                        text,
                        peer=arguments.peer,
                        name=name,
                        kv_types=arguments.kv_type.split(","),
                        threads=arguments.threads,
                    )
                ]
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(results, indent=1) + "\n")
    if arguments.write is None:
        print(markdown(results))
    else:
        document = arguments.write.read_text()
        arguments.write.write_text(
            report.replace_between(document, markdown(results), begin=BEGIN, end=END)
        )
    return 0
