"""What tests and kernels have to do at least: bytes that are read, numbers that are multiplied."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from akunu.cli.measuring.bench_plan import Test
from akunu.model_facts import ModelConfig
from akunu.options.load_options import kv_bytes
from akunu.storage.model_files import TensorFacts

# Weights in these formats are multiplied as floats, all others as int8 (MLX's twice).
_FLOAT_FORMATS = frozenset({"F64", "F32", "F16", "BF16", "F8_E4M3"})
_TILE_PRODUCTS = {"F16": 3, "BF16": 2}
"""Products of a matrix unit for one; 1 for block formats (docs/kernels.md). F32 does not use it."""
_EMBEDDINGS = ("token_embd.weight", "embed_tokens.weight")
_HEADS = ("output.weight", "lm_head.weight")
_GATE_OF_DELTA_RULE = "gate of a delta rule"  # its command has the label "gate", as of an FFN
_COMMANDS = {
    "attn_q": "q",
    "attn_k": "k",
    "attn_v": "v",
    "attn_output": "attention output",
    "ffn_gate": "gate",
    "ffn_up": "up",
    "ffn_down": "down",
    # In a directory.
    "self_attn.q_proj": "q",
    "self_attn.k_proj": "k",
    "self_attn.v_proj": "v",
    "self_attn.o_proj": "attention output",
    "mlp.gate_proj": "gate",
    "mlp.up_proj": "up",
    "mlp.down_proj": "down",
    # Matrices of a delta rule.
    "attn_qkv": "qkv",
    "attn_gate": _GATE_OF_DELTA_RULE,
    "ssm_alpha": "a",
    "ssm_beta": "b",
    "ssm_out": "delta output",
    "linear_attn.in_proj_qkv": "qkv",
    "linear_attn.in_proj_z": _GATE_OF_DELTA_RULE,
    "linear_attn.in_proj_a": "a",
    "linear_attn.in_proj_b": "b",
    "linear_attn.out_proj": "delta output",
}
"""The label of the command that multiplies a layer's matrix, by the matrix's name in a file."""


def _ends_with(name: str, endings: tuple[str, ...]) -> bool:
    """Whether a name is one of some, perhaps after the name of what holds it.

    >>> _ends_with("model.embed_tokens.weight", ("embed_tokens.weight",))
    True
    """
    return name in endings or name.endswith(tuple("." + ending for ending in endings))


@dataclass(frozen=True, slots=True)
class OperationCounts:
    """What has to be done at least."""

    read_bytes: float = 0.0
    float_operations: float = 0.0
    byte_operations: float = 0.0
    prompt_float_operations: float = 0.0
    """The float operations that a matrix unit or int16 would take."""
    prompt_byte_operations: float = 0.0
    """The byte operations that a matrix unit or int16 would take."""
    prompt_tile_operations: float = 0.0
    """How many operations the unit needs for those: several for one if a number is stored as a sum
    of two in bf16."""

    def __add__(self, other: OperationCounts) -> OperationCounts:
        """Return both together."""
        return OperationCounts(
            *(mine + its for mine, its in zip(astuple(self), astuple(other), strict=True))
        )


@dataclass(frozen=True, slots=True)
class Matrices:
    """Weights that the same rows are multiplied with."""

    size: int
    """Their bytes."""
    float_numbers: int
    byte_numbers: int
    """Products of bytes for a row: an input number has two bytes for MLX's weights."""
    tile_floats: int
    """The float numbers that a matrix unit or int16 takes for prompts."""
    tile_bytes: int
    """The products of bytes that a matrix unit or int16 takes for prompts."""
    tile_products: int
    """Products that the unit computes for a row, over all numbers that it takes."""

    @classmethod
    def of(cls, tensors: Iterable[TensorFacts]) -> Matrices:
        """Count what some tensors have."""
        size = float_numbers = byte_numbers = tile_floats = tile_bytes = tile_products = 0
        for tensor in tensors:
            numbers = math.prod(tensor.shape)
            size += tensor.size
            if tensor.type_name.startswith("mlx"):
                byte_numbers += 2 * numbers
                continue
            if tensor.type_name not in _FLOAT_FORMATS:
                byte_numbers += numbers
                tile_bytes += numbers
                tile_products += numbers
                continue
            float_numbers += numbers
            if tensor.type_name in _TILE_PRODUCTS:
                tile_floats += numbers
                tile_products += numbers * _TILE_PRODUCTS[tensor.type_name]
        return cls(size, float_numbers, byte_numbers, tile_floats, tile_bytes, tile_products)

    def work(self, *, prompt_rows: int, other_rows: int, readings: int) -> OperationCounts:
        """Return what it takes to multiply this many rows, reading the weights this many times."""
        rows = prompt_rows + other_rows
        return OperationCounts(
            read_bytes=self.size * readings,
            float_operations=2 * self.float_numbers * rows,
            byte_operations=2 * self.byte_numbers * rows,
            prompt_float_operations=2 * self.tile_floats * prompt_rows,
            prompt_byte_operations=2 * self.tile_bytes * prompt_rows,
            prompt_tile_operations=2 * self.tile_products * prompt_rows,
        )


@dataclass(frozen=True, slots=True)
class OperationModel:
    """Counts the work of tests on one model, from its tensors and its shape."""

    config: ModelConfig
    kv_type: str
    prompt_rows: int
    """Rows of a prompt that share one reading of the weights."""
    vector_bytes: int
    """Norms, biases and their like."""
    layers: Matrices
    """The matrices of all layers."""
    head: Matrices
    commands: dict[str, Matrices]
    """The same, by the label of the command that multiplies them; in layers, of all of them."""

    @classmethod
    def of(
        cls, tensors: Sequence[TensorFacts], config: ModelConfig, kv_type: str, prompt_rows: int
    ) -> OperationModel:
        """Count what a step reads and multiplies; the embedding is looked up, not multiplied."""
        outer = [each for each in tensors if _ends_with(each.name, _EMBEDDINGS + _HEADS)]
        head = Matrices.of(sorted(outer, key=lambda each: _ends_with(each.name, _HEADS))[-1:])
        inner = [each for each in tensors if each not in outer]
        matrices = [tensor for tensor in inner if len(tensor.shape) > 1]
        by_command: dict[str, list[TensorFacts]] = {}
        for tensor in matrices:
            found = re.fullmatch(r"(?:blk|.*layers)\.\d+\.([\w.]+)\.weight", tensor.name)
            if found and found[1] in _COMMANDS:
                by_command.setdefault(_COMMANDS[found[1]], []).append(tensor)
        return cls(
            config=config,
            kv_type=kv_type,
            prompt_rows=prompt_rows,
            vector_bytes=sum(tensor.size for tensor in inner if len(tensor.shape) == 1),
            layers=Matrices.of(matrices),
            head=head,
            commands={label: Matrices.of(some) for label, some in by_command.items()},
        )

    def work(self, test: Test) -> OperationCounts:
        """Return what a test reads and computes at least."""
        steps = -(-test.n_prompt // self.prompt_rows) + test.n_gen
        heads = (1 if test.n_prompt else 0) + test.n_gen  # a prompt needs logits of its last row
        return (
            OperationCounts(read_bytes=self.vector_bytes * steps)
            + self.layers.work(prompt_rows=test.n_prompt, other_rows=test.n_gen, readings=steps)
            + self.head.work(prompt_rows=0, other_rows=heads, readings=heads)
            + self._attention(test)
        )

    def command_work(self, name: str, step: Test) -> OperationCounts:
        """Return the work of all commands with this name in a step, over all layers.

        A name joins the labels of the fused operations: "gate, up, activation". Norms and other
        small operations count as no work.
        """
        work = OperationCounts()
        labels = name.split(", ")
        if "qkv" in labels:
            labels = [_GATE_OF_DELTA_RULE if label == "gate" else label for label in labels]
        for label in labels:
            if label in ("attention", "latent attention"):
                work += self._attention(step)
            elif label == "logits":
                work += self.head.work(prompt_rows=0, other_rows=1, readings=1)
            elif label in self.commands:
                work += self.commands[label].work(
                    prompt_rows=step.n_prompt, other_rows=step.n_gen, readings=1
                )
        return work

    def _attention(self, test: Test) -> OperationCounts:
        work = OperationCounts()
        for window, n_layers in Counter(self.config.windows).items():
            work += self._attention_of(n_layers, window, test)
        return work

    def _attention_of(self, n_layers: int, window: int, test: Test) -> OperationCounts:
        """Count those of `n_layers` layers that see as many positions, or all (0)."""
        config = self.config
        kv_row = n_layers * kv_bytes(self.kv_type, config.cache_dim)
        # A pair of positions takes one product for its score and one for its value in every head.
        both = 2 * config.head_dim
        if config.latent_rank:
            both = config.cache_dim + config.latent_rank
        per_pair = 2 * n_layers * config.n_heads * both
        prompt_steps = -(-test.n_prompt // self.prompt_rows)
        # Row i of the test looks at all positions that it sees, and at itself.
        pairs = _pairs(test.n_depth, test.n_depth + test.n_tokens, window)
        # A prompt's step may read what its rows see once; a generated row reads all that it sees.
        begin = test.n_depth + test.n_prompt
        steps = [
            min(test.n_depth + (step + 1) * self.prompt_rows, begin) for step in range(prompt_steps)
        ]
        seen_by_a_step = window + self.prompt_rows - 1 if window else begin
        read_rows = sum(min(end, seen_by_a_step) for end in steps) + _pairs(
            begin, begin + test.n_gen, window
        )
        prompt_pairs = _pairs(test.n_depth, begin, window)
        if self.kv_type != "f16" or self.layers.tile_products == 0:
            prompt_pairs = 0  # attention stays where it is
        # Next to halves it takes sums of two numbers as well.
        pair_products = 1 if self.layers.byte_numbers > 0 else _TILE_PRODUCTS["F16"]
        return OperationCounts(
            read_bytes=kv_row * read_rows,
            float_operations=per_pair * pairs,
            prompt_float_operations=per_pair * prompt_pairs,
            prompt_tile_operations=per_pair * prompt_pairs * pair_products,
        )


def _pairs(begin: int, end: int, window: int) -> int:
    """How many positions the rows of positions [begin, end) see together."""

    def until(n: int) -> int:
        growing = min(n, window) if window else n
        return growing * (growing + 1) // 2 + (n - growing) * window

    return until(end) - until(begin)
