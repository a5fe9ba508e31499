"""`akunu inspect`: shows the contents of a model file and the memory to run it."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from akunu.cli.commands.devices import device_of
from akunu.cli.loading import model_path
from akunu.cli.model_file import (
    format_totals,
    metadata_of,
    parameter_count,
    short_count,
    weight_bytes,
)
from akunu.cli.terminal.progress import Progress
from akunu.cli.terminal.tables import bytes_text, write_facts, write_rows
from akunu.common.metadata import printable
from akunu.errors import AkunuError
from akunu.loading import load_either
from akunu.model import Model
from akunu.model_facts import ModelConfig
from akunu.options.text_options import LoadOptions
from akunu.speech.model import SpeechModel
from akunu.storage.model_files import (
    ModelDirectory,
    ModelFiles,
    WhisperCppModel,
    open_model_files,
    read_tokenizer,
)

_LONGEST_VALUE = 200  # characters of a value in the table


def show_model(name: str, options: LoadOptions, *, as_json: bool) -> int:
    """Write the facts about a model to stdout, as tables or as JSON.

    Raises AkunuError where there is no such model, or no such device.
    """
    path = model_path(name)
    device_of(options.device)
    facts = _facts(path, options)
    if as_json:
        json.dump(facts, sys.stdout, ensure_ascii=False, indent=2, allow_nan=False)
        print()
    else:
        _write(facts)
    return 0


def _facts(path: Path, options: LoadOptions) -> dict[str, Any]:
    with Progress(lambda: f"reading {path.name}"):
        file = open_model_files(path)
        tensors = file.tensors
        facts: dict[str, Any] = {
            "file": {
                "path": str(path),
                "parts": file.parts,
                "bytes": sum(Path(part).stat().st_size for part in file.parts),
                **_format_facts(file),
                "tensors": len(tensors),
                "parameters": parameter_count(tensors),
                "tensor_bytes": weight_bytes(tensors),
            },
            "metadata": metadata_of(file),
            "formats": format_totals(tensors),
            "tensors": [
                {
                    "name": printable(tensor.name),
                    "format": tensor.type_name,
                    "shape": list(tensor.shape),
                    "bytes": tensor.size,
                    "file": tensor.path,
                    "offset": tensor.offset,
                }
                for tensor in tensors
            ],
        }
        facts["tokenizer"] = _tokenizer_facts(file)
        # What it takes to run is known by the engine, once it has the model.
        try:
            with load_either(path, options) as model:
                facts["run"] = _run_facts(model)
        except AkunuError as error:
            facts["run"] = {"error": str(error)}
    return facts


def _format_facts(file: ModelFiles) -> dict[str, Any]:
    if isinstance(file, (ModelDirectory, WhisperCppModel)):
        return {}
    return {"gguf_version": file.version, "alignment": file.alignment}


def _tokenizer_facts(file: ModelFiles) -> dict[str, Any]:
    try:
        tokenizer = read_tokenizer(file)
    except AkunuError as error:
        return {"error": str(error)}
    special = {}
    for name in ("bos", "eos", "eot", "pad", "unk"):
        index = getattr(tokenizer, f"{name}_id")
        if index is not None:
            special[name] = {"id": index, "text": tokenizer.token_text(index)}
    return {
        "tokens": tokenizer.vocab_size,
        "special": special,
        "stop_ids": sorted(tokenizer.stop_ids),
        "control_tokens": len(tokenizer.control_ids),
        "adds_bos": tokenizer.add_bos,
        "adds_eos": tokenizer.add_eos,
        "has_chat_template": tokenizer.chat_template is not None,
        "notes": list(tokenizer.notes),
    }


def _run_facts(model: Model | SpeechModel) -> dict[str, Any]:
    native = model._open()
    known = model.tokenizer.notes if isinstance(model, Model) else ()
    return {
        "config": asdict(ModelConfig(**native.config)),
        "context": native.context,
        **({} if native.audio is None else {"speech": _speech_facts(model, native.audio)}),
        "notes": [note for note in model.notes if note not in known],
        "memory_bytes": dict(model.memory),
        "launches": {name: _launches(native.labels(name)) for name in ("single", "few", "many")},
    }


def _speech_facts(model: Model | SpeechModel, audio: dict[str, int]) -> dict[str, Any]:
    assert isinstance(model, SpeechModel)
    return {
        "mel_bands": audio["n_mels"],
        "frames": audio["n_frames"],
        "alignment_heads": audio["n_alignment_heads"],
        "languages": list(model.languages),
    }


def _launches(labels: list[str]) -> dict[str, Any]:
    """Return how many commands a step has: per layer (as a range), next to the layers, in all."""
    per_layer: Counter[int] = Counter()
    others = []
    first_layer = []
    for label in labels:
        match = re.match(r"layer (\d+) (.*)", label)
        if match:
            per_layer[int(match[1])] += 1
            if match[1] == "0":
                first_layer.append(match[2])
        else:
            others.append(label)
    counts = sorted(set(per_layer.values()))
    return {
        "total": len(labels),
        "per_layer": counts[0] if len(counts) == 1 else counts,
        "layer_0": first_layer,
        "others": others,
    }


def _write(facts: dict[str, Any]) -> None:
    file = facts["file"]
    write_facts(
        "file",
        [
            ("path", file["path"]),
            *([("parts", str(len(file["parts"])))] if len(file["parts"]) > 1 else []),
            ("size", bytes_text(file["bytes"])),
            *([("GGUF version", str(file["gguf_version"]))] if "gguf_version" in file else []),
            ("tensors", f"{file['tensors']}, {bytes_text(file['tensor_bytes'])}"),
            ("parameters", short_count(file["parameters"])),
        ],
    )
    write_facts("metadata", [(key, _one_line(value)) for key, value in facts["metadata"].items()])
    write_rows(
        "formats",
        ("format", "tensors", "parameters", "size"),
        [
            (f["format"], str(f["tensors"]), short_count(f["parameters"]), bytes_text(f["bytes"]))
            for f in facts["formats"]
        ],
    )
    write_rows(
        "tensors",
        ("name", "format", "shape", "size"),
        [
            (t["name"], t["format"], " x ".join(map(str, t["shape"])), bytes_text(t["bytes"]))
            for t in facts["tensors"]
        ],
    )
    _write_tokenizer(facts["tokenizer"])
    _write_run(facts["run"])


def _write_tokenizer(facts: dict[str, Any]) -> None:
    if "error" in facts:
        write_facts("tokenizer", [("not usable", facts["error"])])
        return
    special = [
        (name, f"{token['id']} {json.dumps(token['text'], ensure_ascii=False)}")
        for name, token in facts["special"].items()
    ]
    write_facts(
        "tokenizer",
        [
            ("tokens", f"{facts['tokens']}, {facts['control_tokens']} of them control"),
            *special,
            ("ends a text", ", ".join(map(str, facts["stop_ids"])) or "none"),
            ("adds BOS", _yes(facts["adds_bos"])),
            ("adds EOS", _yes(facts["adds_eos"])),
            ("chat template", _yes(facts["has_chat_template"])),
            *(("note", note) for note in facts["notes"]),
        ],
    )


def _write_run(facts: dict[str, Any]) -> None:
    if "error" in facts:
        write_facts("to run it", [("not possible", facts["error"])])
        return
    config = facts["config"]
    of_kv = f"{config['n_kv_heads']} for K and V"
    if config["latent_rank"]:
        of_kv = f"K and V of {config['latent_rank']} numbers"
    heads = f"{config['n_heads']} heads of {config['head_dim']}, {of_kv}"
    write_facts(
        "model",
        [
            ("architecture", config["architecture"]),
            ("layers", f"{config['n_layers']}, {heads}"),
            ("width", f"{config['dim']}, feed-forward {config['ffn_dim']}"),
            ("vocabulary", f"{config['vocab_size']} rows of logits"),
            ("trained context", str(config["context_length"])),
        ],
    )
    if "speech" in facts:
        speech = facts["speech"]
        heads = speech["alignment_heads"]
        write_facts(
            "speech",
            [
                ("window", f"{speech['frames']} frames of {speech['mel_bands']} mel bands"),
                ("languages", str(len(speech["languages"]))),
                ("times of words", f"by {heads} heads" if heads else "none: no heads are named"),
            ],
        )
    write_facts(
        f"memory at a context of {facts['context']} tokens",
        [(label, bytes_text(size)) for label, size in facts["memory_bytes"].items()]
        + [("note", note) for note in facts["notes"]],
    )
    launches = facts["launches"]
    write_rows(
        "launches of a step",
        ("rows", "per layer", "beside them", "together"),
        [
            (
                rows,
                _range(launches[name]["per_layer"]),
                str(len(launches[name]["others"])),
                str(launches[name]["total"]),
            )
            for name, rows in (("single", "one"), ("few", "a few"), ("many", "many (prompt)"))
        ],
    )
    write_facts(
        "launches of layer 0, one row",
        [(str(n), label) for n, label in enumerate(launches["single"]["layer_0"], 1)],
    )


def _one_line(value: object) -> str:
    """Return a value of the metadata in one line, abbreviated."""
    if isinstance(value, dict):
        first = ", ".join(_one_line(item) for item in value["first"])
        more = ", ..." if value["length"] > len(value["first"]) else ""
        return f"[{first}{more}] ({value['length']})"
    if isinstance(value, bool):
        return _yes(value)
    text = str(value)
    if len(text) > _LONGEST_VALUE:
        return f"{text[:_LONGEST_VALUE]}... ({len(text)} characters)"
    return text


def _range(counts: int | list[int]) -> str:
    if isinstance(counts, int):
        return str(counts)
    return f"{counts[0]} to {counts[-1]}" if counts else "0"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
