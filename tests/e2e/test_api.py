"""The Python interface on Ember: what it takes, gives and refuses."""

from __future__ import annotations

import dataclasses
import gc
import math
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_model import edited
from gguf import GGUFReader

import akunu
from akunu import AkunuError, ArgumentError, ContextOverflowError
from akunu.text.deltas import ToolCallArguments, ToolCallEnd, ToolCallStart
from lines import each_line

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
# So hot that the next token is nearly any: such a text goes on until the context is full.
LONG: dict[str, Any] = {"temperature": 50, "seed": 3}
HELLO = [{"role": "user", "content": "Hello! Who are you?"}]


# --- load ----------------------------------------------------------------------------------------


def test_the_default_is_ember_by_any_of_its_names() -> None:
    texts = []
    for arguments in ((), ("ember",), (EMBER,), (str(EMBER),)):
        with akunu.load(*arguments) as model:
            assert model.path == EMBER
            texts.append(model.generate("Hello", max_tokens=5))
    assert len(set(texts)) == 1


def test_options_reach_the_engine() -> None:
    with akunu.load("ember", device="cpu", context=300, threads=2, kv_type="f32") as model:
        assert model.context == 300


def test_what_is_no_file_and_no_name_is_refused_naming_both() -> None:
    with pytest.raises(ArgumentError, match=r"'embers' is neither a file nor the name.*\(ember\)"):
        akunu.load("embers")


@each_line("wrong", ["", "\0", "x" * 5000, 7, None, b"em"], ids=lambda x: repr(x)[:9])
def test_paths_that_cannot_be_are_refused(wrong: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        akunu.load(wrong)
    assert len(str(caught.value)) < 200


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="is a directory"):
        akunu.load(tmp_path)


def test_a_device_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match="abacus"):
        akunu.load(device="abacus")


@each_line("size", [0, 3, 1000, 100_000])
def test_a_cut_file_is_a_format_error(tmp_path: Path, size: int) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(EMBER.read_bytes()[:size])
    with pytest.raises(akunu.ModelFormatError, match=r"cut\.gguf"):
        akunu.load(path)


# --- what a model says about itself --------------------------------------------------------------


def test_the_files_wishes_for_sampling_are_there_and_change_nothing_unasked(
    ember: akunu.Model, tmp_path: Path
) -> None:
    wishes = {"general.sampling.temp": 0.75, "general.sampling.top_k": 40}
    path = edited(EMBER, tmp_path / "m.gguf", {**wishes, "general.sampling.mirostat": 2})
    with akunu.load(path) as model:
        assert dict(model.sampling_defaults) == {"temperature": 0.75, "top_k": 40}
        assert model.notes == ("general.sampling.mirostat is ignored: akunu has no such sampler",)
        assert model.generate("Hello", max_tokens=5) == ember.generate("Hello", max_tokens=5)
        model.generate("Hello", max_tokens=1, **model.sampling_defaults)
        with pytest.raises(TypeError):
            model.sampling_defaults["top_k"] = 1  # type: ignore[index]
    assert dict(ember.sampling_defaults) == {"temperature": 0.0}


def test_the_configuration_is_what_the_file_says(ember: akunu.Model) -> None:
    fields = GGUFReader(EMBER).fields
    config = ember.config
    architecture = fields["general.architecture"].contents()

    def value(key: str) -> Any:
        return fields[f"{architecture}.{key}"].contents()

    assert config.architecture == architecture
    assert config.name == fields["general.name"].contents()
    assert config.dim == value("embedding_length")
    assert config.n_layers == value("block_count")
    assert config.n_heads == value("attention.head_count")
    assert config.n_kv_heads == value("attention.head_count_kv")
    assert config.head_dim == value("attention.key_length")
    assert config.ffn_dim == value("feed_forward_length")
    assert config.context_length == value("context_length") == ember.context
    assert config.vocab_size == len(fields["tokenizer.ggml.tokens"].contents())
    assert config.norm_epsilon == pytest.approx(value("attention.layer_norm_rms_epsilon"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.dim = 1  # type: ignore[misc]


def test_what_a_model_can_do_without_does_not_stop_it(ember: akunu.Model, tmp_path: Path) -> None:
    changes = {
        "tokenizer.ggml.padding_token_id": 2**32 - 1,
        "tokenizer.ggml.unknown_token_id": -1,
        "tokenizer.chat_template": b"{{ '\xff' }}",
    }
    with akunu.load(edited(EMBER, tmp_path / "m.gguf", changes)) as model:
        assert [note.split()[0] for note in model.notes] == [
            "tokenizer.ggml.unknown_token_id",
            "tokenizer.ggml.padding_token_id",
            "tokenizer.chat_template",
        ]
        assert model.generate("Hello", max_tokens=5) == ember.generate("Hello", max_tokens=5)
        with pytest.raises(akunu.ModelFormatError, match=r"^tokenizer\.chat_template is not valid"):
            model.chat(HELLO)


def test_memory_adds_up_and_prints(ember: akunu.Model) -> None:
    memory = ember.memory
    assert memory["total"] == sum(size for label, size in memory.items() if label != "total")
    assert len(str(memory).splitlines()) == len(memory)
    assert str(memory).splitlines()[-1].endswith("MiB")


def test_a_model_shows_its_name_and_state() -> None:
    model = akunu.load(context=256)
    assert repr(model) == f"<akunu.Model 'Ember', {model.config.architecture}, context 256>"
    model.close()
    assert "closed" in repr(model)


# --- generate ------------------------------------------------------------------------------------


def test_text_and_its_tokens_give_the_same(ember: akunu.Model) -> None:
    tokens = ember.tokenizer.encode("The sea is")
    expected = ember.generate("The sea is", max_tokens=12)
    assert expected
    for same in (tokens, tuple(tokens), np.array(tokens), np.array(tokens, dtype=np.uint16)):
        assert ember.generate(same, max_tokens=12) == expected


def test_a_stream_gives_the_same_text_in_pieces(ember: akunu.Model) -> None:
    whole = ember.generate("Once upon", max_tokens=30)
    stream = ember.generate("Once upon", max_tokens=30, stream=True)
    assert stream.finish_reason == ""
    pieces = list(stream)
    assert "".join(pieces) == whole
    assert all(pieces)
    assert stream.prompt_tokens == len(ember.tokenizer.encode("Once upon"))
    assert 0 < stream.completion_tokens <= 30
    assert stream.finish_reason in ("stop", "length")
    assert stream.prompt_seconds > 0
    assert next(stream, None) is None


def test_max_tokens_ends_a_text(ember: akunu.Model) -> None:
    stream = ember.generate("The", temperature=2.0, seed=1, max_tokens=2, stream=True)
    text = "".join(stream)
    assert (stream.finish_reason, stream.completion_tokens) == ("length", 2)
    longer = ember.generate("The", temperature=2.0, seed=1, max_tokens=10**30)
    assert longer.startswith(text.rstrip("\N{REPLACEMENT CHARACTER}"))


def test_no_tokens_give_no_text(ember: akunu.Model) -> None:
    assert ember.generate("Hello", max_tokens=0) == ""
    assert list(ember.generate("Hello", max_tokens=0, stream=True)) == []
    assert ember.chat(HELLO, max_tokens=0) == ""


def test_a_described_tool_is_called(ember: akunu.Model) -> None:
    tool = {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Get the weather in a city",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "the city"}},
                "required": ["city"],
            },
        },
    }
    question = [{"role": "user", "content": "What is the weather in Paris?"}]
    reply = ember.chat(question, tools=[tool], max_tokens=60)
    (call,) = reply.tool_calls
    assert (call.name, call.arguments) == ("get_weather", {"city": "Paris"})
    assert (reply, reply.finish_reason) == ("", "tool_calls")
    assert ember.chat(question, max_tokens=60).tool_calls == ()
    stream = ember.chat(question, tools=[tool], max_tokens=60, stream=True)
    start, *arguments, end = stream.deltas()
    assert isinstance(start, ToolCallStart)
    assert isinstance(end, ToolCallEnd)
    texts = [delta.text for delta in arguments if isinstance(delta, ToolCallArguments)]
    assert len(texts) == len(arguments) > 1
    assert "".join(texts) == call.arguments_text == stream.completion.tool_calls[0].arguments_text


def test_the_most_likely_token_is_the_default(ember: akunu.Model) -> None:
    tokens = ember.tokenizer.encode("What is 2")
    for _ in range(4):
        best = int(ember.logits(tokens)[-1].argmax())
        if best in ember.tokenizer.stop_ids:
            break
        stream = ember.tokenizer.stream(prompt=tokens, skip_special=True)
        expected = stream.push(best) + stream.finish()
        assert ember.generate(tokens, max_tokens=1) == expected
        assert ember.generate(tokens, max_tokens=1, temperature=1.5, top_k=1, seed=9) == expected
        tokens.append(best)


def test_biases_favour_and_ban_tokens(ember: akunu.Model) -> None:
    prompt = ember.tokenizer.encode("What is 2")
    usual = ember.generate(prompt, max_tokens=3).token_ids
    other = usual[0] + 1
    for sampling in ({}, {"temperature": 2.0, "seed": 1, "frequency_penalty": 0.1}):
        favoured = ember.generate(prompt, max_tokens=3, logit_bias={other: 1000.0}, **sampling)
        assert favoured.token_ids == (other,) * 3
    banned = ember.generate(prompt, max_tokens=3, logit_bias={usual[0]: -math.inf})
    assert usual[0] not in banned.token_ids


def test_biases_beyond_the_vocabulary_or_the_engine_s_room_are_refused(ember: akunu.Model) -> None:
    n = ember.config.vocab_size
    with pytest.raises(ArgumentError, match=f"logit_bias has token {n}, which is outside the voc"):
        ember.generate("a", max_tokens=1, logit_bias={n: 1.0})
    with pytest.raises(ArgumentError, match=r"logit_bias has 2049 tokens; at most 2048 are poss"):
        ember.generate("a", max_tokens=1, logit_bias=dict.fromkeys(range(2049), 0.5))


def test_a_seed_repeats_and_other_seeds_differ(ember: akunu.Model) -> None:
    def text(seed: int | None) -> str:
        return ember.generate("The", max_tokens=24, temperature=50.0, seed=seed)

    assert text(3) == text(3)
    assert len({text(seed) for seed in range(6)}) > 1
    assert len({text(None) for _ in range(6)}) > 1


def test_an_empty_prompt_starts_from_bos_or_is_refused(ember: akunu.Model) -> None:
    bos = ember.tokenizer.bos_id
    for empty in ("", [], (), np.array([], dtype=np.int64)):
        if bos is None:
            with pytest.raises(ArgumentError, match="no BOS token"):
                ember.generate(empty)
        else:
            assert ember.generate(empty, max_tokens=4) == ember.generate([bos], max_tokens=4)


def test_a_prompt_that_does_not_fit_says_both_numbers() -> None:
    with akunu.load(context=32) as model:
        token = model.tokenizer.encode("the", add_special=False)[0]
        with pytest.raises(ContextOverflowError, match=r"33.*32"):
            model.generate([token] * 33)
        with pytest.raises(ContextOverflowError, match=r"33.*32"):
            model.generate([token] * 33, max_tokens=0)
        with pytest.raises(ContextOverflowError):
            model.chat([{"role": "user", "content": "word " * 100}], stream=True)
        stream = model.generate([token] * 32, stream=True)
        list(stream)
        assert stream.completion_tokens <= 1
        text = model.generate([token] * 20, stream=True)
        list(text)
        assert text.finish_reason == "stop" or text.completion_tokens == 13


BAD_TOKENS = [
    [-1],
    [0, 2**40],
    [2**70],
    [1.0],
    [True],
    [None],
    [[1], 2],
    [["a"]],
    b"bytes",
    np.array([1.5]),
    np.zeros((2, 2), dtype=np.int64),
]


@each_line("wrong", BAD_TOKENS, ids=repr)
def test_what_is_no_token_is_refused(ember: akunu.Model, wrong: Any) -> None:
    for use in (ember.generate, ember.logits):
        with pytest.raises(ArgumentError, match=r"^(prompt|tokens)\b"):
            use(wrong)


@pytest.mark.parametrize("prompts", [["a"], [[1, 2]], [[1], [2, 3]]], ids=repr)
def test_several_texts_are_refused_where_one_is_wanted(ember: akunu.Model, prompts: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^tokens is .* flat"):
        ember.logits(prompts)


def test_the_first_bad_id_is_named(ember: akunu.Model) -> None:
    size = ember.config.vocab_size
    with pytest.raises(ArgumentError, match=rf"prompt\[2\] is {size}; .* 0 to {size - 1}$"):
        ember.generate([1, 2, size, -1])


def test_a_text_for_logits_is_refused_with_the_way_to_go(ember: akunu.Model) -> None:
    with pytest.raises(ArgumentError, match=r"tokenizer\.encode"):
        ember.logits("Hello")  # type: ignore[arg-type]


def test_lone_surrogates_are_refused(ember: akunu.Model) -> None:
    with pytest.raises(ArgumentError, match="surrogate"):
        ember.generate("\ud800")


def test_bad_options_are_refused_before_anything_runs(ember: akunu.Model) -> None:
    with pytest.raises(ArgumentError, match="temperature"):
        ember.generate("Hello", temperature=float("nan"))
    with pytest.raises(ArgumentError, match="top_p"):
        ember.chat(HELLO, top_p=0, stream=True)


# --- chat ----------------------------------------------------------------------------------------


def test_a_conversation_is_answered(ember: akunu.Model) -> None:
    stream = ember.chat(HELLO, stream=True, max_tokens=200)
    reply = "".join(stream)
    assert reply.strip()
    assert stream.finish_reason == "stop"  # a trained model ends its turn
    assert "<|" not in reply
    assert ember.chat(HELLO, max_tokens=200) == reply


@each_line("wrong", [[], "Hello", [{}], [{"role": "user"}], None], ids=repr)
def test_messages_that_are_none_are_refused(ember: akunu.Model, wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="messages"):
        ember.chat(wrong)


# --- logits --------------------------------------------------------------------------------------


def test_logits_have_a_row_per_token(ember: akunu.Model) -> None:
    logits = ember.logits([5, 6, 7])
    assert (logits.shape, logits.dtype) == ((3, ember.config.vocab_size), np.float32)
    assert np.array_equal(ember.logits([5, 6]), logits[:2])
    assert ember.logits([]).shape == (0, ember.config.vocab_size)


def test_logits_of_too_many_tokens_are_refused(ember: akunu.Model) -> None:
    with pytest.raises(ContextOverflowError):
        ember.logits([5] * (ember.context + 1))


# --- the end of a model, of a text, of patience --------------------------------------------------


def test_a_closed_model_says_so_whatever_is_asked() -> None:
    model = akunu.load(context=256)
    model.close()
    model.close()
    for use in (
        lambda: model.generate("x"),
        lambda: model.chat(HELLO),
        lambda: model.logits([1]),
        lambda: model.memory,
    ):
        with pytest.raises(AkunuError, match="closed"):
            use()
    assert model.config.architecture
    assert model.tokenizer.encode("x")


def test_closing_ends_what_is_under_way() -> None:
    model = akunu.load()
    stream = model.generate("The", **LONG, stream=True)
    next(stream)
    model.close()
    with pytest.raises(AkunuError, match="closed"):
        list(stream)
    assert next(stream, None) is None


def test_a_stream_outlives_the_last_reference_to_its_model(ember: akunu.Model) -> None:
    stream = akunu.load().generate("The", **LONG, max_tokens=30, stream=True)
    gc.collect()
    assert "".join(stream) == ember.generate("The", **LONG, max_tokens=30)


def wait_for_end(generation: Any) -> str:
    deadline = time.monotonic() + 10
    while generation.next(50) is not None:
        assert time.monotonic() < deadline
    return str(generation.finish_reason)


def test_an_abandoned_stream_is_cancelled(ember: akunu.Model) -> None:
    for take in (0, 1):
        stream = ember.generate("The", **LONG, stream=True)
        for _ in range(take):
            next(stream)
        generation = stream._decoder.generation
        del stream
        gc.collect()
        assert wait_for_end(generation) == "cancelled"


def test_a_closed_stream_has_no_more_pieces(ember: akunu.Model) -> None:
    with ember.generate("The", **LONG, stream=True) as stream:
        next(stream)
    assert stream.finish_reason == "cancelled"
    assert list(stream) == []
    stream.close()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_ctrl_c_ends_a_generation_and_leaves_the_model(ember: akunu.Model, stream: bool) -> None:
    expected = ember.generate("Hello", max_tokens=5)
    pressed = 0.0

    def press() -> None:
        nonlocal pressed
        pressed = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer = threading.Timer(0.1, press)
        timer.start()
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - one text may end before the signal
            while True:
                if stream:
                    list(ember.generate("The", **LONG, stream=True))
                else:
                    ember.generate("The", **LONG)
        assert time.monotonic() - pressed < 1.0
        timer.join()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert ember.generate("Hello", max_tokens=5) == expected


def test_threads_share_a_model_without_changing_each_other(ember: akunu.Model) -> None:
    prompts = ["The sea", "What is 3", "Once upon a", "List: a, b"]
    expected = [ember.generate(prompt, max_tokens=20) for prompt in prompts]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda prompt: ember.generate(prompt, max_tokens=20), prompts * 3))
    assert found == expected * 3
