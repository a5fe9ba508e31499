"""Small random Whisper models through the engine, against their mathematics in NumPy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import speech_models as sm
from measured_errors import record
from numpy.typing import NDArray

import akunu
from akunu import ArgumentError, ModelFormatError, UnsupportedModelError, _core
from akunu.options.text_options import SamplingOptions
from akunu.speech.mel import HOP, log_mel
from akunu.speech.model import SpeechModel, load_whisper
from akunu.speech.segment_stream import SegmentStream
from akunu.speech.transcriber import split_text
from lines import each_line

SPEC = sm.SpeechSpec()
TENSORS = sm.random_tensors(SPEC)
ENGLISH = sm.SpeechSpec(is_multilingual=False, n_mels=128)
FIRST = SPEC.first_timestamp
SECONDS = SPEC.n_frames * HOP / 16_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sm.write(tmp_path_factory.mktemp("whisper") / "model", SPEC, TENSORS)


@pytest.fixture(scope="module")
def model(folder: Path) -> Iterator[SpeechModel]:
    with load_whisper(folder, threads=2, kv_type="f32") as loaded:
        yield loaded


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpeechModel]:
    path = sm.write(tmp_path_factory.mktemp("en") / "model", ENGLISH, sm.random_tensors(ENGLISH))
    with load_whisper(path, threads=1) as loaded:
        yield loaded


def noise(seconds: float, seed: int = 0) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(round(seconds * 16_000)) * 0.1).astype(np.float32)


def mel_of(seed: int, spec: sm.SpeechSpec = SPEC) -> NDArray[np.float32]:
    return log_mel(noise(spec.n_frames * HOP / 16_000, seed), n_mels=spec.n_mels)


def some_tokens(n: int, seed: int = 0) -> list[int]:
    rng = np.random.default_rng(seed)
    return [SPEC.token("<|startoftranscript|>"), *rng.integers(0, SPEC.vocab_size, n - 1).tolist()]


def logits(
    model: SpeechModel, window: _core.SpeechWindow, tokens: list[int]
) -> NDArray[np.float32]:
    return model._open().logits(np.array(tokens, np.uint32), window=window)


@pytest.mark.nightly_emulated("17")
@pytest.mark.parametrize("n", [1, 2, 17, 64])
def test_logits_are_those_of_the_formula(folder: Path, device: str, n: int) -> None:
    mel, tokens = mel_of(1), some_tokens(n)
    expected = sm.Forward(SPEC, TENSORS).logits(mel, tokens)
    with load_whisper(folder, device=device, threads=1, kv_type="f32") as model:
        found = logits(model, _core.SpeechWindow(mel), tokens)
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    assert error <= 2e-4
    if n == 64:
        record("whisper", "safetensors F32", device, error)


@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_halves_and_128_mel_bands(tmp_path: Path, dtype: str) -> None:
    spec = sm.SpeechSpec(n_mels=128, is_multilingual=False)
    path = sm.write(tmp_path / "model", spec, sm.random_tensors(spec), dtype=dtype)
    rounded = {
        name: data.astype(np.float16).astype(np.float32)
        if dtype == "F16"
        else ((data.view(np.uint32) + 0x8000) & 0xFFFF0000).view(np.float32)
        for name, data in sm.random_tensors(spec).items()
    }
    mel, tokens = mel_of(2, spec), some_tokens(20)
    expected = sm.Forward(spec, rounded).logits(mel, tokens)
    with load_whisper(path, threads=1) as model:
        found = logits(model, _core.SpeechWindow(mel), tokens)
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    assert error <= 1e-2
    record("whisper", f"safetensors {dtype}", "cpu", error)


def test_a_window_has_the_same_bits_whatever_is_beside_it(model: SpeechModel) -> None:
    native = model._open()
    windows = [_core.SpeechWindow(mel_of(seed)) for seed in range(9)]
    texts = [np.array(some_tokens(3 + 5 * i, i), np.uint32) for i in range(9)]
    alone = [native.logits(text, window=w) for text, w in zip(texts, windows, strict=True)]
    # More windows than the cache has room for: some are encoded again.
    pending = [native.start_logits(t, window=w) for t, w in zip(texts, windows, strict=True)]
    for one, other in zip(alone, pending, strict=True):
        assert one.tobytes() == other.result().tobytes()


def test_windows_are_encoded_while_others_write(model: SpeechModel) -> None:
    native = model._open()
    windows = [_core.SpeechWindow(mel_of(seed)) for seed in range(5)]

    def begun(window: _core.SpeechWindow) -> _core.Generation:
        return native.start(
            np.array(some_tokens(3), np.uint32),
            max_tokens=60,
            stop_ids=[],
            sampling=SamplingOptions(temperature=20.0).packed(seed=1),
            logit_bias={},
            window=window,
        )

    def taken(generation: _core.Generation) -> list[int]:
        found: list[int] = []
        while (more := generation.next()) is not None:
            found += more
        return found

    alone = [taken(begun(window)) for window in windows]
    fresh = [_core.SpeechWindow(mel_of(seed)) for seed in range(5)]
    first, *others = [begun(window) for window in fresh]
    assert [taken(each) for each in (first, *others)] == alone


def test_windows_are_encoded_once_for_several_texts(model: SpeechModel) -> None:
    native, window = model._open(), _core.SpeechWindow(mel_of(3))
    text = np.array(some_tokens(8), np.uint32)
    both = [native.start_logits(text, window=window) for _ in range(2)]
    first, second = (pending.result() for pending in both)
    assert first.tobytes() == second.tobytes()


def test_beams_of_six_windows_are_continued_where_they_ended(model: SpeechModel) -> None:
    """Each step's text but for its last token is in the cache, whatever other windows do."""
    native = model._open()
    windows = [_core.SpeechWindow(mel_of(seed)) for seed in range(6)]
    texts = [(window, some_tokens(12, i)) for i, window in enumerate(windows) for _ in range(5)]
    for step in range(6):
        for i, (_, text) in enumerate(texts):
            text.append((7 * i + step) % SPEC.vocab_size)
        steps = [
            native.start(
                np.array(text, np.uint32),
                max_tokens=1,
                stop_ids=[],
                sampling=SamplingOptions(temperature=0.0).packed(seed=0),
                logit_bias={},
                window=window,
            )
            for window, text in texts
        ]
        for each in steps:
            while each.next() is not None:
                pass
        if step > 0:
            assert [each.cached_tokens for each in steps] == [len(text) - 1 for _, text in texts]


def transcribed(model: SpeechModel, samples: NDArray[np.float32], **options: object) -> list[int]:
    said = model.transcribe(samples, vad=False, no_speech_threshold=None, **options)  # type: ignore[call-overload]
    return [token for segment in said.segments for token in segment.tokens]


def test_a_text_is_what_the_rules_allow_of_the_formula(model: SpeechModel) -> None:
    """Greedy, step by step on the logits of the formula; the engine's chain agrees."""
    samples = noise(SECONDS, 5)
    forward = sm.Forward(SPEC, TENSORS)
    mel = log_mel(samples, n_mels=SPEC.n_mels, padding=SPEC.n_frames * HOP)[:, : SPEC.n_frames]
    prompt = [SPEC.token(f"<|{each}|>") for each in ("startoftranscript", "de", "transcribe")]
    native = model._open()
    banned = model._tokenizer.never_written([-1])
    rules = _core.TranscriptionRules(
        first_timestamp=FIRST,
        end_of_text=sm.N_BYTES,
        last_initial=FIRST + 50,
        n_before=len(prompt),
        banned=banned,
        banned_first=[32, sm.N_BYTES],
    )
    generation = native.start(
        np.array(prompt, np.uint32),
        max_tokens=12,
        stop_ids=[sm.N_BYTES],
        sampling=akunu.SamplingOptions(temperature=0).packed(seed=0),
        logit_bias={},
        window=_core.SpeechWindow(mel),
        rules=rules,
    )
    found: list[int] = []
    while (more := generation.next()) is not None:
        found += more
    for i, token in enumerate(found):
        step = forward.logits(mel, prompt + found[:i])[-1]
        step[banned] = -np.inf
        assert allowed(step, found[:i])[token] >= allowed(step, found[:i]).max() - 1e-3


def allowed(step: NDArray[np.float64], chosen: list[int]) -> NDArray[np.float64]:
    """Whisper's rules of timestamps, by their description."""
    step = step.copy()
    stamps = [token for token in chosen if token >= FIRST]
    if not chosen:
        step[:FIRST] = step[FIRST + 51 :] = -np.inf
    elif chosen[-1] >= FIRST and (len(chosen) < 2 or chosen[-2] >= FIRST):
        step[FIRST:] = -np.inf
    elif chosen[-1] >= FIRST:
        step[: sm.N_BYTES] = -np.inf
    if stamps:
        repeats = chosen[-1] >= FIRST and len(chosen) >= 2 and chosen[-2] < FIRST
        step[FIRST : stamps[-1] + (not repeats)] = -np.inf
    of_time = step[FIRST:][step[FIRST:] > -np.inf]
    if len(of_time) and np.log(np.exp(of_time).sum()) > step[:FIRST].max():
        step[:FIRST] = -np.inf
    return step


def test_long_audio_is_heard_to_its_end(model: SpeechModel) -> None:
    told: list[tuple[float, float]] = []
    said = model.transcribe(
        noise(3.3 * SECONDS),
        language="de",
        temperature=0.0,
        vad=False,
        no_speech_threshold=None,
        progress=lambda *at: told.append(at),
    )
    assert said.language == "de"
    assert said.duration == pytest.approx(3.3 * SECONDS)
    starts = [segment.start for segment in said.segments]
    assert starts == sorted(starts)
    assert [segment.id for segment in said.segments] == list(range(len(starts)))
    assert told[-1] == (said.duration, said.duration)
    assert said.statistics["windows"] >= 4


def test_streams_are_the_same_text_and_can_be_left(model: SpeechModel) -> None:
    options = {"language": "en", "temperature": 0.0, "vad": False, "no_speech_threshold": None}
    samples = noise(2.5 * SECONDS, 3)
    whole = model.transcribe(samples, **options)  # type: ignore[call-overload]
    stream = model.transcribe(samples, stream=True, **options)  # type: ignore[call-overload]
    first = next(stream)
    assert first == whole.segments[0]
    assert stream.result().segments == whole.segments
    assert stream.transcription.segments == whole.segments
    for leave in (SegmentStream.cancel, SegmentStream.close):
        left = model.transcribe(samples, stream=True, **options)  # type: ignore[call-overload]
        next(left)
        leave(left)
        with pytest.raises(akunu.AkunuError, match="cancelled"):
            left.result()


def test_coroutines_have_the_same_text(model: SpeechModel) -> None:
    options = {"language": "en", "temperature": 0.0, "vad": False, "no_speech_threshold": None}

    async def several() -> list[akunu.Transcription]:
        jobs = [model.transcribe_async(noise(SECONDS, seed), **options) for seed in range(3)]
        return await asyncio.gather(*jobs)

    together = asyncio.run(several())
    for seed, said in enumerate(together):
        alone = model.transcribe(noise(SECONDS, seed), **options)  # type: ignore[call-overload]
        assert said.segments == alone.segments


def test_what_is_drawn_depends_on_the_seed_alone(model: SpeechModel) -> None:
    options = {"language": "en", "temperature": 0.8, "best_of": 3}
    one = transcribed(model, noise(SECONDS), seed=1, **options)
    assert transcribed(model, noise(SECONDS), seed=1, **options) == one
    assert transcribed(model, noise(SECONDS), seed=2, **options) != one


def test_windows_that_repeat_themselves_are_drawn_again(model: SpeechModel) -> None:
    said = model.transcribe(
        noise(SECONDS),
        language="en",
        temperature=(0.0, 1.0),
        compression_ratio_threshold=0.01,
        vad=False,
        no_speech_threshold=None,
    )
    assert said.statistics["failed_windows"] == said.statistics["windows"]


def test_prompt_prefix_and_hotwords_come_before_the_text(model: SpeechModel) -> None:
    plain = transcribed(model, noise(SECONDS), language="en", temperature=0.0)
    for option in ({"prompt": "Hello"}, {"hotwords": "akunu"}, {"prefix": "He"}):
        assert transcribed(model, noise(SECONDS), language="en", temperature=0.0, **option) != plain
    with pytest.raises(ArgumentError, match="prompt has 40 tokens; there is room for 31"):
        model.transcribe(noise(SECONDS), prompt="x" * 39)


def test_languages_have_probabilities(model: SpeechModel, english: SpeechModel) -> None:
    assert model.languages == sm.LANGUAGES
    samples = noise(SECONDS)
    found = model.detect_language(samples)
    assert set(found) == set(sm.LANGUAGES)
    assert sum(found.values()) == pytest.approx(1)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    mel = log_mel(samples, n_mels=SPEC.n_mels, padding=SPEC.n_frames * HOP)[:, : SPEC.n_frames]
    exact = sm.Forward(SPEC, TENSORS).logits(mel, [SPEC.token("<|startoftranscript|>")])[0]
    weights = np.exp([exact[SPEC.token(f"<|{code}|>")] for code in found])
    np.testing.assert_allclose(list(found.values()), weights / weights.sum(), rtol=1e-3)
    said = model.transcribe(samples, vad=False, temperature=0.0)
    assert said.language == next(iter(found))
    assert said.language_probability == pytest.approx(next(iter(found.values())))
    assert english.languages == ("en",)
    with pytest.raises(UnsupportedModelError, match="only English"):
        english.detect_language(samples)


@pytest.mark.parametrize("samples", [np.zeros(1, np.float32), np.zeros(16_000, np.float32)])
def test_silence_has_no_text(english: SpeechModel, samples: NDArray[np.float32]) -> None:
    said = english.transcribe(samples)
    assert (said.text, said.segments, said.language) == ("", (), "en")
    assert said.duration_after_vad == 0


@each_line(
    ("option", "message"),
    [
        ({"language": "xx"}, "language is 'xx'; this model knows en, zh"),
        ({"task": "sing"}, "task is 'sing'"),
        ({"best_of": 0}, "best_of is 0"),
        ({"temperature": ()}, r"temperature is \(\)"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"suppress_tokens": [10**6]}, "suppress_tokens has 1000000"),
        ({"max_initial_timestamp": -1}, "max_initial_timestamp is -1"),
        ({"vad": "loud"}, "vad must be"),
        ({"prefix": 5}, "prefix is 5"),
    ],
)
def test_options_that_make_no_sense_are_named(
    model: SpeechModel, option: dict[str, object], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        model.transcribe(noise(0.1), **option)  # type: ignore[call-overload]


def test_english_models_refuse_what_they_do_not_know(english: SpeechModel) -> None:
    for option in ({"language": "de"}, {"task": "translate"}):
        with pytest.raises(ArgumentError, match="only English"):
            english.transcribe(noise(0.1), **option)  # type: ignore[call-overload]


def test_what_is_no_whisper_model_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="model of text"):
        load_whisper(akunu.hub.packaged_models.PACKAGED_MODELS["ember"])
    with pytest.raises(ArgumentError, match="no such file"):
        load_whisper(tmp_path / "nowhere")
    other = sm.write(tmp_path / "model", SPEC, TENSORS)
    (other / "tokenizer.json").unlink()
    with pytest.raises(ModelFormatError, match=r"tokenizer.json is missing"):
        load_whisper(other)
    config = json.loads((folder / "config.json").read_text())
    for key, value, error in (
        ("activation_function", "relu", UnsupportedModelError),
        ("scale_embedding", True, UnsupportedModelError),
        ("encoder_layers", 0, ModelFormatError),
        ("encoder_attention_heads", 5, ModelFormatError),
        ("num_mel_bins", 81, ModelFormatError),
    ):
        (other / "config.json").write_text(json.dumps(config | {key: value}))
        with pytest.raises(error, match=key if key != "num_mel_bins" else "conv1"):
            load_whisper(other)


def test_a_text_needs_a_window_of_the_model_s_size(model: SpeechModel) -> None:
    tokens = np.array(some_tokens(2), np.uint32)
    with pytest.raises(ArgumentError, match="needs a window of audio"):
        model._open().logits(tokens)
    short = _core.SpeechWindow(np.zeros((SPEC.n_mels, 5), np.float32))
    with pytest.raises(ArgumentError, match="a window has 400 numbers"):
        model._open().logits(tokens, window=short)


def test_a_closed_model_says_so(folder: Path) -> None:
    model = load_whisper(folder)
    assert model.memory["total"] > 0
    model.close()
    with pytest.raises(akunu.AkunuError, match="closed"):
        model.transcribe(noise(0.1))


@pytest.mark.parametrize(
    ("tokens", "parts", "done"),
    [
        ([FIRST, 7, 8], [(0, 300, (FIRST, 7, 8))], 300),
        ([FIRST, 7, FIRST + 20], [(0, 40, (FIRST, 7, FIRST + 20))], 300),
        ([], [(0, 300, ())], 300),
        (
            [FIRST, 7, FIRST + 20, FIRST + 20, 8],
            [(0, 40, (FIRST, 7, FIRST + 20))],
            40,
        ),
        (
            [FIRST + 1, 7, FIRST + 20, FIRST + 25, 8, FIRST + 30],
            [(2, 40, (FIRST + 1, 7, FIRST + 20)), (50, 60, (FIRST + 25, 8, FIRST + 30))],
            300,
        ),
        # Times behind the audio, in the silence that fills the window.
        ([FIRST, 7, FIRST + 400], [(0, 300, (FIRST, 7, FIRST + 400))], 300),
        (
            [FIRST, 7, FIRST + 149, FIRST + 160, 8, FIRST + 900],
            [(0, 298, (FIRST, 7, FIRST + 149)), (300, 300, (FIRST + 160, 8, FIRST + 900))],
            300,
        ),
    ],
)
def test_texts_are_split_at_pairs_of_timestamps(
    tokens: list[int], parts: list[tuple[int, int, tuple[int, ...]]], done: int
) -> None:
    assert split_text(tokens, FIRST, 300) == (parts, done)


def test_words_have_times_within_their_segments(model: SpeechModel) -> None:
    samples = noise(2.5 * SECONDS, 4)
    options = {"language": "en", "temperature": 0.0, "vad": False, "no_speech_threshold": None}
    said = model.transcribe(samples, word_timestamps=True, **options)  # type: ignore[call-overload]
    assert said.words
    for segment in said.segments:
        assert segment.words is not None
        assert "".join(word.word for word in segment.words) == segment.text
        for word in segment.words:
            assert segment.start <= word.start <= word.end <= segment.end
            assert 0 <= word.probability <= 1
    starts = [word.start for word in said.words]
    assert starts == sorted(starts)


def test_where_rows_listen_is_the_softmax_of_the_formula(model: SpeechModel) -> None:
    """Heads of two layers, in rows that two steps take."""
    mel, tokens = mel_of(6), some_tokens(50)
    window = _core.SpeechWindow(mel)
    pending = model._open().start_alignment(np.array(tokens, np.uint32), window)
    found = pending.result().reshape(50, 2, SPEC.n_positions)
    expected = sm.Forward(SPEC, TENSORS).listening(mel, tokens, [(1, 0), (2, 3)])
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-6)


def test_beams_find_likelier_texts(model: SpeechModel) -> None:
    """And the log-probability that is told is that of the text, whoever found it."""
    options = {"language": "en", "vad": False, "no_speech_threshold": None, "temperature": 0.0}
    better = 0
    for seed in range(4):
        said = [
            model.transcribe(noise(SECONDS, seed), beam_size=n, **options)  # type: ignore[call-overload]
            for n in (1, 4)
        ]
        one, four = (each.segments[0].avg_logprob for each in said)
        better += four > one
        assert four >= one - 0.05
    assert better > 0


def test_a_text_that_no_temperature_passes_is_no_prompt(model: SpeechModel) -> None:
    """As in faster-whisper: what repeats itself would be repeated again, or left out."""
    options = {
        "language": "en",
        "vad": False,
        "no_speech_threshold": None,
        "compression_ratio_threshold": 1e-3,  # everything repeats itself
    }
    for last, is_prompt in ((1.0, False), (0.4, True)):
        said, alone = (
            model.transcribe(  # type: ignore[call-overload]
                noise(3 * SECONDS, 5),
                temperature=(0.0, last),
                condition_on_previous_text=on,
                **options,
            )
            for on in (True, False)
        )
        assert (said.text != alone.text) is is_prompt, last


def test_stretches_side_by_side_are_those_of_the_audio(model: SpeechModel) -> None:
    """Each is what it would be alone, in order, with the times of the whole audio."""
    silence = np.zeros(3 * 16_000, np.float32)
    stretches = [noise(2.0, seed) * 3 for seed in range(4)]
    samples = np.concatenate([part for each in stretches for part in (silence, each)])
    options = {"language": "en", "temperature": 0.0, "no_speech_threshold": None}
    many = model.transcribe(samples, batch=3, **options)  # type: ignore[call-overload]
    again = model.transcribe(samples, batch=2, **options)  # type: ignore[call-overload]
    assert many.segments == again.segments
    assert many.segments
    assert [segment.id for segment in many.segments] == list(range(len(many.segments)))
    assert all(segment.start >= 2.5 for segment in many.segments)
    with pytest.raises(ArgumentError, match="vad is False"):
        model.transcribe(samples, batch=2, vad=False)


def test_speech_with_short_pauses_is_decoded_side_by_side(model: SpeechModel) -> None:
    """One window at a time takes it for one stretch, which several cannot share."""
    pause = np.zeros(8_000, np.float32)
    samples = np.concatenate([part for seed in range(8) for part in (pause, noise(2.0, seed) * 3)])
    options = {"language": "en", "temperature": 0.0, "no_speech_threshold": None}
    said = model.transcribe(samples, batch=3, **options)  # type: ignore[call-overload]
    windows = [segment.seek * HOP / 16_000 for segment in said.segments]
    assert len(set(windows)) >= 4  # 20 seconds in windows of 6
    assert windows == sorted(windows)
    assert said.segments[-1].end > 14.0
    assert all(each.end - each.start <= SECONDS for each in said.segments)
