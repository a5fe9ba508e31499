"""A model that writes what a script says: a GGUF file whose weights are that script.

It runs as any other does: its prompt is read, its text is sampled token by token, also at
temperature 1 and under a grammar. Only the weights are made by hand: the attention adds nothing,
the embedding of a token says where in the script its text ends, and the output has, for each place
in the script, the token that follows there. Which text it writes depends on the token that ends the
prompt, and the chat template chooses that one: the call of a tool where a request has that tool,
`done` where the conversation has the result of a call, `chat` otherwise.

Coding agents have prompts of tens of thousands of tokens, and need a model that surely calls a
tool.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np

CONTEXT = 131072
_PIECE = 8  # characters of a token of the script
_LOUD = 8.0  # times sqrt(dim): a logit far above the others, which are 0
_END = "<|im_end|>"
_START = "<|script_{}|>"  # of the text with that number


def write(
    path: Path,
    words_of: Path,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    thought: str = "",
    done: str = "The tool has answered.",
    chat: str = "Good day.",
) -> Path:
    """Write such a model and return its path.

    Args:
        path: The file.
        words_of: A GGUF file whose tokenizer and chat template it takes over: Ember's.
        tool: The name of the tool that it calls, once in a conversation.
        arguments: What it calls the tool with, in the order of the tool's properties.
        thought: What it thinks before; its template then shows thoughts of earlier calls.
        done: What it says once the conversation has the result of a tool.
        chat: What it says where there is no such tool.
    """
    metadata = gguf.GGUFReader(words_of).fields
    call = f"<tool_call>\n{json.dumps({'name': tool, 'arguments': arguments})}\n</tool_call>"
    if thought:
        call = f"<think>\n{thought}\n</think>\n\n{call}"
    script = [_spelled(text) for text in (call, done, chat)]
    cut = [_cut(text, script) for text in script]
    tokens: list[str] = metadata["tokenizer.ggml.tokens"].contents()
    types: list[int] = metadata["tokenizer.ggml.token_type"].contents()
    for number in range(len(script)):
        tokens.append(_START.format(number))
        types.append(gguf.TokenType.CONTROL)
    known = set(tokens)
    for part in (part for text in (script[0], *cut[1], *cut[2]) for part in _parts(text)):
        if part not in known:
            known.add(part)
            tokens.append(part)
            types.append(gguf.TokenType.NORMAL)

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Scripted")
    for name in ("model", "pre"):
        key = f"tokenizer.ggml.{name}"
        writer.add_string(key, metadata[key].contents())
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(metadata["tokenizer.ggml.merges"].contents())
    writer.add_eos_token_id(tokens.index(_END))
    writer.add_add_bos_token(False)
    template = _template(metadata["tokenizer.chat_template"].contents(), tool)
    writer.add_chat_template(_with_thoughts(template) if thought else template)
    _add_weights(writer, tokens, cut)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _spelled(text: str) -> str:
    """As the tokenizer writes text."""
    assert text.isascii()
    return text.replace(" ", "Ġ").replace("\n", "Ċ")


def _cut(text: str, script: list[str]) -> list[str]:
    """Cut a text of the script into tokens each of which is in the whole script once."""
    pieces = []
    begin = 0
    while begin < len(text):
        end = begin + _PIECE
        while end < len(text) and not _is_once(text[begin:end], script):
            end += 1
        pieces.append(text[begin:end])
        begin = end
    while not _is_once(pieces[-1], script):
        pieces[-2:] = ["".join(pieces[-2:])]
    return pieces


def _is_once(piece: str, script: list[str]) -> bool:
    return sum(text[i:].startswith(piece) for text in script for i in range(len(text))) == 1


def _parts(text: str) -> Iterator[str]:
    """All parts of a text: what a grammar leaves no choice in is one of them, and no more."""
    for begin in range(len(text)):
        for end in range(begin + 1, len(text) + 1):
            yield text[begin:end]


def _template(plain: str, tool: str) -> str:
    """The template that words come from, with a start of the script where a reply begins."""
    call, done, chat = (f"{{{{- '{_START.format(number)}' }}}}" for number in range(3))
    opening = (
        f"{{%- if messages | selectattr('role', 'equalto', 'tool') | list %}}{done}"
        f"{{%- elif tools and tools | selectattr('function.name', 'equalto', '{tool}') | list %}}"
        f"{call}{{%- else %}}{chat}{{%- endif %}}"
    )
    last = "{%- endif %}"
    assert plain.rstrip().endswith("{{- '<|im_start|>assistant\\n' }}\n" + last), plain[-100:]
    return plain.rstrip().removesuffix(last) + opening + last


def _with_thoughts(template: str) -> str:
    begins = "        {{- '<|im_start|>assistant\\n' }}\n"
    assert template.count(begins) == 1
    shown = "{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}"
    return template.replace(
        begins, begins + "{%- if message.reasoning_content %}" + shown + "{%- endif %}"
    )


def _add_weights(writer: gguf.GGUFWriter, tokens: list[str], cut: list[list[str]]) -> None:
    following: list[str] = [_END]  # by place; 0 is what is no place in the script
    place_after: dict[str, int] = {}  # by token
    for number, pieces in enumerate(cut):
        place_after[_START.format(number)] = len(following)
        text = "".join(pieces)
        first = len(following)
        following += [piece[begin:] for piece in pieces for begin in range(len(piece))]
        following.append(_END)
        for token in tokens:
            if token in text:
                place_after.setdefault(token, first + text.index(token) + len(token))
    ids = {token: index for index, token in enumerate(tokens)}
    dim = -(-len(following) // 64) * 64
    embedding = np.zeros((len(tokens), dim), np.float16)
    embedding[range(len(tokens)), [place_after.get(token, 0) for token in tokens]] = 1
    output = np.zeros((len(tokens), dim), np.float16)
    output[[ids[token] for token in following], range(len(following))] = _LOUD

    n_heads, head_dim, ffn_dim = 1, 64, 64
    writer.add_block_count(1)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(dim)
    writer.add_feed_forward_length(ffn_dim)
    writer.add_head_count(n_heads)
    writer.add_head_count_kv(n_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(1e6)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(len(tokens))
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output.weight", output)
    writer.add_tensor("output_norm.weight", np.ones(dim, np.float32))
    for name, rows, columns in (
        ("attn_q", head_dim, dim),
        ("attn_k", head_dim, dim),
        ("attn_v", head_dim, dim),
        ("attn_output", dim, head_dim),
        ("ffn_gate", ffn_dim, dim),
        ("ffn_up", ffn_dim, dim),
        ("ffn_down", dim, ffn_dim),
    ):
        writer.add_tensor(f"blk.0.{name}.weight", np.zeros((rows, columns), np.float16))
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{name}.weight", np.ones(dim, np.float32))
