"""whisper-tiny.en on recordings of Debian's asterisk-core-sounds-en, against transformers.

`AKUNU_REAL_SPEECH` names their folder. Few of them run here, 200 with `-m slow`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import akunu
from akunu import _core
from akunu.speech.audio import load_audio
from akunu.speech.mel import WINDOW_SAMPLES, log_mel
from akunu.speech.model import SpeechModel

pytestmark = [pytest.mark.real, pytest.mark.oracle]

FIRST_TIMESTAMP = 50363
MENU = [
    (0.0, 3.12, "Please press 1 to mute or unmute yourself."),
    (3.12, 6.0, "2 to lock or unlock the conference."),
]


@pytest.fixture(scope="module")
def recordings() -> list[Path]:
    folder = os.environ.get("AKUNU_REAL_SPEECH")
    if not folder:
        pytest.skip("AKUNU_REAL_SPEECH names no folder of recordings")
    return sorted(path for path in Path(folder).rglob("*.wav") if path.stat().st_size > 20_000)


@pytest.fixture(scope="module")
def whisper(real_models: Path) -> Iterator[SpeechModel]:
    with akunu.load_whisper(real_models / "whisper-tiny.en", threads=2) as model:
        yield model


@pytest.fixture(scope="module")
def judge(transformers: Any, real_models: Path) -> Any:
    import torch

    return transformers.WhisperForConditionalGeneration.from_pretrained(
        real_models / "whisper-tiny.en", dtype=torch.float32
    ).eval()


@pytest.fixture(scope="module")
def by_transformers(transformers: Any, judge: Any) -> Callable[..., list[int]]:
    """Tokens of a recording of up to 30 seconds, greedy with timestamps."""
    import torch

    model = judge
    extractor = transformers.WhisperFeatureExtractor(feature_size=80)

    def tokens(samples: NDArray[np.float32]) -> list[int]:
        features = extractor(samples, sampling_rate=16_000, return_tensors="pt").input_features
        with torch.no_grad():
            found = model.generate(features, return_timestamps=True, num_beams=1, do_sample=False)
        return [int(token) for token in found[0] if token not in (50256, 50257)]

    return tokens


def greedy(model: SpeechModel, samples: NDArray[np.float32]) -> akunu.Transcription:
    return model.transcribe(
        samples,
        beam_size=1,
        temperature=0.0,
        vad=False,
        no_speech_threshold=None,
        condition_on_previous_text=False,
    )


def test_logits_of_given_texts_are_those_of_transformers(
    whisper: SpeechModel, judge: Any, recordings: list[Path]
) -> None:
    """Teacher-forced, beside float32; both have the weights of the file, which are F16."""
    import torch

    special = whisper._tokenizer.special
    errors, n_alike, n_tokens = [], 0, 0
    for path in recordings[::40]:
        samples = load_audio(path)[:WINDOW_SAMPLES]
        own = [token for segment in greedy(whisper, samples).segments for token in segment.tokens]
        text = [special.start, *own]
        mel = log_mel(samples, padding=WINDOW_SAMPLES - len(samples))
        with torch.no_grad():
            expected = judge(
                input_features=torch.from_numpy(mel)[None],
                decoder_input_ids=torch.tensor([text]),
            ).logits[0]
        window = _core.SpeechWindow(mel)
        found = whisper._open().logits(np.array(text, np.uint32), window=window)
        theirs = expected.numpy()
        errors.append(float(np.abs(found - theirs).max() / np.abs(theirs).max()))
        n_alike += int((found.argmax(axis=1) == theirs.argmax(axis=1)).sum())
        n_tokens += len(text)
    assert n_tokens > 100
    assert max(errors) <= 1e-2
    assert n_alike >= 0.98 * n_tokens


def test_a_menu_has_its_known_segments(whisper: SpeechModel, recordings: list[Path]) -> None:
    path = next(path for path in recordings if path.stem == "conf-adminmenu-162")
    said = greedy(whisper, load_audio(path))
    found = [(each.start, each.end, each.text.strip()) for each in said.segments]
    assert found[:2] == MENU
    start, end, text = found[-1]
    assert (start, text) == (19.04, "Or 8 to exit.")
    assert 20.7 <= end <= 20.82


@pytest.mark.parametrize(
    "n", [pytest.param(8, id="some"), pytest.param(200, id="200", marks=pytest.mark.slow)]
)
def test_texts_are_those_of_transformers(
    whisper: SpeechModel,
    recordings: list[Path],
    by_transformers: Callable[..., list[int]],
    n: int,
) -> None:
    """Greedy, in float32 there; here weights are F16 as in the file, and so is the cache."""
    chosen = recordings[:: max(1, len(recordings) // n)][:n]
    different = []
    for path in chosen:
        samples = load_audio(path)[:WINDOW_SAMPLES]
        said = greedy(whisper, samples)
        own = [token for segment in said.segments for token in segment.tokens]
        theirs = by_transformers(samples)
        text, other = (whisper._tokenizer.decode(tokens).strip() for tokens in (own, theirs))
        if text != other:
            different.append((path.stem, text, other))
    assert len(different) <= 0.02 * len(chosen), different


def test_texts_of_a_file_in_q8_0_are_those_of_the_directory(
    whisper: SpeechModel, recordings: list[Path], real_models: Path, tmp_path: Path
) -> None:
    from akunu.convert.directory_source import DirectorySource
    from akunu.convert.quantizing import Quantization, Wishes
    from akunu.convert.recipes import RECIPES

    file = tmp_path / "tiny.en-q8_0.gguf"
    source = DirectorySource(real_models / "whisper-tiny.en")
    Quantization(source, Wishes(recipe=RECIPES["Q8_0"])).write(file, threads=2)
    chosen = [load_audio(path) for path in recordings[:: len(recordings) // 8][:8]]
    expected = [greedy(whisper, samples).text for samples in chosen]
    with akunu.load_whisper(file, threads=2) as model:
        assert [greedy(model, samples).text for samples in chosen] == expected


def test_a_file_of_whisper_cpp_has_the_words_and_texts_of_the_directory(
    whisper: SpeechModel, recordings: list[Path], real_models: Path, tmp_path: Path
) -> None:
    from tools.make_whisper_cpp import write

    file = tmp_path / "ggml-tiny.en.bin"
    write(real_models / "whisper-tiny.en", file, "F16")
    chosen = [load_audio(path) for path in recordings[:: len(recordings) // 3][:3]]
    with akunu.load_whisper(file, threads=2) as model:
        own, other = model._tokenizer, whisper._tokenizer
        assert own.special == other.special
        assert own.never_written([-1]) == other.never_written([-1])
        assert own.never_first() == other.never_first()
        for text in (" Please press 1, or don't.", "naïve 日本語 \n\t x", " ♪ [Anna]"):
            assert own.encode(text) == other.encode(text)
            assert own.decode(own.encode(text)) == text
        for samples in chosen:
            one, two = (
                each.transcribe(
                    samples, beam_size=1, temperature=0.0, word_timestamps=True
                ).segments
                for each in (whisper, model)
            )
            assert one == two
