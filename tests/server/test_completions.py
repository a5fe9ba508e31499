"""/v1/completions: texts that go on from prompts; and tokens of texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import httpx
import pytest
from edited_model import edited
from running_server import EMBER, running

import akunu
from akunu.server import ServedModels
from akunu.tokenizers.fill_in import FillIn, fill_in_of
from lines import each_line

PROMPT = "user\nWhat is 12 + 7?\nassistant\n"


def complete(client: httpx.Client, **body: Any) -> Any:
    answer = client.post("/v1/completions", json={"prompt": PROMPT, "max_tokens": 8, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(client: httpx.Client, **body: Any) -> Any:
    answer = client.post("/v1/completions", json={"prompt": PROMPT, "max_tokens": 8, **body})
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]


@pytest.fixture(scope="module")
def model() -> Any:
    with akunu.load() as model:
        yield model


def test_a_text_is_the_one_that_the_model_gives_in_python(
    client: httpx.Client, model: akunu.Model
) -> None:
    expected = model.generate(PROMPT, max_tokens=8)
    reply = complete(client)
    assert reply["object"] == "text_completion"
    assert reply["id"].startswith("cmpl-")
    (choice,) = reply["choices"]
    assert choice == {"index": 0, "text": expected, "logprobs": None, "finish_reason": "length"}
    assert reply["usage"]["completion_tokens"] == 8


def test_prompts_may_be_texts_or_ids_alone_or_in_lists(
    client: httpx.Client, model: akunu.Model
) -> None:
    ids = model.tokenizer.encode(PROMPT)
    other = "Once"
    text = complete(client)["choices"][0]["text"]
    assert complete(client, prompt=ids)["choices"][0]["text"] == text
    reply = complete(client, prompt=[PROMPT, other])
    assert [choice["index"] for choice in reply["choices"]] == [0, 1]
    assert reply["choices"][0]["text"] == text
    assert reply["choices"][1]["text"] == model.generate(other, max_tokens=8)
    n_prompt = len(ids) + len(model.tokenizer.encode(other))
    assert reply["usage"]["prompt_tokens"] == n_prompt
    both = complete(client, prompt=[ids, model.tokenizer.encode(other)])
    assert [c["text"] for c in both["choices"]] == [c["text"] for c in reply["choices"]]


def test_several_answers_of_several_prompts_are_in_order(client: httpx.Client) -> None:
    wild = {"temperature": 9.0, "top_k": 0, "seed": 3, "ignore_eos": True}
    reply = complete(client, prompt=[PROMPT, "Once"], n=2, **wild)
    texts = [choice["text"] for choice in reply["choices"]]
    assert len(set(texts)) == 4
    assert texts[:2] == [choice["text"] for choice in complete(client, n=2, **wild)["choices"]]
    assert reply["usage"]["completion_tokens"] == 32


def test_echo_with_logprobs_says_how_likely_the_prompt_is(
    client: httpx.Client, model: akunu.Model
) -> None:
    """As evaluation harnesses ask: no token is generated, those of the prompt are judged."""
    for max_tokens in (0, 2):
        expected = model.generate(PROMPT, max_tokens=max_tokens, logprobs=1, prompt_logprobs=1)
        reply = complete(client, echo=True, logprobs=1, max_tokens=max_tokens)
        choice = reply["choices"][0]
        assert choice["text"] == PROMPT + expected
        logprobs = choice["logprobs"]
        assert logprobs["tokens"][0]
        assert logprobs["token_logprobs"][0] is None
        assert logprobs["top_logprobs"][0] is None
        assert expected.prompt_logprobs is not None
        assert expected.logprobs is not None
        known = [*expected.prompt_logprobs[1:], *expected.logprobs]
        told = logprobs["token_logprobs"][1:]
        assert told == pytest.approx([each.logprob for each in known if each is not None])
        assert len({len(each) for each in logprobs.values()}) == 1
        assert logprobs["text_offset"][-1] + len(logprobs["tokens"][-1]) == len(choice["text"])


def test_echo_without_logprobs_begins_with_the_prompt(client: httpx.Client) -> None:
    assert complete(client, echo=True)["choices"][0]["text"].startswith(PROMPT)
    pieces = stream(client, echo=True)
    assert (
        "".join(choice["text"] for choice in pieces)
        == (complete(client, echo=True)["choices"][0]["text"])
    )


def stream(client: httpx.Client, **body: Any) -> list[dict[str, Any]]:
    """The choices of a stream's chunks."""
    body = {"prompt": PROMPT, "max_tokens": 8, "stream": True, **body}
    with client.stream("POST", "/v1/completions", json=body) as answer:
        assert answer.status_code == 200
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    assert lines[-1] == "[DONE]"
    return [choice for line in lines[:-1] for choice in json.loads(line)["choices"]]


def test_a_stream_has_the_pieces_of_the_whole_text(client: httpx.Client) -> None:
    whole = complete(client, logprobs=2)["choices"][0]
    pieces = stream(client, logprobs=2)
    assert "".join(piece["text"] for piece in pieces) == whole["text"]
    assert [piece["finish_reason"] for piece in pieces][-1] == "length"
    told = [piece["logprobs"] for piece in pieces if piece["logprobs"]]
    for name, expected in whole["logprobs"].items():
        assert [each for part in told for each in part[name]] == expected


@pytest.mark.parametrize("max_tokens", [0, 3])
def test_a_stream_tells_the_prompt_with_how_likely_it_is(
    client: httpx.Client, max_tokens: int
) -> None:
    body = {"echo": True, "logprobs": 2, "max_tokens": max_tokens, "prompt": [PROMPT, "Once"]}
    for index, whole in enumerate(complete(client, **body)["choices"]):
        pieces = [each for each in stream(client, **body) if each["index"] == index]
        assert "".join(piece["text"] for piece in pieces) == whole["text"]
        told = [piece["logprobs"] for piece in pieces if piece["logprobs"]]
        for name, expected in whole["logprobs"].items():
            assert [each for part in told for each in part[name]] == expected


def test_the_best_of_several_is_the_likeliest(client: httpx.Client) -> None:
    wild = {"temperature": 3.0, "top_k": 0, "seed": 4, "logprobs": 0}

    def mean(choice: Any) -> float:
        logprobs = choice["logprobs"]["token_logprobs"]
        return float(sum(logprobs) / len(logprobs))

    everything = complete(client, n=6, **wild)["choices"]
    reply = complete(client, best_of=6, **wild)
    (best,) = reply["choices"]
    assert mean(best) == pytest.approx(max(map(mean, everything)))
    assert best["index"] == 0
    assert reply["usage"]["completion_tokens"] == 48


@each_line(
    ("field", "value"),
    [
        ("prompt", ""),
        ("prompt", []),
        ("prompt", {"a": 1}),
        ("prompt", [10**6]),
        ("prompt", ["a"] * 1000),
        ("suffix", "end"),
        ("suffix", 3),
        ("logprobs", 21),
        ("best_of", 0),
        ("echo", "yes"),
        ("n", 0),
        ("max_tokens", -2),
        ("max_tokens", 10**30),
        ("temperature", -3),
        ("prompt_embeds", "x"),
    ],
)
def test_a_bad_field_is_named(client: httpx.Client, field: str, value: Any) -> None:
    assert refused(client, **{field: value})["param"] == field


@each_line(
    ("prompts", "place"),
    [
        (["a", ""], 1),
        (["a", [10**6]], 1),
        (["a", "b", "hello " * 2000], 2),
        (["a", [[]]], 1),
        ([1, "a"], 0),
        ([[]], 0),
    ],
)
def test_a_bad_prompt_of_a_list_is_named_with_its_number(
    client: httpx.Client, prompts: list[Any], place: int
) -> None:
    assert refused(client, prompt=prompts, n=2)["param"] == f"prompt[{place}]"


def test_fields_that_exclude_each_other_are_refused(client: httpx.Client) -> None:
    assert refused(client, n=3, best_of=2)["param"] == "best_of"
    assert refused(client, best_of=2, stream=True)["param"] == "best_of"
    assert refused(client, prompt=None)["code"] == "missing_required_parameter"


def test_a_prompt_that_is_too_long_is_told_by_its_own_name(client: httpx.Client) -> None:
    error = refused(client, prompt="hello " * 2000)
    assert error["code"] == "context_length_exceeded"
    assert error["param"] == "prompt"


@pytest.fixture(scope="module")
def filler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose vocabulary has the tokens with which code is filled in."""
    path = tmp_path_factory.mktemp("filler") / "m.gguf"
    fields = gguf.GGUFReader(EMBER).fields
    names = fields["tokenizer.ggml.tokens"].contents()
    merges = fields["tokenizer.ggml.merges"].contents()
    replaced = set(names[-3:])
    names[-3:] = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
    kept = [each for each in merges if each.replace(" ", "") not in replaced]
    changes = {"tokenizer.ggml.tokens": names, "tokenizer.ggml.merges": kept}
    return edited(EMBER, path, changes)


def test_what_is_missing_is_asked_for_with_the_models_own_tokens(
    model: akunu.Model,
) -> None:
    tokenizer = model.tokenizer
    fills_in = FillIn(7, 8, 9)
    ids = fills_in.prompt(tokenizer, "a", "b")
    a, b = (tokenizer.encode(text, add_special=False) for text in "ab")
    assert ids[-3 - len(a) - len(b) :] == [7, *a, 8, *b, 9]
    assert FillIn(7, 8, None).prompt(tokenizer, "a", "b")[-2 - len(a) - len(b) :] == [8, *b, 7, *a]
    assert fill_in_of(tokenizer) is None


def test_tokens_of_a_text_and_back(client: httpx.Client, model: akunu.Model) -> None:
    expected = model.tokenizer.encode("Hello, world", add_special=False)
    for path in ("/v1/tokenize", "/tokenize"):
        answer = client.post(path, json={"content": "Hello, world"}).json()
        assert answer["tokens"] == expected
        assert answer["count"] == len(expected)
        assert answer["max_model_len"] == 1024
    pieces = client.post(
        "/v1/tokenize", json={"content": "Hello, world", "with_pieces": True, "model": "ember"}
    ).json()["tokens"]
    assert "".join(each["piece"] for each in pieces) == "Hello, world"
    assert [each["id"] for each in pieces] == expected
    answer = client.post("/v1/detokenize", json={"tokens": expected}).json()
    assert answer == {"content": "Hello, world", "prompt": "Hello, world"}


@each_line(
    ("path", "body", "param"),
    [
        ("tokenize", {}, "content"),
        ("tokenize", {"content": 3}, "content"),
        ("tokenize", {"content": "\ud800"}, "content"),
        ("tokenize", {"content": "a", "add_special": 1}, "add_special"),
        ("detokenize", {}, "tokens"),
        ("detokenize", {"tokens": "a"}, "tokens"),
        ("detokenize", {"tokens": [-1]}, "tokens"),
        ("detokenize", {"tokens": ["a"]}, "tokens"),
        ("apply-template", {}, "messages"),
        ("apply-template", {"messages": [{"role": "user", "content": 3}]}, "messages"),
    ],
)
def test_bad_requests_about_tokens_are_refused_by_name(
    client: httpx.Client, path: str, body: dict[str, Any], param: str
) -> None:
    answer = client.post(f"/v1/{path}", content=json.dumps(body))
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


def test_the_prompt_of_a_conversation_is_shown(client: httpx.Client, model: akunu.Model) -> None:
    messages = [{"role": "user", "content": "Hello"}]
    answer = client.post("/v1/apply-template", json={"messages": messages}).json()
    assert "Hello" in answer["prompt"]
    assert answer["prompt"] != "Hello"
    assert model.tokenizer.decode(answer["tokens"]) == answer["prompt"]
    usage = client.post(
        "/v1/chat/completions", json={"messages": messages, "max_tokens": 1}
    ).json()["usage"]
    assert usage["prompt_tokens"] == answer["count"]


def test_a_suffix_is_filled_in_where_the_model_can(filler: Path) -> None:
    with running(ServedModels({"filler": str(filler)})) as client:
        reply = complete(client, prompt="a", suffix="b", max_tokens=2)
    assert reply["usage"]["completion_tokens"] == 2
    assert reply["usage"]["prompt_tokens"] >= 5


def test_editors_fill_in_by_mistrals_route(filler: Path) -> None:
    body = {"prompt": "a", "suffix": "b", "max_tokens": 4, "random_seed": 7}
    with running(ServedModels({"filler": str(filler)})) as client:
        text = complete(client, prompt="a", suffix="b", max_tokens=4, seed=7)["choices"][0]["text"]
        reply = client.post("/v1/fim/completions", json=body).json()
        told = client.post("/fim/completions", json={**body, "stream": True}).text
    assert reply["choices"][0]["message"]["content"] == text
    lines = [line.removeprefix("data: ") for line in told.split("\n") if line.startswith("data: {")]
    deltas = [json.loads(line)["choices"][0]["delta"] for line in lines]
    assert "".join(delta.get("content", "") for delta in deltas) == text


@pytest.mark.parametrize(
    ("body", "param"),
    [({}, "prompt"), ({"prompt": ["a"]}, "prompt"), ({"prompt": "a", "suffix": "b"}, "suffix")],
)
def test_what_mistrals_route_does_not_do_is_named(
    client: httpx.Client, body: dict[str, Any], param: str
) -> None:
    answer = client.post("/v1/fim/completions", json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
