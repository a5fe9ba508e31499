"""How much faster speculation is: a text that is copied, one that is edited, and a draft model.

    python -m tools.speculation smollm2.gguf --text README.md
    python -m tools.speculation smollm2.gguf --text README.md --layers 150 --draft smollm2.gguf

Runs with speculation off and on alternate, and medians are compared; every text must be the one
without. `--layers`: the model is made larger first, by layers that add nothing (matrices of zeros
behind attention and feed-forward). It says what it said and takes as long as a model of that depth:
a target for the model itself, in the same or another format, as a draft.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
from pathlib import Path
from typing import Any

import gguf
import numpy as np

import akunu

COPY = "Text:\n{0}\n\nThe same text again:\n{0}\n\nThe same text again:\n"
EDIT = "Text:\n{0}\n\nThe same text, in which every 'the' is 'THE':\n{1}\n\nText:\n{2}\n\n\
The same text, in which every 'the' is 'THE':\n"
WRITE = "{0}\n\n"


def deepen(source: Path, path: Path, n_layers: int) -> None:
    """Write a model with `n_layers` layers, of which those behind its own add nothing."""
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    n_own = int(reader.fields[f"{architecture}.block_count"].contents())
    writer = gguf.GGUFWriter(path, architecture)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        value = n_layers if name == f"{architecture}.block_count" else field.contents()
        sub_type = field.types[1] if len(field.types) > 1 else None
        writer.add_key_value(name, value, field.types[0], sub_type)

    def add(name: str, tensor: Any, data: Any) -> None:
        writer.add_tensor(name, data, raw_shape=data.shape, raw_dtype=tensor.tensor_type)

    for tensor in reader.tensors:
        add(tensor.name, tensor, tensor.data)
    for layer in range(n_own, n_layers):
        for tensor in reader.tensors:
            prefix, _, rest = tensor.name.partition(f"blk.{layer % n_own}.")
            if prefix or not rest:
                continue
            adds = rest in ("attn_output.weight", "ffn_down.weight")
            # Of every format, a block of zeros is weights of zero.
            data = np.zeros_like(tensor.data) if adds else tensor.data
            add(f"blk.{layer}.{rest}", tensor, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def measured(model: akunu.Model, prompt: str, n_tokens: int, n_runs: int, **options: Any) -> str:
    """Return a row of the table: tokens a second without and with, and how many drafts held."""
    rates: dict[str, list[float]] = {"off": [], "auto": []}
    n_drafted = n_accepted = 0
    texts = set()
    for _ in range(n_runs):
        for speculation, found in rates.items():
            text = model.generate(
                prompt, max_tokens=n_tokens, speculation=speculation, ignore_eos=True, **options
            )
            texts.add(text.token_ids)
            found.append(text.completion_tokens_per_second)
            n_drafted += text.drafted_tokens
            n_accepted += text.accepted_tokens
    if len(texts) != 1:
        raise SystemExit("the text is another one with speculation")
    off, auto = (statistics.median(found) for found in rates.values())
    ratios = [with_ / without for without, with_ in zip(*rates.values(), strict=True)]
    held = f"{n_accepted / n_drafted:.0%}" if n_drafted else "-"
    return f"{off:9.1f} {auto:9.1f} {statistics.median(ratios):6.2f}x {held:>6} of {n_drafted}"


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--text", type=Path, required=True, help="real text: a file of prose")
    parser.add_argument("--draft", type=Path)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    paragraphs = [
        " ".join(each.split())
        for each in re.split(r"\n\s*\n", given.text.read_text())
        if 300 < len(each) < 1200
    ]
    if len(paragraphs) < 2:
        raise SystemExit(f"{given.text} has fewer than two paragraphs of 300 to 1,200 characters")

    def edited(text: str) -> str:
        return re.sub(r"\bthe\b", "THE", text)

    prompts = {
        "copy": COPY.format(" ".join(paragraphs[:3])),
        "edit": EDIT.format(paragraphs[0], edited(paragraphs[0]), paragraphs[1]),
        "write": WRITE.format(paragraphs[0]),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = given.model
        if given.layers is not None:
            path = Path(folder) / "deep.gguf"
            deepen(given.model, path, given.layers)
        load = os.getloadavg()[0]
        with akunu.load(path, context=2048, threads=given.threads, draft=given.draft) as model:
            print(f"{model.config.n_layers} layers, load {load:.1f}, medians of {given.runs}")
            print(f"{'':16}{'off t/s':>9} {'auto t/s':>9} {'ratio':>7} {'held':>6}")
            for name, prompt in prompts.items():
                for kind, options in (("greedy", {}), ("sampled", {"temperature": 0.7, "seed": 1})):
                    row = measured(model, prompt, given.tokens, given.runs, **options)
                    print(f"{name:7}{kind:9}{row}", flush=True)


if __name__ == "__main__":
    main()
