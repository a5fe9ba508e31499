"""Repositories without a GGUF file, whose folder of safetensors files is the model."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hub_server import Hub, Repo
from hub_support import EMBER, Done

sys.path.append(str(Path(__file__).parents[1] / "models"))

import encoder_models as em
import hf_directory
import numpy as np
from random_models import KINDS, random_weights

import akunu
from akunu import ArgumentError, LoadOptions, UnsupportedModelError
from akunu.hub.find import fetchable
from akunu.hub.watch import Watch
from akunu.loading import fetch

REPO = "small/Random"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, bytes]:
    """The files of a model in two parts."""
    spec = KINDS["llama-32"]
    folder = hf_directory.write(
        tmp_path / "model", spec, random_weights(spec, seed=1), dtype="BF16", n_files=2
    )
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Heard(Watch):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def say(self, text: str) -> None:
        self.sentences.append(text)


def test_the_files_of_the_model_are_fetched_and_no_others(
    hub: Hub, files: dict[str, bytes], tmp_path: Path
) -> None:
    more = {"pytorch_model.bin": b"x" * 999, "onnx/model.onnx": b"y", "README.md": b"# Random"}
    hub.repos[REPO] = Repo({**files, **more})
    heard = Heard()
    path = fetch(fetchable(REPO), LoadOptions(context=256), heard, must_fit=True)
    assert {each.name: each.read_bytes() for each in path.iterdir()} == files
    weights = sum(len(data) for name, data in files.items() if name.endswith(".safetensors"))
    assert heard.sentences[0] == (
        f"2 safetensors files of {weights / 2**20:.1f} MiB and 4 other files: the only model in it"
    )
    assert heard.sentences[1].startswith("it takes ")
    with akunu.load(tmp_path / "model") as model:
        expected = model.logits([1, 2, 3])
    with akunu.load(REPO, local_only=True) as model:
        np.testing.assert_array_equal(model.logits([1, 2, 3]), expected)
    (path / "model-00002-of-00002.safetensors").unlink()  # what is not whole is not here
    with pytest.raises(ArgumentError, match="not on this machine"):
        akunu.load(REPO, local_only=True)


def test_an_encoder_comes_with_what_says_how_it_embeds(hub: Hub, tmp_path: Path) -> None:
    """Without those files it would embed, in another way than it was trained for."""
    spec = em.EncoderSpec()
    folder = em.write_directory(
        tmp_path / "encoder",
        spec,
        em.random_tensors(spec),
        pooling="cls",
        prompts={"query": "a cat ", "document": ""},
    )
    dense = {"linear.weight": np.eye(8, spec.dim, dtype=np.float32)}
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense/config.json").write_text(
        json.dumps({"activation_function": "torch.nn.modules.linear.Identity", "bias": False})
    )
    em.write_safetensors(
        folder / "2_Dense/model.safetensors",
        {name: ("F32", each.shape, each.tobytes()) for name, each in dense.items()},
    )
    modules = json.loads((folder / "modules.json").read_text())
    kind = "sentence_transformers.models.Dense"
    modules.insert(2, {"idx": 2, "path": "2_Dense", "type": kind})
    (folder / "modules.json").write_text(json.dumps(modules))
    here = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    more = {"onnx/config.json": b"{}", "openvino/model.safetensors": b"x", "vocab.txt": b"x"}
    hub.repos[REPO] = Repo({**here, **more})
    path = akunu.pull(REPO)
    assert {
        str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()
    } == here
    with akunu.load(folder) as model, akunu.load(REPO, local_only=True) as fetched:
        assert fetched.embedding == model.embedding
        assert fetched.embedding.pooling == "cls"
        for prompt in (None, "query"):
            ours = fetched.embed("a dog", prompt_name=prompt)
            assert ours.shape == (8,)
            np.testing.assert_array_equal(ours, model.embed("a dog", prompt_name=prompt))


def test_a_directory_is_listed_planned_and_inspected(
    hub: Hub, files: dict[str, bytes], run_akunu: Callable[..., Done]
) -> None:
    hub.repos[REPO] = Repo(files)
    planned = json.loads(run_akunu("plan", REPO, "--json").stdout)
    assert planned["download_bytes"] == sum(map(len, files.values()))
    assert planned["formats"][0]["format"] == "BF16"
    assert hub.contents() == [] or all("bytes=" in each for each in hub.contents())
    assert run_akunu("pull", REPO).returncode == 0
    listed = json.loads(run_akunu("list", "--json").stdout)
    assert [each["name"] for each in listed if REPO in each["name"]] == [f"{REPO}:SAFETENSORS"]
    inspected = json.loads(run_akunu("inspect", REPO, "--json").stdout)
    assert inspected["metadata"]["model_type"] == "llama"
    assert inspected["run"]["config"]["architecture"] == "llama"


def test_a_gguf_file_beside_the_safetensors_files_is_the_model(
    hub: Hub, files: dict[str, bytes]
) -> None:
    hub.repos[REPO] = Repo({**files, "ember-q8_0.gguf": EMBER.read_bytes()})
    assert akunu.pull(REPO).name == "ember-q8_0.gguf"


def test_what_akunu_lacks_is_refused_before_the_download(hub: Hub, files: dict[str, bytes]) -> None:
    config = json.loads(files["config.json"]) | {"model_type": "phi9"}
    hub.repos[REPO] = Repo({**files, "config.json": json.dumps(config).encode()})
    with pytest.raises(UnsupportedModelError, match='model_type is "phi9"'):
        akunu.pull(REPO)
