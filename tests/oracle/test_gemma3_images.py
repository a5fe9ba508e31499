"""Gemma 3 with its encoder of images, beside transformers."""

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
from dense_golden import tensor_of
from engine import BOUND_F32_CACHE, HERE, MUTATION_FACTOR, opened, relative_error
from image_models import (
    IMAGE,
    N_TOKENS,
    OF_IMAGES,
    SIDE,
    TEMPLATE,
    TEXT,
    VISION,
    drawn,
    encoded,
    placed,
    question,
    text,
    write_tokenizer,
)
from numpy.typing import NDArray
from PIL import Image

from akunu.images.reader import ImageReader, open_image
from akunu.text.request import Request as ChatRequest

pytestmark = pytest.mark.oracle


def model_of() -> Any:
    config = transformers.Gemma3Config(
        text_config=TEXT,
        vision_config=VISION,
        image_token_id=IMAGE,
        **OF_IMAGES,
        attn_implementation="eager",
    )
    model = transformers.Gemma3ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for key, weight in model.named_parameters():
            weight.copy_(torch.from_numpy(tensor_of(key, tuple(weight.shape))))
    return model


def pixels_of(image: Image.Image) -> NDArray[np.float32]:
    processor = transformers.models.gemma3.image_processing_pil_gemma3.Gemma3ImageProcessorPil(
        size={"height": SIDE, "width": SIDE}
    )
    values: NDArray[np.float32] = processor(image, return_tensors="np")["pixel_values"][0]
    return values


class Case:
    def __init__(self, folder: Path) -> None:
        self.model = model_of()
        self.path = folder / "model"
        self.model.save_pretrained(self.path)
        write_tokenizer(self.path)

    def logits(self, tokens: list[int], images: list[Image.Image]) -> NDArray[np.float32]:
        kinds = torch.tensor([[int(token == IMAGE) for token in tokens]])
        values = torch.from_numpy(np.stack([pixels_of(each) for each in images]))
        with torch.no_grad():
            found = self.model(torch.tensor([tokens]), pixel_values=values, token_type_ids=kinds)
        numbers: NDArray[np.float32] = found.logits[0].numpy()
        return numbers


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("gemma3"))


@pytest.fixture(params=HERE, scope="module")
def ours(request: pytest.FixtureRequest, case: Case) -> Iterator[Any]:
    with opened(case.path, device=request.param, kv_type="f32") as model:
        yield model


def test_pixels_are_those_of_transformers(ours: Any) -> None:
    preparation = ImageReader(ours._native, ours.path, ours.tokenizer).preparation
    for seed, size in enumerate([(90, 130), (300, 40), (112, 112)]):
        image = drawn(seed, size)
        found = preparation.settings.numbers(preparation.prepared(image).tiles[0])
        np.testing.assert_allclose(found, pixels_of(image), rtol=0, atol=1e-6)


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P"])
def test_files_are_opened_as_transformers_opens_them(
    tmp_path: Path, mode: str, orientation: int
) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "image.png"
    path.write_bytes(encoded(drawn(1).convert(mode), exif=exif))
    expected = transformers.image_utils.load_image(str(path))
    np.testing.assert_array_equal(np.array(open_image(path).convert("RGB")), np.array(expected))


def test_vectors_are_those_of_transformers(case: Case, ours: Any) -> None:
    tokens, images = text(5), [drawn(1)]
    ((_, read),) = given = placed(ours, tokens, images)
    ours._native.logits(np.array(tokens, np.uint32), len(tokens) - 1, images=given)
    with torch.no_grad():
        values = torch.from_numpy(pixels_of(images[0])[None])
        exact = case.model.model.get_image_features(values).pooler_output.numpy()
    assert relative_error(read.vectors.reshape(exact.shape), exact) <= BOUND_F32_CACHE


@pytest.mark.parametrize("between", [(0,), (5,), (3, 9), (30, 0)])
def test_logits_are_those_of_transformers(case: Case, ours: Any, between: tuple[int, ...]) -> None:
    tokens = text(*between)

    def logits(images: list[Image.Image]) -> Any:
        found = placed(ours, tokens, images)
        return ours._native.logits(np.array(tokens, np.uint32), 0, images=found)

    images = [drawn(seed) for seed in range(len(between))]
    exact = case.logits(tokens, images)
    assert relative_error(logits(images), exact) <= BOUND_F32_CACHE
    other = logits([*images[:-1], drawn(77)])
    assert relative_error(other[-7:], exact[-7:]) > MUTATION_FACTOR * BOUND_F32_CACHE


def test_chats_are_those_of_transformers(case: Case, ours: Any) -> None:
    images = [drawn(1), drawn(2)]
    messages = [question(*images)]
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(case.path / "tokenizer.json"), chat_template=TEMPLATE
    )
    shown = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    whole = f"\n\n<start_of_image>{'<image_soft_token>' * N_TOKENS}<end_of_image>\n\n"
    expected = tokenizer(shown.replace("<start_of_image>", whole), add_special_tokens=False)
    expected_ids = expected["input_ids"]
    assert expected_ids.count(IMAGE) == 2 * N_TOKENS
    prepared = ours._pipeline.prompt(ChatRequest(messages=messages))
    assert prepared.tokens.tolist() == expected_ids
    exact = case.logits(expected_ids, images)[-1]
    exact[list(ours.tokenizer.stop_ids)] = -np.inf
    reply = ours.chat(messages, max_tokens=1, ignore_eos=True)
    assert reply.prompt_tokens == len(expected_ids)
    assert reply.token_ids == (int(exact.argmax()),)
