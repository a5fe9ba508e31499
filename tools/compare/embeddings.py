"""Time the vectors of texts beside sentence-transformers, OpenVINO, onnxruntime and llama.cpp.

All engines embed the same texts, each in a process of its own, in turns: what else the machine
does meets them alike. Their processor time counts besides, for where it does much else. Files for
the engines are made first, in a folder that is kept for the next time.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
from tools.compare.engine_process import WORKERS, EngineProcess
from tools.compare.pairs import ratios
from tools.compare.speed import PAUSE_SECONDS, processor

TEXTS = 32
# Values of attention in F16: then every text, the empty one too, keeps a cosine of 0.999
# (docs/embeddings-speech-images.md).
FORMATS = {"F32": None, "F16": None, "Q8_0": None, "Q8_0, values F16": ("attn_v.weight", "F16")}
# Their workers, and what they are called in the table.
PEERS = {
    "torch": ("embed_torch", "sentence-transformers, PyTorch"),
    "openvino": ("embed_openvino", "sentence-transformers, OpenVINO int8"),
    "onnx": ("embed_onnx", "onnxruntime"),
    "llama.cpp": ("embed_llama_cpp", "llama.cpp"),
}
# Its lines are the texts with which OpenVINO's int8 is calibrated.
CALIBRATION = Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md"


@dataclass(frozen=True, slots=True)
class Engine:
    """What is measured: `name` heads its row; `model` is read by `worker`."""

    name: str
    worker: str
    model: Path
    is_peer: bool


@dataclass(slots=True)
class Measured:
    """Of one engine and one length: seconds, and seconds of processors, of each turn."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    cosine: float = 1.0


def texts_of(tokenizer: Path, n_tokens: int, draw: random.Random) -> list[str]:
    """Texts of exactly so many tokens, [CLS] and [SEP] among them: words that are one token."""
    vocabulary = json.loads(tokenizer.read_text())["model"]["vocab"]
    words = sorted(
        word for word in vocabulary if word.isascii() and word.isalpha() and len(word) > 2
    )
    return [" ".join(draw.choices(words, k=n_tokens - 2)) for _ in range(TEXTS)]


def make_ggufs(directory: Path, out: Path) -> dict[str, Path]:
    """The model as GGUF in every format that is measured, by `akunu convert` and `quantize`."""
    command = [sys.executable, "-m", "akunu"]
    files = {name: out / f"{name.replace(', ', '-').replace(' ', '-')}.gguf" for name in FORMATS}
    n_layers = json.loads((directory / "config.json").read_text())["num_hidden_layers"]
    for name, special in FORMATS.items():
        if files[name].exists():
            continue
        if name == "F32":
            done = [*command, "convert", str(directory), str(files[name])]
        else:
            done = [*command, "quantize", str(files["F32"]), str(files[name]), name.split(",")[0]]
        for layer in range(n_layers if special else 0):
            done += ["--tensor", f"blk.{layer}.{special[0]}={special[1]}"]
        subprocess.run(done, check=True, stdout=subprocess.DEVNULL)
    return files


def engines_of(directory: Path, work: Path, wanted: list[str], peer: str) -> list[Engine]:
    """Everything that is measured; makes the files that are missing."""
    files = make_ggufs(directory, work)
    exported = work / "exported"
    if {"openvino", "onnx"} & set(wanted) and not exported.exists():
        command = [peer, WORKERS / "export_encoder.py", directory, exported, CALIBRATION]
        subprocess.run(command, check=True)
    models = {"embed_torch": directory, "embed_openvino": exported, "embed_onnx": exported}
    engines = [Engine(f"akunu {name}", "embed_akunu", path, False) for name, path in files.items()]
    for each in wanted:
        worker, title = PEERS[each]
        if each == "llama.cpp":
            engines += [
                Engine(f"{title} {name}", worker, files[name], True) for name in ("F32", "Q8_0")
            ]
        else:
            engines.append(Engine(title, worker, models[worker], True))
    return engines


def compare(
    engines: list[Engine],
    texts: dict[int, list[str]],
    *,
    peer: str,
    threads: int,
    turns: int,
    progress: Callable[[str], None],
) -> tuple[dict[str, str], dict[str, dict[int, Measured]]]:
    """The engines' versions, and what was measured by engine and length.

    Cosines are with the vectors of sentence-transformers on PyTorch, else of akunu in F32.
    """
    with ExitStack() as opened:
        running = {}
        for each in engines:
            python = peer if each.is_peer else sys.executable
            process = EngineProcess(
                python, each.worker, each.model, context=max(texts), threads=threads
            )
            running[each.name] = opened.enter_context(process)
            progress(f"{each.name}: {process.hello['version']}")
        versions = {name: process.hello["version"] for name, process in running.items()}
        found = {name: {n: Measured() for n in texts} for name in running}
        by_torch = [each.name for each in engines if each.worker == "embed_torch"]
        reference = by_torch[0] if by_torch else "akunu F32"
        for n, given in texts.items():
            vectors = {
                name: np.array(process.ask({"texts": given, "vectors": True})["vectors"])
                for name, process in running.items()
            }
            for name, theirs in vectors.items():
                found[name][n].cosine = float((theirs * vectors[reference]).sum(axis=1).min())
        for turn in range(turns):
            for n, given in texts.items():
                for name, process in running.items():
                    time.sleep(PAUSE_SECONDS)
                    answer = process.ask({"texts": given, "vectors": False})
                    found[name][n].wall.append(answer["seconds"])
                    found[name][n].cpu.append(answer["cpu_seconds"])
            progress(f"{turn + 1} of {turns} turns")
    return versions, found


def markdown(found: dict[str, dict[int, Measured]]) -> str:
    """Tables of wall and processor time for each length.

    The last columns say how many times as long an engine took as each of akunu's formats.
    """
    ours = [name for name in found if name.startswith("akunu")]
    heads = "".join(f" {name.removeprefix('akunu ')} |" for name in ours)
    lines: list[str] = []
    for n in next(iter(found.values())):
        for kind, title in (("wall", "wall time"), ("cpu", "processor time")):
            times = {name: getattr(each[n], kind) for name, each in found.items()}
            lines += [f"{TEXTS} texts of {n} tokens, {title}:", ""]
            lines += [f"| engine | ms | lowest cosine |{heads}"]
            lines += ["|---|---:|---:|" + "---:|" * len(ours)]
            for name, taken in times.items():
                longer = "".join(f" {median(ratios(times[own], taken)):.2f} |" for own in ours)
                cosine = found[name][n].cosine
                lines.append(f"| {name} | {median(taken) * 1e3:.1f} | {cosine:.5f} |{longer}")
            lines.append("")
    return "\n".join(lines).rstrip()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="a directory of sentence-transformers")
    parser.add_argument(
        "--peer", default=sys.executable, metavar="PYTHON", help="an interpreter with the others"
    )
    parser.add_argument(
        "--peers", default="torch,openvino,onnx,llama.cpp", help="which of them (%(default)s)"
    )
    parser.add_argument("--work", type=Path, required=True, help="a folder for files of the model")
    parser.add_argument("--tokens", default="16,64,256", help="lengths of texts (%(default)s)")
    parser.add_argument("-t", "--threads", type=int, default=2, help="(%(default)s)")
    parser.add_argument("-r", "--turns", type=int, default=15, help="(%(default)s)")


def run(arguments: argparse.Namespace) -> int:
    peers = [each for each in arguments.peers.split(",") if each]
    lengths = [int(each) for each in arguments.tokens.split(",")]
    if unknown := sorted(set(peers) - set(PEERS)):
        raise ValueError(f"--peers are of {', '.join(PEERS)}, got {', '.join(unknown)}")
    if min(lengths) < 3:
        raise ValueError(f"texts have 3 or more tokens, two of them [CLS] and [SEP]: {lengths}")
    for name in ("turns", "threads"):
        if (value := getattr(arguments, name)) < 1:
            raise ValueError(f"{name} must be 1 or more, got {value}")
    arguments.work.mkdir(parents=True, exist_ok=True)
    engines = engines_of(arguments.model, arguments.work, peers, arguments.peer)
    draw = random.Random(0)
    tokenizer = arguments.model / "tokenizer.json"
    texts = {n: texts_of(tokenizer, n, draw) for n in lengths}
    versions, found = compare(
        engines,
        texts,
        peer=arguments.peer,
        threads=arguments.threads,
        turns=arguments.turns,
        progress=lambda line: print(line, file=sys.stderr, flush=True),
    )
    print(f"{processor()}, {arguments.threads} threads, medians of {arguments.turns} turns.\n")
    for name, version in versions.items():
        print(f"- {name}: {version}")
    print(f"\n{markdown(found)}")
    return 0
