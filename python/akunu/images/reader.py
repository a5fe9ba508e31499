"""Images of a chat: read, made as large as the model wants, and cut into patches.

Nothing is fetched: an image is a pathlib.Path, bytes, a Pillow image, or a text that is a data:
URL. No text is a path, so that messages which came from elsewhere open no file. Pillow comes with
`pip install akunu[images]`.
"""

from __future__ import annotations

import base64
import binascii
import copy
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.common.error_context import naming
from akunu.common.quoting import shorten
from akunu.errors import (
    ArgumentError,
    ContextOverflowError,
    ModelFormatError,
    UnsupportedModelError,
)
from akunu.templates.messages import ImagePart, is_image

if TYPE_CHECKING:
    from typing import TypeAlias

    from PIL.Image import Image

    from akunu.tokenizers.tokenizer import Tokenizer

    Pixels: TypeAlias = NDArray[np.uint8]
    """An image as large as the model wants it: [side, side, 3]."""

Placed = TypeVar("Placed")
MOST_BYTES: Final = 32 << 20
"""Limits of one image."""
MOST_PIXELS: Final = 64_000_000
"""Most pixels of a decoded image; more is a decompression bomb."""
MOST_SIDE: Final = 65_535
"""The longest side of a JPEG; resizing takes memory for each pixel of a side."""
MOST_IMAGES: Final = 100
"""Most images of a conversation: each takes some megabytes until the engine has read it."""
_FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
_NAMES: Final = "PNG, JPEG, WebP, GIF and BMP"
_decoding: Final = Lock()
"""One image at a time is decoded, however many requests there are: it may take hundreds of MB."""


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """How a model's authors prepare images; transformers' Gemma3ImageProcessor."""

    side: int
    resample: int = 2  # Pillow's number: bilinear
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    deviation: tuple[float, ...] = (0.5, 0.5, 0.5)

    @classmethod
    def of(cls, folder: Path, side: int) -> Preprocessing:
        """Read the file next to a model, if there is one; ModelFormatError where it is no "
        "such."""
        path = folder / "preprocessor_config.json"
        inner = None
        if not path.is_file():
            path, inner = folder / "processor_config.json", "image_processor"
        if not path.is_file():
            return cls(side)
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ModelFormatError(f"{path}: this is not JSON: {error}") from None
        said = said.get(inner) if inner is not None and isinstance(said, dict) else said
        if said is None:
            return cls(side)
        if not isinstance(said, dict):
            raise ModelFormatError(f"{path}: it has no settings of an image processor")
        return cls._read(path, said, side)

    @classmethod
    def _read(cls, path: Path, said: Mapping[str, Any], side: int) -> Preprocessing:
        size = said.get("size")
        if size is not None and size != {"height": side, "width": side}:
            raise UnsupportedModelError(
                f"{path}: size is {size!r}; the model's images have {side} pixels a side"
            )
        if said.get("do_pan_and_scan"):
            raise UnsupportedModelError(f"{path}: do_pan_and_scan is not supported")
        for key in ("do_resize", "do_rescale", "do_normalize", "do_convert_rgb"):
            if said.get(key) is False:
                raise UnsupportedModelError(f"{path}: {key} is false; akunu always does it")
        usual = cls(side)
        try:
            found = cls(
                side,
                int(usual.resample if said.get("resample") is None else said["resample"]),
                float(said.get("rescale_factor") or usual.scale),
                tuple(float(x) for x in said.get("image_mean") or usual.mean),
                tuple(float(x) for x in said.get("image_std") or usual.deviation),
            )
        except (TypeError, ValueError) as error:
            raise ModelFormatError(f"{path}: {error}") from None
        if not 0 <= found.resample <= 5:
            raise ModelFormatError(f"{path}: resample is {found.resample}; Pillow has 0 to 5")
        if not len(found.mean) == len(found.deviation) == 3 or not all(found.deviation):
            raise ModelFormatError(
                f"{path}: image_mean and image_std must have a number for each of 3 channels, and "
                "none of image_std may be 0"
            )
        return found

    def resized(self, image: Image) -> Pixels:
        """Return an image in colours as large as the model wants it."""
        from PIL.Image import Resampling

        side = (self.side, self.side)
        return np.array(image.resize(side, Resampling(self.resample)))

    def numbers(self, pixels: Pixels) -> NDArray[np.float32]:
        """Return [3, side, side]."""
        scaled = pixels.astype(np.float32).transpose(2, 0, 1) * np.float32(self.scale)
        mean, deviation = (
            np.array(each, dtype=np.float32).reshape(3, 1, 1)
            for each in (self.mean, self.deviation)
        )
        normed: NDArray[np.float32] = (scaled - mean) / deviation
        return normed


class ImageReader:
    """Makes of images what one model reads."""

    def __init__(self, native: _core.NativeModel, path: Path, tokenizer: Tokenizer) -> None:
        """`path`: that the model was loaded from. UnsupportedModelError where it reads no images.

        Raises ModelFormatError for files next to it that make no sense.
        """
        facts = native.images
        if facts is None:
            raise UnsupportedModelError(
                f"{native.config['architecture']}, as loaded from {path}, does not read images"
            )
        self._native = native
        self._patch = facts["patch_size"]
        self._tokens_per_side = facts["tokens_per_side"]
        self.n_tokens = self._tokens_per_side**2
        self.token = facts["token"]
        side = self._patch * facts["patches_per_side"]
        if path.is_dir() or path.suffix == ".safetensors":
            folder = path if path.is_dir() else path.parent
            self.preprocessing = Preprocessing.of(folder, side)
            self.opening, self.closing = _markers(folder / "config.json")
        else:  # GGUF
            self.preprocessing = Preprocessing(side)
            self.opening, self.closing = _named_markers(path, tokenizer)

    def open(self, given: object) -> Pixels:
        """Decode an image and make it as large as it must be; ArgumentError for anything else."""
        with _decoding:
            return self.preprocessing.resized(open_image(given))

    def read(self, pixels: Pixels) -> _core.Image:
        """Prepare an image for the engine, which reads it when a text with it begins."""
        return self._native.image(self.patches(self.preprocessing.numbers(pixels)))

    def patches(self, numbers: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return patches, [n, numbers]; those that the model averages lie one after the other."""
        per_token = numbers.shape[1] // self._patch // self._tokens_per_side
        sides = (self._tokens_per_side, per_token, self._patch)
        cut = numbers.reshape(3, *sides, *sides)  # channel, then y and x of token, patch, pixel
        ordered = cut.transpose(1, 4, 2, 5, 0, 3, 6)
        return np.ascontiguousarray(ordered).reshape(-1, 3 * self._patch**2)

    def placed(self, pieces: Sequence[str | int], n_images: int) -> list[str | int]:
        """Return a prompt's pieces with the tokens of images where the template marked them.

        As transformers' Gemma3Processor writes them. ArgumentError where the template marked more
        places, or fewer.
        """
        n_marks = sum(piece == self.opening for piece in pieces)
        if n_marks != n_images:
            raise ArgumentError(
                f"messages have {_counted(n_images, 'image')}, and the model's chat template made "
                f"{_counted(n_marks, 'place')} for images"
            )
        found: list[str | int] = []

        def add(piece: str | int) -> None:
            if isinstance(piece, str) and found and isinstance(found[-1], str):
                found[-1] += piece
            else:
                found.append(piece)

        for piece in pieces:
            if piece != self.opening:
                add(piece)
                continue
            add("\n\n")
            for token in (self.opening, *[self.token] * self.n_tokens, self.closing):
                add(token)
            add("\n\n")
        return found

    def places(self, tokens: Sequence[int], images: Sequence[Placed]) -> list[tuple[int, Placed]]:
        """Return each image with the index of its first token."""
        starts = [
            index + 1
            for index, token in enumerate(tokens)
            if token == self.opening and list(tokens[index + 1 : index + 2]) == [self.token]
        ]
        return list(zip(starts, images, strict=True))


def _markers(path: Path) -> tuple[int, int]:
    """Return the tokens before and after an image, of a model's config.json."""
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
        return int(said.get("boi_token_index", 255999)), int(said.get("eoi_token_index", 256000))
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ModelFormatError(f"{path}: {error}") from None


def _named_markers(path: Path, tokenizer: Tokenizer) -> tuple[int, int]:
    """Return the tokens before and after an image by their names, of a vocabulary in GGUF."""
    ids = tokenizer.control_tokens()
    try:
        return ids["<start_of_image>"], ids["<end_of_image>"]
    except KeyError as error:
        raise ModelFormatError(f"{path}: the vocabulary has no token {error}") from None


def take_images(
    messages: Sequence[Mapping[str, Any]], reader: ImageReader, context: int | None = None
) -> tuple[list[Any], list[Pixels]]:
    """Return messages with an ImagePart in place of each image, and the images in their order.

    Messages that are wrong in another way stay as they are. Raises ArgumentError that names the
    part whose image cannot be read, ContextOverflowError before any is read where `context` tokens
    have no room for them.
    """
    n_images = _count(messages)
    if n_images > MOST_IMAGES:
        raise ArgumentError(
            f"messages have {n_images} images; at most {MOST_IMAGES} are read at once"
        )
    if context is not None and n_images * reader.n_tokens > context:
        raise ContextOverflowError(
            f"messages have {_counted(n_images, 'image')} of {reader.n_tokens} tokens each, the "
            f"context holds {context}"
        )
    images: list[Pixels] = []
    taken: list[Any] = []
    for index, message in enumerate(messages):
        content = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(content, (list, tuple)):
            taken.append(message)
            continue
        parts: list[Any] = []
        for at, part in enumerate(content):
            if not is_image(part):
                parts.append(part)
                continue
            with naming(f"messages[{index}]['content'][{at}]"):
                images.append(reader.open(_source_of(part)))
            parts.append(ImagePart())
        taken.append({**message, "content": parts})
    return taken, images


def with_own_images(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a message with images, which stay as they are now: files are read.

    ArgumentError that names the part whose image cannot be read.
    """
    parts: list[Any] = []
    for at, part in enumerate(message["content"]):
        if is_image(part):
            with naming(f"the message's content[{at}]"):
                parts.append({"type": "image", "image": _own(_source_of(part))})
        else:
            parts.append(copy.deepcopy(part))
    copied = copy.deepcopy({key: value for key, value in message.items() if key != "content"})
    return {**copied, "content": parts}


def _own(given: object) -> object:
    if isinstance(given, str):
        return given
    is_file = isinstance(given, (bytes, bytearray, memoryview, os.PathLike))
    return _bytes_of(given) if is_file else open_image(given)


def read_image(path: Path) -> bytes:
    """Return an image's file; ArgumentError for anything else, or too large."""
    data = _bytes_of(path)
    with naming(str(path)), _decoding:
        open_image(data)
    return data


def refuse_images(messages: object, who: str) -> None:
    """Raise ArgumentError where messages have images; `who` reads none."""
    for index, message in enumerate(messages if isinstance(messages, (list, tuple)) else ()):
        content = message.get("content") if isinstance(message, Mapping) else None
        for at, part in enumerate(content if isinstance(content, (list, tuple)) else ()):
            if is_image(part):
                raise ArgumentError(
                    f"messages[{index}]['content'][{at}] is of type {part['type']!r}: only text "
                    f"is supported, {who} does not read images; "
                    "docs/embeddings-speech-images.md lists models that do"
                )


def _counted(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


def _count(messages: Sequence[Any]) -> int:
    contents = [each.get("content") for each in messages if isinstance(each, Mapping)]
    return sum(
        sum(map(is_image, content)) for content in contents if isinstance(content, (list, tuple))
    )


def _source_of(part: Mapping[str, Any]) -> object:
    kind = part["type"]
    given = part.get("image_url" if kind == "input_image" else kind)
    if isinstance(given, Mapping):  # OpenAI's
        given = given.get("url")
    if given is None:
        raise ArgumentError(f"a part of type {part['type']!r} has no {kind!r}")
    return given


def open_image(given: object) -> Image:
    """Return an image, decoded, in colours; ArgumentError for anything else, or too large."""
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        raise ArgumentError(
            "images need Pillow: pip install 'akunu[images]', or '.[images]' in a clone"
        ) from None
    file: Any = given if isinstance(given, Image.Image) else io.BytesIO(_bytes_of(given))
    image: Image.Image
    try:
        image = Image.open(file, formats=_FORMATS) if isinstance(file, io.BytesIO) else file
        _check_size(image)
        image.load()
        image = ImageOps.exif_transpose(image)  # as transformers shows images to its models
        return image.convert("RGB")
    except ArgumentError:
        raise
    except UnidentifiedImageError:
        raise ArgumentError(f"this is not an image in a supported format: {_NAMES}") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ArgumentError(f"the image is too large: {_said(error)}") from None
    except Exception as error:  # Pillow's decoders raise nearly everything
        raise ArgumentError(f"the image is damaged: {_said(error)}") from None


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _bytes_of(given: object) -> bytes:
    if isinstance(given, (bytes, bytearray, memoryview)):
        data = bytes(given)
    elif isinstance(given, str) and given[:5].lower() == "data:":
        data = _decoded(given)
    elif isinstance(given, str):
        raise ArgumentError(
            f"{shorten(given[:200])} is not a data: URL. Images are not fetched, because a "
            f"message could make this machine send requests or read its files. Send "
            f"data:image/png;base64,..., or in Python a pathlib.Path"
        )
    elif isinstance(given, os.PathLike):
        try:
            with open(given, "rb") as file:
                data = file.read(MOST_BYTES + 1)
        except (OSError, ValueError) as error:
            raise ArgumentError(f"{os.fspath(given)!r} cannot be read: {error}") from None
    else:
        raise ArgumentError(
            "an image must be a pathlib.Path, bytes, a Pillow image or a data: URL, got "
            f"{type(given).__name__}"
        )
    if len(data) > MOST_BYTES:
        raise ArgumentError(f"the image has more than {MOST_BYTES >> 20} MiB")
    return data


def _decoded(url: str) -> bytes:
    head, comma, data = url.partition(",")
    if not comma or not head.lower().endswith(";base64"):
        raise ArgumentError("a data: URL of an image has the form data:image/...;base64,...")
    if len(data) > MOST_BYTES // 3 * 4 + MOST_BYTES // 16:  # lines may be broken
        raise ArgumentError(f"the image has more than {MOST_BYTES >> 20} MiB")
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ArgumentError("the image, or the rest of its data: URL, is not base64") from None


def _check_size(image: Image) -> None:
    width, height = image.size
    if width * height > MOST_PIXELS or max(width, height) > MOST_SIDE:
        raise ArgumentError(
            f"the image has {width} x {height} pixels; at most {MOST_PIXELS:,} are read, and "
            f"{MOST_SIDE:,} a side"
        )
    if not width or not height:
        raise ArgumentError("the image has no pixels")
