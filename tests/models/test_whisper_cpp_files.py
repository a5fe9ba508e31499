"""Model files of whisper.cpp: their weights, their words, and those that are refused."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import speech_models as sm
import whisper_cpp_files as wf
from engine import bound_of_prompts, nightly_but, relative_error, relative_rms
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize
from measured_errors import record
from numpy.typing import NDArray
from numpy_forward import int8_per_32

import akunu
from akunu import ArgumentError, ModelFormatError, UnsupportedModelError, _core
from akunu.options.text_options import LoadOptions
from akunu.speech.mel import log_mel
from akunu.speech.model import load_whisper
from akunu.speech.vocabulary.known_models import alignment_heads, known_model
from akunu.storage.native_load import begin_load
from akunu.tokenizers.whisper_cpp_vocabulary import special_tokens, vocabulary_keys
from lines import each_line

SPEC = wf.spec_of()
TENSORS = sm.random_tensors(SPEC)
NOISE_FACTOR = 1.1  # as in test_quantised.py, which derives it
BLOCKS = (Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0)


def mel() -> NDArray[np.float32]:
    samples = np.random.default_rng(4).standard_normal(SPEC.n_frames * 160) * 0.1
    return log_mel(samples.astype(np.float32))


def tokens(n: int = 40) -> list[int]:
    return np.random.default_rng(5).integers(0, SPEC.vocab_size, n).tolist()


def logits_of(path: Path, device: str) -> NDArray[np.float32]:
    native = begin_load(path, LoadOptions(device=device, threads=2, kv_type="f32")).result()
    try:
        return native.logits(np.array(tokens(), np.uint32), window=_core.SpeechWindow(mel()))
    finally:
        native.close()


@pytest.mark.nightly_emulated
@pytest.mark.parametrize(("kind", "dtype"), [(Type.F32, "F32"), (Type.F16, "F16")])
def test_a_file_has_the_bits_of_its_directory(
    tmp_path: Path, device: str, kind: Type, dtype: str
) -> None:
    folder = sm.write(tmp_path / "model", SPEC, TENSORS, dtype=dtype)
    rounded = TENSORS
    if dtype == "F16":
        rounded = {k: v.astype(np.float16).astype(np.float32) for k, v in TENSORS.items()}
    file = wf.write(tmp_path / "model.bin", SPEC, rounded, kind)
    one, other = (logits_of(each, device) for each in (folder, file))
    assert one.tobytes() == other.tobytes()


class Dequantised(sm.Forward):
    """The formulas on a file's weights; inputs of quantised matrices may be rounded to int8."""

    def __init__(self, kind: Type) -> None:
        tensors, self.blocks = {}, set()
        for name, values in TENSORS.items():
            made = wf.kind_of(wf.name_of(name), values, kind)
            tensors[name] = dequantize(quantize(values, made), made).reshape(values.shape)
            if made == kind:
                self.blocks.add(name)
        super().__init__(SPEC, tensors)
        self.rounds = False

    def rounded(self, name: str, x: sm.Array) -> sm.Array:
        return int8_per_32(x) if self.rounds and f"model.{name}.weight" in self.blocks else x

    def linear(self, name: str, x: sm.Array) -> sm.Array:
        return super().linear(name, self.rounded(name, x))

    def logits(self, mel: NDArray[np.float32], tokens: list[int]) -> sm.Array:
        embedding = "decoder.embed_tokens"
        rows = self.rounded(embedding, self.decode(self.encode(mel), tokens))
        return rows @ self[f"{embedding}.weight"].T


@pytest.mark.nightly_emulated
@pytest.mark.parametrize("kind", nightly_but(BLOCKS, (Type.Q5_0, Type.Q8_0)))
def test_logits_of_blocks_are_those_of_their_weights(
    tmp_path: Path, device: str, kind: Type
) -> None:
    file = wf.write(tmp_path / "model.bin", SPEC, TENSORS, kind)
    forward = Dequantised(kind)
    exact = forward.logits(mel(), tokens())
    found = logits_of(file, device)
    if device == "cpu":
        forward.rounds = True
        noise = relative_rms(forward.logits(mel(), tokens()), exact)
        assert relative_rms(found, exact) <= NOISE_FACTOR * noise
    else:
        assert relative_error(found, exact) <= bound_of_prompts(device)
    record("whisper", f"whisper.cpp {kind.name}", device, relative_error(found, exact))


# --- the vocabulary ------------------------------------------------------------------------------


def small(tmp_path: Path, n_vocab: int, n_words: int) -> Path:
    spec = wf.spec_of(n_positions=50, n_encoder_layers=1, n_decoder_layers=2)
    made = sm.random_tensors(spec)
    rng = np.random.default_rng(8)
    embedding = (0.3 * rng.standard_normal((n_vocab, spec.dim))).astype(np.float32)
    made["model.decoder.embed_tokens.weight"] = embedding
    listed = wf.words(min(n_words, 50256)) + [b""] * (n_words - 50256)
    return wf.write(tmp_path / "small.bin", spec, made, Type.F16, listed=listed)


@pytest.mark.parametrize(
    ("n_vocab", "n_words", "n_languages", "start"),
    [(51864, 50256, 0, 50257), (51865, 50257, 99, 50258), (51866, 50256, 100, 50258)],
    ids=["english", "multilingual", "with Cantonese"],
)
def test_special_tokens_follow_from_how_many_there_are(
    tmp_path: Path, n_vocab: int, n_words: int, n_languages: int, start: int
) -> None:
    with load_whisper(small(tmp_path, n_vocab, n_words), threads=1) as model:
        tokenizer = model._tokenizer
        assert model.is_multilingual == (n_languages > 0)
        assert len(tokenizer.languages) == n_languages
        assert tokenizer.special.start == start
        assert tokenizer.special.first_timestamp == n_vocab - 1501
        if n_languages > 0:
            assert tokenizer.languages["en"] == start + 1
            assert max(tokenizer.languages, key=tokenizer.languages.__getitem__) == (
                "yue" if n_languages == 100 else "su"
            )
        assert tokenizer.decode([*b"ab\xff", 256 + 0x4142, start]) == "ab\ufffdAB"
        assert tokenizer.encode("AB") == [256 + 0x4142]
        filters = np.arange(1, 80 * 201 + 1, dtype=np.float32).reshape(80, 201)
        assert np.array_equal(model._filters, filters)


def test_the_order_of_languages_is_openais() -> None:
    languages = pytest.importorskip("transformers.models.whisper.tokenization_whisper").LANGUAGES
    _, names = special_tokens(51866)
    assert [name.strip("<|>") for name in names[2:102]] == list(languages)


@pytest.mark.parametrize("n_vocab", [51863, 51867, 32000])
def test_another_number_of_tokens_is_no_model_of_whisper(n_vocab: int) -> None:
    with pytest.raises(UnsupportedModelError, match=f"n_vocab is {n_vocab}; files of whisper.cpp"):
        special_tokens(n_vocab)


def test_words_that_are_missing_are_named() -> None:
    with pytest.raises(ModelFormatError, match="there are 50255 words; a vocabulary of 51864"):
        vocabulary_keys(wf.words(50255), 51864)
    listed = [b"" if word == b"\x80" else word for word in wf.words(50256)]
    with pytest.raises(ModelFormatError, match="no word for the byte 0x80"):
        vocabulary_keys(listed, 51864)


def test_a_word_is_made_of_what_is_left_when_words_before_it_are_joined() -> None:
    listed = [*wf.words(256), b"he", b"th", b"the", b"in", b"thein", b"xyz"]
    merged = [(listed[a], listed[b]) for a, b in _core.merges_by_rank(listed)]
    assert merged == [(b"h", b"e"), (b"t", b"h"), (b"t", b"he"), (b"i", b"n"), (b"the", b"in")]


def test_alignment_heads_follow_from_the_shape(tmp_path: Path) -> None:
    assert known_model(4, 4, 51864) == "tiny.en"
    assert known_model(32, 4, 51866) == "large-v3-turbo"
    assert known_model(32, 32, 51865) is None  # large-v1 or large-v2
    for name, n_layers, n_heads in (("tiny", 4, 6), ("large-v2", 32, 20), ("medium.en", 24, 16)):
        assert all(a < n_layers and b < n_heads for a, b in alignment_heads(name))
    with (
        load_whisper(small(tmp_path, 51864, 50256), threads=1) as model,
        pytest.raises(UnsupportedModelError, match="names no alignment_heads"),
    ):
        model.transcribe(np.zeros(8000, np.float32), vad=False, word_timestamps=True)


# --- what is refused -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    spec = sm.SpeechSpec(
        dim=32, n_heads=2, n_positions=4, context=8, n_encoder_layers=1, n_decoder_layers=1,
        encoder_ffn_dim=128, decoder_ffn_dim=128, n_mels=1,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("whole") / "model.bin"
    return wf.write(path, spec, sm.random_tensors(spec), Type.Q8_0).read_bytes()


def refusal(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises((ModelFormatError, UnsupportedModelError)) as caught:
        begin_load(path, LoadOptions(threads=1)).result().close()
    said = str(caught.value)
    assert "\n" not in said
    assert "model.bin" in said
    return said


def test_a_file_that_ends_anywhere_is_refused(tmp_path: Path, whole: bytes) -> None:
    for length in [*range(4, 60, 3), *range(60, len(whole), 1009), len(whole) - 1]:
        said = refusal(tmp_path, whole[:length])
        assert re.search("needs|ends before|missing", said), said


NUMBERS = (
    *("n_vocab", "n_audio_ctx", "n_audio_state", "n_audio_head", "n_audio_layer"),
    *("n_text_ctx", "n_text_state", "n_text_head", "n_text_layer", "n_mels"),
)


@each_line(
    ("name", "value"),
    [(name, value) for name in NUMBERS for value in (-1, 2**31 - 1, 3)
     if (name, value) != ("n_text_ctx", 3)],  # fewer positions than the table has will do
)  # fmt: skip
def test_numbers_that_make_no_sense_are_refused(
    tmp_path: Path, whole: bytes, name: str, value: int
) -> None:
    at = 4 + 4 * NUMBERS.index(name)
    said = refusal(tmp_path, whole[:at] + struct.pack("<i", value) + whole[at + 4 :])
    if value <= 0:
        assert f"byte {at}: {name} is {value}; it must be above 0" in said


FILTERS_AT = 4 + 4 * 11
WORDS_AT = FILTERS_AT + 8 + 4 * 201


def changed(whole: bytes, at: int, form: str, *values: Any) -> bytes:
    new = struct.pack(form, *values)
    return whole[:at] + new + whole[at + len(new) :]


def test_each_mistake_is_named(tmp_path: Path, whole: bytes) -> None:
    first = WORDS_AT + 4 + 256 * 5  # the first tensor
    for content, expected in (
        (changed(whole, 44, "<i", 1007), "byte 44: ftype is 1007: blocks of version 1"),
        (changed(whole, FILTERS_AT, "<i", 2), "the mel filters are 2 of 201 numbers"),
        (changed(whole, FILTERS_AT + 4, "<i", 200), "the mel filters are 1 of 200 numbers"),
        (changed(whole, FILTERS_AT + 8, "<f", float("nan")), "not finite"),
        (changed(whole, WORDS_AT, "<I", 10**6), "there are 1000000 words, and n_vocab"),
        (changed(whole, WORDS_AT + 4, "<I", 2**32 - 1), "word 0 has 4294967295 bytes"),
        (changed(whole, first, "<i", 4), "a tensor has 4 dimensions"),
        (changed(whole, first + 4, "<I", 0), "the name of a tensor has 0 bytes"),
        (changed(whole, first + 4, "<I", 2**31), "the name of a tensor has 2147483648 bytes"),
        (changed(whole, first + 8, "<i", 77), "has type number 77"),
        (changed(whole, first + 12, "<i", -3), "a dimension is -3"),
        (changed(whole, first + 12, "<3i", *3 * (2**31 - 1,)), "more bytes than 64 bits can count"),
        (whole + whole[first:], "appears for the second time"),
        (whole + wf.tensor("decoder.extra.weight", np.zeros((2, 2), np.float32), Type.F32),
         "tensor decoder.extra.weight is not one that akunu knows"),
        (whole[:first], "ends before its tensors"),
    ):  # fmt: skip
        assert expected in refusal(tmp_path, content)


def test_each_kind_of_model_names_what_loads_it(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "ggml-tiny.bin"
    path.write_bytes(whole)
    with pytest.raises(UnsupportedModelError, match=r"akunu\.load_whisper loads it"):
        akunu.load(path)
    pickle = tmp_path / "pytorch_model.bin"
    pickle.write_bytes(b"PK\x03\x04" + bytes(26) + b"archive/data.pkl")
    with pytest.raises(UnsupportedModelError, match="PyTorch checkpoint"):
        load_whisper(pickle)
    with pytest.raises(ArgumentError, match=r"no such file .* akunu\.pull downloads"):
        load_whisper(tmp_path / "missing.bin")
    for nothing in ("", None):
        with pytest.raises(ArgumentError, match=r"path is .*; it must be the path of a file"):
            load_whisper(nothing)  # type: ignore[arg-type]
