"""Images of a chat: read, prepared as the model's authors do, and cut into patches.

Nothing is fetched: an image is a pathlib.Path, bytes, a Pillow image, or a text that is a data:
URL. No text is a path, so that messages which came from elsewhere open no file. Pillow comes with
`pip install akunu[images]`.
"""

from __future__ import annotations

import base64
import binascii
import copy
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.common.error_context import naming
from akunu.common.quoting import shorten
from akunu.errors import ArgumentError, ContextOverflowError, UnsupportedModelError
from akunu.images.preparation import PREPARATIONS, Pixels, PreparedImage, Tiles
from akunu.templates.messages import ImagePart, is_image

if TYPE_CHECKING:
    from PIL.Image import Image

    from akunu.tokenizers.tokenizer import Tokenizer

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
        patch, square = facts["patch_size"], facts["square_side"]
        self._n_frames = facts["n_frames"]
        self._tiles = Tiles(
            side=patch * facts["patches_per_side"],
            patch=patch,
            square=square,
            most_patches=facts["most_patches"],
            token=facts["token"],
            longest_edge=facts["longest_edge"],
        )
        self.token = facts["token"]
        self.least_tokens = (facts["patches_per_side"] // square) ** 2 or 1
        """That an image takes."""
        self.preparation = PREPARATIONS[facts["preparation"]](path, tokenizer, self._tiles)

    def open(self, given: object) -> PreparedImage:
        """Decode an image and cut it into tiles; ArgumentError for anything else."""
        with _decoding:
            return self.preparation.prepared(open_image(given))

    def read(self, tile: Pixels) -> _core.Image:
        """Prepare a tile for the engine, which reads it when a text with it begins."""
        numbers = self.preparation.settings.numbers(tile)
        return self._native.image(self.patches(numbers), numbers.shape[2] // self._tiles.patch)

    def patches(self, numbers: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return patches, [n, numbers]; those that become a token lie one after the other.

        `numbers`: [3, height, width]. Where a patch has several frames, all are this image.
        """
        patch, square, unit = self._tiles.patch, self._tiles.square, self._tiles.unit
        _, height, width = numbers.shape
        # Channel, then y and x of token, patch, pixel.
        cut = numbers.reshape(3, height // unit, square, patch, width // unit, square, patch)
        ordered = cut.transpose(1, 4, 2, 5, 0, 3, 6)[:, :, :, :, :, np.newaxis]
        frames = np.repeat(ordered, self._n_frames, axis=5)
        return np.ascontiguousarray(frames).reshape(-1, 3 * self._n_frames * patch**2)

    def placed(
        self, pieces: Sequence[str | int], images: Sequence[PreparedImage]
    ) -> list[str | int]:
        """Return a prompt's pieces with the tokens of images where the template marked them.

        ArgumentError where the template marked more places, or fewer.
        """
        mark = self.preparation.mark
        n_marks = sum(piece == mark for piece in pieces)
        if n_marks != len(images):
            raise ArgumentError(
                f"messages have {_counted(len(images), 'image')}, and the model's chat template "
                f"made {_counted(n_marks, 'place')} for images"
            )
        found: list[str | int] = []
        rest = iter(images)
        for piece in pieces:
            for each in self.preparation.pieces(next(rest)) if piece == mark else (piece,):
                if isinstance(each, str) and found and isinstance(found[-1], str):
                    found[-1] += each
                else:
                    found.append(each)
        return found

    def places(
        self, tokens: Sequence[int], images: Sequence[PreparedImage]
    ) -> list[tuple[int, Pixels]]:
        """Return each tile with the index of its first token."""
        found: list[tuple[int, Pixels]] = []
        end = 0
        for tile in (tile for image in images for tile in image.tiles):
            first = tokens.index(self.token, end)
            found.append((first, tile))
            end = first + len(self._tiles.tokens(tile.shape[1], tile.shape[0]))
        return found


def take_images(
    messages: Sequence[Mapping[str, Any]], reader: ImageReader, context: int | None = None
) -> tuple[list[Any], list[PreparedImage]]:
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
    if context is not None and n_images * reader.least_tokens > context:
        raise ContextOverflowError(
            f"messages have {_counted(n_images, 'image')} of at least {reader.least_tokens} tokens "
            f"each, the context holds {context}"
        )
    images: list[PreparedImage] = []
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
