"""The tokenizer on vocabularies small enough to check by hand."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizer_support import byte_level, sentencepiece

from akunu import _core
from akunu.errors import AkunuError, ArgumentError, ModelFormatError, UnsupportedModelError
from akunu.tokenizers import text_models
from akunu.tokenizers.pretokenizers import BY_NAME, byte_alphabet
from akunu.tokenizers.text_models import cutter
from akunu.tokenizers.tokenizer import Tokenizer
from akunu.tokenizers.vocabulary import Vocabulary
from lines import each_line

HELLO = ("he", "ll", "hell", "hello", "Ġhello")
HELLO_MERGES = ("h e", "l l", "he ll", "hell o", "Ġ hello")


@pytest.fixture
def chat_tokenizer() -> Tokenizer:
    """Bytes to 255, he=256 ll hell hello Ġhello=260 <|im_start|>=261 <|im_end|>=262 {tool}=263."""
    return Tokenizer.from_metadata(
        byte_level(
            *HELLO,
            "<|im_start|>",
            "<|im_end|>",
            "{tool}",
            merges=HELLO_MERGES,
            bos_token_id=261,
            eos_token_id=262,
        )
    )


@pytest.fixture
def spm_tokenizer() -> Tokenizer:
    """Pieces from 259: ▁ a b ▁a ab ▁ab=264; ▁a is joined before ab, for its score."""
    return Tokenizer.from_metadata(
        sentencepiece(
            ("▁", -9), ("a", -9), ("b", -9), ("▁a", -1), ("ab", -2), ("▁ab", -3),
            user_defined=("[t]",),
        )
    )  # fmt: skip


def test_byte_level_merges_by_rank(chat_tokenizer: Tokenizer) -> None:
    assert chat_tokenizer.encode("hello hello", add_special=False) == [259, 260]
    assert chat_tokenizer.encode("hel", add_special=False) == [256, byte_alphabet().index("l")]
    assert chat_tokenizer.decode([259, 260]) == "hello hello"


def test_the_byte_alphabet_is_that_of_gpt_2() -> None:
    letters = byte_alphabet()
    assert len(set(letters)) == 256
    assert (letters[0], letters[0x20], letters[0x7F], letters[0xA0], letters[0xAD]) == tuple(
        "\u0100\u0120\u0121\u0142\u0143"
    )
    assert letters[0x41] == "A"
    assert letters[0xFF] == "ÿ"


def test_control_tokens_come_only_where_asked(chat_tokenizer: Tokenizer) -> None:
    as_text = chat_tokenizer.encode("<|im_end|>", add_special=False)
    assert as_text == [byte_alphabet().index(letter) for letter in "<|im_end|>"]
    assert chat_tokenizer.encode("<|im_end|>", add_special=False, parse_special=True) == [262]
    assert chat_tokenizer.decode([259, 262]) == "hello<|im_end|>"
    assert chat_tokenizer.decode([259, 262], skip_special=True) == "hello"


def test_user_defined_tokens_come_always(chat_tokenizer: Tokenizer) -> None:
    assert chat_tokenizer.encode("hello{tool}hello", add_special=False) == [259, 263, 259]
    assert chat_tokenizer.decode([259, 263], skip_special=True) == "hello{tool}"
    assert chat_tokenizer.control_ids == {261, 262}


def test_a_merge_that_would_make_a_control_token_is_left_out() -> None:
    tokenizer = Tokenizer.from_metadata(
        byte_level("<|", "|>", "<||>", merges=("< |", "| >", "<| |>"))
        | {"tokenizer.ggml.token_type": np.array([1] * 258 + [3], np.int32)}
    )
    assert tokenizer.encode("<||>", add_special=False) == [256, 257]
    assert tokenizer.encode("<||>", add_special=False, parse_special=True) == [258]


def test_bos_and_eos_are_added_where_the_file_says_so() -> None:
    for add_bos, add_eos, expected in (
        (True, True, [256, 104, 257]),
        (False, True, [104, 257]),
        (True, False, [256, 104]),
        (False, False, [104]),
    ):
        tokenizer = Tokenizer.from_metadata(
            byte_level(
                "<|bos|>",
                "<|eos|>",
                bos_token_id=256,
                eos_token_id=257,
                add_bos_token=add_bos,
                add_eos_token=add_eos,
            )
        )
        h = byte_alphabet().index("h")
        assert tokenizer.encode("h") == [h if token == 104 else token for token in expected]
        assert tokenizer.encode("h", add_special=False) == [h]


def test_a_text_that_has_them_already_gets_no_second_bos_and_eos() -> None:
    tokenizer = Tokenizer.from_metadata(
        byte_level(
            *("<|bos|>", "<|eos|>"),
            bos_token_id=256,
            eos_token_id=257,
            add_bos_token=True,
            add_eos_token=True,
        )
    )
    a = tokenizer.encode("a", add_special=False)
    for text in ("a", "<|bos|>a", "a<|eos|>", "<|bos|>a<|eos|>"):
        assert tokenizer.encode(text, parse_special=True) == [256, *a, 257]
    # One alone is added to, and so is what only looks like one.
    assert tokenizer.encode("<|bos|>", parse_special=True) == [256, 257]
    assert tokenizer.encode("a<|bos|>", parse_special=True) == [256, *a, 256, 257]
    assert tokenizer.encode("<|bos|>a")[0] == 256
    assert len(tokenizer.encode("<|bos|>a")) == 1 + len("<|bos|>a") + 1
    assert tokenizer.encode("<|bos|>a", add_special=False, parse_special=True) == [256, *a]


@pytest.mark.parametrize(
    ("pre", "add_bos"), [("llama-bpe", True), ("gpt-2", False), ("qwen2", False)]
)
def test_the_pre_tokenizer_decides_about_bos_where_the_file_does_not(
    pre: str, add_bos: bool
) -> None:
    tokenizer = Tokenizer.from_metadata(byte_level("<|bos|>", bos_token_id=256, pre=pre))
    assert tokenizer.add_bos is add_bos


def test_sentencepiece_joins_the_best_score_first(spm_tokenizer: Tokenizer) -> None:
    assert spm_tokenizer.encode("ab", add_special=False) == [264]  # ▁a+b -> ▁ab
    assert spm_tokenizer.encode("aab", add_special=False) == [262, 263]  # ▁a, ab
    assert spm_tokenizer.encode("ab", add_special=True) == [1, 264]


@pytest.mark.parametrize(("scores", "pieces"), [((-1, -2), ["▁a", "b"]), ((-2, -1), ["▁", "ab"])])
def test_of_two_joints_that_exclude_each_other_the_better_score_wins(
    scores: tuple[float, float], pieces: list[str]
) -> None:
    tokenizer = Tokenizer.from_metadata(
        sentencepiece(("▁", -9), ("a", -9), ("b", -9), ("▁a", scores[0]), ("ab", scores[1]))
    )
    ids = tokenizer.encode("ab", add_special=False)
    assert [tokenizer.token_text(token) for token in ids] == pieces


def test_sentencepiece_without_bytes_makes_one_unknown_of_a_run() -> None:
    tokenizer = Tokenizer.from_metadata(
        {
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", "▁", "a"],
            "tokenizer.ggml.scores": [0.0, 0.0, 0.0, -1.0, -2.0],
            "tokenizer.ggml.token_type": [2, 3, 3, 1, 1],
        }
    )
    assert tokenizer.encode("éüaé") == [1, 3, 0, 4, 0]


def test_of_two_added_tokens_the_longer_is_found() -> None:
    tokenizer = Tokenizer.from_metadata(byte_level("{a}", "{a}{b}", "{b}", "{a}{b"))
    assert tokenizer.encode("{a}{b}{a}{b{b}") == [257, 259, 258]
    assert tokenizer.encode("{b}{a}{a}{b") == [258, 256, 259]


def test_sentencepiece_spells_unknown_characters_in_bytes(spm_tokenizer: Tokenizer) -> None:
    assert spm_tokenizer.encode("é", add_special=False) == [259, 3 + 0xC3, 3 + 0xA9]
    assert spm_tokenizer.decode([259, 3 + 0xC3, 3 + 0xA9]) == "é"
    assert spm_tokenizer.encode("<0x0A>", add_special=False) != [3 + 0x0A]


def test_sentencepiece_takes_away_the_space_that_it_added(spm_tokenizer: Tokenizer) -> None:
    for text in ("ab", " ab", "  a b", "a[t]b", "", " ", "[t] a"):
        assert spm_tokenizer.decode(spm_tokenizer.encode(text), skip_special=True) == text
    text = "<s>a</s> b"
    ids = spm_tokenizer.encode(text, add_special=False, parse_special=True)
    assert spm_tokenizer.decode(ids) == text


def test_the_space_prefix_can_be_off() -> None:
    tokenizer = Tokenizer.from_metadata(
        sentencepiece(("▁", -9), ("a", -9), ("▁a", -1), add_space_prefix=False)
    )
    assert tokenizer.encode("a a", add_special=False) == [260, 261]
    assert tokenizer.decode([261, 260]) == " aa"


def test_a_stream_that_goes_on_from_text_keeps_its_first_space(spm_tokenizer: Tokenizer) -> None:
    assert spm_tokenizer.stream(prompt=[1, 264]).push(264) == " ab"
    assert spm_tokenizer.stream(prompt=[264, 1]).push(264) == "ab"
    assert spm_tokenizer.stream().push(264) == "ab"


def test_a_stream_holds_back_unfinished_characters(chat_tokenizer: Tokenizer) -> None:
    first, second = (byte for byte in "é".encode())
    stream = chat_tokenizer.stream()
    assert (stream.push(first), stream.push(second), stream.finish()) == ("", "é", "")
    assert (stream.push(first), stream.finish()) == ("", "\ufffd")
    assert (stream.push(second), stream.finish()) == ("\ufffd", "")


def test_gemma_4_merges_whole_texts_and_takes_runs_of_newlines() -> None:
    metadata = sentencepiece(
        ("▁", 0), ("a", 0), ("▁a", 0), ("\n", 0), ("\n\n\n", 0), bos_token_id=1, eos_token_id=2
    )
    metadata |= {
        "tokenizer.ggml.model": "gemma4",
        "tokenizer.ggml.merges": ["▁ a"],
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": False,
    }
    tokenizer = Tokenizer.from_metadata(metadata)
    assert tokenizer.encode("a a\n\n\na\n\né") == [1, 260, 261, 263, 260, 262, 262, 198, 172]
    assert tokenizer.decode(tokenizer.encode(" a  a\n\né"), skip_special=True) == " a  a\n\né"


def test_wordpiece_takes_the_longest_pieces_from_the_left() -> None:
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁un", "aff", "able", "▁,", "▁e"]
    tokenizer = Tokenizer.from_metadata(
        {
            "tokenizer.ggml.model": "bert",
            "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": [3, 3, 3, 3, 1, 1, 1, 1, 1],
            "tokenizer.ggml.unknown_token_id": 1,
            "tokenizer.ggml.cls_token_id": 2,
            "tokenizer.ggml.seperator_token_id": 3,
        }
    )
    assert tokenizer.encode("UnAffable, é xyz") == [2, 4, 5, 6, 7, 8, 1, 3]
    assert tokenizer.decode([4, 5, 6, 7]) == "unaffable ,"
    assert tokenizer.encode("") == [2, 3]


@each_line(
    ("pre", "words"),
    [
        ("llama-bpe", ["Hello", " ", "123", "456", " world", "!\n"]),
        ("falcon-h1", ["Hello", " ", "123", "456", " world", "!\n"]),
        ("qwen2", ["Hello", " ", *"123456", " world", "!\n"]),
        ("qwen35", ["Hello", " ", *"123456", " world", "!\n"]),
        ("gpt-2", ["Hello", " 123456", " world", "!", "\n"]),
        ("mpt", ["Hello", " 123456", " world", "!", "\n"]),
        ("falcon", ["Hello", " ", "123", "456", " world", "!", "\n"]),
        ("starcoder", ["Hello", " ", *"123456", " world", "!", "\n"]),
        ("refact", ["Hello", " ", *"123456", " world", "!", "\n"]),
        ("command-r", ["Hello", " ", *"123456", " world", "!", "\n"]),
        ("smollm", ["Hello", " ", *"123456", " world", "!", "\n"]),
        ("deepseek-llm", ["Hello", " ", "123456", " world", "!", "\n"]),
        ("deepseek-coder", ["Hello", " ", *"123456", " world", "!", "\n"]),
        ("default", ["Hello", " ", "123", "456", " world", "!", "\n"]),
        ("dbrx", ["Hello", " ", "123", "456", " world", "!\n"]),
        ("glm4", ["Hello", " ", "123", "456", " world", "!\n"]),
        ("tekken", ["Hello", " ", *"123456", " world", "!\n"]),
        ("kimi-k2", ["Hello", " ", "123", "456", " world", "!\n"]),
        ("gpt-4o", ["Hello", " ", "123", "456", " world", "!\n"]),
        ("seed-coder", ["Hello", " ", *"123456", " world", "!", "\n"]),
        ("hunyuan-dense", ["Hello", " ", "123", "456", " world", "!\n"]),
        ("exaone4", ["Hello", " 123456", " world", "!", "\n"]),
    ],
)
def test_each_family_cuts_text_in_its_own_way(pre: str, words: list[str]) -> None:
    cut = cutter(BY_NAME[pre]).pre_tokenize_str("Hello 123456 world!\n")
    assert [word for word, _ in cut] == words


def test_qwen35_keeps_combining_marks_with_their_letters() -> None:
    text = "e\u0301x"
    assert [word for word, _ in cutter(BY_NAME["qwen35"]).pre_tokenize_str(text)] == [text]
    assert [word for word, _ in cutter(BY_NAME["qwen2"]).pre_tokenize_str(text)] == ["e", text[1:]]


def test_tekken_begins_a_word_with_each_capital_letter_behind_a_small_one() -> None:
    cut = cutter(BY_NAME["tekken"]).pre_tokenize_str("camelCase HTTPServer")
    assert [word for word, _ in cut] == ["camel", "Case", " HTTPServer"]


def test_o200k_keeps_an_ending_with_its_word() -> None:
    cut = cutter(BY_NAME["gpt-4o"]).pre_tokenize_str("HTTPServer'S it'll don't/\n")
    assert [word for word, _ in cut] == ["HTTPServer'S", " it'll", " don't", "/\n"]


def test_other_names_of_a_family_mean_the_same() -> None:
    assert BY_NAME["llama3"] is BY_NAME["llama-v3"] is BY_NAME["llama-bpe"]


def test_an_unknown_pre_tokenizer_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedModelError, match=r"'klingon'.*known are .*qwen2"):
        Tokenizer.from_metadata(byte_level(pre="klingon"))


def test_an_unknown_model_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedModelError, match=r"'rwkv'.*gpt2, llama, bert, gemma4"):
        Tokenizer.from_metadata(byte_level(model="rwkv"))


def test_a_missing_pre_tokenizer_means_default() -> None:
    metadata = byte_level("12", "123", merges=("1 2", "12 3"))
    del metadata["tokenizer.ggml.pre"]
    tokenizer = Tokenizer.from_metadata(metadata)
    assert len(tokenizer.encode("123123", add_special=False)) == 2


@each_line(
    ("tokens", "stops"),
    [
        (["<|end|>"], {"<|end|>"}),
        (["<|end|>", "<|return|>", "<|call|>"], {"<|return|>", "<|call|>"}),
        (["<end_of_turn>", "<|eom_id|>"], {"<end_of_turn>", "<|eom_id|>"}),
        (["</s>", "plain"], set()),  # ordinary text, unless the file marks it
        (["<|im_end|>", "<|endoftext|>"], {"<|im_end|>", "<|endoftext|>"}),
    ],
)
def test_every_end_of_a_turn_stops(tokens: list[str], stops: set[str]) -> None:
    tokenizer = Tokenizer.from_metadata(byte_level(*tokens))
    assert {tokenizer.token_text(token) for token in tokenizer.stop_ids} == stops


def test_a_chat_marker_is_control_whatever_its_type_says() -> None:
    metadata = byte_level("<|im_end|>", "<|im_start|>")
    metadata["tokenizer.ggml.token_type"] = np.array([1] * 256 + [1, 4], np.int32)
    tokenizer = Tokenizer.from_metadata(metadata)
    assert tokenizer.control_ids == {256, 257}
    assert not {256, 257} & set(tokenizer.encode("<|im_start|>x<|im_end|>"))


@pytest.mark.parametrize("bad", [-1, 264, 10**30])
def test_an_id_out_of_range_is_refused(chat_tokenizer: Tokenizer, bad: int) -> None:
    for refuse in (
        lambda: chat_tokenizer.decode([bad]),
        lambda: chat_tokenizer.token_bytes(bad),
        lambda: chat_tokenizer.stream().push(bad),
        lambda: chat_tokenizer.encode_pieces([bad]),
    ):
        with pytest.raises(ArgumentError, match=rf"id {bad} is out of range.* 0 to 263"):
            refuse()


def test_arguments_of_the_wrong_type_are_refused(chat_tokenizer: Tokenizer) -> None:
    with pytest.raises(ArgumentError, match="text must be a str, got bytes"):
        chat_tokenizer.encode(b"x")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="token id must be an int, got str"):
        chat_tokenizer.decode(["x"])  # type: ignore[list-item]
    assert chat_tokenizer.decode(np.array([259])) == "hello"


def test_a_lone_surrogate_is_refused_with_its_place(chat_tokenizer: Tokenizer) -> None:
    with pytest.raises(ArgumentError, match=r"lone surrogate .*at character 3"):
        chat_tokenizer.encode("abc\ud800")


def test_a_byte_that_the_vocabulary_lacks_is_refused() -> None:
    metadata = byte_level()
    tokens = byte_alphabet()
    tokens[ord("z")] = "<|gone|>"
    tokenizer = Tokenizer.from_metadata(metadata | {"tokenizer.ggml.tokens": tokens})
    assert tokenizer.decode(tokenizer.encode("abc")) == "abc"
    with pytest.raises(ArgumentError, match=r"no token for 'z' \(character 2"):
        tokenizer.encode("abz")


TYPES = [1] * 256
BROKEN = {
    "no model": ({"tokenizer.ggml.model": None}, "tokenizer.ggml.model is missing"),
    "model of a wrong type": ({"tokenizer.ggml.model": 7}, "tokenizer.ggml.model is int"),
    "no tokens": ({"tokenizer.ggml.tokens": None}, "tokenizer.ggml.tokens is missing"),
    "empty tokens": ({"tokenizer.ggml.tokens": []}, "tokenizer.ggml.tokens is empty"),
    "tokens of numbers": (
        {"tokenizer.ggml.tokens": np.arange(4)},
        r"tokens\[0\] is int64, expected a string",
    ),
    "the same token twice": (
        {"tokenizer.ggml.tokens": ["x", "y", "x"]},
        r"tokens\[2\] is 'x', and so is tokenizer.ggml.tokens\[0\]",
    ),
    "types too short": (
        {"tokenizer.ggml.token_type": [1, 1]},
        "token_type has 2 entries, tokenizer.ggml.tokens has 256",
    ),
    "a type out of range": (
        {"tokenizer.ggml.token_type": [*TYPES[:-1], 9]},
        r"token_type\[255\] is 9",
    ),
    "types of floats": (
        {"tokenizer.ggml.token_type": np.ones(256)},
        "token_type holds float64",
    ),
    "no merges": ({"tokenizer.ggml.merges": None}, "tokenizer.ggml.merges is missing"),
    "a merge without a space": (
        {"tokenizer.ggml.merges": ["ab"]},
        r"merges\[0\] is 'ab', expected two tokens",
    ),
    "merges with two spaces and with none": (
        {"tokenizer.ggml.merges": ["a b c", "d"]},
        r"merges\[0\] is 'a b c', but 'b c' is not in",
    ),
    "a merge that ends with its space": (
        {"tokenizer.ggml.merges": ["a "]},
        r"merges\[0\] is 'a ', expected two tokens",
    ),
    "a merge that begins with its only space": (
        {"tokenizer.ggml.merges": [" a"]},
        r"merges\[0\] is ' a', expected two tokens",
    ),
    "a merge of an unknown token": (
        {"tokenizer.ggml.merges": ["a bc"]},
        r"merges\[0\] is 'a bc', but 'bc' is not in",
    ),
    "a merge into an unknown token": (
        {"tokenizer.ggml.merges": ["a b"]},
        r"merges\[0\] is 'a b', but 'ab' is not in",
    ),
}


@each_line("name", BROKEN)
def test_a_broken_vocabulary_is_refused_with_key_and_index(name: str) -> None:
    changes, message = BROKEN[name]
    metadata = {key: value for key, value in (byte_level() | changes).items() if value is not None}
    with pytest.raises(ModelFormatError, match=message):
        Tokenizer.from_metadata(metadata)


@each_line(
    ("changes", "message"),
    [
        ({"tokenizer.ggml.scores": None}, "scores is missing"),
        ({"tokenizer.ggml.scores": [0.0]}, "scores has 1 entries"),
        ({"tokenizer.ggml.scores": [0.0] * 259 + [np.nan]}, r"scores\[259\] is not a number"),
        (
            {"tokenizer.ggml.token_type": [6] + [1] * 259},
            r"tokens\[0\] is '<unk>', but its type is byte",
        ),
    ],
)
def test_a_broken_sentencepiece_vocabulary_is_refused(
    changes: dict[str, object], message: str
) -> None:
    metadata = sentencepiece(("a", -1.0)) | changes
    with pytest.raises(ModelFormatError, match=message):
        Tokenizer.from_metadata({k: v for k, v in metadata.items() if v is not None})


TEXTS = st.text("ab é中\U0001f600", max_size=4)


@given(tokens=st.lists(TEXTS, max_size=12, unique=True), data=st.data())
def test_merges_are_two_tokens_whose_union_is_one(tokens: list[str], data: st.DataObject) -> None:
    halves = st.sampled_from([*tokens, "a"])
    likely = st.tuples(halves, halves).map(" ".join)
    merges = data.draw(st.lists(st.one_of(likely, TEXTS), max_size=8))

    def is_usable(merge: str) -> bool:
        left, right = merge[: (cut := merge.find(" ", 1))], merge[cut + 1 :]
        return cut > 0 and right != "" and {left, right, left + right} <= set(tokens)

    expected = next((i for i, merge in enumerate(merges) if not is_usable(merge)), None)
    assert _core.first_unusable_merge(merges, tokens) == expected


@given(pieces=st.lists(TEXTS, max_size=12, unique=True), data=st.data())
def test_splits_of_a_piece_are_merges_in_the_order_of_scores(
    pieces: list[str], data: st.DataObject
) -> None:
    scores = data.draw(st.lists(st.sampled_from([-3.0, -1.5, 0.0, 2.0]), min_size=12, max_size=12))
    ids = {piece: index for index, piece in enumerate(pieces)}
    splits = [
        (-scores[index], ids[piece[:cut]], ids[piece[cut:]], piece[:cut], piece[cut:])
        for piece, index in ids.items()
        for cut in range(1, len(piece))
        if piece[:cut] in ids and piece[cut:] in ids
    ]
    expected = [(left, right) for _, _, _, left, right in sorted(splits)]
    assert _core.merges_by_score(ids, np.array(scores, np.float32)) == expected


def test_what_merges_text_is_built_for_the_first_text(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Vocabulary] = []

    def build(vocabulary: Vocabulary, **_options: bool) -> text_models.Encode:
        built.append(vocabulary)
        return lambda text, _opens: [len(text)]

    monkeypatch.setattr(text_models, "build", build)
    tokenizer = Tokenizer.from_metadata(byte_level("ab", merges=("a b",)))
    assert tokenizer.decode([tokenizer.token_id("ab") or 0]) == "ab"
    assert tokenizer.stop_ids == frozenset()
    assert not built
    assert tokenizer.encode("ab") == tokenizer.encode("ab") == [2]
    assert [vocabulary.merges for vocabulary in built] == [["a b"]]


def test_a_piece_of_absurd_length_is_refused_not_tried() -> None:
    with pytest.raises(ModelFormatError, match=r"tokens\[259\] has 100000 characters"):
        Tokenizer.from_metadata(sentencepiece(("x" * 100_000, -1.0)))


JSON = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 300),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(-5, 10), max_size=8),
    st.lists(st.text(max_size=3), max_size=8),
    st.just(np.array([1, 3, 4], np.int32)),
)
KEYS = [
    *("model", "pre", "tokens", "token_type", "scores", "merges"),
    *("bos_token_id", "eos_token_id", "eot_token_id", "unknown_token_id"),
    *("cls_token_id", "seperator_token_id", "add_bos_token", "add_space_prefix"),
]


@given(
    model=st.sampled_from(["gpt2", "llama", "bert", "gemma4"]),
    tokens=st.lists(st.text("ab▁Ġ<0xA>", min_size=1, max_size=6), min_size=1, max_size=8),
    changes=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4),
    types=st.lists(st.integers(1, 6), min_size=8, max_size=8),
    text=st.text(max_size=12),
)
def test_any_metadata_gives_a_tokenizer_or_an_error_of_ours(
    model: str, tokens: list[str], changes: dict[str, object], types: list[int], text: str
) -> None:
    metadata: dict[str, object] = {
        "model": model,
        "tokens": tokens,
        "scores": [0.0] * len(tokens),
        "token_type": types[: len(tokens)],
        "merges": [f"{left} {right}" for left, right in pairwise(tokens)],
        **changes,
    }
    with suppress(AkunuError):
        tokenizer = Tokenizer.from_metadata(
            {f"tokenizer.ggml.{key}": value for key, value in metadata.items() if value is not None}
        )
        ids = tokenizer.encode(text, add_special=False)
        assert all(0 <= token < tokenizer.vocab_size for token in ids)
        tokenizer.decode(ids)
