"""Sessions with images: each reply is that of `chat` for the same messages, bit for bit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine import HERE, opened
from image_models import drawn, encoded, question, url_of, write
from PIL import Image

import akunu

ASK: dict[str, Any] = {"max_tokens": 4, "temperature": 0, "ignore_eos": True, "logprobs": 0}
FOLLOWING = {"role": "user", "content": "And now?"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("images") / "model")


@pytest.fixture(params=HERE, scope="module")
def model(request: pytest.FixtureRequest, folder: Path) -> Iterator[Any]:
    with opened(folder, device=request.param, kv_type="f32") as opened_model:
        opened_model.of_test = request.param
        yield opened_model


def asked(session: Any) -> list[Any]:
    """A reply's tokens, their log-probabilities, and how many tokens its prompt had."""
    return facts(session.generate(**ASK))


def facts(reply: Any) -> list[Any]:
    return [reply.token_ids, [each.logprob for each in reply.logprobs], reply.prompt_tokens]


@pytest.fixture(scope="module")
def expected(folder: Path) -> Any:
    """What `chat` says to messages; each time a model is loaded that has seen nothing before."""

    def chat(messages: list[dict[str, Any]], device: str) -> list[Any]:
        with opened(folder, device=device, kv_type="f32") as fresh:
            return facts(fresh.chat(messages, **ASK))

    return chat


def said(session: Any) -> str:
    text: str = session.messages[-1]["content"]
    return text


@pytest.mark.nightly_emulated
def test_replies_are_those_of_a_chat_after_append_rewind_and_fork(
    model: Any, expected: Any
) -> None:
    device = model.of_test
    session = model.session()
    first = question(drawn(1), drawn(2))
    session.append(first)
    start = session.n_tokens
    assert asked(session) == expected([first], device)
    reply = {"role": "assistant", "content": said(session)}
    other = session.fork()
    session.append([FOLLOWING])
    assert asked(session) == expected([first, reply, FOLLOWING], device)
    more = question(drawn(3), text="This?")
    other.append(more)
    assert asked(other) == expected([first, reply, more], device)
    session.rewind(start)
    assert asked(session) == expected([first], device)
    session.rewind(0)
    session.append(question(drawn(3), drawn(2)))  # other images in the same places
    assert session.n_tokens == start
    assert asked(session) == expected([question(drawn(3), drawn(2))], device)


@pytest.mark.nightly_emulated
def test_an_image_stays_as_it_was_when_it_was_appended(
    model: Any, expected: Any, tmp_path: Path
) -> None:
    file = tmp_path / "cat.png"
    file.write_bytes(encoded(drawn(1)))
    shown, data = drawn(1), bytearray(encoded(drawn(1)))
    sessions = [model.session() for _ in range(4)]
    for session, given in zip(sessions, (file, shown, data, url_of(drawn(1))), strict=True):
        session.append(question(given))
    file.write_bytes(encoded(drawn(2)))
    shown.paste((0, 0, 0), (0, 0, *shown.size))
    data[:] = bytes(len(data))
    wanted = expected([question(drawn(1))], model.of_test)
    for session in sessions:
        assert asked(session) == wanted
        again = model.session()
        again.append(session.messages[:1])
        assert asked(again) == wanted


@pytest.mark.nightly_emulated
def test_coroutines_and_streams_have_images_too(model: Any, expected: Any) -> None:
    async def ask() -> Any:
        session = model.session()
        await session.append_async(question(drawn(4)))
        return await session.generate_async(**ASK)

    wanted = expected([question(drawn(4))], model.of_test)
    assert facts(asyncio.run(ask())) == wanted
    session = model.session()
    session.append(question(drawn(4)))
    with session.generate(stream=True, **ASK) as pieces:
        assert "".join(pieces) == pieces.completion
    assert facts(pieces.completion) == wanted


def test_what_a_session_refuses_leaves_it_as_it_was(model: Any, tmp_path: Path) -> None:
    session = model.session()
    session.append(question(drawn(1)))
    n, messages = session.n_tokens, len(session.messages)
    cases = [
        (
            question(drawn(1), b"no image"),
            akunu.ArgumentError,
            "not an image in a supported format",
        ),
        (question(tmp_path / "none.png"), akunu.ArgumentError, "cannot be read"),
        (question(Image.new("1", (9000, 9000))), akunu.ArgumentError, "9000 x 9000 pixels"),
        (question("cat.png"), akunu.ArgumentError, "fetched"),
        (question(*[drawn(1)] * 40), akunu.ContextOverflowError, "16 tokens each"),
    ]
    for bad, error, why in cases:
        with pytest.raises(error, match=why):
            session.append(bad)
        assert (session.n_tokens, len(session.messages)) == (n, messages)
    for image in (drawn(1), url_of(drawn(1))):  # of which one would be JSON
        other = model.session()
        other.append(question(image))
        with pytest.raises(akunu.ArgumentError, match="cannot be saved, it has images"):
            other.save(tmp_path / "session")
    assert not (tmp_path / "session").exists()
    with pytest.raises(akunu.ArgumentError, match="context_overflow"):
        session.generate(context_overflow="shift")
    why = "only text is supported, ember"
    with akunu.load("ember", context=512) as ember, pytest.raises(akunu.ArgumentError, match=why):
        ember.session().append(question(tmp_path / "none.png"))
