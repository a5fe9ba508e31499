"""Instructor: objects of a class by every mode that its OpenAI and Anthropic clients have."""

from __future__ import annotations

import os
from typing import Literal

import instructor
import openai
import pytest
from instructor import Mode
from pydantic import BaseModel

ADDRESS = os.environ["AKUNU_URL"]
ASKED = [{"role": "user", "content": "Is 4 even?"}]


class Answer(BaseModel):
    """An answer to a question."""

    verdict: Literal["even", "odd"]
    sure: bool


def client(mode: Mode) -> instructor.Instructor:
    made = openai.OpenAI(base_url=f"{ADDRESS}/v1", api_key="any")
    return instructor.from_openai(made, mode=mode)


@pytest.mark.parametrize("mode", [Mode.TOOLS, Mode.TOOLS_STRICT, Mode.JSON_SCHEMA])
def test_an_answer_is_an_object_of_the_class(mode: Mode) -> None:
    answer = client(mode).chat.completions.create(
        model="ember", messages=ASKED, response_model=Answer, max_retries=0, max_tokens=80
    )
    assert answer.verdict in {"even", "odd"}


@pytest.mark.parametrize("mode", [Mode.TOOLS, Mode.JSON_SCHEMA])
def test_an_object_grows_in_a_stream(mode: Mode) -> None:
    parts = client(mode).chat.completions.create_partial(
        model="ember", messages=ASKED, response_model=Answer, max_retries=0, max_tokens=80
    )
    *_, last = parts
    assert last.verdict in {"even", "odd"}
    assert last.sure is not None


def test_the_reply_is_beside_the_object() -> None:
    answer, reply = client(Mode.TOOLS).chat.completions.create_with_completion(
        model="ember", messages=ASKED, response_model=Answer, max_retries=0
    )
    assert isinstance(answer, Answer)
    assert reply.usage.completion_tokens > 0


def test_a_provider_is_named_with_its_model() -> None:
    for provider, base in (("openai", f"{ADDRESS}/v1"), ("ollama", f"{ADDRESS}/v1")):
        made = instructor.from_provider(
            f"{provider}/ember", base_url=base, api_key="any", mode=Mode.JSON_SCHEMA
        )
        answer = made.chat.completions.create(messages=ASKED, response_model=Answer, max_retries=0)
        assert isinstance(answer, Answer)


async def test_objects_that_are_awaited() -> None:
    made = openai.AsyncOpenAI(base_url=f"{ADDRESS}/v1", api_key="any")
    answer = await instructor.from_openai(made, mode=Mode.TOOLS).chat.completions.create(
        model="ember", messages=ASKED, response_model=Answer, max_retries=0
    )
    assert isinstance(answer, Answer)
