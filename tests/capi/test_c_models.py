"""Models in C beside the Python package: the same tokens, numbers and refusals."""

from __future__ import annotations

import ctypes
import select
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import gguf_file
import numpy as np
import pytest
import random_models
from c_library import (
    ARGUMENT,
    HANDLE,
    UNSUPPORTED,
    CError,
    GenerateOptions,
    Handle,
    Library,
    LoadOptions,
    ModelInfo,
    Sampling,
    Stats,
    TensorInfo,
    as_callback,
)

import akunu

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
NONE, STOP, LENGTH, CANCELLED = range(4)
PROMPT = "The sea is"


@pytest.fixture(scope="module")
def known() -> Iterator[akunu.Model]:
    with akunu.load("ember", device="cpu", context=512, threads=1) as model:
        yield model


@pytest.fixture
def model(library: Library) -> Iterator[Handle]:
    options = LoadOptions(device=b"cpu", context=512, threads=1)
    handle = library.new("load_model", str(EMBER).encode(), ctypes.byref(options))
    yield handle
    library.call("close_model", handle)


@pytest.mark.parametrize("name", ["grammar", "json_schema", "regex"])
def test_grammars_are_refused(library: Library, model: Handle, name: str) -> None:
    with pytest.raises(CError, match=rf"options\.{name} is set.*not in the C library") as refused:
        generate(library, model, [1, 2], **{name: b"a"})
    assert refused.value.status == UNSUPPORTED


def tokens_of(ids: list[int]) -> Any:
    return (ctypes.c_uint32 * len(ids))(*ids)


def generate(
    library: Library, model: Handle, ids: list[int], **fields: Any
) -> tuple[list[int], str, Stats]:
    taken: list[int] = []
    texts: list[bytes] = []

    def callback(token: int, text: bytes) -> bool:
        taken.append(token)
        texts.append(text)
        return True

    options, stats = GenerateOptions(**fields), Stats()
    library.call(
        "generate", model, tokens_of(ids), ctypes.c_size_t(len(ids)), ctypes.byref(options),
        as_callback(callback), None, ctypes.byref(stats),
    )  # fmt: skip
    return taken, b"".join(texts).decode(), stats


def test_the_same_text_as_in_python(library: Library, model: Handle, known: akunu.Model) -> None:
    ids = known.tokenizer.encode(PROMPT)
    for fields, options in (
        ({}, {"temperature": 0}),
        (
            {"sampling": ctypes.pointer(Sampling(temperature=0.9, top_k=40, top_p=0.95, seed=7))},
            {"temperature": 0.9, "top_k": 40, "top_p": 0.95, "min_p": 0.0, "seed": 7},
        ),
    ):
        expected = known.generate(ids, max_tokens=40, **options)
        taken, text, stats = generate(library, model, ids, max_tokens=40, **fields)
        assert taken == list(expected.token_ids)
        assert text == expected
        assert stats.prompt_tokens == len(ids)
        assert stats.completion_tokens == len(taken)
        assert stats.finish in (STOP, LENGTH)


def test_a_text_and_its_callback(library: Library, model: Handle, known: akunu.Model) -> None:
    texts: list[bytes] = []
    stats = Stats()

    def three(_token: int, text: bytes) -> bool:
        texts.append(text)
        return len(texts) < 3

    options = GenerateOptions(max_tokens=50)
    library.call(
        "generate_text", model, PROMPT.encode(), ctypes.byref(options), as_callback(three), None,
        ctypes.byref(stats),
    )  # fmt: skip
    expected = known.generate(PROMPT, max_tokens=3, temperature=0)
    assert b"".join(texts).decode() == expected
    assert stats.finish == CANCELLED


def test_texts_of_threads_run_together(library: Library, model: Handle) -> None:
    prompts = [[1 + i, 20 + i, 30] for i in range(6)]
    alone = [generate(library, model, ids, max_tokens=30)[0] for ids in prompts]
    together: list[list[int]] = [[] for _ in prompts]

    def run(i: int) -> None:
        together[i] = generate(library, model, prompts[i], max_tokens=30)[0]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_tokens_are_taken_as_they_come(library: Library, model: Handle) -> None:
    ids = [5, 6, 7]
    expected = generate(library, model, ids, max_tokens=25)[0]
    options = GenerateOptions(max_tokens=25)
    handle = library.new(
        "start", model, tokens_of(ids), ctypes.c_size_t(len(ids)), ctypes.byref(options)
    )
    descriptor, finish, n = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    library.call("get_descriptor", handle, ctypes.byref(descriptor))
    buffer = (ctypes.c_uint32 * 4)()
    taken: list[int] = []
    while finish.value == NONE:
        assert select.select([descriptor.value], [], [], 60)[0], "the descriptor never told"
        library.call(
            "take", handle, 0, buffer, ctypes.c_size_t(4), ctypes.byref(n), ctypes.byref(finish)
        )
        taken += buffer[: n.value]
    assert taken == expected
    assert select.select([descriptor.value], [], [], 0)[0]  # the end stays to be seen
    stats = Stats()
    library.call("get_stats", handle, ctypes.byref(stats))
    assert stats.completion_tokens == len(expected)
    library.call("close_generation", handle)


def test_a_text_is_cancelled(library: Library, model: Handle) -> None:
    options = GenerateOptions(max_tokens=400, ignore_stops=True)
    handle = library.new("start", model, tokens_of([3]), ctypes.c_size_t(1), ctypes.byref(options))
    finish, n = ctypes.c_int(), ctypes.c_size_t()
    buffer = (ctypes.c_uint32 * 512)()
    library.call("cancel", handle)
    while finish.value == NONE:
        library.call(
            "take", handle, -1, buffer, ctypes.c_size_t(512), ctypes.byref(n), ctypes.byref(finish)
        )
    assert finish.value == CANCELLED


def test_logits_are_those_of_python(library: Library, model: Handle, known: akunu.Model) -> None:
    ids = known.tokenizer.encode(PROMPT)
    length = ctypes.c_size_t()
    n = ctypes.c_size_t(len(ids))
    library.call("logits", model, tokens_of(ids), n, None, ctypes.c_size_t(0), ctypes.byref(length))
    buffer = np.zeros(length.value, np.float32)
    pointer = buffer.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    library.call("logits", model, tokens_of(ids), n, pointer, length, ctypes.byref(length))
    np.testing.assert_array_equal(buffer, known.logits(ids)[-1])


def test_what_the_model_is(library: Library, model: Handle, known: akunu.Model) -> None:
    info = ModelInfo()
    library.call("get_model_info", model, ctypes.byref(info))
    assert info.architecture.decode() == known.config.architecture
    assert (info.dim, info.n_layers) == (known.config.dim, known.config.n_layers)
    assert info.vocab_size == known.config.vocab_size
    assert (info.context, info.embedding_dim) == (512, 0)
    assert info.memory_bytes + info.mapped_bytes > EMBER.stat().st_size // 2
    assert "cpu" in library.text("get_devices").split("\n")
    assert library.text("get_notes", model) == "\n".join(known.notes)


def test_handles_are_checked(library: Library) -> None:
    tokenizer = library.new("open_tokenizer", str(EMBER).encode())
    size = ctypes.c_uint32()
    for handle, why in (
        (Handle(), "the akunu_model is null"),
        (Handle(123_456_789), "is closed, or never was one"),
        (tokenizer, "an akunu_model is needed, the handle is an akunu_tokenizer"),
    ):
        with pytest.raises(CError, match=why) as caught:
            library.call("get_model_info", handle, ctypes.byref(ModelInfo()))
        assert caught.value.status == HANDLE
    library.call("close_tokenizer", tokenizer)
    for name, arguments in (("get_vocab_size", (ctypes.byref(size),)), ("close_tokenizer", ())):
        with pytest.raises(CError, match="closed") as caught:
            library.call(name, tokenizer, *arguments)
        assert caught.value.status == HANDLE


def test_arguments_are_checked(library: Library, model: Handle) -> None:
    ids = tokens_of([1])
    one = ctypes.c_size_t(1)

    def refused(match: str, name: str, *arguments: Any) -> None:
        with pytest.raises(CError, match=match) as caught:
            library.call(name, *arguments)
        assert caught.value.status == ARGUMENT

    def options_refused(match: str, options: GenerateOptions) -> None:
        refused(match, "generate", model, ids, one, ctypes.byref(options), None, None, None)

    refused("path is null", "load_model", None, None, ctypes.byref(Handle()))
    refused("model is null", "load_model", b"x", None, None)
    refused("info is null", "get_model_info", model, None)
    refused("has no tokens", "generate", model, ids, ctypes.c_size_t(0), None, None, None, None)
    refused("prompt is null", "generate", model, None, one, None, None, None, None)
    refused("1000000", "generate", model, tokens_of([10**6]), one, None, None, None, None)
    unsized = GenerateOptions()
    unsized.size = 0
    options_refused("size is 0; set it to sizeof the struct", unsized)
    for field, value in (("temperature", float("nan")), ("temperature", -1.0), ("top_p", 1.5)):
        sampling = ctypes.pointer(Sampling(**{field: value}))
        options_refused(f"sampling.{field}", GenerateOptions(sampling=sampling))
    options_refused("stop_ids is null", GenerateOptions(n_stop_ids=2))
    with pytest.raises(CError, match="abacus"):
        library.new("load_model", str(EMBER).encode(), ctypes.byref(LoadOptions(device=b"abacus")))


def test_structs_of_other_versions(library: Library, model: Handle) -> None:
    class Newer(ctypes.Structure):
        _fields_ = (("known", GenerateOptions), ("more", ctypes.c_uint64))

    newer = Newer(GenerateOptions(max_tokens=2), 0)
    newer.known.size = ctypes.sizeof(Newer)
    arguments = (model, tokens_of([1]), ctypes.c_size_t(1), ctypes.byref(newer), None, None, None)
    library.call("generate", *arguments)  # what this library does not know is zero
    newer.more = 1
    with pytest.raises(CError, match="does not know"):
        library.call("generate", *arguments)
    older = ModelInfo()
    older.size = ModelInfo.dim.offset  # a caller that knows the first fields alone
    older.dim = 77
    library.call("get_model_info", model, ctypes.byref(older))
    assert older.n_layers > 0
    assert older.dim == 77


def test_a_closed_model_ends_its_texts(library: Library) -> None:
    options = LoadOptions(device=b"cpu", context=512, threads=1)
    model = library.new("load_model", str(EMBER).encode(), ctypes.byref(options))
    endless = GenerateOptions(max_tokens=400, ignore_stops=True)
    handle = library.new("start", model, tokens_of([3]), ctypes.c_size_t(1), ctypes.byref(endless))
    library.call("close_model", model)
    finish, n = ctypes.c_int(), ctypes.c_size_t()
    buffer = (ctypes.c_uint32 * 512)()
    arguments = (buffer, ctypes.c_size_t(512), ctypes.byref(n), ctypes.byref(finish))

    def take_all() -> None:
        while finish.value == NONE:
            library.call("take", handle, -1, *arguments)

    with pytest.raises(CError, match="closed"):
        take_all()
    library.call("close_generation", handle)


def test_the_reader_of_files(library: Library) -> None:
    from gguf import GGUFReader

    file = library.new("open_gguf", str(EMBER).encode())
    reader = GGUFReader(EMBER)
    n = ctypes.c_size_t()
    library.call("get_n_tensors", file, ctypes.byref(n))
    assert n.value == len(reader.tensors)
    for index, tensor in enumerate(reader.tensors):
        info = TensorInfo()
        library.call("get_tensor", file, ctypes.c_size_t(index), ctypes.byref(info))
        assert info.name.decode() == tensor.name
        assert info.type.decode() == tensor.tensor_type.name
        assert list(info.dims[: info.n_dims]) == tensor.shape.tolist()
        assert info.n_bytes == tensor.n_bytes
    library.call("get_n_keys", file, ctypes.byref(n))
    keys = [library.text("get_key", file, ctypes.c_size_t(i)) for i in range(n.value)]
    assert keys == [key for key in reader.fields if not key.startswith("GGUF.")]
    architecture = library.text("get_string", file, b"general.architecture")
    value = ctypes.c_int64()
    library.call("get_integer", file, f"{architecture}.block_count".encode(), ctypes.byref(value))
    assert value.value == reader.fields[f"{architecture}.block_count"].contents()
    with pytest.raises(CError, match=r"no key 'no\.such\.key'"):
        library.text("get_string", file, b"no.such.key")
    library.call("close_gguf", file)


def test_a_text_of_words_keeps_the_space_before_its_first(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_words(writer: gguf.GGUFWriter, vocab_size: int) -> None:
        tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
        types = [2, 3, 3, *[6] * 256]
        words = [f"▁{'abcdefghij'[i % 10]}{i}" for i in range(vocab_size - len(tokens))]
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens + words)
        writer.add_token_scores([-float(i) for i in range(vocab_size)])
        writer.add_token_types(types + [1] * len(words))
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)

    monkeypatch.setattr(gguf_file, "_write_tokenizer", write_words)
    case = random_models.build("llama", tmp_path / "words.gguf", seed=3, vocab_size=2000)
    options = LoadOptions(device=b"cpu", context=64, threads=1)
    model = library.new("load_model", str(case.path).encode(), ctypes.byref(options))
    with akunu.load(case.path, device="cpu", context=64, threads=1) as known:
        spaces = 0
        for last in (1, 300, 700):  # behind <s> a text opens, behind a word it goes on
            for seed in range(3):
                expected = known.generate([1, last], max_tokens=6, temperature=5.0, seed=seed)
                sampling = Sampling(temperature=5.0, seed=seed)
                text = generate(
                    library, model, [1, last], max_tokens=6, sampling=ctypes.pointer(sampling)
                )[1]
                assert text == expected
                spaces += text.startswith(" ")
        assert spaces > 0
    library.call("close_model", model)
