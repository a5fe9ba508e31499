"""llama.cpp's own routes: /completion, /infill, /props."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gguf
import httpx
import pytest
from edited_model import edited
from running_server import EMBER, running

import akunu
from akunu.server import ServedModels
from akunu.tokenizers.tokenizer import Tokenizer
from lines import each_line

PROMPT = "<|im_start|>user\nWhat is 12 + 7?<|im_end|>\n<|im_start|>assistant\n"


def ask(client: httpx.Client, path: str = "/completion", **body: Any) -> Any:
    answer = client.post(path, json={"prompt": PROMPT, "n_predict": 20, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(client: httpx.Client, **body: Any) -> list[dict[str, Any]]:
    body = {"prompt": PROMPT, "n_predict": 20, "stream": True, **body}
    with client.stream("POST", "/completion", json=body) as answer:
        assert answer.status_code == 200
        lines = [line for line in answer.iter_lines() if line]
    assert all(line.startswith("data: ") for line in lines)
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_a_text_goes_on_from_a_prompt_in_which_names_of_tokens_are_tokens(
    client: httpx.Client,
) -> None:
    with akunu.load() as model:
        expected = model.chat([{"role": "user", "content": "What is 12 + 7?"}])
    reply = ask(client)
    assert reply["content"] == expected
    assert (reply["stop"], reply["stop_type"], reply["stopping_word"]) == (True, "eos", "")
    assert reply["tokens_evaluated"] == expected.prompt_tokens
    assert reply["tokens_predicted"] == expected.completion_tokens
    assert reply["prompt"] == PROMPT
    assert reply["model"] == "ember"
    assert reply["generation_settings"]["n_predict"] == 20
    assert reply["timings"]["predicted_n"] == expected.completion_tokens


def test_a_text_ends_for_a_reason(client: httpx.Client) -> None:
    assert ask(client, n_predict=2)["stop_type"] == "limit"
    reply = ask(client, stop=["="])
    assert (reply["stop_type"], reply["stopping_word"]) == ("word", "=")
    assert ask(client, n_predict=-1)["stop_type"] == "eos"
    assert ask(client, n_predict=0)["content"] == ""


def test_a_stream_ends_with_an_event_that_knows_everything(client: httpx.Client) -> None:
    told = events(client)
    assert [each["stop"] for each in told] == [False] * (len(told) - 1) + [True]
    whole = ask(client)
    assert "".join(each["content"] for each in told) == whole["content"]
    for name in ("tokens_predicted", "tokens_evaluated", "stop_type", "prompt"):
        assert told[-1][name] == whole[name]


def test_prompts_are_texts_ids_both_and_lists_of_them(client: httpx.Client) -> None:
    with akunu.load() as model:
        ids = model.tokenizer.encode(PROMPT, parse_special=True)
    whole = ask(client)
    mixed = [*ids[:3], model.tokenizer.decode(ids[3:])]
    for prompt in (ids, mixed, [PROMPT]):
        assert ask(client, prompt=prompt)["content"] == whole["content"]
    several = ask(client, prompt=[PROMPT, ids, "Once"])
    assert [each["index"] for each in several] == [0, 1, 2]
    assert [each["content"] for each in several[:2]] == [whole["content"]] * 2
    told = events(client, prompt=[PROMPT, "Once"])
    assert {each["index"] for each in told} == {0, 1}
    assert sum(each["stop"] for each in told) == 2


def test_tokens_and_their_probabilities_are_told_where_asked(client: httpx.Client) -> None:
    reply = ask(client, return_tokens=True, n_probs=2)
    told = reply["completion_probabilities"]
    n = len(told)
    assert [each["id"] for each in told] == reply["tokens"][:n]
    assert all(len(each["top_logprobs"]) == 2 for each in told)
    assert b"".join(bytes(each["bytes"]) for each in told).decode() == reply["content"]
    assert ask(client)["tokens"] == []
    streamed = events(client, n_probs=2)[:-1]
    ids = [each["id"] for event in streamed for each in event["completion_probabilities"]]
    assert ids == [each["id"] for each in told]


def test_each_event_of_a_stream_has_its_tokens(client: httpx.Client) -> None:
    whole = ask(client, return_tokens=True)["tokens"]
    told = events(client, return_tokens=True)
    assert [token for each in told for token in each["tokens"]] == whole
    assert all(each["tokens"] for each in told[:-1])


def test_some_fields_only(client: httpx.Client) -> None:
    reply = ask(client, response_fields=["content", "timings/predicted_n", "nothing"])
    assert set(reply) == {"content", "timings/predicted_n"}


def test_a_text_is_held_to_a_schema_or_a_grammar(client: httpx.Client) -> None:
    assert ask(client, grammar='root ::= "yes" | "yo"')["content"] in ("yes", "yo")
    schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}
    schema["additionalProperties"] = False
    assert json.loads(ask(client, json_schema=schema)["content"]) == {"a": 1}


def test_fields_without_effect_are_named(client: httpx.Client) -> None:
    body = {"prompt": "a", "n_predict": 1, "cache_prompt": True, "id_slot": 0, "n_keep": -1}
    answer = client.post("/completion", json=body)
    assert answer.headers["x-akunu-ignored"] == "cache_prompt, id_slot, n_keep"


@each_line(
    ("field", "value"),
    [
        ("prompt", 3),
        ("prompt", [1, None]),
        ("prompt", {"prompt_string": "a", "multimodal_data": ["aGk="]}),
        ("prompt", [[1, 10_000_000]]),
        ("n_predict", "many"),
        ("n_probs", 99),
        ("n_indent", 4),
        ("mirostat", 2),
        ("temperature", -1),
        ("response_fields", "content"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    client: httpx.Client, field: str, value: object
) -> None:
    answer = client.post("/completion", json={"prompt": "a", "n_predict": 1, field: value})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == field


def test_a_prompt_that_is_too_long_is_told_apart(client: httpx.Client) -> None:
    answer = client.post("/completion", json={"prompt": "hello " * 2000})
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", "prompt")


def test_a_model_without_tokens_for_it_does_not_fill_in(client: httpx.Client) -> None:
    answer = client.post("/infill", json={"input_prefix": "a", "input_suffix": "b"})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["param"], error["code"]) == ("input_suffix", "unsupported_parameter")
    missing = client.post("/infill", json={"input_prefix": "a"}).json()["error"]
    assert missing["param"] == "input_suffix"


@pytest.fixture(scope="module")
def filler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server whose model has tokens for filling in, in the place of three others."""
    fields = gguf.GGUFReader(EMBER).fields
    names = fields["tokenizer.ggml.tokens"].contents()
    merges = fields["tokenizer.ggml.merges"].contents()
    replaced = set(names[-3:])
    names[-3:] = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
    kept = [each for each in merges if each.replace(" ", "") not in replaced]
    path = tmp_path_factory.mktemp("filler") / "filler.gguf"
    changes = {"tokenizer.ggml.tokens": names, "tokenizer.ggml.merges": kept}
    with running(ServedModels([str(edited(EMBER, path, changes))])) as client:
        yield client


def test_a_model_with_the_tokens_fills_in(filler: httpx.Client) -> None:
    def n_prompt(**body: Any) -> int:
        gap = {"input_prefix": "a = ", "input_suffix": "\nb", "ignore_eos": True}
        reply = ask(filler, "/infill", **{**gap, "prompt": "", "n_predict": 3, **body})
        assert reply["tokens_predicted"] == 3
        found: int = reply["tokens_evaluated"]
        return found

    with akunu.load() as model:
        before, behind = (len(model.tokenizer.encode(text)) for text in ("a = ", "\nb"))
    assert n_prompt() == before + behind + 3
    extra = [{"filename": "x.py", "text": "c = 1"}]
    assert n_prompt(input_extra=extra) > n_prompt(prompt="1") > n_prompt()
    for wrong in ({}, {"filename": "a"}, {"filename": 1, "text": "a"}, {"text": 1}, "a"):
        gap = {"input_prefix": "a", "input_suffix": "b", "input_extra": [wrong]}
        answer = filler.post("/infill", json=gap)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "input_extra"
    answer = filler.post("/api/generate", json={"model": "filler", "prompt": "a", "suffix": "b"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/infill", {"input_prefix": "hello " * 400_000, "input_suffix": "b"}),
        ("/api/generate", {"prompt": "a", "suffix": "hello " * 400_000}),
        ("/v1/completions", {"prompt": "hello " * 400_000, "suffix": "b"}),
    ],
)
def test_megabytes_around_a_gap_are_refused_before_their_tokens_are_known(
    filler: httpx.Client, monkeypatch: pytest.MonkeyPatch, route: str, body: dict[str, str]
) -> None:
    monkeypatch.setattr(Tokenizer, "encode_pieces", None)
    answer = filler.post(route, json={"model": "filler", **body})
    assert answer.status_code == 400
    assert "resulted in at least " in answer.text


def test_a_prompt_may_be_an_object_with_a_text(client: httpx.Client) -> None:
    expected = ask(client)["content"]
    told = {"prompt_string": PROMPT}
    assert ask(client, prompt=told)["content"] == expected
    assert [each["content"] for each in ask(client, prompt=[told, PROMPT])] == [expected] * 2
    for wrong in ({"prompt_string": "a", "multimodal_data": ["aGk="]}, {}, {"prompt_string": 1}):
        answer = client.post("/completion", json={"prompt": wrong})
        assert answer.status_code == 400
        assert answer.json()["error"]["param"].startswith("prompt")


def test_a_text_has_the_bias_of_all_its_tokens(client: httpx.Client) -> None:
    assert "19" in ask(client)["content"]
    with akunu.load() as model:
        (nine, *_) = (token for token in model.tokenizer.encode("19"))
    for bias in ([["19", -100]], {"19x": 0, "1": False}, [[nine, False]], {str(nine): -100}):
        ask(client, logit_bias=bias)
    without = ask(client, logit_bias=[["1", -100], ["9", False], ["19", False]])
    assert "1" not in without["content"]
    assert "9" not in without["content"]
    for wrong in ([1], [[1]], [[None, 1]], "1", [[True, 1]], {"1": "x"}, {"a": "x"}):
        answer = client.post("/completion", json={"prompt": "a", "logit_bias": wrong})
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "logit_bias"


def test_props_describe_the_model(client: httpx.Client) -> None:
    props = client.get("/props").json()
    assert props["default_generation_settings"]["n_ctx"] == 1024
    assert props["model_alias"] == "ember"
    assert "<|im_start|>" in props["chat_template"]
    assert props["eos_token"] == "<|im_end|>"
    assert client.get("/props", params={"model": "nothing"}).status_code == 404


def test_what_others_would_have_to_wait_for_is_refused(client: httpx.Client) -> None:
    many = [str(n) for n in range(1001)]
    for body, message in (
        ({"stop": many}, "stop has 1001 texts; at most 64 are allowed"),
        (
            {"dry_sequence_breakers": many[:101]},
            "dry_sequence_breakers has 101 texts; at most 100 are allowed",
        ),
        ({"stop": ["a", "b" * 200_000]}, "stop has a text of 200000 bytes; each may have 1024"),
        (
            {"dry_sequence_breakers": ["é" * 513]},
            "dry_sequence_breakers has a text of 1026 bytes; each may have 1024",
        ),
        (
            {"logit_bias": [["a" * 10_001, 1]]},
            "logit_bias has texts of 10001 characters; they may have 10000",
        ),
    ):
        answer = client.post("/completion", json={"prompt": "a", "n_predict": 1, **body})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == message
