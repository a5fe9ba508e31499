"""Text in C beside the Python package, whose tokens are those of the `tokenizers` library."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from c_library import ARGUMENT, FILE, CError, Handle, Library
from random_texts import random_bytes, random_texts

import akunu

VOCABULARIES = ("bert-bge", "gpt-2", "llama-bpe", "llama-spm", "qwen2")
EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"


def vocabulary_path(name: str) -> Path:
    if name == "ember":
        return EMBER
    folder = os.environ.get("AKUNU_TEST_VOCABS")
    if not folder:
        pytest.skip("AKUNU_TEST_VOCABS is not set")
    return Path(folder) / f"ggml-vocab-{name}.gguf"


@pytest.fixture(params=["ember", *VOCABULARIES])
def both(request: pytest.FixtureRequest, library: Library) -> tuple[akunu.Tokenizer, Handle]:
    path = vocabulary_path(request.param)
    return akunu.Tokenizer.from_gguf(path), library.new("open_tokenizer", str(path).encode())


def test_random_texts_have_the_same_tokens(
    library: Library, both: tuple[akunu.Tokenizer, Handle]
) -> None:
    known, handle = both
    n = int(os.environ.get("AKUNU_RANDOM_TEXTS", "3000"))
    for text in random_texts(n, seed=1, names=tuple(known.control_tokens())):
        for special, parse in ((False, False), (True, True)):
            expected = known.encode(text, add_special=special, parse_special=parse)
            found = library.encode(handle, text, special=special, parse=parse)
            assert found == expected, repr(text)


def test_bytes_are_tokens_or_refused_where_they_are_no_text(
    library: Library, both: tuple[akunu.Tokenizer, Handle]
) -> None:
    known, handle = both
    n = int(os.environ.get("AKUNU_RANDOM_TEXTS", "3000")) // 10
    refused = 0
    for raw in random_bytes(n, seed=8):
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            refused += 1
            with pytest.raises(CError, match=f"not valid UTF-8 at byte {error.start}\\b") as caught:
                library.encode_bytes(handle, raw)
            assert caught.value.status == ARGUMENT
        else:
            assert library.encode_bytes(handle, raw) == known.encode(text, add_special=False), raw
    assert n / 4 < refused < n


def test_tokens_become_the_same_text(
    library: Library, both: tuple[akunu.Tokenizer, Handle]
) -> None:
    known, handle = both
    choose = random.Random(2)
    for _ in range(300):
        ids = [choose.randrange(known.vocab_size) for _ in range(choose.randrange(30))]
        for skip in (False, True):
            expected = known.decode(ids, skip_special=skip)
            assert library.decode(handle, ids, skip_special=skip) == expected, ids
    for index in range(0, known.vocab_size, 7):
        assert library.bytes("token_bytes", handle, index) == known.token_bytes(index)


def test_what_the_file_says_is_the_same(
    library: Library, both: tuple[akunu.Tokenizer, Handle]
) -> None:
    import ctypes

    known, handle = both
    size = ctypes.c_uint32()
    library.call("get_vocab_size", handle, ctypes.byref(size))
    assert size.value == known.vocab_size
    assert library.text("get_chat_template", handle) == (known.chat_template or "")
    stops = (ctypes.c_uint32 * 64)()
    length = ctypes.c_size_t()
    library.call("get_stop_ids", handle, stops, ctypes.c_size_t(64), ctypes.byref(length))
    assert stops[: length.value] == sorted(known.stop_ids)


def test_a_long_text_takes_time_by_its_length(
    library: Library, both: tuple[akunu.Tokenizer, Handle]
) -> None:
    known, handle = both
    text = "word " * 40_000 + "x" * 20_000 + " " * 20_000 + "é\n" * 5_000
    assert library.encode(handle, text) == known.encode(text, add_special=False)


def test_what_is_no_text_is_refused(library: Library) -> None:
    handle = library.new("open_tokenizer", str(EMBER).encode())
    for raw, at in ((b"ab\xff", 2), (b"\xc3", 0), (b"a\xed\xa0\x80", 1), (b"\xc0\x80", 0)):
        with pytest.raises(CError, match=f"not valid UTF-8 at byte {at}") as caught:
            library.encode_bytes(handle, raw)
        assert caught.value.status == ARGUMENT
    with pytest.raises(CError, match="token id 9999999 is out of range"):
        library.decode(handle, [9_999_999])
    assert library.encode_bytes(handle, b"") == []


def test_a_file_without_a_tokenizer_is_refused(library: Library, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.gguf")
    with pytest.raises(CError, match=r"missing\.gguf") as caught:
        library.new("open_tokenizer", missing.encode())
    assert caught.value.status == ARGUMENT
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(EMBER.read_bytes()[:1000])
    with pytest.raises(CError) as caught:
        library.new("open_tokenizer", str(broken).encode())
    assert caught.value.status == FILE
