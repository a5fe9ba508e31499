"""Idefics3 and SmolVLM: images in tiles, whose rows see what is before them, as those of texts do.

What the model computes is held to transformers' numbers in tests/oracle/test_idefics3_images.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dense_golden import TOKENS
from engine import HERE, opened
from idefics3_models import SHAPES, side_of, write, write_gguf, write_settings
from image_models import drawn, question

import akunu
from akunu.images.preparation import Idefics3Preparation, Tiles
from akunu.text.request import Request as ChatRequest
from lines import each_line

WIDE = (300, 170)  # becomes several tiles and the whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("smolvlm") / "model")


@pytest.fixture(params=HERE, scope="module")
def model(request: pytest.FixtureRequest, folder: Path) -> Iterator[Any]:
    with opened(folder, device=request.param, kv_type="f32", context=2048) as opened_model:
        opened_model.of_test = request.param
        yield opened_model


def begun(model: Any, prompt: Any, n: int) -> Any:
    return model._native.start(
        prompt.tokens,
        max_tokens=n,
        stop_ids=[],
        sampling=akunu.SamplingOptions(temperature=20).packed(seed=1),
        logit_bias={},
        images=prompt.images,
    )


def taken(generation: Any) -> list[int]:
    found: list[int] = []
    while (more := generation.next()) is not None:
        found += more
    return found


def prompt_of(model: Any, *images: object) -> Any:
    return model._pipeline.prompt(ChatRequest(messages=[question(*images)]))


@pytest.mark.nightly_emulated
def test_bits_do_not_depend_on_company_or_on_what_was_cached(model: Any, folder: Path) -> None:
    prompts = [prompt_of(model, drawn(1, WIDE), drawn(2)), prompt_of(model, drawn(1, WIDE))]
    together = [begun(model, each, 30) for each in prompts]
    plain = model._native.start(
        np.array(TOKENS[:50], np.uint32), max_tokens=20, stop_ids=[], logit_bias={},
        sampling=akunu.SamplingOptions(temperature=20).packed(seed=1),
    )  # fmt: skip
    texts = [taken(each) for each in (*together, plain)]
    again = begun(model, prompts[0], 30)
    assert taken(again) == texts[0]
    assert again.cached_tokens == len(prompts[0].tokens) - 1
    with opened(folder, device=model.of_test, kv_type="f32", context=2048) as alone:
        for index, images in enumerate([(drawn(1, WIDE), drawn(2)), (drawn(1, WIDE),)]):
            assert taken(begun(alone, prompt_of(alone, *images), 30)) == texts[index]


def test_an_image_is_encoded_once_for_all_texts_with_it(model: Any) -> None:
    first = prompt_of(model, drawn(5, WIDE)).images
    second = prompt_of(model, drawn(6), drawn(5, WIDE)).images
    assert len(first) > 2
    assert [image for _, image in second][-len(first) :] == [image for _, image in first]


def test_files_in_gguf_compute_what_their_directory_does(model: Any, tmp_path: Path) -> None:
    folder = write(tmp_path / "model")
    halves = [0.5, 0.5, 0.5]
    write_settings(folder, "smolvlm", image_mean=halves, image_std=halves)
    write_gguf(folder, tmp_path)
    messages = [question(drawn(1, WIDE), drawn(2))]
    with opened(folder, device=model.of_test, kv_type="f32", context=2048) as of_folder:
        expected = of_folder.chat(messages, max_tokens=8, ignore_eos=True)
    with akunu.load(
        tmp_path / "text.gguf",
        mmproj=tmp_path / "mmproj.gguf",
        device=model.of_test,
        kv_type="f32",
        context=1024,
    ) as of_files:
        reply = of_files.chat(messages, max_tokens=8, ignore_eos=True)
    assert reply.prompt_tokens == expected.prompt_tokens
    assert reply.token_ids == expected.token_ids


@each_line(
    ("changes", "why"),
    [
        ({"scale_factor": 5}, "scale_factor"),
        ({"image_token_id": 331}, "image_token_id"),
        (
            {"vision_config": {**SHAPES["smolvlm"]["vision_config"], "hidden_act": "relu"}},
            "hidden_act",
        ),
        (
            {"vision_config": {**SHAPES["smolvlm"]["vision_config"], "model_type": "clip"}},
            "model_type",
        ),
    ],
)
def test_encoders_that_are_not_known_are_refused(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    path = write(tmp_path / "model", **changes)
    with pytest.raises((akunu.ModelFormatError, akunu.UnsupportedModelError), match=why):
        akunu.load(path, device="cpu", context=64)


@each_line(
    ("changes", "why"),
    [
        ({"max_image_size": {"longest_edge": 10}}, "max_image_size"),
        ({"size": {"height": 20, "width": 20}}, "longest_edge"),
        ({"size": {"longest_edge": 5000}}, "1 to 4096"),
        ({"size": {"longest_edge": True}}, "1 to 4096"),
    ],
)
def test_settings_that_are_not_known_are_refused(
    model: Any, tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    path = write(tmp_path / "model")
    write_settings(path, "smolvlm", **changes)
    with pytest.raises(akunu.UnsupportedModelError, match=why):
        Idefics3Preparation(path, model.tokenizer, Tiles(side_of("smolvlm"), 7, 2, 64, 0))
