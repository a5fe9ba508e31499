"""Added tokens of a tokenizer.json: the ids are those of the library `tokenizers`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from added_tokens import KINDS, PREFIX, SPELL, characters, ids_of, metaspace, texts, with_added
from tokenizer_support import byte_level
from tokenizers import AddedToken, Tokenizer, pre_tokenizers

import akunu
from akunu import ModelFormatError, UnsupportedModelError
from akunu.convert.tokenizer_keys import tokenizer_keys
from akunu.templates.chat_template import ChatTemplate, encode_chat
from akunu.text.conversation import Conversation
from akunu.tokenizers.added_tokens import ADDED
from lines import each_line

N_TOKENIZERS = int(os.environ.get("AKUNU_ADDED_TOKENIZERS", "6"))
REFUSED = {"bytes, nfkc", "bytes, lower case", "characters, lower case"}


@each_line("kind", KINDS)
def test_added_tokens_are_found_as_by_the_library(tmp_path: Path, kind: str) -> None:
    for seed in range(N_TOKENIZERS):
        theirs = with_added(KINDS[kind](), seed)
        theirs.save(str(tmp_path / "tokenizer.json"))
        theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))  # in the order of the file
        (tmp_path / "config.json").write_text("{}")
        if kind in REFUSED:
            with pytest.raises(UnsupportedModelError, match="normalizer"):
                akunu.Tokenizer.from_directory(tmp_path)
            continue
        described = json.loads((tmp_path / "tokenizer.json").read_text())
        try:
            ours = akunu.Tokenizer.from_directory(tmp_path)
        except UnsupportedModelError as error:
            if "leaves nothing of the added token" not in str(error):
                raise
            continue
        for text in texts(theirs, seed):
            if (expected := ids_of(theirs, text)) is not None:
                found = ours.encode(text, add_special=False, parse_special=True)
                assert found == expected, (text, seed, described["added_tokens"])


TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"
)
MESSAGES = [
    {"role": "user", "content": "  the hat\n"},
    {"role": "assistant", "content": "that <|end|>"},
    {"role": "user", "content": "\n"},
]


def phi3() -> Tokenizer:
    """A tokenizer as Phi-3's: its tokens take the white space behind them."""
    tokenizer = characters(PREFIX, SPELL)
    tokenizer.add_special_tokens([AddedToken("<s>")])
    tokenizer.add_tokens([AddedToken("</s>", rstrip=True, normalized=False)])
    names = ("<|endoftext|>", "<|assistant|>", "<|end|>", "<|user|>")
    tokenizer.add_special_tokens([AddedToken(n, rstrip=n != "<|endoftext|>") for n in names])
    return tokenizer


def phi3_directory(folder: Path) -> Path:
    phi3().save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text("{}")
    settings = {"bos_token": "<s>", "eos_token": "<|endoftext|>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def keys_of_gguf(folder: Path) -> dict[str, Any]:
    keys, _ = tokenizer_keys(folder, {}, phi3().get_vocab_size())
    return keys


def test_a_chat_has_no_space_that_belongs_to_a_token(tmp_path: Path) -> None:
    folder = phi3_directory(tmp_path)
    ours = akunu.Tokenizer.from_directory(folder)
    template = ChatTemplate.of(ours)
    # What a user writes never becomes a control token: without that, it is the library's.
    plain = [{**m, "content": m["content"].replace("<|end|>", "")} for m in MESSAGES]
    expected = phi3().encode(template.render(plain), add_special_tokens=False).ids
    assert encode_chat(ours, template, plain) == expected
    ids = encode_chat(ours, template, MESSAGES)
    end = ours.token_id("<|end|>")
    assert ids.count(end) == expected.count(end) == 3
    newline = ours.token_id("<0x0A>")
    assert newline not in (ids[index + 1] for index in range(len(ids) - 1) if ids[index] == end)


def test_a_chat_of_a_file_made_of_it_has_the_same_ids(tmp_path: Path) -> None:
    folder = phi3_directory(tmp_path)
    ours = akunu.Tokenizer.from_directory(folder)
    template = ChatTemplate.of(ours)
    expected = encode_chat(ours, template, MESSAGES)
    keys = keys_of_gguf(folder)
    assert encode_chat(akunu.Tokenizer.from_metadata(keys), template, MESSAGES) == expected
    del keys[ADDED]
    # llama.cpp knows Phi-3 by its name; akunu also by its architecture.
    named = ({"general.name": "Phi-3 Mini"}, {"general.architecture": "phi3"})
    for more in named:
        of_file = akunu.Tokenizer.from_metadata({**keys, **more})
        assert encode_chat(of_file, template, MESSAGES) == expected, more
        assert not of_file.vocabulary.added.keys() & {0, of_file.token_id("<s>")}
    of_other = akunu.Tokenizer.from_metadata({**keys, "general.name": "Other"})
    assert encode_chat(of_other, template, MESSAGES) != expected


def test_a_conversation_that_goes_on_has_the_ids_of_its_messages(tmp_path: Path) -> None:
    ours = akunu.Tokenizer.from_directory(phi3_directory(tmp_path))
    template = ChatTemplate.of(ours)
    conversation = Conversation(ours)
    conversation.add("the hat", "that a", ours.encode("that a", add_special=False))
    asked = [
        {"role": "user", "content": "the hat"},
        {"role": "assistant", "content": "that a"},
        {"role": "user", "content": " at"},
    ]
    assert conversation.prompt(" at") == encode_chat(ours, template, asked)


@each_line(
    "keys, token",
    [
        ({"pre": "jina-v2-de"}, "<mask>"),
        ({"general.architecture": "nomic-bert-moe"}, "<mask>"),
        ({"general.architecture": "jina-bert-v3"}, "<mask>"),
        ({"general.name": "My Modern-BERT"}, "[MASK]"),
        ({"general.name": "Other"}, None),
    ],
)
def test_masks_take_the_space_before_them_as_in_llama_cpp(
    keys: dict[str, str], token: str | None
) -> None:
    pre = keys.get("pre", "gpt-2")
    given = byte_level("<mask>", "[MASK]", pre=pre)
    given["tokenizer.ggml.token_type"][256:] = 4
    ours = akunu.Tokenizer.from_metadata({**given, **keys})
    taken = [name for name in ("<mask>", "[MASK]") if len(ours.encode(f"a \n{name}")) == 2]
    assert taken == ([] if token is None else [token])


def test_a_text_has_at_least_the_tokens_that_are_promised(tmp_path: Path) -> None:
    ours = akunu.Tokenizer.from_directory(phi3_directory(tmp_path))
    pieces = [ours.token_id("<|end|>"), "\n" * 10_000]
    assert ours.fewest_tokens(pieces) <= len(ours.encode_pieces(pieces)) == 1


@each_line(
    "numbers, message",
    [
        ([9_000 << 5], r"added_tokens\[0\] is about token 9000, but there are 2"),
        ([-1], r"added_tokens\[0\] is about token -1"),
        (["a"], "added_tokens"),
    ],
)
def test_a_token_that_is_none_is_refused(numbers: list[Any], message: str) -> None:
    with pytest.raises(ModelFormatError, match=message):
        akunu.Tokenizer.from_metadata({**byte_level("a b"), ADDED: numbers})


@each_line(
    "steps, cut, message",
    [
        ([], None, r"nothing writes a space as U\+2581"),
        ([], pre_tokenizers.Split(" ", "isolated"), "Split"),
        ([PREFIX, PREFIX, SPELL], None, "Prepend is there twice"),
        ([PREFIX], metaspace("always", split=False), "Metaspace after another space before"),
    ],
)
def test_spaces_that_are_written_otherwise_are_refused(
    tmp_path: Path, steps: list[Any], cut: Any, message: str
) -> None:
    characters(*steps, cut=cut).save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UnsupportedModelError, match=message):
        akunu.Tokenizer.from_directory(tmp_path)
