"""What tools/compare measures of logits, and the files and texts that it makes, without a peer."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize

import akunu

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare import accuracy, divergence
from tools.compare.quantise import dequantise
from tools.compare.texts import Text, held_out_dialogues, read_text
from tools.make_synthetic import Shape, write

pytestmark = pytest.mark.tools

SHAPE = Shape(
    architecture="llama", n_layers=1, dim=64, n_heads=2, n_kv_heads=1, head_dim=32, ffn_dim=96,
    vocab_size=600,
)  # fmt: skip


def logits_of(*rows: list[Fraction]) -> np.ndarray:
    """Logits with these probabilities, shifted, as only differences matter."""
    return np.log(np.array(rows, np.float64)) + 7.5


HALVES = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
THIRDS = [Fraction(1, 3), Fraction(1, 3), Fraction(1, 3)]
TENTHS = [Fraction(1, 10), Fraction(8, 10), Fraction(1, 10)]


def test_divergence_is_the_sum_of_its_definition() -> None:
    found = divergence.divergence(logits_of(HALVES, THIRDS), logits_of(TENTHS, THIRDS))
    expected = 0.5 * math.log(5) + 0.25 * math.log(0.25 / 0.8) + 0.25 * math.log(2.5)
    np.testing.assert_allclose(found, [expected, 0.0], rtol=1e-14, atol=1e-30)


def test_divergence_of_a_tiny_difference_is_not_lost() -> None:
    logits = np.zeros((1, 2))
    # Of (1/2, 1/2) and softmax(d, -d): log(cosh(d)), which is d^2 / 2 for a small d.
    found = divergence.divergence(logits, np.array([[1e-8, -1e-8]]))
    assert found[0] == pytest.approx(0.5e-16, rel=1e-6)


def test_logits_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="infinite or not a number"):
        divergence.divergence(np.zeros((1, 2)), np.array([[0.0, np.nan]]))


def test_agreement_is_of_the_most_likely_token() -> None:
    found = divergence.agreement(logits_of(HALVES, TENTHS), logits_of(TENTHS, TENTHS))
    assert found.tolist() == [False, True]


def test_perplexity_scores_the_second_half_of_each_chunk() -> None:
    rows = logits_of(HALVES, TENTHS, HALVES, TENTHS, HALVES, THIRDS)
    # Six tokens: rows 3 and 4 say how likely tokens 4 and 5 are; the last row predicts nothing.
    likelihoods = divergence.negative_log_likelihoods(rows, [0, 0, 0, 0, 1, 2], [True] * 6)
    np.testing.assert_allclose(likelihoods, [-math.log(0.8), -math.log(0.25)])
    last = divergence.negative_log_likelihoods(rows, [0, 0, 0, 0, 1, 2], [True] * 4 + [False, True])
    np.testing.assert_allclose(last, [-math.log(0.25)])
    both = divergence.perplexity([likelihoods, np.array([math.log(0.2 * 10)])])
    assert both == pytest.approx((1 / 0.8 * 4 * 2) ** (1 / 3))


def test_interval_of_a_ratio() -> None:
    draw = np.random.RandomState(1)
    theirs = draw.gamma(1.0, size=6400)
    low, high = divergence.ratio_interval(1.3 * theirs, theirs)
    assert low == pytest.approx(1.3)
    assert high == pytest.approx(1.3)
    # Of independent means of 6,400 numbers with a standard deviation of one mean: their ratio has
    # one of sqrt(2 / 6400) = 0.0177, and 90 % lie within 1.645 of that on either side.
    low, high = divergence.ratio_interval(draw.gamma(1.0, size=6400), theirs)
    assert high - low == pytest.approx(2 * 1.645 * 0.0177, rel=0.2)
    with pytest.raises(ValueError, match="128 tokens or more, got 100"):
        divergence.ratio_interval(theirs[:100], theirs[:100])


def test_chunks_of_random_tokens_begin_with_the_models_own() -> None:
    class WithBos:
        vocab_size, add_bos, bos_id = 50, True, 3

    text = read_text(WithBos(), "random", length=20, n_chunks=4)  # type: ignore[arg-type]
    chunks = text.chunks
    assert [len(chunk) for chunk in chunks] == [20] * 4
    assert [chunk[0] for chunk in chunks] == [3] * 4
    assert text == read_text(WithBos(), "random", length=20, n_chunks=4)  # type: ignore[arg-type]
    assert len({tuple(chunk) for chunk in chunks}) == 4
    assert text.counted == [[True] * 20] * 4


def test_of_dialogues_in_embers_format_replies_count() -> None:
    pieces = held_out_dialogues(4000)
    text = "".join(piece for piece, _ in pieces)
    assert len(text) >= 4000
    assert text.startswith("<|im_start|>")
    tokenizer = akunu.Tokenizer.from_gguf(accuracy.EMBER)
    found = read_text(tokenizer, "dialogues", length=100, n_chunks=3)
    tokens = [token for chunk in found.chunks for token in chunk]
    counted = [each for chunk in found.counted for each in chunk]
    assert text.startswith(tokenizer.decode(tokens))
    replies = tokenizer.decode([t for t, is_reply in zip(tokens, counted, strict=True) if is_reply])
    expected = "".join(piece for piece, is_reply in pieces if is_reply)
    assert "<|im_end|>" in replies
    assert "<|im_start|>" not in replies
    assert expected.startswith(replies)


def test_a_file_that_is_too_short_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "short.txt"
    text.write_text("Hello!")
    tokenizer = akunu.Tokenizer.from_gguf(accuracy.EMBER)
    with pytest.raises(ValueError, match=r"short.txt has \d tokens, 2 chunks of 8 need 16"):
        read_text(tokenizer, str(text), length=8, n_chunks=2)


def test_dequantised_files_have_the_same_metadata_and_values(tmp_path: Path) -> None:
    quantised, target = tmp_path / "q4_0.gguf", tmp_path / "f32.gguf"
    write(quantised, SHAPE, "Q4_0")
    dequantise(quantised, target)
    before, after = gguf.GGUFReader(quantised), gguf.GGUFReader(target)
    changed = {"general.file_type", "GGUF.tensor_count", "GGUF.kv_count", "GGUF.version"}
    assert set(before.fields) == set(after.fields)
    for name in set(before.fields) - changed:
        assert before.fields[name].contents() == after.fields[name].contents(), name
        assert before.fields[name].types == after.fields[name].types, name
    assert after.fields["general.file_type"].contents() == 0
    for one, other in zip(before.tensors, after.tensors, strict=True):
        assert other.name == one.name
        assert other.shape.tolist() == one.shape.tolist()
        assert other.tensor_type == gguf.GGMLQuantizationType.F32
        np.testing.assert_array_equal(
            other.data.reshape(-1), dequantize(one.data, one.tensor_type).reshape(-1)
        )


def test_an_engine_that_is_exact_has_no_divergence(tmp_path: Path) -> None:
    draw = np.random.RandomState(1)
    reference = draw.normal(size=(2, 100, 30))
    noisy = (reference + draw.normal(scale=0.1, size=reference.shape)).astype(np.float32)
    text = Text([draw.randint(30, size=100).tolist() for _ in range(2)], [[True] * 100] * 2)
    result = accuracy.judge(
        "x", text, reference, reference.astype(np.float32), noisy, kv_type="f16"
    )
    assert result.n_tokens == 200
    assert result.akunu.divergence < 1e-13
    assert result.akunu.agreement == 1.0
    # Of independent noise of variance v, to second order: (1 - sum of squared probabilities) v / 2.
    probabilities = np.exp(divergence.log_probabilities(reference))
    expected = (1 - (probabilities**2).sum(axis=-1)).mean() * 0.01 / 2
    assert result.peer.divergence == pytest.approx(expected, rel=0.05)
    assert result.peer.agreement < 1.0
    assert result.ratio < 1e-8
    assert "| x | f16 |" in accuracy.markdown([accuracy.asdict(result)])
