"""Invented vocabularies that load like real ones: byte-level BPE, and SentencePiece's BPE.

A vocabulary is grown as training grows one: single characters first, then every new token is two
older ones together, the short and early ones most often. So a text falls into as many pieces as
their number lets one expect, every merge has both its parts, and every string has its tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.make_synthetic.shapes import Shape
from tools.make_synthetic.values import Stream

# GGUF's kinds of tokens.
NORMAL, UNKNOWN, CONTROL, UNUSED, BYTE = 1, 2, 3, 5, 6

_LONGEST = 14
# Letters as often as in English text, roughly: what is first is taken most.
_LETTERS = "etaoinsrhldcumfpgwybvkxjqz"
_OTHERS = "ETAOINSRHLDCUMFPGWYBVKXJQZ0123456789.,;:!?'\"()-"

_CHATML = (
    "{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + "
    "'<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}"
)
_HEADERS = (
    "{{ bos_token }}{%- for message in messages %}{{ '<|start_header_id|>' + message.role + "
    "'<|end_header_id|>\\n\\n' + message.content + '<|eot_id|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}"
)
_HARMONY = (
    "{%- for message in messages %}{{ '<|start|>' + message.role + '<|message|>' + "
    "message.content + '<|end|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ '<|start|>assistant' }}{%- endif %}"
)
_ANGLES = (
    "{%- for message in messages %}{{ '<|' + message.role + '|>\\n' + message.content + "
    "eos_token + '\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}"
    "{%- endif %}"
)

_QWEN_CONTROLS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
    "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>",
    "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip
_LLAMA_CONTROLS = (
    "<|begin_of_text|>", "<|end_of_text|>", "<|finetune_right_pad_id|>", "<|start_header_id|>",
    "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>",
)  # fmt: skip

_GPT_OSS_CONTROLS = (
    "<|startoftext|>", "<|endoftext|>", "<|return|>", "<|constrain|>", "<|channel|>", "<|start|>",
    "<|end|>", "<|message|>", "<|call|>", "<|endofprompt|>",
)  # fmt: skip

# By pre-tokeniser: begin of text, end of text, template.
_BYTE_LEVEL = {
    "llama-bpe": ("<|begin_of_text|>", "<|eot_id|>", _HEADERS),
    "qwen2": ("<|endoftext|>", "<|im_end|>", _CHATML),
    "gpt-4o": ("<|startoftext|>", "<|return|>", _HARMONY),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """What the keys `tokenizer.*` say; `scores` are SentencePiece's, `merges` the others'."""

    model: str
    pre: str
    tokens: list[str]
    types: list[int]
    scores: list[float] | None
    merges: list[str] | None
    bos_id: int
    eos_id: int
    add_bos: bool
    chat_template: str


def byte_characters() -> list[str]:
    """The printable character that stands for each byte in a byte-level vocabulary."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def _grow(known: list[str], space: str, n: int, stream: Stream) -> list[tuple[str, str]]:
    """`n` pairs of tokens, each of which makes a token that is not there before it.

    `known`: the tokens so far. A space only begins a token, as words do.
    """
    taken = set(known)
    words = [*_LETTERS, space]  # what grows, and is taken
    pairs: list[tuple[str, str]] = []
    while len(pairs) < n:
        for first, second in stream.pairs(1 << 16).reshape(-1, 2).tolist():
            # The square favours what came early.
            left = words[first * first * len(words) >> 32]
            right = words[second * second * len(words) >> 32]
            token = left + right
            if len(token) > _LONGEST or right.startswith(space) or token in taken:
                continue
            taken.add(token)
            words.append(token)
            pairs.append((left, right))
            if len(pairs) == n:
                break
    return pairs


def _byte_level(shape: Shape, stream: Stream, controls: list[str], pre: str) -> Vocabulary:
    least = 256 + len(controls)
    if shape.vocab_size < least:
        raise ValueError(f"vocab_size must be {least} or more, got {shape.vocab_size}")
    # Models pad their vocabulary to a round number.
    padding = 0 if pre == "llama-bpe" else min(shape.vocab_size - least, 267)
    tokens = byte_characters()
    pairs = _grow(tokens, "Ġ", shape.vocab_size - least - padding, stream)
    tokens += [left + right for left, right in pairs]
    first_control = len(tokens)
    tokens += controls
    tokens += [f"[PAD{i}]" for i in range(len(tokens), shape.vocab_size)]
    types = [NORMAL] * first_control + [CONTROL] * len(controls) + [UNUSED] * padding
    bos, eos, chat_template = _BYTE_LEVEL[pre]
    return Vocabulary(
        model="gpt2",
        pre=pre,
        tokens=tokens,
        types=types,
        scores=None,
        merges=[f"{left} {right}" for left, right in pairs],
        bos_id=first_control + controls.index(bos),
        eos_id=first_control + controls.index(eos),
        add_bos=pre == "llama-bpe",
        chat_template=chat_template,
    )


def _sentence_piece(shape: Shape, stream: Stream) -> Vocabulary:
    special = ["<unk>", "<s>", "</s>"]
    characters = ["▁", *_LETTERS, *_OTHERS]
    least = len(special) + 256 + len(characters)
    if shape.vocab_size < least:
        raise ValueError(f"vocab_size must be {least} or more, got {shape.vocab_size}")
    pairs = _grow(characters, "▁", shape.vocab_size - least, stream)
    pieces = [left + right for left, right in pairs] + characters
    return Vocabulary(
        model="llama",
        pre="default",
        tokens=[*special, *(f"<0x{byte:02X}>" for byte in range(256)), *pieces],
        types=[UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(pieces),
        # Pairs are merged in the order of their scores.
        scores=[0.0] * 259 + [-float(rank) for rank in range(len(pieces))],
        merges=None,
        bos_id=1,
        eos_id=2,
        add_bos=True,
        chat_template=_ANGLES,
    )


def invent(shape: Shape, seed: int) -> Vocabulary:
    """A vocabulary of `shape.vocab_size` tokens of the kind that the architecture has.

    Llamas have Llama 3's kind from 65536 tokens on, Llama 2's below. Raises ValueError where the
    size has no room for all bytes and control tokens.
    """
    stream = Stream(seed, "vocabulary")
    if shape.architecture == "gpt-oss":
        return _byte_level(shape, stream, list(_GPT_OSS_CONTROLS), "gpt-4o")
    if shape.architecture != "llama":
        controls = list(_QWEN_CONTROLS)
        return _byte_level(shape, stream, controls, "qwen2")
    if shape.vocab_size < 65536:
        return _sentence_piece(shape, stream)
    controls = list(_LLAMA_CONTROLS)
    controls += [f"<|reserved_special_token_{i}|>" for i in range(256 - len(controls))]
    return _byte_level(shape, stream, controls, "llama-bpe")
