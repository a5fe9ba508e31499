"""What a model takes is computed before it is taken, counted, and said."""

from __future__ import annotations

from pathlib import Path

import pytest

import akunu

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
