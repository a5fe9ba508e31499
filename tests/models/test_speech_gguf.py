"""Whisper models in GGUF files (docs/reference/model-files.md): converted and quantised ones."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import speech_models as sm
from engine import bound_of_prompts, nightly_but, relative_error, relative_rms
from gguf.quants import dequantize
from measured_errors import record
from numpy.typing import NDArray
from numpy_forward import int8_per_32

import akunu
from akunu import ModelFormatError, UnsupportedModelError, _core
from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES, is_quantised
from akunu.hub.packaged_models import PACKAGED_MODELS
from akunu.speech.mel import log_mel, mel_filters
from akunu.speech.model import SpeechModel, load_whisper
from lines import each_line

SPEC = sm.SpeechSpec()
WIDE = sm.SpeechSpec(dim=256, encoder_ffn_dim=256, decoder_ffn_dim=512, n_positions=60)
NOISE_FACTOR = 1.1  # as in test_quantised.py, which derives it
LAYER_NAMES = {
    "attn_norm": "self_attn_layer_norm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.out_proj",
    "cross_attn_norm": "encoder_attn_layer_norm",
    "cross_attn_q": "encoder_attn.q_proj",
    "cross_attn_k": "encoder_attn.k_proj",
    "cross_attn_v": "encoder_attn.v_proj",
    "cross_attn_output": "encoder_attn.out_proj",
    "ffn_norm": "final_layer_norm",
    "ffn_up": "fc1",
    "ffn_down": "fc2",
}
MODEL_NAMES = {
    "token_embd": "decoder.embed_tokens",
    "position_embd": "decoder.embed_positions",
    "output_norm": "decoder.layer_norm",
    "enc.conv1": "encoder.conv1",
    "enc.conv2": "encoder.conv2",
    "enc.position_embd": "encoder.embed_positions",
    "enc.output_norm": "encoder.layer_norm",
}


def name_in_directory(name: str) -> str:
    stem, _, suffix = name.rpartition(".")
    found = re.fullmatch(r"(enc\.)?blk\.(\d+)\.(\w+)", stem)
    if found is None:
        return f"model.{MODEL_NAMES[stem]}.{suffix}"
    side = "decoder" if found[1] is None else "encoder"
    return f"model.{side}.layers.{found[2]}.{LAYER_NAMES[found[3]]}.{suffix}"


def made(directory: Path, target: Path, type_name: str | None = None) -> Path:
    """The file that `akunu convert` or `akunu quantize` writes."""
    source = DirectorySource(directory)
    if type_name is None:
        kept = {each.name: each.type_name for each in source.plans if is_quantised(each)}
        wishes = Wishes(recipe=RECIPES["F16"], tensor_types=kept)
    else:
        wishes = Wishes(recipe=RECIPES[type_name])
    Quantization(source, wishes).write(target)
    return target


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whisper") / "small"
    return sm.write(path, SPEC, sm.random_tensors(SPEC), dtype="F16")


@pytest.fixture(scope="module")
def converted(folder: Path) -> Path:
    return made(folder, folder.parent / "small.gguf")


def mel_of(spec: sm.SpeechSpec) -> NDArray[np.float32]:
    rng = np.random.default_rng(4)
    return log_mel((rng.standard_normal(spec.n_frames * 160) * 0.1).astype(np.float32))


def tokens_of(spec: sm.SpeechSpec, n: int = 40) -> list[int]:
    return np.random.default_rng(5).integers(0, spec.vocab_size, n).tolist()


def logits_of(path: Path, spec: sm.SpeechSpec, device: str = "cpu") -> NDArray[np.float32]:
    with load_whisper(path, device=device, threads=2, kv_type="f32") as model:
        text = np.array(tokens_of(spec), np.uint32)
        return model._open().logits(text, window=_core.SpeechWindow(mel_of(spec)))


@pytest.mark.nightly_emulated
@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_a_file_has_the_bits_of_its_directory(tmp_path: Path, device: str, dtype: str) -> None:
    path = sm.write(tmp_path / "model", SPEC, sm.random_tensors(SPEC), dtype=dtype)
    file = made(path, tmp_path / "model.gguf")
    one, other = (logits_of(each, SPEC, device) for each in (path, file))
    assert one.tobytes() == other.tobytes()


def test_the_file_holds_what_the_directory_does(folder: Path, converted: Path) -> None:
    reader = gguf.GGUFReader(converted)
    fields = {name: each.contents() for name, each in reader.fields.items()}
    wanted = {
        "general.architecture": "whisper",
        "whisper.embedding_length": SPEC.dim,
        "whisper.context_length": SPEC.context,
        "whisper.block_count": SPEC.n_decoder_layers,
        "whisper.feed_forward_length": SPEC.decoder_ffn_dim,
        "whisper.attention.head_count": SPEC.n_heads,
        "whisper.encoder.block_count": SPEC.n_encoder_layers,
        "whisper.encoder.feed_forward_length": SPEC.encoder_ffn_dim,
        "whisper.encoder.attention.head_count": SPEC.n_heads,
        "whisper.encoder.context_length": SPEC.n_positions,
        "whisper.encoder.mel_count": SPEC.n_mels,
        "whisper.is_multilingual": True,
        "whisper.suppress_tokens": [35, 64],
        "whisper.begin_suppress_tokens": [32, sm.N_BYTES],
        "whisper.alignment_heads": [1, 0, 2, 3],
        "tokenizer.ggml.pre": "gpt-2",
    }
    assert {key: fields[key] for key in wanted} == wanted
    filters = np.array(fields["whisper.encoder.mel_filters"], np.float32)
    assert filters.tobytes() == mel_filters(SPEC.n_mels).tobytes()
    tokens = fields["tokenizer.ggml.tokens"]
    assert tokens[sm.N_BYTES : SPEC.first_timestamp] == SPEC.specials
    assert tokens[SPEC.first_timestamp :][:2] == ["<|0.00|>", "<|0.02|>"]
    tensors = sm.random_tensors(SPEC)
    assert {name_in_directory(each.name) for each in reader.tensors} == tensors.keys()
    for each in reader.tensors:
        expected = tensors[name_in_directory(each.name)].astype(np.float16).astype(np.float32)
        found = np.asarray(each.data, np.float32).reshape(expected.shape)
        assert found.tobytes() == expected.tobytes(), each.name


class Dequantised(sm.Forward):
    """The formulas on a file's weights; inputs of quantised matrices may be rounded to int8."""

    def __init__(self, spec: sm.SpeechSpec, path: Path) -> None:
        read = gguf.GGUFReader(path).tensors
        tensors = {}
        for each in read:
            data = dequantize(each.data, each.tensor_type)
            tensors[name_in_directory(each.name)] = data.reshape(each.shape[::-1].tolist())
        super().__init__(spec, tensors)
        floats = (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16)
        self.blocks = {
            name_in_directory(each.name) for each in read if each.tensor_type not in floats
        }
        self.rounds = False

    def rounded(self, name: str, x: sm.Array) -> sm.Array:
        return int8_per_32(x) if self.rounds and f"model.{name}.weight" in self.blocks else x

    def linear(self, name: str, x: sm.Array) -> sm.Array:
        return super().linear(name, self.rounded(name, x))

    def logits(self, mel: NDArray[np.float32], tokens: list[int]) -> sm.Array:
        embedding = "decoder.embed_tokens"
        rows = self.rounded(embedding, self.decode(self.encode(mel), tokens))
        return rows @ self[f"{embedding}.weight"].T


IN_32 = ("Q8_0", "Q4_0", "Q5_0", "Q5_1")
IN_256 = ("Q4_K_M", "Q6_K", "Q3_K_M", "IQ4_XS")


@pytest.mark.nightly_emulated("Q8_0")
@pytest.mark.parametrize(
    "type_name", nightly_but((*IN_32, *IN_256), chosen=("Q8_0", "Q5_1", "Q4_K_M"))
)
def test_logits_of_a_quantised_file_are_those_of_its_weights(
    tmp_path: Path, device: str, type_name: str
) -> None:
    spec = WIDE if type_name in IN_256 else SPEC
    path = sm.write(tmp_path / "model", spec, sm.random_tensors(spec), dtype="F16")
    file = made(path, tmp_path / "model.gguf", type_name)
    forward = Dequantised(spec, file)
    # 4 matrices of attention, 4 more in the decoder, 2 of feed-forward; and the embedding.
    assert len(forward.blocks) == 6 * spec.n_encoder_layers + 10 * spec.n_decoder_layers + 1
    mel, tokens = mel_of(spec), tokens_of(spec)
    exact = forward.logits(mel, tokens)
    found = logits_of(file, spec, device)
    if device == "cpu":
        forward.rounds = True
        noise = relative_rms(forward.logits(mel, tokens), exact)
        assert relative_rms(found, exact) <= NOISE_FACTOR * noise
    else:
        assert relative_error(found, exact) <= bound_of_prompts(device)
    record("whisper", f"GGUF {type_name}", device, relative_error(found, exact))


def test_a_scale_10_percent_off_exceeds_the_bound(tmp_path: Path) -> None:
    """In one matrix of the encoder; what the test before this one would not see is no test."""
    path = sm.write(tmp_path / "model", SPEC, sm.random_tensors(SPEC), dtype="F16")
    file = made(path, tmp_path / "model.gguf", "Q8_0")
    mel, tokens = mel_of(SPEC), tokens_of(SPEC)
    forward = Dequantised(SPEC, file)
    exact = forward.logits(mel, tokens)
    forward.rounds = True
    noise = relative_rms(forward.logits(mel, tokens), exact)
    forward.tensors["model.encoder.layers.1.fc1.weight"] *= 1.1
    assert relative_rms(forward.logits(mel, tokens), exact) > NOISE_FACTOR * noise


TEXTS = ("", " ", " Hello, wörld! 10 °C  don't", "<|en|> name", "\n\n\t日本語", "naïve\N{FIRE}")


def test_words_are_those_of_the_directory(folder: Path, converted: Path) -> None:
    with load_whisper(folder) as one, load_whisper(converted) as other:
        a, b = one._tokenizer, other._tokenizer
        assert (a.special, a.languages, a.is_multilingual) == (
            b.special,
            b.languages,
            b.is_multilingual,
        )
        assert a.never_written([-1, 3]) == b.never_written([-1, 3])
        assert a.never_first() == b.never_first()
        for text in TEXTS:
            assert a.encode(text) == b.encode(text)
        for tokens in ([0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x94, 0xA5, 0x61], [SPEC.vocab_size - 1]):
            assert a.decode(tokens) == b.decode(tokens)


def test_a_transcription_with_the_times_of_words_is_that_of_the_directory(
    folder: Path, converted: Path
) -> None:
    rng = np.random.default_rng(6)
    samples = (rng.standard_normal(20_000) * 0.1).astype(np.float32)

    def heard(path: Path) -> akunu.Transcription:
        with load_whisper(path) as model:
            return model.transcribe(
                samples, temperature=0.0, beam_size=2, vad=False, language="de",
                no_speech_threshold=None, word_timestamps=True,
            )  # fmt: skip

    one, other = heard(folder), heard(converted)
    assert one.segments == other.segments
    assert one.segments


def edited(path: Path, target: Path, **changes: Any) -> Path:
    """A copy with keys changed, or left out (None); '.' in a name is written '__'."""
    from akunu.convert.gguf_writer import GgufLayout, TensorPlan, Value

    file = _core.GgufFile(path)
    wanted = {key.replace("__", "."): value for key, value in changes.items()}
    values = [Value.copied(file, key) for key in file if key not in wanted]
    values += [Value.of_any(key, each) for key, each in wanted.items() if each is not None]
    layout = GgufLayout(
        values, [TensorPlan(each.name, each.shape, each.type_name) for each in file.tensors]
    )
    with target.open("wb") as out:
        out.write(layout.head)
        for plan, tensor in zip(layout.tensors, file.tensors, strict=True):
            layout.write_tensor(out, plan, tensor.data)
    return target


def test_the_files_own_mel_filters_are_used(converted: Path, tmp_path: Path) -> None:
    halves = (mel_filters(SPEC.n_mels) / 2).reshape(-1)
    path = edited(converted, tmp_path / "x.gguf", whisper__encoder__mel_filters=halves)
    samples = np.random.default_rng(7).standard_normal(16_000).astype(np.float32) * 0.1
    with load_whisper(path) as model:
        found = model._spectrogram(samples).mel
    expected = log_mel(samples, halves.reshape(SPEC.n_mels, 201), padding=SPEC.n_frames * 160)
    assert found.tobytes() == expected.tobytes()


def test_what_a_file_leaves_out_is_what_is_usual(converted: Path, tmp_path: Path) -> None:
    path = edited(
        converted,
        tmp_path / "x.gguf",
        whisper__encoder__mel_filters=None,
        whisper__alignment_heads=None,
        whisper__suppress_tokens=None,
        whisper__begin_suppress_tokens=None,
        whisper__is_multilingual=None,  # a vocabulary of this size is that of an English one
    )
    with load_whisper(path) as model:
        assert model._filters is mel_filters(SPEC.n_mels)
        assert not model.is_multilingual
        with pytest.raises(UnsupportedModelError, match="names no alignment_heads"):
            model.transcribe(np.zeros(16_000, np.float32), vad=False, word_timestamps=True)


@each_line(
    ("changes", "said"),
    [
        ({"whisper__encoder__mel_filters": np.zeros(3, np.float32)}, "must be 16080 finite"),
        ({"whisper__alignment_heads": np.array([1], np.int32)}, "must be pairs of a layer"),
        ({"whisper__alignment_heads": np.array([7, 0], np.int32)}, "no head 0 of layer 7"),
        ({"whisper__alignment_heads": "1,0"}, "must be an array of integers"),
        ({"whisper__is_multilingual": 1}, "must be true or false"),
        ({"whisper__encoder__block_count": None}, r"whisper\.encoder\.block_count is missing"),
        ({"whisper__encoder__block_count": 4000}, "is 4000; the file has"),
        ({"whisper__encoder__attention__head_count": 5}, "5, which does not divide"),
        ({"whisper__encoder__attention__head_count": 0}, "0, which does not divide"),
        ({"whisper__encoder__mel_count": 81}, r"encoder\.conv1\.weight is \[64, 240\]"),
        ({"whisper__encoder__context_length": 299}, r"position_embedding\.weight is \[300, 64\]"),
        ({"tokenizer__ggml__tokens": None}, "tokenizer.ggml.tokens is missing"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(
    converted: Path, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises((ModelFormatError, UnsupportedModelError), match=said):
        load_whisper(edited(converted, tmp_path / "x.gguf", **changes)).close()


def test_each_kind_of_model_names_what_loads_it(converted: Path) -> None:
    with pytest.raises(UnsupportedModelError, match=r"akunu\.load_whisper loads it"):
        akunu.load(converted)
    with pytest.raises(UnsupportedModelError, match=r"model of text .*; akunu\.load loads it"):
        load_whisper(PACKAGED_MODELS["ember"])


def test_the_commands_write_it_and_say_what_stays_as_it_is(folder: Path, tmp_path: Path) -> None:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "akunu", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done

    run("convert", folder, tmp_path / "whole.gguf")
    straight = run("quantize", folder, tmp_path / "straight.gguf", "Q4_0")
    run("quantize", tmp_path / "whole.gguf", tmp_path / "twice.gguf", "Q4_0")
    assert (tmp_path / "straight.gguf").read_bytes() == (tmp_path / "twice.gguf").read_bytes()
    assert "F16 in place of Q4_0" in straight.stderr
    assert "enc.conv1.weight, enc.conv2.weight" in straight.stderr


def test_rows_are_the_same_bits_whatever_is_beside_them(folder: Path, tmp_path: Path) -> None:
    file = made(folder, tmp_path / "model.gguf", "Q4_0")
    with load_whisper(file, threads=2) as model:
        check_windows_side_by_side(model, lambda: _core.SpeechWindow(mel_of(SPEC)))


def check_windows_side_by_side(
    model: SpeechModel, window: Callable[[], _core.SpeechWindow]
) -> None:
    native = model._open()
    texts = [np.array(tokens_of(SPEC, 3 + 7 * i), np.uint32) for i in range(5)]
    alone = [native.logits(text, window=window()) for text in texts]
    pending = [native.start_logits(text, window=window()) for text in texts]
    for one, other in zip(alone, pending, strict=True):
        assert one.tobytes() == other.result().tobytes()
