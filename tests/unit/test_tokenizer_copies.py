"""A tokenizer can be copied and pickled at any time, and goes on to do the same."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from tokenizer_support import byte_level, sentencepiece

from akunu.templates.chat_template import ChatTemplate, encode_chat
from akunu.tokenizers.tokenizer import Tokenizer
from lines import each_line

VOCABULARIES: dict[str, dict[str, Any]] = {
    "byte-level": byte_level(
        "ab", "abc", "<|bos|>", "{x}", merges=("a b", "ab c"), bos_token_id=258, add_bos_token=True
    ),
    "sentencepiece": sentencepiece(("\u2581", -9.0), ("a", -9.0), ("\u2581a", -1.0)),
    "wordpiece": {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": ["[CLS]", "[SEP]", "[UNK]", "\u2581ab", "c"],
        "tokenizer.ggml.token_type": [3, 3, 2, 1, 1],
        "tokenizer.ggml.cls_token_id": 0,
        "tokenizer.ggml.seperator_token_id": 1,
        "tokenizer.ggml.unknown_token_id": 2,
    },
}
TEXT = "abc {x} a\u00e9"


@each_line("used", [False, True], ids=["before the first text", "after it"])
@each_line("kind", VOCABULARIES)
def test_a_pickled_tokenizer_does_the_same(kind: str, used: bool) -> None:
    tokenizer = Tokenizer.from_metadata(VOCABULARIES[kind])
    expected = Tokenizer.from_metadata(VOCABULARIES[kind]).encode(TEXT)
    if used:
        assert tokenizer.encode(TEXT) == expected
    once = pickle.loads(pickle.dumps(tokenizer))
    twice = pickle.loads(pickle.dumps(once))
    for copied in (once, twice):
        assert copied.encode(TEXT) == expected
        assert copied.decode(expected) == tokenizer.decode(expected)
    assert pickle.loads(pickle.dumps(once)).encode(TEXT) == expected  # once was used meanwhile


def test_a_copy_is_the_tokenizer_itself() -> None:
    tokenizer = Tokenizer.from_metadata(VOCABULARIES["byte-level"])
    assert copy.copy(tokenizer) is tokenizer
    assert copy.deepcopy({"t": tokenizer})["t"] is tokenizer


def test_a_pickled_chat_template_renders_the_same() -> None:
    tokenizer = Tokenizer.from_metadata(VOCABULARIES["byte-level"])
    template = ChatTemplate("{{ bos_token }}{{ messages[0].content }}", "<|bos|>")
    messages = [{"role": "user", "content": "abc"}]
    expected = encode_chat(tokenizer, template, messages)
    for copied in (copy.deepcopy(template), pickle.loads(pickle.dumps(template))):
        assert encode_chat(tokenizer, copied, messages) == expected == [258, 257]
