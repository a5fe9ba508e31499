"""What a model takes is computed before it is taken, counted, and said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import ENVIRONMENT

import akunu

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.make_synthetic import Shape, write

# Texts of 6,144 tokens reach each of the experts, and the cache is larger than what only more
# texts use.
EXPERTS = Shape(
    architecture="qwen3moe", n_layers=6, dim=512, n_heads=8, n_kv_heads=8, head_dim=64, ffn_dim=512,
    vocab_size=2000, context_length=8192, qk_norm=True, n_experts=32, n_chosen=4, expert_dim=256,
)  # fmt: skip
PAGE = 256  # positions


def page_bytes(model: akunu.Model, bytes_per_number: int) -> int:
    config = model.config
    return 2 * config.n_layers * config.n_kv_heads * config.head_dim * PAGE * bytes_per_number


def test_the_cache_holds_one_full_context() -> None:
    with akunu.load("ember") as model:
        assert model.context == model.config.context_length
        assert model.memory["cache"] == page_bytes(model, 2) * model.context // PAGE
        assert not model.notes


def test_a_float32_cache_takes_twice_the_memory() -> None:
    with akunu.load("ember", kv_type="f32", context=512) as model:
        assert model.memory["cache"] == page_bytes(model, 4) * 2


def test_weights_are_mapped_not_copied() -> None:
    with akunu.load("ember") as model:
        file_size = (Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf").stat().st_size
        assert 0.9 * file_size < model.memory["weights (mapped)"] <= file_size
        assert model.memory["total"] == sum(v for k, v in model.memory.items() if k != "total")


def test_a_context_that_nobody_asked_for_is_reduced_with_a_line() -> None:
    with akunu.load("ember") as model:
        two_pages = 2 * page_bytes(model, 2)
    with akunu.load("ember", kv_memory=two_pages) as model:
        assert model.context == 512
        (note,) = model.notes
        assert "context reduced from 1024 to 512 positions" in note


def test_a_context_that_was_asked_for_is_refused() -> None:
    with akunu.load("ember") as model:
        two_pages = 2 * page_bytes(model, 2)
    with pytest.raises(akunu.OutOfMemoryError, match="a context of 1024 positions needs"):
        akunu.load("ember", context=1024, kv_memory=two_pages)
    with pytest.raises(akunu.OutOfMemoryError, match="one page of 256 positions needs"):
        akunu.load("ember", kv_memory=two_pages // 3)


def test_more_than_the_machine_has_is_refused_before_it_is_taken() -> None:
    with pytest.raises(akunu.OutOfMemoryError, match="available"):
        akunu.load("ember", context=2_000_000_000, kv_type="f32")
    with pytest.raises(akunu.OutOfMemoryError, match="kv_memory is"):
        akunu.load("ember", kv_memory=1 << 50)


def test_a_context_beyond_the_trained_one_is_noted() -> None:
    with akunu.load("ember", context=2048) as model:
        assert model.context == 2048
        (note,) = model.notes
        assert "longer than the 1024 that the model was trained on" in note


def test_kv_memory_pays_for_several_conversations() -> None:
    with akunu.load("ember", context=256) as model:
        one = page_bytes(model, 2)
    with akunu.load("ember", context=256, kv_memory=4 * one) as model:
        assert model.context == 256
        assert model.memory["cache"] == 4 * one


# A model loaded before: what the first one brings (threads, imports, the allocator's reserves) is
# not its memory.
# Afterwards every page of the cache has been written, and nearly every row of scratch.
GROWTH = """
import json
import sys
import akunu

path, mapped_file, vocab_size = sys.argv[1], sys.argv[2], int(sys.argv[3])

def anonymous() -> int:
    with open("/proc/self/smaps_rollup") as file:
        return 1024 * sum(int(line.split()[1]) for line in file if line.startswith("Anonymous:"))

def resident(name: str) -> int:
    with open("/proc/self/smaps") as file:
        total, inside = 0, False
        for line in file:
            key = line.split()[0]
            if not key.endswith(":"):
                inside = name in line
            elif key == "Rss:" and inside:
                total += 1024 * int(line.split()[1])
    return total

def use(model: akunu.Model) -> None:
    model.generate("Hello", max_tokens=4)
    tokens = [1 + 7919 * i % vocab_size for i in range(model.context)]
    model.logits(tokens[-600:], last=100)
    model.logits(tokens, last=1)

with akunu.load(path, context=6144) as model:
    use(model)
before = anonymous()
with akunu.load(path, context=6144, kv_type="f32") as model:
    use(model)
    grown, mapped, memory = anonymous() - before, resident(mapped_file), dict(model.memory)
print(json.dumps([grown, mapped, memory]))
"""


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("kind", ["dense", "experts"])
def test_what_is_counted_is_what_the_process_takes(kind: str, tmp_path: Path) -> None:
    model, file, vocab_size = "ember", "ember-q8_0.gguf", 900
    if kind == "experts":
        path = tmp_path / "experts.gguf"
        write(path, EXPERTS, "Q8_0")
        model, file, vocab_size = str(path), path.name, EXPERTS.vocab_size - 300
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, model, file, str(vocab_size)],
        capture_output=True,
        text=True,
        timeout=300,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr
    grown, mapped, memory = json.loads(done.stdout)
    weights = memory["weights (mapped)"]
    counted = memory["total"] - weights
    # Counted, but not touched here: rows and logs that only 64 texts at once use.
    assert 0.95 * counted < grown < 1.02 * counted
    # Mapped once, and all of it looked at; the file has metadata besides.
    assert 0.98 * weights < mapped < 1.02 * weights
