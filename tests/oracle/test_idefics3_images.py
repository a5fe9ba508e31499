"""Idefics3 and SmolVLM with their encoder of images, compared with transformers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("PIL")

import numpy as np
import torch
import transformers
from engine import BOUND_F32_CACHE, HERE, MUTATION_FACTOR, opened, relative_error
from idefics3_models import IMAGE, n_tokens_of, side_of, write, write_settings
from image_models import drawn, question
from numpy.typing import NDArray
from PIL import Image

from akunu.images.reader import ImageReader
from akunu.text.request import Request as ChatRequest

pytestmark = pytest.mark.oracle

# Wider and higher than tiles, as large as one, tiny, a line, and a tower.
SIZES = [(300, 170), (90, 130), (56, 56), (1, 1), (1000, 3), (3, 1000), (48, 48), (225, 223)]


class Case:
    """A model in both programs, and its processor in transformers."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind = kind
        self.path = write(folder / kind, kind)
        self.model = transformers.AutoModelForImageTextToText.from_pretrained(
            self.path, attn_implementation="eager", dtype=torch.float32
        ).eval()

    def processor(self, path: Path | None = None) -> Any:
        names = {"smolvlm": "SmolVLM", "idefics3": "Idefics3"}
        of_images = getattr(transformers, f"{names[self.kind]}ImageProcessorPil")
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(self.path / "tokenizer.json")
        )
        # SmolVLM's writes the same prompts; it needs a package for videos and another for numerals.
        return transformers.Idefics3Processor(
            of_images.from_pretrained(path or self.path),
            tokenizer,
            image_seq_len=n_tokens_of(self.kind),
        )

    def inputs(self, images: list[Image.Image], text: str) -> Any:
        return self.processor()(
            text=text, images=images, return_tensors="pt", add_special_tokens=False
        )

    def logits(self, images: list[Image.Image], text: str) -> NDArray[np.float32]:
        with torch.no_grad():
            numbers: NDArray[np.float32] = self.model(**self.inputs(images, text)).logits[0].numpy()
        return numbers


@pytest.fixture(scope="module", params=["smolvlm", "idefics3"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("idefics3"), request.param)


@pytest.fixture(params=HERE, scope="module")
def ours(request: pytest.FixtureRequest, case: Case) -> Iterator[Any]:
    with opened(case.path, device=request.param, kv_type="f32", context=2048) as model:
        yield model


def marked(model: Any, tokens: Any) -> str:
    """A prompt as text, with one mark for each image."""
    fake, image = "<fake_token_around_image>", "(?:<image>)+"
    tiles = f"(?:{fake}<row_._col_.>{image}\\n?)*\\n?"
    text = model.tokenizer.decode(tokens.tolist())
    return re.sub(f"{tiles}{fake}<global-img>{image}{fake}", "<image>", text)


def prepared(model: Any, messages: list[dict[str, Any]]) -> Any:
    return model._pipeline.prompt(ChatRequest(messages=messages))


@pytest.mark.parametrize("is_split", [True, False])
def test_tiles_are_those_of_transformers(case: Case, tmp_path: Path, is_split: bool) -> None:
    folder = write(tmp_path / "model", case.kind)
    write_settings(folder, case.kind, do_image_splitting=is_split)
    processor = case.processor(folder).image_processor
    with opened(folder, device="cpu", context=64) as model:
        reader = ImageReader(model._native, model.path, model.tokenizer)
    for seed, size in enumerate(SIZES):
        exact = processor(drawn(seed, size), return_tensors="np", return_row_col_info=True)
        found = reader.preparation.prepared(drawn(seed, size))
        assert (found.rows, found.columns) == (exact["rows"][0][0], exact["cols"][0][0])
        numbers = [reader.preparation.settings.numbers(tile) for tile in found.tiles]
        assert exact["pixel_values"][0].shape == (len(numbers), 3, *[side_of(case.kind)] * 2)
        np.testing.assert_allclose(numbers, exact["pixel_values"][0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("sizes", [[(300, 170)], [(40, 40)], [(40, 90), (10, 10), (300, 20)]])
def test_prompts_are_those_of_transformers(
    case: Case, ours: Any, sizes: list[tuple[int, int]]
) -> None:
    images = [drawn(seed, size) for seed, size in enumerate(sizes)]
    tokens = prepared(ours, [question(*images)]).tokens
    exact = case.inputs(images, marked(ours, tokens))["input_ids"][0].tolist()
    found = tokens.tolist()
    assert found == exact
    assert found.count(IMAGE) % n_tokens_of(case.kind) == 0


@pytest.mark.parametrize("sizes", [[(300, 170)], [(40, 40)], [(40, 90), (10, 10)]])
def test_logits_are_those_of_transformers(
    case: Case, ours: Any, sizes: list[tuple[int, int]]
) -> None:
    images = [drawn(seed, size) for seed, size in enumerate(sizes)]
    prompt = prepared(ours, [question(*images)])
    text = marked(ours, prompt.tokens)

    def logits(given: Any) -> Any:
        return ours._native.logits(prompt.tokens, len(prompt.tokens) - 9, images=given.images)

    exact = case.logits(images, text)[-9:]
    assert relative_error(logits(prompt), exact) <= BOUND_F32_CACHE
    other = prepared(ours, [question(*images[:-1], drawn(77, sizes[-1]))])
    assert relative_error(logits(other), exact) > MUTATION_FACTOR * BOUND_F32_CACHE


def test_a_reply_begins_as_transformers_has_it(case: Case, ours: Any) -> None:
    images = [drawn(1, (200, 100))]
    prompt = prepared(ours, [question(*images)])
    text = marked(ours, prompt.tokens)
    exact = case.logits(images, text)[-1]
    exact[list(ours.tokenizer.stop_ids)] = -np.inf
    reply = ours.chat([question(*images)], max_tokens=1, ignore_eos=True)
    assert reply.token_ids == (int(exact.argmax()),)
