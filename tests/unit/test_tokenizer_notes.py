"""What a model can do without does not stop it where it is wrong; a note says what was ignored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tokenizer_support import byte_alphabet, byte_level, sentencepiece

from akunu.errors import ModelFormatError, UnsupportedModelError
from akunu.templates.chat_template import CHATML, ChatTemplate, encode_chat
from akunu.tokenizers.tokenizer import Tokenizer
from lines import each_line

KEY = "tokenizer.ggml."
TYPES = [1] * 256


def tokenizer_of(metadata: dict[str, Any], **changes: Any) -> Tokenizer:
    return Tokenizer.from_metadata({**metadata, **{KEY + k: v for k, v in changes.items()}})


@each_line("name", ["bos", "eos", "eot", "eom", "padding", "unknown", "seperator"])
@each_line(
    ("wrong", "reason"),
    [
        (256, "is 256, but tokenizer.ggml.tokens has ids 0 to 255"),
        (2**32 - 1, "is 4294967295, but tokenizer.ggml.tokens has ids 0 to 255"),  # -1 as uint32
        (-1, "is -1, but tokenizer.ggml.tokens has ids 0 to 255"),
        (True, "is bool, expected a token id"),
        ("</s>", "is str, expected a token id"),
    ],
)
def test_an_id_that_is_none_is_ignored(name: str, wrong: Any, reason: str) -> None:
    tokenizer = tokenizer_of(byte_level(), **{f"{name}_token_id": wrong})
    assert tokenizer.notes == (f"tokenizer.ggml.{name}_token_id {reason}: ignored",)
    assert tokenizer.encode("ab") == [byte_alphabet().index("a"), byte_alphabet().index("b")]
    assert tokenizer.stop_ids == frozenset()


def test_a_sentencepiece_vocabulary_with_wrong_ids_has_those_it_has_without_any() -> None:
    tokenizer = tokenizer_of(sentencepiece(("a", -1.0)), bos_token_id=999, eos_token_id=-1)
    assert (tokenizer.bos_id, tokenizer.eos_id) == (1, 2)
    assert len(tokenizer.notes) == 2


def test_an_id_that_a_vocabulary_cannot_do_without_is_refused() -> None:
    bytes_missing = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", "a"],
        "tokenizer.ggml.scores": [0.0] * 4,
        "tokenizer.ggml.token_type": [2, 3, 3, 1],
    }
    with pytest.raises(ModelFormatError, match=r"unknown_token_id is 9, but .* ids 0 to 3"):
        tokenizer_of(bytes_missing, unknown_token_id=9)
    assert tokenizer_of(sentencepiece(("a", -1.0)), unknown_token_id=999).unk_id == 0
    bert = {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": ["[CLS]", "[SEP]", "[UNK]"],
        "tokenizer.ggml.cls_token_id": 0,
        "tokenizer.ggml.seperator_token_id": 1,
        "tokenizer.ggml.unknown_token_id": 2,
    }
    for name in ("cls", "seperator", "unknown"):
        with pytest.raises(ModelFormatError, match=rf"{name}_token_id is 7"):
            tokenizer_of(bert, **{f"{name}_token_id": 7})


def test_there_is_nothing_to_add_without_bos_and_eos() -> None:
    tokenizer = tokenizer_of(byte_level(), add_bos_token=True, add_eos_token=True)
    assert (tokenizer.add_bos, tokenizer.add_eos) == (False, False)
    assert len(tokenizer.encode("a")) == 1
    assert tokenizer.notes == (
        "tokenizer.ggml.bos_token_id is missing: no BOS is added to texts, although the model "
        "expects one",
        "tokenizer.ggml.eos_token_id is missing: no EOS is added to texts, although the model "
        "expects one",
    )


def test_a_switch_that_is_no_bool_is_as_if_it_was_not_there() -> None:
    tokenizer = tokenizer_of(byte_level("<|bos|>"), bos_token_id=256, add_bos_token="yes")
    assert tokenizer.add_bos is False
    assert tokenizer.notes == ("tokenizer.ggml.add_bos_token is str, expected a bool: ignored",)


def test_tokens_without_a_type_are_normal() -> None:
    tokenizer = tokenizer_of(byte_level(), token_type=np.array([0, *TYPES[:-2], 0], np.int32))
    assert tokenizer.notes == (
        "tokenizer.ggml.token_type[0] and 1 more are 0 (undefined): taken as normal",
    )
    assert tokenizer.encode("\x00\xff", add_special=False) == [0, 0xC3, 0xBF]
    assert tokenizer.decode_bytes([255]) == b"\xff"


@each_line("kind", [1, 3, 4, 5])
def test_a_token_that_is_not_utf_8_is_its_bytes_and_no_text_becomes_it(kind: int) -> None:
    metadata = byte_level("\udcff\udcfe", "ab", "\udcff")
    metadata["tokenizer.ggml.token_type"][[256, 258]] = kind  # type: ignore[index]
    metadata["tokenizer.ggml.merges"] = ["a b", "\udcff \udcfe"]
    tokenizer = Tokenizer.from_metadata(metadata)
    assert tokenizer.notes == (
        "tokenizer.ggml.tokens[256] and 1 more are not valid UTF-8: "
        "text is never tokenized to them",
        "tokenizer.ggml.merges[1] is not valid UTF-8: ignored",
    )
    assert tokenizer.token_bytes(256) == b"\xff\xfe"
    assert tokenizer.token_text(256) == r"\xff\xfe"
    assert tokenizer.decode([256, 257]) == "\ufffd\ufffdab"
    for parse_special in (False, True):
        text = r"ab\xff\xfe" + "\u00ff"
        ids = tokenizer.encode(text, parse_special=parse_special)
        assert ids[0] == 257
        assert not {256, 258} & set(ids)
        assert tokenizer.decode(ids) == text


def test_a_sentencepiece_token_that_is_not_utf_8_is_its_bytes() -> None:
    tokenizer = Tokenizer.from_metadata(sentencepiece(("\u2581\udcff", -1.0), ("\u2581a", -2.0)))
    assert tokenizer.token_bytes(259) == b" \xff"
    assert tokenizer.decode([259, 260]) == "\ufffd a"


# --- chat templates ------------------------------------------------------------------------------

CHATML_VOCABULARY = byte_level("<|im_start|>", "<|im_end|>")
MESSAGES = [{"role": "user", "content": "a"}]


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ '\udcff' }}", "tokenizer.chat_template is not valid UTF-8 at byte 4"),
        (["x"], "tokenizer.chat_template is list, expected a string"),
    ],
)
def test_a_template_that_is_no_text_is_an_error_of_who_asks_for_a_chat(
    template: Any, reason: str
) -> None:
    tokenizer = Tokenizer.from_metadata({**CHATML_VOCABULARY, "tokenizer.chat_template": template})
    assert tokenizer.notes == (f"{reason}: the model cannot be used for conversations",)
    assert tokenizer.decode(tokenizer.encode("ab")) == "ab"
    assert tokenizer.chat_template is None
    with pytest.raises(ModelFormatError, match=f"^{reason}; the model can still complete texts$"):
        ChatTemplate.of(tokenizer)


@pytest.mark.parametrize(
    ("template", "lack"), [({}, "missing"), ({"tokenizer.chat_template": " \n"}, "blank")]
)
def test_without_a_template_it_is_chatml_where_its_tokens_are_special(
    template: dict[str, str], lack: str
) -> None:
    tokenizer = Tokenizer.from_metadata({**CHATML_VOCABULARY, **template})
    assert tokenizer.notes == (
        f"tokenizer.chat_template is {lack}: conversations are written as ChatML",
    )
    assert ChatTemplate.of(tokenizer).source == CHATML
    ids = encode_chat(tokenizer, ChatTemplate.of(tokenizer), MESSAGES)
    assert tokenizer.decode(ids) == "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n"
    assert [token for token in ids if token >= 256] == [256, 257, 256]


@each_line(
    ("vocabulary", "missing"),
    [
        (byte_level(), r"<\|im_start\|>"),
        (byte_level("<|im_start|>"), r"<\|im_end\|>"),
        (byte_level("<|im_end|>"), r"<\|im_start\|>"),
        # Of type normal: text that a user writes would become it.
        (
            {
                **byte_level("<|im_start|>", "<|im_end|>"),
                "tokenizer.ggml.token_type": [*TYPES, 1, 3],
            },
            r"<\|im_start\|>",
        ),
    ],
)
def test_without_a_template_and_without_its_tokens_there_is_no_chat(
    vocabulary: dict[str, Any], missing: str
) -> None:
    tokenizer = Tokenizer.from_metadata(vocabulary)
    assert tokenizer.notes == ()
    with pytest.raises(UnsupportedModelError, match=rf"no chat template.*special token {missing}"):
        ChatTemplate.of(tokenizer)
    blank = Tokenizer.from_metadata({**vocabulary, "tokenizer.chat_template": ""})
    assert blank.notes == (
        "tokenizer.chat_template is blank: the model cannot be used for conversations",
    )


def test_a_vocabulary_as_it_should_be_has_no_notes() -> None:
    assert tokenizer_of(byte_level("<|bos|>"), bos_token_id=256, add_bos_token=True).notes == ()
