"""Added tokens in C: the ids are those of the library `tokenizers`, or the file is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

from added_tokens import KINDS, ids_of, texts, with_added
from c_library import UNSUPPORTED, CError, Library
from test_c_chat import arguments
from test_c_chat import ids_of as chat_ids
from tokenizers import AddedToken, Tokenizer, processors

import akunu
from akunu.convert.gguf_writer import GgufLayout, Value
from akunu.convert.tokenizer_keys import tokenizer_keys
from akunu.templates.chat_template import CHATML, ChatTemplate, encode_chat
from lines import each_line

N_TOKENIZERS = int(os.environ.get("AKUNU_ADDED_TOKENIZERS", "6"))
# What the Python package reads and C does not.
REFUSED = {
    "bytes, nfkc",
    "bytes, lower case",
    "characters, lower case",
    "characters, prefixed by the cutter",
    "characters, first prefixed",
    "characters, by both",
    "unigram, nfkc",
    "words",
    "words, lower case",
}


@each_line("kind", KINDS)
def test_added_tokens_are_found_as_by_the_library(
    library: Library, tmp_path: Path, kind: str
) -> None:
    for seed in range(N_TOKENIZERS):
        with_added(KINDS[kind](), seed).save(str(tmp_path / "tokenizer.json"))
        (tmp_path / "config.json").write_text("{}")
        (tmp_path / "tokenizer_config.json").write_text("{}")
        theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))  # in the order of the file
        try:
            handle = library.new("open_tokenizer", str(tmp_path).encode())
        except CError as error:
            is_empty = "leaves nothing of the added token" in str(error)
            if error.status != UNSUPPORTED or not (kind in REFUSED or is_empty):
                raise
            continue
        assert kind not in REFUSED
        added = json.loads((tmp_path / "tokenizer.json").read_text())["added_tokens"]
        for text in texts(theirs, seed):
            if (expected := ids_of(theirs, text)) is not None:
                assert library.encode(handle, text, parse=True) == expected, (text, seed, added)


def test_letters_and_digits_are_those_of_the_library(library: Library, tmp_path: Path) -> None:
    """Of all characters: a token that is a word of its own, and one that takes white space."""
    theirs = with_added(KINDS["bytes"](), 0)
    described = json.loads(theirs.to_str())
    first = 1 + max(described["model"]["vocab"].values())
    options = {"lstrip": False, "rstrip": False, "single_word": True, "normalized": False}
    spaces = {"lstrip": True, "rstrip": True, "single_word": False, "normalized": False}
    described["added_tokens"] = [
        {"id": first, "content": "<A>", "special": False, **options},
        {"id": first + 1, "content": "<B>", "special": False, **spaces},
    ]
    (tmp_path / "tokenizer.json").write_text(json.dumps(described))
    (tmp_path / "config.json").write_text("{}")
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    handle = library.new("open_tokenizer", str(tmp_path).encode())
    package = akunu.Tokenizer.from_directory(tmp_path)
    characters = [chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    for at in range(0, len(characters), 64):
        some = characters[at : at + 64]
        text = "".join(f"{c}<A>.<A>{c}.<B>{c}." for c in some)
        expected = theirs.encode(text, add_special_tokens=False).ids
        assert library.encode(handle, text, parse=True) == expected, text
        assert package.encode(text, add_special=False, parse_special=True) == expected, text


@each_line("strips", ["lstrip", "rstrip"])
@each_line("content", ["the", " the \n", "\n\n", "", "the\n\n\n", "\u3000the<A> <|im_end|>"])
def test_a_chat_has_no_space_that_belongs_to_a_token(
    library: Library, tmp_path: Path, strips: str, content: str
) -> None:
    theirs = KINDS["characters, prefixed"]()
    theirs.add_tokens([AddedToken("\n\n", normalized=False), AddedToken("<A>", lstrip=True)])
    names = ("<|im_start|>", "<|im_end|>")
    theirs.add_special_tokens([AddedToken(name, **{strips: True}) for name in names])
    theirs.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML}))
    turns = [("user", content), ("assistant", "at"), ("user", " a")]
    messages = [{"role": role, "content": text} for role, text in turns]
    handle = library.new("open_tokenizer", str(tmp_path).encode())
    package = akunu.Tokenizer.from_directory(tmp_path)
    template = ChatTemplate.of(package)
    expected = encode_chat(package, template, messages)
    assert chat_ids(library, handle, *arguments(turns)) == expected
    if "<|" not in content:  # what a user writes is no control token of akunu
        assert ids_of(theirs, template.render(messages)) == expected


@each_line("normalized", [False, True])
def test_a_text_that_begins_with_bos_gets_no_second_one(
    library: Library, tmp_path: Path, normalized: bool
) -> None:
    theirs = KINDS["characters, prefixed"]()
    for name in ("<s>", "</s>"):
        theirs.add_special_tokens([AddedToken(name, normalized=normalized)])
    bos, eos = (theirs.token_to_id(name) for name in ("<s>", "</s>"))
    theirs.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", special_tokens=[("<s>", bos), ("</s>", eos)]
    )
    theirs.save(str(tmp_path / "tokenizer.json"))
    for name in ("config.json", "tokenizer_config.json"):
        (tmp_path / name).write_text("{}")
    handle = library.new("open_tokenizer", str(tmp_path).encode())
    package = akunu.Tokenizer.from_directory(tmp_path)
    for text in ("<s>the </s>", "the", "<s>", "the </s>"):
        plain = ids_of(theirs, text)
        assert plain is not None
        expected = [bos] * (plain[0] != bos) + plain + [eos] * (plain[-1] != eos)
        assert package.encode(text, parse_special=True) == expected, text
        assert library.encode(handle, text, special=True, parse=True) == expected, text


def test_a_file_made_of_a_directory_has_the_same_ids(library: Library, tmp_path: Path) -> None:
    theirs = KINDS["characters, prefixed"]()
    theirs.add_tokens([AddedToken("Ab", single_word=True, normalized=False)])
    theirs.add_tokens([AddedToken("<A>", rstrip=True), AddedToken("<b>", lstrip=True)])
    theirs.save(str(tmp_path / "tokenizer.json"))
    for name in ("config.json", "tokenizer_config.json"):
        (tmp_path / name).write_text("{}")
    keys, _ = tokenizer_keys(tmp_path, {}, theirs.get_vocab_size())
    values = [Value.of_any(key, value) for key, value in keys.items()]
    path = tmp_path / "made.gguf"
    with path.open("wb") as file:
        file.write(GgufLayout(values, []).head)
    handle = library.new("open_tokenizer", str(path).encode())
    package = akunu.Tokenizer.from_gguf(path)
    for text in texts(theirs, 0):
        expected = ids_of(theirs, text)
        assert library.encode(handle, text, parse=True) == expected, text
        assert package.encode(text, add_special=False, parse_special=True) == expected, text
