"""A Hugging Face or MLX directory as a GGUF file would have it: names, keys, and numbers in order.

Nothing is converted before it is requested: a tensor's `data` is made when it is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.convert.float_values import as_bytes, as_floats, expand_affine, expand_mxfp4
from akunu.convert.gguf_writer import TensorPlan, Value
from akunu.convert.model_keys import STREAMS, model_keys
from akunu.convert.recipes import is_quantised
from akunu.convert.sources import Tensor
from akunu.convert.speech_keys import speech_keys
from akunu.convert.tokenizer_keys import tokenizer_keys
from akunu.errors import UnsupportedModelError
from akunu.storage.model_files import ModelDirectory

_FLOATS: Final = {"f32": "F32", "f16": "F16", "bf16": "BF16"}
_ROTATED: Final = re.compile(r"attention\.[qk](_norm)?\.(weight|bias)$")
_FACTORS: Final = "rope_factors"
_OF_IMAGES: Final = "encoder."
_CONVOLUTION: Final = re.compile(r"enc\.conv[12]\.weight$")
_TAPS: Final = 3
_NUMBERS: Final = re.compile(r"streams\.(router|predict|correct)\.weight$")
"""Small matrices that the engine reads as one vector."""
_STREAMS: Final = {"altup_proj": "streams.in", "altup_unembd_proj": "streams.out"}
_PER_LAYER: Final = "per_layer_embedding.weight"
_ORDER: Final = ("enc.conv", "enc.position_embd", "enc.blk.", "enc.", "", "blk.", "output")
"""How names begin, in the order of a pass; "": the embeddings."""


class DirectoryTensor:
    """One tensor; vectors, and matrices that no recipe makes smaller, are F32."""

    def __init__(
        self,
        native: _core.SourceTensor,
        head: tuple[int, int] | None,
        width: int | None = None,
        name: str | None = None,
        order: tuple[int, NDArray[np.int64]] | None = None,
        factors: NDArray[np.float32] | None = None,
    ) -> None:
        """Take a tensor.

        `head`: the size of a head and how many of its numbers rotate; these are interleaved.
        `width`: numbers of a row, for a matrix that is a vector in the engine. `name`: its name in
        the file. `order`: an axis, rows (0) or columns (1), and the old index at each new one.
        `factors`: it is multiplied by them, one number or one for each row.
        """
        self.name = native.gguf_name if name is None else name
        self.shape = native.shape
        if _CONVOLUTION.match(self.name) is not None:  # [n, channels, taps], as everywhere else
            rows, k = native.shape
            self.shape = (rows, k // _TAPS, _TAPS)
        if width is not None:
            self.shape = (native.shape[0] // width, width)
        self.quantised_as: str | None = None
        self._native = native
        self._head = head
        self._order = order
        self._factors = factors
        if native.mlx is not None:
            self._stored = native.mlx[2]
            self.quantised_as = f"MLX's groups of {native.mlx[1]} at {native.mlx[0]} bits"
        elif native.format == "mlx_mxfp4":
            self._stored = "BF16"
            self.quantised_as = "MLX's mxfp4"
        else:
            self._stored = _FLOATS[native.format]
        kept = is_quantised(TensorPlan(self.name, self.shape, self._stored))
        self.type_name = self._stored if kept else "F32"

    @property
    def data(self) -> NDArray[np.uint8]:
        """Its bytes in `type_name`."""
        data = self._ordered(self._interleaved(self._plain()))
        native = self._native
        is_as_stored = not (native.adds_one or native.is_logarithm) and self._factors is None
        if self.type_name == self._stored and is_as_stored:
            return data
        values = as_floats(data, self._stored)
        if self._factors is not None:
            rows = values.reshape(self.shape[0], -1)
            values = (rows * self._factors.reshape(-1, 1)).reshape(values.shape)
        if native.is_logarithm:
            values = -np.exp(values)
        return as_bytes(values + np.float32(1) if native.adds_one else values, self.type_name)

    def _plain(self) -> NDArray[np.uint8]:
        parts = self._native.parts
        if self._native.mlx is not None:
            return expand_affine(parts, self._matrix(), self._native.mlx)
        if self.quantised_as is not None:
            return expand_mxfp4(parts, self._matrix())
        return parts[0]

    def _matrix(self) -> tuple[int, int]:
        rows, k = self.shape
        return rows, k

    def _ordered(self, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Put rows or columns into the order of the file."""
        if self._order is None:
            return data
        axis, order = self._order
        lengths = (self.shape[0], order.size) if axis == 1 else (order.size,)
        return data.reshape(*lengths, -1).take(order, axis).reshape(-1)

    def _interleaved(self, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Put the rows that rotate with each other next to each other, as GGUF's llama has them."""
        if self._head is None:
            return data
        size, rotating = self._head
        pairs = np.arange(rotating).reshape(2, -1).T.reshape(-1)
        order = np.concatenate([pairs, np.arange(rotating, size)])
        heads = data.reshape(-1, size, data.size // self.shape[0])
        return heads[:, order].reshape(-1)


class JoinedTensor:
    """Several tensors, one above the other."""

    def __init__(
        self,
        name: str,
        parts: Sequence[DirectoryTensor],
        order: NDArray[np.int64] | None = None,
    ) -> None:
        """Join them; they have rows of the same length and one format.

        `order`: which row of all comes where.
        """
        rows = sum(part.shape[0] for part in parts)
        self.name = name
        self.shape = (rows, *parts[0].shape[1:])
        self.type_name = parts[0].type_name
        self.quantised_as = parts[0].quantised_as
        self._parts = parts
        self._order = order
        for part in parts:
            if part.type_name != self.type_name:
                raise UnsupportedModelError(
                    f"{name} joins {parts[0].name} in {self.type_name} and {part.name} in "
                    f"{part.type_name}; a tensor has one format"
                )

    @property
    def data(self) -> NDArray[np.uint8]:
        """The bytes of all."""
        data = np.concatenate([part.data for part in self._parts])
        return data if self._order is None else data.reshape(self.shape[0], -1)[self._order].ravel()


class StackedTensor:
    """Several matrices of one size, as a tensor of three dimensions."""

    def __init__(self, name: str, parts: Sequence[DirectoryTensor]) -> None:
        """Stack them."""
        joined = JoinedTensor(name, parts)
        self.name = name
        self.shape = (len(parts), *parts[0].shape)
        self.type_name = joined.type_name
        self.quantised_as = joined.quantised_as
        self._joined = joined

    @property
    def data(self) -> NDArray[np.uint8]:
        """The bytes of all."""
        return self._joined.data


class HeadsTensor:
    """A part of each head's rows, as a matrix for each head (latent attention)."""

    def __init__(self, whole: DirectoryTensor, name: str, heads: int, rows: slice) -> None:
        """Take `rows` of each of the heads of a matrix; `attn_k_b` has their columns as rows."""
        self.name = name
        self._whole = whole
        self._turned = "attn_k_b" in name
        self._rows = rows
        n_rows, k = whole.shape
        self._lengths = (heads, n_rows // heads, k)
        n = len(range(n_rows // heads)[rows])
        self.shape = (heads, k, n) if self._turned else (heads, n, k)
        self.type_name = whole.type_name
        self.quantised_as = whole.quantised_as

    @property
    def data(self) -> NDArray[np.uint8]:
        """Its bytes."""
        heads = self._whole.data.reshape(*self._lengths, -1)[:, self._rows]
        return (heads.swapaxes(1, 2) if self._turned else heads).reshape(-1)


class LengthenedTensor:
    """A table with rows for a whole vocabulary: its first row stands for those that it lacks."""

    def __init__(self, table: DirectoryTensor, rows: int) -> None:
        """Lengthen it to `rows`."""
        self.name = table.name
        self.shape = (rows, *table.shape[1:])
        self.type_name = table.type_name
        self.quantised_as = table.quantised_as
        self._table = table

    @property
    def data(self) -> NDArray[np.uint8]:
        """Its bytes."""
        rows = self._table.shape[0]
        data = self._table.data.reshape(rows, -1)
        return np.concatenate([data, np.repeat(data[:1], self.shape[0] - rows, axis=0)]).reshape(-1)


AnyTensor = DirectoryTensor | JoinedTensor | StackedTensor | HeadsTensor | LengthenedTensor


class DirectorySource:
    """What GGUF says of a directory's model. Raises what loading it raises, and
    UnsupportedModelError for what GGUF cannot say.
    """

    alignment: Final = 32

    def __init__(self, path: Path) -> None:
        """Read the directory, or a safetensors file with its config.json next to it."""
        files = ModelDirectory(path)
        self._native = _core.ModelSource(path)
        directory = Path(files.path)
        self.parts = files.parts
        numbers = self._native.config
        self._keys, notes = model_keys(self._native, directory, files)
        text_keys = tokenizer_keys if numbers["audio"] is None else speech_keys
        found_keys, more = text_keys(directory, files, numbers["vocab_size"])
        self._keys |= found_keys
        self._of_images: list[str] = []
        found = self._all(numbers)
        found.sort(key=lambda tensor: _place(tensor.name))
        self._by_name = {tensor.name: tensor for tensor in found}
        if (types := self._by_name.get("token_types.weight")) is not None:
            self._keys["tokenizer.ggml.token_type_count"] = types.shape[0]
        self.tensors: Sequence[Tensor] = found
        self.notes = [*self._native.notes, *notes, *more]
        if self._of_images:
            n = len(self._of_images)
            self.notes.append(f"{n} tensors are skipped: they belong to an image encoder")
        groups = [tensor for tensor in found if tensor.quantised_as is not None]
        if groups:
            kinds = sorted({f"{each.quantised_as} to {each.type_name}" for each in groups})
            self.notes.append(f"{len(groups)} tensors are expanded: {', '.join(kinds)}")

    @property
    def plans(self) -> list[TensorPlan]:
        """All tensors as a file that changes no format would have them."""
        return [TensorPlan(each.name, each.shape, each.type_name) for each in self.tensors]

    def get(self, key: str, default: object = None) -> Any:
        """Return the value of a key."""
        return self._keys.get(key, default)

    def values(self, is_kept: Callable[[str], bool]) -> list[Value]:
        """Return the keys that `is_kept` says yes to, encoded."""
        return [Value.of_any(key, value) for key, value in self._keys.items() if is_kept(key)]

    def quantised_as(self, name: str) -> str | None:
        """Return the format in blocks that a tensor lies in; None for plain numbers."""
        return self._by_name[name].quantised_as

    def check(self) -> None:
        """Raise ModelFormatError where a file changed since it was opened."""
        self._native.check()

    def _all(self, numbers: dict[str, Any]) -> list[AnyTensor]:
        """Every tensor of the file, those in one that llama.cpp wants in one."""
        written = numbers["written"]
        natives = {each.name: each for each in self._native.tensors}
        if numbers["audio"] is None:  # GGUF has what reads images in its own file
            self._of_images = [name for name in natives if name.startswith(_OF_IMAGES)]
            for name in self._of_images:
                del natives[name]
        if not written["rope_factors"]:
            factors = [name for name in natives if name.startswith(_FACTORS)]
            for name in factors:
                del natives[name]
            if factors and numbers["yarn"] is None:
                raise UnsupportedModelError(
                    "config.json: rope_scaling gives each frequency a factor; llama.cpp reads "
                    f"no such tensor for {numbers['architecture']}"
                )
        found: list[AnyTensor] = []
        for name, begin in _STREAMS.items() if numbers["n_streams"] else ():
            matrices = [natives.pop(f"{begin}.{i}.weight") for i in range(STREAMS - 1)]
            stacked = [DirectoryTensor(each, None, name=f"{name}.weight") for each in matrices]
            found.append(StackedTensor(f"{name}.weight", stacked))
        if numbers["n_streams"]:
            found += self._unread_keys(natives, numbers)
        table = natives.get(_PER_LAYER)
        if table is not None and table.shape[0] < numbers["vocab_size"]:
            whole = self._tensor(natives.pop(_PER_LAYER), numbers)
            found.append(LengthenedTensor(whole, numbers["vocab_size"]))
        for joined, pieces in _core.gguf_joined_names():
            if joined not in written["joined"]:
                continue
            for layer in range(len(numbers["described"]["layers"])):
                for suffix in (".weight", ".bias"):
                    names = [f"layers.{layer}.{piece}{suffix}" for piece in pieces]
                    if all(name in natives for name in names):
                        parts = [self._tensor(natives.pop(name), numbers) for name in names]
                        found.append(JoinedTensor(f"blk.{layer}.{joined}{suffix}", parts))
        if written["b_and_a_by_key_head"]:
            found += self._shares_by_key_heads(natives, numbers)
        if written["latents_apart"]:
            found += self._latents_apart(natives, numbers)
        if written["factors_in_weights"] and "output.weight" not in natives:
            # What embeds and what makes logits are multiplied by their own numbers.
            factor = np.array(numbers["described"]["logit_scale"], np.float32)
            table = natives["token_embedding.weight"]
            found.append(DirectoryTensor(table, None, name="output.weight", factors=factor))
        return [*found, *(self._tensor(each, numbers) for each in natives.values())]

    def _shares_by_key_heads(
        self, natives: dict[str, _core.SourceTensor], numbers: dict[str, Any]
    ) -> list[JoinedTensor]:
        """Qwen3-Next's b and a: those of each key head next to each other."""
        found = []
        for i, layer in enumerate(numbers["described"]["layers"]):
            if (rule := layer["delta_rule"]) is None:
                continue
            parts = [
                DirectoryTensor(natives.pop(f"layers.{i}.delta.{kind}.weight"), None, name="ssm_ba")
                for kind in ("b", "a")
            ]
            rows = np.arange(2 * rule["n_value_heads"]).reshape(2, rule["n_key_heads"], -1)
            order = rows.transpose(1, 0, 2).ravel()
            found.append(JoinedTensor(f"blk.{i}.ssm_ba.weight", parts, order))
        return found

    def _latents_apart(
        self, natives: dict[str, _core.SourceTensor], numbers: dict[str, Any]
    ) -> list[HeadsTensor]:
        """Keys and values of latent attention, which llama.cpp wants apart here."""
        found = []
        for i, layer in enumerate(numbers["described"]["layers"]):
            whole = natives.pop(f"layers.{i}.attention.kv_b.weight", None)
            if whole is None:
                continue
            both = DirectoryTensor(whole, None)
            n_heads, values = layer["n_heads"], layer["latent"]["value_dim"]
            for letter, rows in (("k", slice(0, -values)), ("v", slice(-values, None))):
                name = f"blk.{i}.attn_{letter}_b.weight"
                found.append(HeadsTensor(both, name, n_heads, rows))
        return found

    def _unread_keys(
        self, natives: dict[str, _core.SourceTensor], numbers: dict[str, Any]
    ) -> list[DirectoryTensor]:
        """Tensors that llama.cpp requires and never reads: keys of Gemma 3n's sharing layers.

        They are copies of the last layer that has keys.
        """
        n_layers = len(numbers["described"]["layers"])
        n_own = n_layers - numbers["n_shared_kv_layers"]
        return [
            DirectoryTensor(
                natives[f"layers.{n_own - 1}.attention.{kind}.weight"],
                None,
                name=f"blk.{layer}.attn_{kind}.weight",
            )
            for layer in range(n_own, n_layers)
            for kind in ("k", "v", "k_norm")
        ]

    def _tensor(self, native: _core.SourceTensor, numbers: dict[str, Any]) -> DirectoryTensor:
        if native.name.endswith(".bias") and ".experts." in native.name:
            # One vector in the engine; a row for each expert in GGUF.
            tensor = DirectoryTensor(native, None)
            layers = numbers["described"]["layers"]
            n = next(layer["experts"]["n"] for layer in layers if layer["experts"] is not None)
            tensor.shape = (n, tensor.shape[0] // n)
            return tensor
        layers = numbers["described"]["layers"]
        order = _values_order(native.name, layers) if numbers["tiles_values"] else None
        columns = _columns(native.name, layers)
        if columns is not None or order is not None:
            tensor = DirectoryTensor(native, None, columns, order=order)
            if ".kernel_" in native.name:  # which llama.cpp wants as a stack of single rows
                tensor.shape = (tensor.shape[0], 1, tensor.shape[1])
            return tensor
        if (kind := _NUMBERS.search(native.name)) is not None:
            width = numbers["dim"] if kind[1] == "router" else numbers["n_streams"]
            return DirectoryTensor(native, None, width)
        if numbers["interleaves_rows"] and _ROTATED.search(native.name) is not None:
            head_dim = numbers["described"]["layers"][0]["head_dim"]
            return DirectoryTensor(native, (head_dim, numbers["rope_dim"]))
        if numbers["written"]["factors_in_weights"]:
            return DirectoryTensor(
                native, None, factors=_factors(native.name, numbers["described"])
            )
        return DirectoryTensor(native, None)


def _factors(name: str, described: dict[str, Any]) -> NDArray[np.float32] | None:
    """Return what the rows of a tensor are multiplied by in the model; None: by nothing."""
    factors: dict[str, float | NDArray[np.float64]] = {
        "token_embedding.weight": described["embedding_scale"],
        "output.weight": described["logit_scale"],
    }
    stem = name
    if (layer := re.match(r"layers\.(\d+)\.", name)) is not None:
        stem = name[layer.end() :]
        of = described["layers"][int(layer[1])]
        scan = of["scan"]
        sections = (scan["inner_dim"], scan["inner_dim"] + _others(scan), scan["n_heads"])
        factors = {
            "attention.k.weight": of["attention_scale"] * math.sqrt(of["head_dim"]),
            "attention.output.weight": of["factors"]["attention"],
            "scan.in.weight": np.repeat([scan["gate_factor"], 1, scan["time_factor"]], sections),
            "scan.output.weight": of["factors"]["scan"],
            "ffn.gate.weight": of["factors"]["gate"],
            "ffn.down.weight": of["factors"]["feed_forward"],
        }
    found = factors.get(stem)
    return None if found is None else np.asarray(found, np.float32)


def _others(scan: dict[str, Any]) -> int:
    """Return how many numbers B and C of a scan are."""
    return 2 * int(scan["n_groups"]) * int(scan["state_dim"])


def _values_order(
    name: str, layers: Sequence[dict[str, Any]]
) -> tuple[int, NDArray[np.int64]] | None:
    """Return the axis along which a tensor has value heads, and their order in such a file."""
    layer = re.match(r"layers\.(\d+)\.delta\.([a-z]+)\.", name)
    rule = None if layer is None else layers[int(layer[1])]["delta_rule"]
    if layer is None or rule is None or layer[2] == "norm":
        return None
    n_keys, n_values = rule["n_key_heads"], rule["n_value_heads"]
    length = 1 if layer[2] in ("a", "b", "time", "rate") else rule["value_dim"]
    first = 2 * n_keys * rule["key_dim"] if layer[2] in ("qkv", "kernel") else 0
    values = np.arange(n_values * length).reshape(n_keys, -1, length).transpose(1, 0, 2).reshape(-1)
    order = np.concatenate([np.arange(first), first + values])
    return (1 if layer[2] == "output" else 0), order


def _columns(name: str, layers: Sequence[dict[str, Any]]) -> int | None:
    """Return the columns of a matrix of GGUF that is a vector in the engine, else None."""
    layer = re.match(r"layers\.(\d+)\.", name)
    if layer is None:
        return None
    described = layers[int(layer[1])]
    scan, rule = described["scan"], described["delta_rule"]
    columns: dict[str, int] = {"convolution.kernel.weight": described["convolution_width"]}
    if scan is not None:
        columns |= {
            "scan.kernel.weight": scan["width"],
            "scan.rate.weight": 1,
            "scan.skip.weight": 1,
            "scan.norm.weight": scan["inner_dim"] // scan["n_groups"],
        }
    if rule is not None:
        columns["delta.kernel.weight"] = rule["width"]
        columns |= {f"delta.kernel_{letter}.weight": rule["width"] for letter in "qkv"}
    if rule is not None and rule["per_channel"]:
        columns["delta.rate.weight"] = 1
    return columns.get(name[layer.end() :])


def _place(name: str) -> tuple[int, int, str]:
    """What a pass meets first is first: an encoder, the embedding, layers by number, the output."""
    kind = max((begin for begin in _ORDER if name.startswith(begin)), key=len)
    layer = re.match(r"(?:enc\.)?blk\.(\d+)\.", name)
    return _ORDER.index(kind), 0 if layer is None else int(layer[1]), name
