"""docs/reference/benchmarks.md: its predictions are the tool's, of the bytes of real files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from akunu import _core
from lines import each_line

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.make_synthetic import PRESETS, write
from tools.predict_metal import BEGIN, END, rows, weights_of

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md"


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.split(BEGIN)[1].split(END)[0].strip() == "\n".join(rows())


@each_line("tied", [False, True])
@each_line("recipe", ["Q4_K_M", "Q8_0"])
def test_a_token_reads_all_weights_but_an_embedding_that_is_looked_up(
    tmp_path: Path, recipe: str, tied: bool
) -> None:
    shape = replace(PRESETS["Qwen3-0.6B"], n_layers=2, dim=256, vocab_size=600, tied=tied)
    write(tmp_path / "model.gguf", shape, recipe, seed=1)
    sizes = {each.name: each.size for each in _core.GgufFile(tmp_path / "model.gguf").tensors}
    looked_up = 0 if tied else sizes["token_embd.weight"]
    assert weights_of(shape, recipe)[0] == sum(sizes.values()) - looked_up
