"""Images in conversations: how they come, what the cache knows of them, and what is refused.

What the encoder computes is compared with transformers in tests/oracle/test_gemma3_images.py.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dense_golden import TOKENS
from engine import BOUND_F16_CACHE, BOUND_F32_CACHE, HERE, opened, relative_error
from image_models import (
    IMAGE,
    N_TOKENS,
    PATCH,
    SIDE,
    TEXT,
    VISION,
    drawn,
    encoded,
    placed,
    question,
    text,
    url_of,
    write,
    write_mmproj,
)
from numpy.typing import NDArray
from PIL import Image

import akunu
from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES, is_quantised
from akunu.images.preparation import Gemma3Preparation, Tiles
from akunu.images.reader import MOST_IMAGES, ImageReader, open_image
from lines import each_line


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("images") / "model")


@pytest.fixture(params=HERE, scope="module")
def model(request: pytest.FixtureRequest, folder: Path) -> Iterator[Any]:
    with opened(folder, device=request.param, kv_type="f32") as opened_model:
        opened_model.of_test = request.param
        yield opened_model


def logits(
    model: Any, tokens: list[int], images: list[Image.Image], first: int = 0
) -> NDArray[np.float32]:
    found: NDArray[np.float32] = model._native.logits(
        np.array(tokens, np.uint32), first, images=placed(model, tokens, images)
    )
    return found


def begun(model: Any, tokens: list[int], n: int, images: Any = ()) -> Any:
    return model._native.start(
        np.array(tokens, np.uint32),
        max_tokens=n,
        stop_ids=[],
        sampling=akunu.SamplingOptions(temperature=20).packed(seed=1),
        logit_bias={},
        images=images,
    )


def taken(generation: Any) -> list[int]:
    found: list[int] = []
    while (more := generation.next()) is not None:
        found += more
    return found


@pytest.mark.nightly_emulated
def test_a_beginning_is_taken_over_with_the_same_image_only(model: Any) -> None:
    tokens, images = text(20, 30), [drawn(1), drawn(2)]

    def run(images: list[Image.Image]) -> tuple[list[int], int]:
        generation = begun(model, tokens, 6, placed(model, tokens, images))
        return taken(generation), generation.cached_tokens

    first, _ = run(images)
    again, n_cached = run(images)
    assert again == first
    assert n_cached == len(tokens) - 1
    _, n_cached = run([images[0], drawn(3)])
    assert n_cached == len(tokens) - 7 - 1 - N_TOKENS  # up to the second image
    _, n_cached = run([drawn(4), images[1]])
    assert n_cached == 21
    _, n_cached = run([images[1], images[0]])
    assert n_cached == 21


@pytest.mark.nightly_emulated
def test_bits_do_not_depend_on_what_was_cached_or_runs_beside(model: Any, folder: Path) -> None:
    tokens = text(20, 30)
    images = [drawn(5), drawn(6)]
    whole = logits(model, tokens, images)
    np.testing.assert_array_equal(logits(model, tokens, images, len(tokens) - 3), whole[-3:])
    others = [begun(model, each, 20) for each in (TOKENS[:50], TOKENS[10:40])]
    fresh = [drawn(7), drawn(8)]
    beside = logits(model, tokens, fresh)
    texts = [taken(each) for each in others]
    with opened(folder, device=model.of_test, kv_type="f32") as alone:
        np.testing.assert_array_equal(beside, logits(alone, tokens, fresh))
        assert texts == [taken(begun(alone, each, 20)) for each in (TOKENS[:50], TOKENS[10:40])]


@pytest.mark.nightly_emulated
def test_two_texts_of_one_size_with_other_images_are_computed_beside_each_other(
    model: Any, folder: Path
) -> None:
    tokens = text(12, 4)
    pairs = [[drawn(20), drawn(21)], [drawn(20), drawn(22)], [drawn(23), drawn(21)]]
    together = [begun(model, tokens, 40, placed(model, tokens, pair)) for pair in pairs]
    found = [taken(each) for each in together]
    assert len(set(map(tuple, found))) == len(pairs)
    with opened(folder, device=model.of_test, kv_type="f32") as alone:
        for pair, ids in zip(pairs, found, strict=True):
            assert taken(begun(alone, tokens, 40, placed(alone, tokens, pair))) == ids


def test_wrong_places_are_refused(model: Any) -> None:
    tokens = np.array(text(5), np.uint32)
    ((first, read),) = placed(model, text(5), [drawn(1)])
    for at, why in (
        (first + 1, "an image's are"),
        (first - 1, "an image's are"),
        (400, "ends before"),
    ):
        with pytest.raises(akunu.ArgumentError, match=why):
            model._native.logits(tokens, 0, images=[(at, read)])
    with pytest.raises(akunu.ArgumentError, match="begins before"):
        model._native.logits(tokens, 0, images=[(first, read)] * 2)
    with pytest.raises(akunu.ArgumentError, match="within an image"):
        model._native.logits(tokens, first + 2, images=[(first, read)])
    with pytest.raises(akunu.ArgumentError, match="the prompt ends before"):
        model._native.logits(tokens[: first + 3], 0, images=[(first, read)])


@pytest.mark.nightly_emulated
def test_images_come_in_several_ways(model: Any, tmp_path: Path) -> None:
    image = drawn(1)
    path = tmp_path / "image.png"
    path.write_bytes(encoded(image))
    url = url_of(image)
    replies = [
        model.chat([question(each)], max_tokens=4, logprobs=0)
        for each in (image, encoded(image), bytearray(encoded(image)), path, url)
    ]
    openai = question(image)
    openai["content"][0] = {"type": "image_url", "image_url": {"url": url}}
    replies.append(model.chat([openai], max_tokens=4, logprobs=0))
    replies.append(asyncio.run(model.chat_async([openai], max_tokens=4, logprobs=0)))
    for each in replies[1:]:
        assert each.logprobs == replies[0].logprobs
        assert each.cached_tokens == each.prompt_tokens - 1
    other = model.chat([question(drawn(9))], max_tokens=4, logprobs=0)
    assert other.prefix_end == "differs"
    assert other.cached_tokens < other.prompt_tokens - N_TOKENS


@pytest.mark.nightly_emulated
def test_an_image_of_an_earlier_turn_stays_in_the_cache(model: Any) -> None:
    first = [question(drawn(31), drawn(32))]
    reply = model.chat(first, max_tokens=3, ignore_eos=True)
    more = [*first, {"role": "assistant", "content": "ta"}, question(drawn(33), text="And this?")]
    answer = model.chat(more, max_tokens=3)
    assert answer.cached_tokens >= reply.prompt_tokens - 1
    assert answer.prompt_tokens > reply.prompt_tokens + N_TOKENS


def test_a_text_that_steps_back_takes_no_image_to_the_disk(folder: Path, tmp_path: Path) -> None:
    """Images have numbers of their model: another one gives its first image the same number."""
    tokens = [*text(20), *TOKENS[:190]]
    disk = tmp_path / "kept"

    def run(model: Any, *seeds: int) -> list[list[int]]:
        texts = [begun(model, tokens, 200, placed(model, tokens, [drawn(seed)])) for seed in seeds]
        return [taken(each) for each in texts]

    with akunu.load(folder, context=512, prefix_cache=False) as alone:
        expected = [run(alone, seed)[0] for seed in (1, 2, 3)]
        memory = alone.memory["cache"]
    # Room for a text and a half, and both grow by a page.
    with akunu.load(folder, context=512, kv_memory=memory * 3 // 2, cache_dir=disk) as model:
        assert run(model, 1, 2) == expected[:2]
    for file in disk.glob("*/*.run"):
        data = file.read_bytes()
        words = np.frombuffer(data[72 : 72 + 4 * int.from_bytes(data[12:16], "little")], np.uint32)
        assert (words < 2**31).all()
    with akunu.load(folder, context=512, cache_dir=disk) as model:
        generation = begun(model, tokens, 200, placed(model, tokens, [drawn(3)]))
        assert taken(generation) == expected[2]
        assert generation.cached_tokens <= 21


@pytest.mark.nightly_emulated
def test_several_answers_and_several_conversations_have_their_images(model: Any) -> None:
    messages = [[question(drawn(41))], [question(drawn(42))], [{"role": "user", "content": "Hi"}]]
    alone = [model.chat(each, max_tokens=3, ignore_eos=True) for each in messages]
    assert [str(each) for each in model.chat(messages, max_tokens=3, ignore_eos=True)] == [
        str(each) for each in alone
    ]
    two = model.chat(messages[0], n=2, temperature=0, max_tokens=3, ignore_eos=True)
    assert [str(each) for each in two] == [str(alone[0])] * 2


@pytest.mark.parametrize("file_format", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_formats(file_format: str) -> None:
    image = drawn(1)
    found = open_image(encoded(image, file_format))
    assert found.size == image.size
    assert found.format in (file_format, None)  # None: it was turned


@each_line("mode", ["1", "L", "LA", "P", "PA", "I", "F", "RGBA", "CMYK", "HSV"])
def test_images_in_other_modes_become_colours(mode: str) -> None:
    image = drawn(1).convert("L" if mode in ("PA", "I", "F") else "RGB").convert(mode)
    expected = np.array(image.convert("RGB"))
    np.testing.assert_array_equal(np.array(open_image(image)), expected)


@pytest.mark.parametrize("file_format", ["TIFF", "ICO", "PPM", "PDF", "TGA"])
def test_other_formats_are_refused(file_format: str) -> None:
    with pytest.raises(akunu.ArgumentError, match="format: PNG, JPEG, WebP, GIF and BMP"):
        open_image(encoded(drawn(1), file_format))


def test_broken_files_are_refused() -> None:
    """Whatever a decoder raises, it is an error of the one who gave the file."""
    draw = random.Random(1)
    for file_format in ("PNG", "JPEG", "WEBP", "GIF", "BMP"):
        whole = encoded(drawn(3, (24, 20)), file_format)
        for _ in range(150):
            broken = bytearray(whole)
            for _ in range(draw.randrange(1, 4)):
                broken[draw.randrange(min(len(broken), 80))] = draw.randrange(256)
            if draw.random() < 0.3:
                del broken[draw.randrange(len(broken)) :]
            with suppress(akunu.ArgumentError):
                open_image(bytes(broken))


@each_line(
    ("image", "why"),
    [
        ("/etc/hostname", "not a data: URL. Images are not fetched"),
        ("https://example.org/cat.png", "Images are not fetched"),
        ("file:///etc/hostname", "Images are not fetched"),
        (b"no image", "format: PNG, JPEG, WebP, GIF and BMP"),
        (lambda: encoded(drawn(1))[:-40], "damaged"),
        ("data:image/png,abc", "base64"),
        ("data:image/png;base64,!!!!", "not base64"),
        (Path("/nowhere/cat.png"), "cannot be read"),
        (7, "got int"),
        (None, "has no 'image'"),
        (lambda: Image.new("La", (9, 9)), "conversion from La"),  # a mode of Pillow without colours
        (lambda: Image.new("1", (9000, 9000)), "9000 x 9000 pixels"),
        (lambda: encoded(Image.new("1", (9000, 9000))), "9000 x 9000 pixels"),
        (lambda: encoded(Image.new("1", (15000, 9000))), "too large|pixels"),  # Pillow warns of it
        (lambda: encoded(Image.new("1", (70000, 1))), "65,535 a side"),
        (lambda: b"\0" * (33 << 20), "more than 32 MiB"),
        (lambda: "data:image/png;base64," + "A" * (48 << 20), "more than 32 MiB"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else type(value).__name__,
)
def test_bad_images_are_refused_by_name(model: Any, image: Any, why: str) -> None:
    image = (
        image() if callable(image) else image
    )  # large ones are not made where tests are collected
    with pytest.raises(akunu.ArgumentError, match=why) as error:
        model.chat([question(drawn(1), image)], max_tokens=1)
    assert "messages[0]['content'][2]" in str(error.value)
    assert len(str(error.value)) < 400


def test_lines_of_base64_may_be_broken(model: Any) -> None:
    lines = base64.encodebytes(encoded(drawn(1))).decode()
    assert "\n" in lines.strip()
    reply = model.chat([question("DATA:image/png;BASE64," + lines)], max_tokens=1)
    assert model.chat([question(drawn(1))], max_tokens=1) == reply


def test_too_many_images_are_refused_before_they_are_read(model: Any) -> None:
    with pytest.raises(akunu.ContextOverflowError, match="60 images of at least 16 tokens"):
        model.chat([question(*[b"unread"] * 60)])
    with pytest.raises(akunu.ArgumentError, match=f"at most {MOST_IMAGES}"):
        model.chat([question(*[b"unread"] * (MOST_IMAGES + 1))])


def test_what_does_not_go_with_images_is_refused(model: Any) -> None:
    with pytest.raises(akunu.ArgumentError, match="context_overflow"):
        model.chat([question(drawn(1))], context_overflow="shift")
    reader = ImageReader(model._native, model.path, model.tokenizer)
    with pytest.raises(akunu.ArgumentError, match="made 0 places"):  # a template without images
        reader.placed(["What is this?"], [reader.open(drawn(1))])


def test_a_model_that_reads_none_says_so() -> None:
    with akunu.load("ember", context=512) as ember:
        assert not ember.reads_images
        with pytest.raises(akunu.ArgumentError, match="only text is supported, ember") as error:
            ember.chat([question(drawn(1))])
        assert "messages[0]['content'][0] is of type 'image'" in str(error.value)
        assert "docs/embeddings-speech-images.md" in str(error.value)


def test_a_directory_without_the_encoder_s_tensors_reads_text(tmp_path: Path) -> None:
    with opened(write(tmp_path / "text", has_encoder=False)) as text_model:
        assert not text_model.reads_images
        assert text_model.chat([{"role": "user", "content": "Hi"}], max_tokens=1).prompt_tokens
        with pytest.raises(akunu.ArgumentError, match="only text is supported, text does not read"):
            text_model.chat([question(drawn(1))])


@pytest.fixture(scope="module")
def in_gguf(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Path:
    """A folder with the text model and its encoder as files."""
    made = tmp_path_factory.mktemp("gguf")
    source = DirectorySource(folder)
    assert any("an image encoder" in note for note in source.notes)
    kept = {plan.name: plan.type_name for plan in source.plans if is_quantised(plan)}
    wishes = Wishes(recipe=RECIPES["F32"], tensor_types=kept)
    Quantization(source, wishes).write(made / "text.gguf")
    write_mmproj(made / "mmproj.gguf")
    return made


def load_gguf(folder: Path, mmproj: Path | None, device: str = "cpu") -> akunu.Model:
    return akunu.load(
        folder / "text.gguf",
        device=device,
        context=512,
        kv_type="f32",
        mmproj=mmproj,
    )


def test_a_file_with_its_encoder_computes_what_its_directory_does(
    model: Any, in_gguf: Path, tmp_path: Path
) -> None:
    messages = [question(drawn(1), drawn(2))]
    expected = model.chat(messages, max_tokens=4, ignore_eos=True, logprobs=0)
    whole = logits(model, text(5), [drawn(3)])
    older = write_mmproj(tmp_path / "older.gguf", swaps_ffn=True)
    for mmproj in (in_gguf / "mmproj.gguf", older):
        with load_gguf(in_gguf, mmproj, model.of_test) as of_files:
            assert of_files.reads_images
            reply = of_files.chat(messages, max_tokens=4, ignore_eos=True, logprobs=0)
            assert reply.token_ids == expected.token_ids
            assert reply.prompt_tokens == expected.prompt_tokens
            (found,) = placed(of_files, no_image_token(text(5)), [drawn(3)])
            rows = of_files._native.logits(
                np.array(no_image_token(text(5)), np.uint32), 0, images=[found]
            )
            assert relative_error(rows, whole) <= BOUND_F32_CACHE
    half = write_mmproj(tmp_path / "half.gguf", dtype=np.float16)
    with load_gguf(in_gguf, half, model.of_test) as of_files:
        (found,) = placed(of_files, no_image_token(text(5)), [drawn(3)])
        rows = of_files._native.logits(
            np.array(no_image_token(text(5)), np.uint32), 0, images=[found]
        )
        assert relative_error(rows, whole) <= BOUND_F16_CACHE


def no_image_token(tokens: list[int]) -> list[int]:
    """With the token of padding in the place of images: files have no other."""
    return [0 if token == IMAGE else token for token in tokens]


def test_a_file_without_its_encoder_reads_text(in_gguf: Path) -> None:
    with load_gguf(in_gguf, None) as of_file:
        assert not of_file.reads_images
        with pytest.raises(akunu.ArgumentError, match=r"only text is supported, text\.gguf"):
            of_file.chat([question(drawn(1))])


@each_line(
    ("changes", "why"),
    [
        ({"projector": "mlp"}, "projector_type is 'mlp'; akunu has gemma3"),
        ({"use_gelu": False}, "use_gelu is false"),
        ({"image_mean": [0.4, 0.5, 0.5]}, "image_mean"),
        ({"projection_dim": 64}, "projection_dim is 64, the model has"),
        ({"head_count": 5}, "head_count"),
        ({"projector_scale_factor": 3}, "scale_factor"),
        ({"block_count": 0}, "block_count"),
        ({"block_count": 2}, "tensor v.blk.2"),
        ({"block_count": 4}, "encoder.layers.3"),
        ({"patch_size": 0}, "patch_size"),
        ({"more": "v.pre_ln.weight"}, "v.pre_ln.weight"),
    ],
)
def test_encoders_in_gguf_that_are_not_known_are_refused(
    in_gguf: Path, tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    path = write_mmproj(tmp_path / "mmproj.gguf", **changes)
    with pytest.raises((akunu.UnsupportedModelError, akunu.ModelFormatError), match=why):
        load_gguf(in_gguf, path)


def test_files_that_do_not_belong_together_are_refused(in_gguf: Path, folder: Path) -> None:
    with pytest.raises(akunu.UnsupportedModelError, match=r"encoder of images \(mmproj\)"):
        akunu.load(in_gguf / "mmproj.gguf")
    with pytest.raises(akunu.UnsupportedModelError, match="has an encoder of images already"):
        akunu.load(folder, mmproj=in_gguf / "mmproj.gguf")
    with pytest.raises(akunu.UnsupportedModelError, match=r"\(mmproj\) has 'clip'"):
        load_gguf(in_gguf, in_gguf / "text.gguf")
    with pytest.raises(akunu.UnsupportedModelError, match="is of gemma3, and the model is"):
        akunu.load("ember", mmproj=in_gguf / "mmproj.gguf")
    with pytest.raises(akunu.ArgumentError, match="mmproj"):
        akunu.load("ember", mmproj=3)  # type: ignore[arg-type]
    with pytest.raises(akunu.AkunuError, match="nowhere"):
        load_gguf(in_gguf, in_gguf / "nowhere.gguf")


def moved_last(name: str, tensor: NDArray[np.float32]) -> NDArray[np.float32]:
    """As MLX has it: the channels of a convolution are the last dimension."""
    return tensor.transpose(0, 2, 3, 1) if name.endswith("patch_embedding.weight") else tensor


def test_a_file_of_weights_has_its_directory_s_settings(folder: Path) -> None:
    with opened(folder / "model.safetensors") as of_file:
        assert of_file.reads_images
        assert of_file.chat([question(drawn(1))], max_tokens=1).prompt_tokens > N_TOKENS


def test_mlx_has_channels_last(model: Any, tmp_path: Path) -> None:
    with opened(write(tmp_path / "mlx", stored=moved_last), device=model.of_test) as of_mlx:
        np.testing.assert_array_equal(
            logits(of_mlx, text(3), [drawn(1)]), logits(model, text(3), [drawn(1)])
        )


@each_line(
    ("changes", "why"),
    [
        ({"vision_config": {**VISION, "model_type": "clip_vision_model"}}, "model_type"),
        ({"vision_config": {**VISION, "hidden_act": "relu"}}, "hidden_act"),
        ({"vision_config": {**VISION, "num_attention_heads": 5}}, "num_attention_heads"),
        ({"vision_config": {**VISION, "num_channels": 4}}, "num_channels"),
        ({"vision_config": {**VISION, "image_size": 3}}, "image_size"),
        ({"mm_tokens_per_image": 15}, "mm_tokens_per_image"),
        ({"mm_tokens_per_image": 9}, "mm_tokens_per_image"),
        ({"image_token_index": 331}, "image_token_index"),
        ({"text_config": {**TEXT, "sliding_window": 15}}, "windows of 15 positions"),
    ],
)
def test_encoders_that_are_not_known_are_refused(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    path = write(tmp_path / "model", config=changes)
    with pytest.raises((akunu.ModelFormatError, akunu.UnsupportedModelError), match=why):
        akunu.load(path, device="cpu", context=64)


@each_line(
    ("said", "why"),
    [
        ('{"size": {"height": 224, "width": 224}}', "size"),
        ('{"do_pan_and_scan": true}', "do_pan_and_scan"),
        ('{"do_normalize": false}', "do_normalize"),
        ('{"resample": 9}', "resample"),
        ('{"image_std": [0.5, 0, 0.5]}', "image_std"),
        ('{"image_mean": [0.5]}', "image_mean"),
        ('{"rescale_factor": "x"}', "preprocessor_config.json"),
        ("[]", "not an object"),
        ("{", "preprocessor_config.json"),
    ],
)
def test_preprocessing_that_is_not_known_is_refused(tmp_path: Path, said: str, why: str) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gemma3"}')
    (tmp_path / "preprocessor_config.json").write_text(said)
    with (
        akunu.load() as model,
        pytest.raises((akunu.ModelFormatError, akunu.UnsupportedModelError), match=why),
    ):
        Gemma3Preparation(
            tmp_path, model.tokenizer, Tiles(SIDE, PATCH, 2, (SIDE // PATCH) ** 2, IMAGE)
        )
