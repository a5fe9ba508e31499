"""Models of speech of the hub and on this machine: directories, GGUF files and whisper.cpp's."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hub_server import Hub, Repo
from hub_support import Done

sys.path.append(str(Path(__file__).parents[1] / "models"))

import numpy as np
import speech_models as sm
import whisper_cpp_files as wf
from gguf import GGMLQuantizationType as Type

from akunu import ArgumentError, LoadOptions, ModelFormatError
from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES
from akunu.hub.choice import File, candidates, choose
from akunu.hub.find import fetchable
from akunu.hub.watch import Watch
from akunu.loading import fetch

REPO = "small/Whisper"
SPEC = sm.SpeechSpec(n_positions=60, n_encoder_layers=1, n_decoder_layers=3)
Run = Callable[..., Done]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sm.write(tmp_path_factory.mktemp("speech") / "model", SPEC, sm.random_tensors(SPEC))


@pytest.fixture(scope="module")
def gguf_file(folder: Path) -> Path:
    path = folder.parent / "model-Q8_0.gguf"
    Quantization(DirectorySource(folder), Wishes(recipe=RECIPES["Q8_0"])).write(path)
    return path


@pytest.fixture(scope="module")
def whisper_cpp_file(folder: Path) -> Path:
    """Of one layer on each side, with as many tokens as an English model has."""
    spec = wf.spec_of(n_positions=50, n_encoder_layers=1, n_decoder_layers=1)
    tensors = sm.random_tensors(spec)
    embedding = np.random.default_rng(1).standard_normal((51864, spec.dim)).astype(np.float32)
    tensors["model.decoder.embed_tokens.weight"] = embedding
    path = folder.parent / "ggml-small.en.bin"
    return wf.write(path, spec, tensors, Type.F16, listed=wf.words(50256))


class Heard(Watch):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def say(self, text: str) -> None:
        self.sentences.append(text)


def pulled(name: str) -> tuple[Path, list[str]]:
    heard = Heard()
    path = fetch(fetchable(name), LoadOptions(), heard, must_fit=True)
    return path, heard.sentences


def test_a_directory_is_pulled_listed_planned_and_inspected(
    hub: Hub, folder: Path, run_akunu: Run
) -> None:
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    hub.repos[REPO] = Repo(files)
    planned = json.loads(run_akunu("plan", REPO, "--json").stdout)
    assert (planned["architecture"], planned["trained_context"]) == ("whisper", SPEC.context)
    assert planned["memory_bytes"]["total"] > 0
    assert "speed" not in planned
    path, said = pulled(REPO)
    assert said[1].startswith("it transcribes speech, and takes ")
    assert {each.name for each in path.iterdir()} == files.keys()
    listed = json.loads(run_akunu("list", "--json").stdout)
    assert [each["loadable"] for each in listed if REPO in each["name"]] == [True]
    inspected = json.loads(run_akunu("inspect", REPO, "--json").stdout)
    assert inspected["run"]["config"]["architecture"] == "whisper"
    assert inspected["run"]["speech"] == {
        "mel_bands": 80,
        "frames": 120,
        "alignment_heads": 2,
        "languages": list(sm.LANGUAGES),
    }
    assert inspected["tokenizer"]["tokens"] == SPEC.first_timestamp


def test_a_gguf_file_is_pulled_planned_and_inspected(
    hub: Hub, gguf_file: Path, run_akunu: Run
) -> None:
    hub.repos[REPO] = Repo({gguf_file.name: gguf_file.read_bytes()})
    planned = json.loads(run_akunu("plan", REPO, "--json").stdout)
    path, said = pulled(REPO)
    assert said[1].startswith("it transcribes speech, and takes ")
    assert path.read_bytes() == gguf_file.read_bytes()
    inspected = json.loads(run_akunu("inspect", REPO, "--json").stdout)
    assert inspected["run"]["memory_bytes"] == planned["memory_bytes"]
    assert inspected["run"]["speech"]["alignment_heads"] == 2
    shown = run_akunu("inspect", str(gguf_file)).stdout
    assert "120 frames of 80 mel bands" in shown
    assert "by 2 heads" in shown


def test_a_file_of_whisper_cpp_is_pulled_and_inspected(
    hub: Hub, whisper_cpp_file: Path, run_akunu: Run
) -> None:
    content = whisper_cpp_file.read_bytes()
    hub.repos[REPO] = Repo({whisper_cpp_file.name: content, "ggml-tiny.bin": b"<html>"})
    planned = run_akunu("plan", f"{REPO}:small.en")
    assert planned.returncode == 1
    assert "`akunu pull small/Whisper:small.en` downloads it" in planned.stderr
    path, said = pulled(f"{REPO}:small.en")
    assert said[1].startswith("how much memory it needs is known only after")
    assert path.read_bytes() == content
    with pytest.raises(ModelFormatError, match=r"does not begin like a model of whisper\.cpp"):
        pulled(f"{REPO}:tiny")
    listed = json.loads(run_akunu("list", "--json").stdout)
    assert [each["loadable"] for each in listed if REPO in each["name"]] == [True]
    inspected = json.loads(run_akunu("inspect", f"{REPO}:small.en", "--json").stdout)
    assert inspected["metadata"]["n_text_layer"] == 1
    assert {each["format"] for each in inspected["formats"]} == {"F16", "F32"}
    assert inspected["tokenizer"]["tokens"] == 51864
    assert inspected["run"]["speech"]["languages"] == ["en"]
    assert "none: no heads are named" in run_akunu("inspect", str(whisper_cpp_file)).stdout
    here = json.loads(run_akunu("plan", f"{REPO}:small.en", "--json").stdout)
    assert here["memory_bytes"] == inspected["run"]["memory_bytes"]


def test_one_of_several_files_of_whisper_cpp_is_named() -> None:
    names = ("ggml-tiny.bin", "ggml-tiny-q5_1.bin", "ggml-base.en.bin", "coreml.bin", "a.mlmodel")
    models = candidates(File(name, 1) for name in names)
    assert [each.name for each in models] == sorted(names[:3])
    for wanted in ("base.en", "ggml-base.en.bin", "GGML-BASE.EN.BIN"):
        assert choose(models, wanted, REPO).candidate.name == "ggml-base.en.bin"
    assert choose(models, "q5_1", REPO).candidate.name == "ggml-tiny-q5_1.bin"
    with pytest.raises(ArgumentError, match="has no 'large'"):
        choose(models, "large", REPO)
