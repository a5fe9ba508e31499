"""An encoder for the other engines: `export_encoder.py DIRECTORY OUT CALIBRATION`.

OUT becomes a copy of DIRECTORY with `onnx/model.onnx`, by torch.onnx, and `openvino/`, int8 as
sentence-transformers' `export_static_quantized_openvino_model` makes it, except that the texts for
calibration are the lines of a file here, and of the network there.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

TEXTS = 300  # what optimum-intel takes


def export_onnx(directory: Path, out: Path) -> None:
    import torch
    import transformers

    model = transformers.AutoModel.from_pretrained(directory, attn_implementation="sdpa").eval()
    # Three tensors: of one that is passed twice, torch.onnx would make one input.
    ids = torch.ones((2, 8), dtype=torch.int64)
    given = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
    }
    axes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    out.mkdir(exist_ok=True)
    torch.onnx.export(
        model,
        kwargs=given,
        f=out / "model.onnx",
        input_names=list(given),
        output_names=["last_hidden_state"],
        dynamic_shapes=dict.fromkeys(given, axes),
        external_data=False,
        dynamo=True,
    )


def export_openvino(directory: Path, out: Path, lines: list[str]) -> None:
    from datasets import Dataset
    from optimum.intel.openvino import OVConfig, OVQuantizationConfig, OVQuantizer
    from sentence_transformers import SentenceTransformer

    model: Any = SentenceTransformer(
        str(directory), backend="openvino", device="cpu", model_kwargs={"export": True}
    )
    given = model.tokenizer(lines, padding="max_length", max_length=384, truncation=True)
    quantizer = OVQuantizer.from_pretrained(model.transformers_model)
    quantizer.quantize(
        Dataset.from_dict(dict(given)),
        save_directory=out.parent,  # it adds the folder "openvino"
        ov_config=OVConfig(quantization_config=OVQuantizationConfig()),
    )
    for ending in ("xml", "bin"):
        (out / f"openvino_model.{ending}").rename(out / f"openvino_model_qint8_quantized.{ending}")


def main(directory: Path, out: Path, calibration: Path) -> None:
    lines = [line for line in calibration.read_text().splitlines() if len(line) > 20]
    if len(lines) < TEXTS:
        sys.exit(f"{calibration} has {len(lines)} lines of more than 20 characters, not {TEXTS}")
    shutil.copytree(directory, out, dirs_exist_ok=True)
    export_onnx(directory, out / "onnx")
    export_openvino(directory, out / "openvino", lines[:TEXTS])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
