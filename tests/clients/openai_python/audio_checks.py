"""Transcriptions and translations with openai-python, of a small random Whisper model."""

from __future__ import annotations

import io
import random
import struct
import wave
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI


def noise(seconds: int = 4) -> tuple[str, bytes]:
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        draw = random.Random(5)
        samples = (draw.randint(-9000, 9000) for _ in range(seconds * 16_000))
        file.writeframes(b"".join(struct.pack("<h", each) for each in samples))
    return "talk.wav", data.getvalue()


ALL: Any = {"vad_filter": "false"}  # steady noise is no speech


def test_a_transcription_has_a_text_and_says_how_long_the_audio_was(client: OpenAI) -> None:
    said = client.audio.transcriptions.create(model="whisper", file=noise(), extra_body=ALL)
    assert said.text
    assert said.usage is not None
    assert (said.usage.type, said.usage.seconds) == ("duration", 4.0)


def test_texts_and_subtitles_are_str(client: OpenAI) -> None:
    said = client.audio.transcriptions.create(model="whisper", file=noise(), extra_body=ALL)
    for form in ("text", "srt", "vtt"):
        text: Any = client.audio.transcriptions.create(
            model="whisper",
            file=noise(),
            response_format=form,  # type: ignore[arg-type]
            extra_body=ALL,
        )
        assert isinstance(text, str)
        if form == "text":
            assert text.strip() == said.text
        else:
            assert "00:00" in text


def test_verbose_json_has_segments_and_words(client: OpenAI) -> None:
    said = client.audio.transcriptions.create(
        model="whisper",
        file=noise(),
        response_format="verbose_json",
        timestamp_granularities=["segment", "word"],
        language="de",
        extra_body=ALL,
    )
    assert (said.language, float(said.duration)) == ("german", 4.0)
    assert said.segments
    assert "".join(each.text for each in said.segments).strip() == said.text
    assert all(0 <= each.start <= each.end <= 4.1 for each in said.segments)
    assert said.words
    assert all(0 <= each.start <= each.end <= 4.1 for each in said.words)


def test_a_stream_has_events(client: OpenAI) -> None:
    said = client.audio.transcriptions.create(model="whisper", file=noise(), extra_body=ALL)
    text, done = "", None
    with client.audio.transcriptions.create(
        model="whisper", file=noise(), stream=True, extra_body=ALL
    ) as stream:
        for event in stream:
            if event.type == "transcript.text.delta":
                text += event.delta
            elif event.type == "transcript.text.done":
                done = event.text
    assert text == done
    assert text.strip() == said.text


def test_a_translation_is_english(client: OpenAI) -> None:
    said: Any = client.audio.translations.create(
        model="whisper", file=noise(), response_format="verbose_json", extra_body=ALL
    )
    assert said.language == "english"
    assert said.text


def test_server_vad_is_understood(client: OpenAI) -> None:
    said = client.audio.transcriptions.create(
        model="whisper",
        file=noise(),
        chunking_strategy={"type": "server_vad", "threshold": 0.4, "silence_duration_ms": 300},
    )
    assert said.text == ""


def test_errors_name_the_field(client: OpenAI) -> None:
    def refused(**fields: Any) -> openai.BadRequestError:
        with pytest.raises(openai.BadRequestError) as caught:
            client.audio.transcriptions.create(**{"model": "whisper", "file": noise(), **fields})
        return caught.value

    assert refused(language="klingon").param == "language"
    assert refused(temperature=2).param == "temperature"
    assert refused(file=("talk.wav", b"RIFF")).code == "invalid_audio"
    assert refused(include=["logprobs"]).code == "unsupported_parameter"
    assert refused(model="ember").code == "unsupported_model"
    with pytest.raises(openai.NotFoundError):
        client.audio.transcriptions.create(model="nobody", file=noise())
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model="whisper", input="Hello")
    assert caught.value.param == "model"


async def test_async_clients_are_answered_side_by_side(async_client: AsyncOpenAI) -> None:
    import asyncio

    said = await asyncio.gather(
        *(
            async_client.audio.transcriptions.create(model="whisper", file=noise(), extra_body=ALL)
            for _ in range(3)
        )
    )
    assert len({each.text for each in said}) == 1
