"""Qwen2-VL with its encoder of images, compared with transformers."""

from __future__ import annotations

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
from image_models import drawn, question
from numpy.typing import NDArray
from PIL import Image
from qwen2_vl_models import IMAGE, SHAPES, write

from akunu import ArgumentError
from akunu.images.reader import ImageReader
from akunu.text.request import Request as ChatRequest

pytestmark = pytest.mark.oracle

# Within the limits of pixels, above and below them, very wide, very high, sides to round up.
SIZES = [(60, 45), (300, 170), (40, 70), (1, 1), (1000, 7), (7, 1000), (12, 13), (225, 223)]


class Case:
    """A model in both programs, and its image processor in transformers."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.path = write(folder / kind, kind)
        self.merged = SHAPES[kind]["spatial_merge_size"] ** 2
        self.processor = transformers.Qwen2VLImageProcessorPil.from_pretrained(self.path)
        self.model = transformers.Qwen2VLForConditionalGeneration.from_pretrained(
            self.path, attn_implementation="eager", dtype=torch.float32
        ).eval()

    def logits(self, images: list[Image.Image], tokens: NDArray[np.uint32]) -> NDArray[np.float32]:
        ids = torch.tensor(tokens.astype(np.int64))[None]
        inputs = self.processor(images, return_tensors="pt") if images else {}
        with torch.no_grad():
            made = self.model(
                input_ids=ids, mm_token_type_ids=(ids == IMAGE).int(), **inputs
            ).logits
        numbers: NDArray[np.float32] = made[0].numpy()
        return numbers


@pytest.fixture(scope="module", params=sorted(SHAPES))
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("qwen2_vl"), request.param)


@pytest.fixture(params=HERE, scope="module")
def ours(request: pytest.FixtureRequest, case: Case) -> Iterator[Any]:
    with opened(case.path, device=request.param, kv_type="f32", context=2048) as model:
        yield model


def prepared(model: Any, messages: list[dict[str, Any]]) -> Any:
    return model._pipeline.prompt(ChatRequest(messages=messages))


def test_patches_are_those_of_transformers(case: Case) -> None:
    with opened(case.path, device="cpu", context=64) as model:
        reader = ImageReader(model._native, model.path, model.tokenizer)
    for seed, size in enumerate(SIZES):
        exact = case.processor([drawn(seed, size)], return_tensors="np")
        (tile,) = reader.preparation.prepared(drawn(seed, size)).tiles
        found = reader.patches(reader.preparation.settings.numbers(tile))
        _, height, width = exact["image_grid_thw"][0] * reader.preparation._tiles.patch
        assert tile.shape == (height, width, 3)
        np.testing.assert_allclose(found, exact["pixel_values"], rtol=0, atol=1e-5)


def test_an_image_like_a_line_is_refused(case: Case) -> None:
    with opened(case.path, device="cpu", context=64) as model:
        reader = ImageReader(model._native, model.path, model.tokenizer)
        with pytest.raises(ArgumentError, match="at most 200 times"):
            reader.open(drawn(1, (3000, 10)))


@pytest.mark.parametrize("sizes", [[(60, 45)], [(40, 300)], [(60, 45), (10, 10), (90, 40)]])
def test_logits_are_those_of_transformers(
    case: Case, ours: Any, sizes: list[tuple[int, int]]
) -> None:
    images = [drawn(seed, size) for seed, size in enumerate(sizes)]
    prompt = prepared(ours, [question(*images)])
    grids = case.processor(images, return_tensors="np")["image_grid_thw"]
    assert (prompt.tokens == IMAGE).sum() == (grids.prod(axis=1) // case.merged).sum()

    def logits(given: Any) -> Any:
        return ours._native.logits(given.tokens, len(given.tokens) - 9, images=given.images)

    exact = case.logits(images, prompt.tokens)[-9:]
    assert relative_error(logits(prompt), exact) <= BOUND_F32_CACHE
    other = prepared(ours, [question(*images[:-1], drawn(77, sizes[-1]))])
    assert relative_error(logits(other), exact) > MUTATION_FACTOR * BOUND_F32_CACHE


def test_a_reply_continues_as_transformers_has_it(case: Case, ours: Any) -> None:
    image = drawn(1, (200, 100))
    tokens = prepared(ours, [question(image)]).tokens
    reply = ours.chat([question(image)], max_tokens=5, ignore_eos=True)
    for token in reply.token_ids:
        exact = case.logits([image], tokens)[-1]
        exact[list(ours.tokenizer.stop_ids)] = -np.inf
        assert token == int(exact.argmax())
        tokens = np.append(tokens, np.uint32(token))


def test_a_text_has_the_same_bits_alone_in_company_and_from_the_cache(ours: Any) -> None:
    questions = [[question(drawn(seed, (60 + 9 * seed, 45)))] for seed in range(3)]
    alone = [ours.chat(each, max_tokens=6, logprobs=2) for each in questions]
    for found, expected in zip(ours.chat(questions, max_tokens=6, logprobs=2), alone, strict=True):
        assert found.token_ids == expected.token_ids
        assert found.logprobs == expected.logprobs
        assert found.cached_tokens > expected.prompt_tokens // 2
