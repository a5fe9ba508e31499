"""How a model's authors prepare images: sizes, tiles, and what stands for them in a prompt.

Each family has a Preparation; the engine names it. Sizes and numbers are those of transformers'
image processors.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from akunu.errors import ArgumentError, ModelFormatError, UnsupportedModelError

if TYPE_CHECKING:
    from PIL.Image import Image

    from akunu.tokenizers.tokenizer import Tokenizer

Pixels: TypeAlias = "NDArray[np.uint8]"
"""What the model's encoder reads at once: [height, width, 3]."""


@dataclass(frozen=True, slots=True)
class PreparedImage:
    """An image as the model reads it."""

    tiles: Sequence[Pixels]
    """In the order of their places in the prompt."""
    rows: int = 0
    """The rows of tiles that the image was cut into; 0: it was not cut."""
    columns: int = 0


@dataclass(frozen=True, slots=True)
class Tiles:
    """What the engine knows of what its encoder reads at once."""

    side: int
    """Pixels of a side; 0: tiles have any shape."""
    patch: int
    """Pixels of a side of a patch."""
    square: int
    """Patches of a side of the square that becomes one token."""
    most_patches: int
    """The most patches of a tile."""
    token: int
    """What stands in a prompt for a square."""
    longest_edge: int = 0
    """The longer side of an image before it is cut into tiles; 0: unknown."""

    @property
    def unit(self) -> int:
        """Pixels of a side of the square that becomes one token."""
        return self.patch * self.square

    def tokens(self, width: int, height: int) -> list[int]:
        """Return the tokens that a tile of these pixels has in a prompt."""
        return [self.token] * (width // self.unit * (height // self.unit))


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """What preprocessor_config.json says."""

    side: int
    """Pixels of a side of a tile; 0: tiles have any shape."""
    resample: int
    """Pillow's number of a filter."""
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    deviation: tuple[float, ...] = (0.5, 0.5, 0.5)
    longest_edge: int = 0
    """The longer side of an image before it is cut into tiles."""
    is_split: bool = False

    def resized(self, image: Image, width: int, height: int) -> Image:
        """Return the image in another size."""
        from PIL.Image import Resampling

        return image.resize((width, height), Resampling(self.resample))

    def numbers(self, pixels: Pixels) -> NDArray[np.float32]:
        """Return [3, height, width]."""
        scaled = pixels.astype(np.float32).transpose(2, 0, 1) * np.float32(self.scale)
        mean, deviation = (
            np.array(each, dtype=np.float32).reshape(3, 1, 1)
            for each in (self.mean, self.deviation)
        )
        normed: NDArray[np.float32] = (scaled - mean) / deviation
        return normed


class Preparation(ABC):
    """How one family prepares images."""

    settings: ImageSettings
    mark: int
    """The token that the chat template has in place of an image."""

    @abstractmethod
    def prepared(self, image: Image) -> PreparedImage:
        """Return an image, which has three channels, as the model reads it."""

    @abstractmethod
    def pieces(self, image: PreparedImage) -> Sequence[str | int]:
        """Return the texts and tokens that represent an image in a prompt."""


class Gemma3Preparation(Preparation):
    """Images become squares, whatever their shape; transformers' Gemma3Processor."""

    def __init__(self, path: Path, tokenizer: Tokenizer, tiles: Tiles) -> None:
        """ModelFormatError for files next to the model that make no sense."""
        usual = ImageSettings(tiles.side, resample=2)  # bilinear
        folder = _folder_of(path)
        if folder is not None:
            found = _settings_file(folder)
            self.settings = usual if found is None else _gemma3_settings(*found, usual)
            self.mark, closing = _gemma3_markers(folder / "config.json")
        else:  # GGUF
            self.settings = usual
            named = tokenizer.control_tokens()
            try:
                self.mark, closing = named["<start_of_image>"], named["<end_of_image>"]
            except KeyError as error:
                raise ModelFormatError(f"{path}: the vocabulary has no token {error}") from None
        self._pieces: Sequence[str | int] = (
            "\n\n",
            self.mark,
            *tiles.tokens(tiles.side, tiles.side),
            closing,
            "\n\n",
        )

    def prepared(self, image: Image) -> PreparedImage:
        """Return one tile."""
        side = self.settings.side
        return PreparedImage([np.array(self.settings.resized(image, side, side))])

    def pieces(self, image: PreparedImage) -> Sequence[str | int]:
        """Return the tokens of the one tile between markers."""
        return self._pieces


class Idefics3Preparation(Preparation):
    """Images are cut into square tiles, and follow them once more as a whole; Idefics3, SmolVLM."""

    _MOST_EDGE: Final = 4096  # what transformers takes

    def __init__(self, path: Path, tokenizer: Tokenizer, tiles: Tiles) -> None:
        """ModelFormatError for files next to the model that make no sense."""
        edge = tiles.longest_edge or 4 * tiles.side
        usual = ImageSettings(tiles.side, resample=1, longest_edge=edge, is_split=True)  # Lanczos
        folder = _folder_of(path)
        found = None if folder is None else _settings_file(folder)
        self.settings = usual if found is None else self._read(*found, usual)
        self.mark = tiles.token
        self._tile = tiles.tokens(tiles.side, tiles.side)
        self._tokens = tokenizer.control_tokens()
        self._fake = self._named("<fake_token_around_image>")

    def _read(self, path: Path, said: Mapping[str, Any], usual: ImageSettings) -> ImageSettings:
        of_tiles = said.get("max_image_size")
        if of_tiles is not None and of_tiles != {"longest_edge": usual.side}:
            raise UnsupportedModelError(
                f"{path}: max_image_size is {of_tiles!r}; the model's images have {usual.side} "
                "pixels a side"
            )
        size = said.get("size") or {"longest_edge": usual.longest_edge}
        edge = size.get("longest_edge") if isinstance(size, Mapping) else None
        if type(edge) is not int or not 1 <= edge <= self._MOST_EDGE:
            raise UnsupportedModelError(
                f"{path}: size is {size!r}; akunu reads a longest_edge of 1 to {self._MOST_EDGE}"
            )
        return _settings(path, said, usual, edge, said.get("do_image_splitting") is not False)

    def prepared(self, image: Image) -> PreparedImage:
        """Return the tiles of each row, then the whole image as one tile."""
        settings, side = self.settings, self.settings.side

        def whole(given: Image) -> Pixels:
            return np.array(settings.resized(given, side, side))

        image = settings.resized(image, *self._longest(image.width, image.height))
        if not settings.is_split:
            return PreparedImage([whole(image)])
        width, height = self._multiples(image.width, image.height)
        image = settings.resized(image, width, height)
        rows, columns = height // side, width // side
        if rows == columns == 1:
            return PreparedImage([np.array(image)])
        cut = np.array(image).reshape(rows, side, columns, side, 3).swapaxes(1, 2)
        return PreparedImage([*cut.reshape(-1, side, side, 3), whole(image)], rows, columns)

    def _longest(self, width: int, height: int) -> tuple[int, int]:
        """Return a size whose longer side is longest_edge, and whose other one is even."""
        edge, ratio = self.settings.longest_edge, width / height
        if width >= height:
            other = int(edge / ratio)
            return edge, max(other + other % 2, 1)
        other = int(edge * ratio)
        return max(other + other % 2, 1), edge

    def _multiples(self, width: int, height: int) -> tuple[int, int]:
        """Return a size that tiles fill."""
        side, ratio = self.settings.side, width / height
        if width >= height:
            width = math.ceil(width / side) * side
            height = int(width / ratio)
        else:
            height = math.ceil(height / side) * side
            width = int(height * ratio)
        return math.ceil(width / side) * side, math.ceil(height / side) * side

    def pieces(self, image: PreparedImage) -> Sequence[str | int]:
        """Return the tokens of tiles, each after its row and column, and of the whole image."""
        found: list[str | int] = []
        for row in range(1, image.rows + 1):
            for column in range(1, image.columns + 1):
                found += [self._fake, self._named(f"<row_{row}_col_{column}>"), *self._tile]
            found.append("\n")
        if image.rows:
            found.append("\n")
        return [*found, self._fake, self._named("<global-img>"), *self._tile, self._fake]

    def _named(self, name: str) -> str | int:
        """Return a token of the vocabulary; the text, where it has none of this name."""
        return self._tokens.get(name, name)


class Qwen2Preparation(Preparation):
    """Images keep their shape, within limits of their pixels; Qwen2-VL."""

    _MOST_RATIO: Final = 200  # of the sides, as transformers has it
    _MEAN: Final = (0.48145466, 0.4578275, 0.40821073)  # of CLIP
    _DEVIATION: Final = (0.26862954, 0.26130258, 0.27577711)

    def __init__(self, path: Path, tokenizer: Tokenizer, tiles: Tiles) -> None:
        """ModelFormatError for files next to the model that make no sense."""
        usual = ImageSettings(0, resample=3, mean=self._MEAN, deviation=self._DEVIATION)  # bicubic
        self.settings, self._tiles, self.mark = usual, tiles, tiles.token
        self._least, self._most = 4 * tiles.unit**2, 1280 * tiles.unit**2
        folder = _folder_of(path)
        found = None if folder is None else _settings_file(folder)
        if found is not None:
            self.settings = _settings(*found, usual)
            self._read_limits(*found)
        # The engine has memory for this many patches.
        self._most = min(self._most, tiles.most_patches * tiles.patch**2)

    def _read_limits(self, path: Path, said: Mapping[str, Any]) -> None:
        for key, ours in (("patch_size", self._tiles.patch), ("merge_size", self._tiles.square)):
            if said.get(key, ours) != ours:
                raise UnsupportedModelError(f"{path}: {key} is {said[key]!r}; the model has {ours}")
        size = said.get("size")
        size = size if isinstance(size, Mapping) else {}
        least, most = (
            said.get(old) or size.get(new) or size.get(old) or usual
            for old, new, usual in (
                ("min_pixels", "shortest_edge", self._least),
                ("max_pixels", "longest_edge", self._most),
            )
        )
        if type(least) is not int or type(most) is not int or not 0 < least <= most:
            raise ModelFormatError(
                f"{path}: images would have {least!r} to {most!r} pixels; akunu needs two whole "
                "numbers above 0"
            )
        self._least, self._most = least, most

    def prepared(self, image: Image) -> PreparedImage:
        """Return one tile of nearly the image's shape."""
        width, height = self._size(image.width, image.height)
        return PreparedImage([np.array(self.settings.resized(image, width, height))])

    def _size(self, width: int, height: int) -> tuple[int, int]:
        """Return multiples of `unit` between the limits; `smart_resize` of transformers."""
        if max(width, height) > self._MOST_RATIO * min(width, height):
            raise ArgumentError(
                f"the image has {width} x {height} pixels; one side may be at most "
                f"{self._MOST_RATIO} times the other"
            )
        unit = self._tiles.unit
        sides = tuple(round(side / unit) * unit for side in (width, height))
        if math.prod(sides) > self._most:
            by = math.sqrt(width * height / self._most)
            sides = tuple(
                max(unit, math.floor(side / by / unit) * unit) for side in (width, height)
            )
        elif math.prod(sides) < self._least:
            by = math.sqrt(self._least / (width * height))
            sides = tuple(math.ceil(side * by / unit) * unit for side in (width, height))
        return sides[0], sides[1]

    def pieces(self, image: PreparedImage) -> Sequence[str | int]:
        """Return the tokens of the one tile. The chat template has the markers around it."""
        height, width = image.tiles[0].shape[:2]
        return self._tiles.tokens(width, height)


PREPARATIONS: Final[
    Mapping[str, type[Gemma3Preparation | Idefics3Preparation | Qwen2Preparation]]
] = {
    "gemma3": Gemma3Preparation,
    "idefics3": Idefics3Preparation,
    "qwen2": Qwen2Preparation,
}
"""By the engine's name."""


def _folder_of(path: Path) -> Path | None:
    """Return the folder with a model's files in JSON; None for GGUF."""
    if path.is_dir():
        return path
    return path.parent if path.suffix == ".safetensors" else None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFormatError(f"{path}: {error}") from None
    if not isinstance(said, dict):
        raise ModelFormatError(f"{path}: it is not an object")
    return said


def _settings_file(folder: Path) -> tuple[Path, Mapping[str, Any]] | None:
    """Return the file with an image processor's settings; None where there is none."""
    path = folder / "preprocessor_config.json"
    if path.is_file():
        return path, _read_json(path)
    path = folder / "processor_config.json"
    said = _read_json(path).get("image_processor") if path.is_file() else None
    if said is None:
        return None
    if not isinstance(said, dict):
        raise ModelFormatError(f"{path}: it has no settings of an image processor")
    return path, said


def _gemma3_settings(path: Path, said: Mapping[str, Any], usual: ImageSettings) -> ImageSettings:
    size = said.get("size")
    if size is not None and size != {"height": usual.side, "width": usual.side}:
        raise UnsupportedModelError(
            f"{path}: size is {size!r}; the model's images have {usual.side} pixels a side"
        )
    if said.get("do_pan_and_scan"):
        raise UnsupportedModelError(f"{path}: do_pan_and_scan is not supported")
    return _settings(path, said, usual)


def _settings(
    path: Path,
    said: Mapping[str, Any],
    usual: ImageSettings,
    longest_edge: int = 0,
    is_split: bool = False,
) -> ImageSettings:
    """Return what all families have: the filter, the scale, and how numbers are normed."""
    for key in ("do_resize", "do_rescale", "do_normalize", "do_convert_rgb"):
        if said.get(key) is False:
            raise UnsupportedModelError(f"{path}: {key} is false; akunu always does it")
    try:
        found = ImageSettings(
            usual.side,
            int(usual.resample if said.get("resample") is None else said["resample"]),
            float(said.get("rescale_factor") or usual.scale),
            tuple(float(x) for x in said.get("image_mean") or usual.mean),
            tuple(float(x) for x in said.get("image_std") or usual.deviation),
            longest_edge,
            is_split,
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


def _gemma3_markers(path: Path) -> tuple[int, int]:
    """Return the tokens before and after an image, of a model's config.json."""
    said = _read_json(path)
    try:
        return int(said.get("boi_token_index", 255999)), int(said.get("eoi_token_index", 256000))
    except (ValueError, TypeError) as error:
        raise ModelFormatError(f"{path}: {error}") from None
