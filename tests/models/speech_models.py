"""Small random Whisper models, as Hugging Face directories that transformers loads as well."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hf_directory import stored, write_safetensors
from numpy.typing import NDArray

Tensors = dict[str, NDArray[np.float32]]

LANGUAGES = ("en", "zh", "de", "es", "haw")
N_BYTES = 256


@dataclass(frozen=True)
class SpeechSpec:
    """A model's shape. A window has two frames for each position: 20 ms."""

    dim: int = 64
    n_heads: int = 4
    n_encoder_layers: int = 2
    n_decoder_layers: int = 3
    encoder_ffn_dim: int = 96
    decoder_ffn_dim: int = 160
    n_mels: int = 80
    n_positions: int = 300
    context: int = 64
    is_multilingual: bool = True

    @property
    def specials(self) -> list[str]:
        """Tokens behind those of bytes, in Whisper's order."""
        names = ["<|endoftext|>", "<|startoftranscript|>", *(f"<|{c}|>" for c in LANGUAGES)]
        names += ["<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>"]
        return [*names, "<|nospeech|>", "<|notimestamps|>"]

    @property
    def first_timestamp(self) -> int:
        """The token of 0.00."""
        return N_BYTES + len(self.specials)

    @property
    def vocab_size(self) -> int:
        """Bytes, special tokens, and a timestamp for each position and one more."""
        return self.first_timestamp + self.n_positions + 1

    @property
    def n_frames(self) -> int:
        """Of a window."""
        return 2 * self.n_positions

    def token(self, name: str) -> int:
        """The id of a special token."""
        return N_BYTES + self.specials.index(name)

    def config(self) -> dict[str, Any]:
        """Its config.json."""
        return {
            "model_type": "whisper",
            "architectures": ["WhisperForConditionalGeneration"],
            "d_model": self.dim,
            "encoder_layers": self.n_encoder_layers,
            "decoder_layers": self.n_decoder_layers,
            "encoder_attention_heads": self.n_heads,
            "decoder_attention_heads": self.n_heads,
            "encoder_ffn_dim": self.encoder_ffn_dim,
            "decoder_ffn_dim": self.decoder_ffn_dim,
            "num_mel_bins": self.n_mels,
            "max_source_positions": self.n_positions,
            "max_target_positions": self.context,
            "vocab_size": self.vocab_size,
            "activation_function": "gelu",
            "scale_embedding": False,
            "tie_word_embeddings": True,
            "dropout": 0.0,
            "bos_token_id": N_BYTES,
            "eos_token_id": N_BYTES,
            "pad_token_id": N_BYTES,
            "decoder_start_token_id": N_BYTES + 1,
            "suppress_tokens": [],
            "begin_suppress_tokens": [32, N_BYTES],
            "torch_dtype": "float32",
        }


def random_tensors(spec: SpeechSpec, seed: int = 0) -> Tensors:
    """All tensors by transformers' names, large enough that every part matters."""
    rng = np.random.default_rng(seed)
    tensors: Tensors = {}

    def normal(name: str, *shape: int, scale: float) -> None:
        tensors[f"model.{name}"] = (rng.standard_normal(shape) * scale).astype(np.float32)

    def linear(name: str, n: int, k: int, *, bias: bool = True) -> None:
        normal(f"{name}.weight", n, k, scale=1.5 / np.sqrt(k))
        if bias:
            normal(f"{name}.bias", n, scale=0.3)

    def norm(name: str) -> None:
        weight = 1 + 0.3 * rng.standard_normal(spec.dim)
        tensors[f"model.{name}.weight"] = weight.astype(np.float32)
        normal(f"{name}.bias", spec.dim, scale=0.3)

    def attention(name: str) -> None:
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            linear(f"{name}.{part}", spec.dim, spec.dim, bias=part != "k_proj")

    def layers(side: str, n: int, ffn_dim: int, parts: tuple[str, ...]) -> None:
        for layer in (f"{side}.layers.{i}" for i in range(n)):
            for part in parts:
                attention(f"{layer}.{part}")
                norm(f"{layer}.{part}_layer_norm")
            linear(f"{layer}.fc1", ffn_dim, spec.dim)
            linear(f"{layer}.fc2", spec.dim, ffn_dim)
            norm(f"{layer}.final_layer_norm")
        norm(f"{side}.layer_norm")

    for name, n_channels in (("conv1", spec.n_mels), ("conv2", spec.dim)):
        normal(f"encoder.{name}.weight", spec.dim, n_channels, 3, scale=0.8 / np.sqrt(n_channels))
        normal(f"encoder.{name}.bias", spec.dim, scale=0.3)
    normal("encoder.embed_positions.weight", spec.n_positions, spec.dim, scale=0.5)
    layers("encoder", spec.n_encoder_layers, spec.encoder_ffn_dim, ("self_attn",))
    normal("decoder.embed_tokens.weight", spec.vocab_size, spec.dim, scale=0.3)
    normal("decoder.embed_positions.weight", spec.context, spec.dim, scale=0.3)
    parts = ("self_attn", "encoder_attn")
    layers("decoder", spec.n_decoder_layers, spec.decoder_ffn_dim, parts)
    return tensors


def write(folder: Path, spec: SpeechSpec, tensors: Tensors, *, dtype: str = "F32") -> Path:
    """The directory of a model."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(spec.config()))
    (folder / "generation_config.json").write_text(
        json.dumps(
            {
                "is_multilingual": spec.is_multilingual,
                "suppress_tokens": [35, 64],
                "begin_suppress_tokens": [32, N_BYTES],
                "alignment_heads": [[1, 0], [2, 3]],
                "no_timestamps_token_id": spec.first_timestamp - 1,
            }
        )
    )
    write_safetensors(
        folder / "model.safetensors",
        {name: (dtype, data.shape, stored(data, dtype)) for name, data in tensors.items()},
    )
    write_tokenizer(folder / "tokenizer.json", spec)
    return folder


def write_tokenizer(path: Path, spec: SpeechSpec) -> None:
    """A vocabulary of single bytes, as GPT-2 writes them; timestamps are not in it."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = byte_letters()
    vocab = {letters[byte]: byte for byte in range(N_BYTES)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in spec.specials])
    tokenizer.save(str(path))


def byte_letters() -> list[str]:
    """GPT-2's letter of each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


# --- the mathematics, in float64 -----------------------------------------------------------------

Array = NDArray[np.float64]
_ERF = np.vectorize(math.erf, otypes=[float])


class Forward:
    """Whisper's formulas (Radford et al., 2022) on a model's tensors."""

    def __init__(self, spec: SpeechSpec, tensors: Tensors) -> None:
        """`tensors` as `random_tensors` names them."""
        self.spec = spec
        self.tensors = {name: data.astype(np.float64) for name, data in tensors.items()}

    def __getitem__(self, name: str) -> Array:
        """A tensor."""
        return self.tensors[f"model.{name}"]

    def linear(self, name: str, x: Array) -> Array:
        """x times a matrix, and its bias where it has one."""
        bias = self.tensors.get(f"model.{name}.bias", np.zeros(1))
        return x @ self[f"{name}.weight"].T + bias

    def norm(self, name: str, x: Array) -> Array:
        """Layer norm."""
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        return scaled * self[f"{name}.weight"] + self[f"{name}.bias"]

    def attend(
        self,
        name: str,
        x: Array,
        seen: Array,
        *,
        causal: bool,
        heads: dict[int, Array] | None = None,
    ) -> Array:
        """Attention of x's rows to those of `seen`; `heads` gets the weights of each head."""
        n_heads, head_dim = self.spec.n_heads, self.spec.dim // self.spec.n_heads
        out = np.zeros_like(x)
        q, k, v = (
            self.linear(f"{name}.{part}_proj", rows)
            for part, rows in (("q", x), ("k", seen), ("v", seen))
        )
        for head in range(n_heads):
            own = slice(head * head_dim, (head + 1) * head_dim)
            scores = q[:, own] @ k[:, own].T / math.sqrt(head_dim)
            if causal:
                scores[np.triu_indices(len(x), 1)] = -np.inf
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            if heads is not None:
                heads[head] = weights
            out[:, own] = weights @ v[:, own]
        return self.linear(f"{name}.out_proj", out)

    def feed_forward(self, layer: str, x: Array) -> Array:
        """A layer's last part."""
        hidden = gelu(self.linear(f"{layer}.fc1", self.norm(f"{layer}.final_layer_norm", x)))
        return self.linear(f"{layer}.fc2", hidden)

    def convolve(self, name: str, x: Array, stride: int) -> Array:
        """A convolution of three rows, a zero before and behind."""
        padded = np.pad(x, ((1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=0)[::stride]
        out = np.einsum("rcj,ncj->rn", windows, self[f"{name}.weight"]) + self[f"{name}.bias"]
        return gelu(out)

    def encode(self, mel: NDArray[np.float32]) -> Array:
        """The encoder's rows of a window, [n_mels, n_frames]."""
        heard = self.convolve("encoder.conv1", mel.T.astype(np.float64), 1)
        x = self.convolve("encoder.conv2", heard, 2) + self["encoder.embed_positions.weight"]
        for i in range(self.spec.n_encoder_layers):
            layer = f"encoder.layers.{i}"
            normed = self.norm(f"{layer}.self_attn_layer_norm", x)
            x = x + self.attend(f"{layer}.self_attn", normed, normed, causal=False)
            x = x + self.feed_forward(layer, x)
        return self.norm("encoder.layer_norm", x)

    def decode(
        self, heard: Array, tokens: list[int], listening: list[dict[int, Array]] | None = None
    ) -> Array:
        """The decoder's rows; `listening` gets the weights of each layer's cross-attention."""
        x = self["decoder.embed_tokens.weight"][tokens]
        x = x + self["decoder.embed_positions.weight"][: len(tokens)]
        for i in range(self.spec.n_decoder_layers):
            layer = f"decoder.layers.{i}"
            normed = self.norm(f"{layer}.self_attn_layer_norm", x)
            x = x + self.attend(f"{layer}.self_attn", normed, normed, causal=True)
            normed = self.norm(f"{layer}.encoder_attn_layer_norm", x)
            heads: dict[int, Array] = {}
            x = x + self.attend(f"{layer}.encoder_attn", normed, heard, causal=False, heads=heads)
            x = x + self.feed_forward(layer, x)
            if listening is not None:
                listening.append(heads)
        return self.norm("decoder.layer_norm", x)

    def logits(self, mel: NDArray[np.float32], tokens: list[int]) -> Array:
        """Logits of every token, [n, vocab_size]."""
        return self.decode(self.encode(mel), tokens) @ self["decoder.embed_tokens.weight"].T

    def listening(
        self, mel: NDArray[np.float32], tokens: list[int], heads: list[tuple[int, int]]
    ) -> Array:
        """Where heads listen, given as (layer, head): [n, heads, positions]."""
        found: list[dict[int, Array]] = []
        self.decode(self.encode(mel), tokens, found)
        return np.stack([found[layer][head] for layer, head in heads], axis=1)


def gelu(x: Array) -> Array:
    """With the error function."""
    return x / 2 * (1 + _ERF(x / math.sqrt(2)))
