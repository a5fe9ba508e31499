"""Writes a model as GGUF, one piece of a tensor after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray
from tools.make_synthetic import values
from tools.make_synthetic.recipes import base_and_number, recipe_name, tensor_format
from tools.make_synthetic.shapes import Shape, Tensor, tensors
from tools.make_synthetic.values import Stream
from tools.make_synthetic.vocabulary import invent

WEIGHT_STD = 0.02
BIAS_STD = 0.1


def standard_deviation(shape: Shape, tensor: Tensor) -> float:
    """How far the values of a weight or bias spread.

    The output makes logits with a standard deviation of 2 from the normed residual stream: more
    than one token is likely, and few are.
    """
    if tensor.is_bias:
        return BIAS_STD
    is_output = tensor.name == "output.weight"
    if is_output or (shape.tied and tensor.name == "token_embd.weight"):
        return 2 / math.sqrt(shape.dim)
    return WEIGHT_STD


def write(
    path: Path,
    shape: Shape,
    format_name: str,
    *,
    seed: int = 0,
    name: str = "",
    pure: bool = False,
    report: Callable[[int, int], None] | None = None,
) -> None:
    """Write a model of `shape` with random weights to `path`.

    Args:
        path: The file; one that is there is replaced.
        shape: Sizes and options.
        format_name: A recipe's name as `llama-quantize` takes it, e.g. "Q4_K_M".
        seed: Decides every number and every token.
        name: What the file says in `general.name`.
        pure: Every matrix in the recipe's base format.
        report: Called with the bytes of tensors written so far and in all.

    Raises:
        ValueError: there is no such format, or the vocabulary is too small.
    """
    recipe = recipe_name(format_name)
    writer = gguf.GGUFWriter(path, shape.architecture)
    _add_numbers(writer, shape, name or f"synthetic {shape.architecture}", recipe)
    _add_vocabulary(writer, shape, seed)

    formats = {each.name: tensor_format(recipe, each, shape, pure=pure) for each in tensors(shape)}
    divisors = shape.rope_divisors()
    if divisors is not None:
        _add_info(writer, Tensor("rope_freqs.weight", 1, len(divisors)), "F32")
    for tensor in tensors(shape):
        _add_info(writer, tensor, formats[tensor.name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()

    total = sum(tensor_bytes(each, formats[each.name]) for each in tensors(shape))
    written = 0
    with path.open("ab") as file:

        def pad() -> None:
            file.write(bytes(-file.tell() % gguf.GGUF_DEFAULT_ALIGNMENT))

        pad()
        if divisors is not None:
            file.write(divisors.astype("<f4").tobytes())
            pad()
        for tensor in tensors(shape):
            stream = Stream(seed, tensor.name)
            if tensor.is_norm:
                pieces = iter([values.norm(stream, tensor.k)])
            else:
                std = standard_deviation(shape, tensor)
                number_format = formats[tensor.name]
                pieces = values.matrix(number_format, stream, tensor.rows, tensor.k, std)
                if shape.skewed and "ffn_gate_inp" in tensor.name:
                    pieces = iter([_skewed(np.concatenate(list(pieces)), tensor, shape)])
            for piece in pieces:
                file.write(np.ascontiguousarray(piece).data)
                written += piece.nbytes
                if report is not None:
                    report(written, total)
            pad()


def _skewed(data: NDArray[Any], tensor: Tensor, shape: Shape) -> NDArray[np.float32]:
    """The router with long rows for as many experts as a row goes to: each is chosen where its
    logit is above 0.
    """
    router = np.ascontiguousarray(data).view("<f4").reshape(tensor.rows, tensor.k).copy()
    router[: shape.n_chosen] *= 8
    return router


def tensor_bytes(tensor: Tensor, number_format: str) -> int:
    """Bytes of a tensor in a number format."""
    block, n_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[number_format]]
    return tensor.rows * tensor.k // block * n_bytes


def _add_info(writer: gguf.GGUFWriter, tensor: Tensor, number_format: str) -> None:
    shape: tuple[int, ...] = (tensor.rows, tensor.k) if tensor.is_matrix else (tensor.k,)
    if tensor.n_matrices > 1:
        shape = (tensor.n_matrices, tensor.rows // tensor.n_matrices, tensor.k)
    writer.add_tensor_info(
        tensor.name,
        shape,
        np.dtype(np.float32),  # of no account beside raw_dtype
        tensor_bytes(tensor, number_format),
        raw_dtype=gguf.GGMLQuantizationType[number_format],
    )


def _add_numbers(writer: gguf.GGUFWriter, shape: Shape, name: str, recipe: str) -> None:
    writer.add_type("model")
    writer.add_name(name)
    writer.add_block_count(shape.n_layers)
    writer.add_context_length(shape.context_length)
    writer.add_embedding_length(shape.dim)
    writer.add_feed_forward_length(shape.ffn_dim)
    writer.add_head_count(shape.n_heads)
    writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_rope_freq_base(shape.rope_theta)
    writer.add_layer_norm_rms_eps(shape.norm_epsilon)
    if shape.n_experts > 0:
        writer.add_expert_count(shape.n_experts)
        writer.add_expert_used_count(shape.n_chosen)
        writer.add_expert_feed_forward_length(shape.expert_dim)
    if shape.window > 0:
        writer.add_sliding_window(shape.window)
    if shape.architecture == "qwen3" or shape.head_dim * shape.n_heads != shape.dim:
        writer.add_key_length(shape.head_dim)
        writer.add_value_length(shape.head_dim)
    if shape.architecture == "llama":
        writer.add_vocab_size(shape.vocab_size)
        writer.add_rope_dimension_count(shape.head_dim)
    if shape.rope_linear_factor != 1.0:
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(shape.rope_linear_factor)
    if shape.yarn_factor != 1.0:
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(shape.yarn_factor)
        writer.add_rope_scaling_orig_ctx_len(shape.yarn_context)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_file_type(base_and_number(recipe)[1])


def _add_vocabulary(writer: gguf.GGUFWriter, shape: Shape, seed: int) -> None:
    vocabulary = invent(shape, seed)
    writer.add_tokenizer_model(vocabulary.model)
    writer.add_tokenizer_pre(vocabulary.pre)
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_types(vocabulary.types)
    if vocabulary.scores is not None:
        writer.add_token_scores(vocabulary.scores)
    if vocabulary.merges is not None:
        writer.add_token_merges(vocabulary.merges)
    writer.add_bos_token_id(vocabulary.bos_id)
    writer.add_eos_token_id(vocabulary.eos_id)
    writer.add_add_bos_token(vocabulary.add_bos)
    writer.add_chat_template(vocabulary.chat_template)
