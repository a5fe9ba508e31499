"""/v1/audio/transcriptions and /v1/audio/translations, of a small random Whisper model."""

from __future__ import annotations

import io
import json
import sys
import threading
import wave
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from running_server import running

from lines import each_line

sys.path.append(str(Path(__file__).parents[1] / "models"))

import brief_speech

from akunu.server import ServedModels
from akunu.speech.model import SpeechModel, load_whisper
from akunu.speech.transcription import Transcription

TRANSCRIPTIONS, TRANSLATIONS = "/v1/audio/transcriptions", "/v1/audio/translations"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return brief_speech.write(tmp_path_factory.mktemp("whisper") / "small")


@pytest.fixture(scope="module")
def client(folder: str) -> Iterator[httpx.Client]:
    with running(ServedModels({"ember": "ember", "whisper-1,small": folder})) as client:
        yield client


@pytest.fixture(scope="module")
def model(folder: str) -> Iterator[SpeechModel]:
    with load_whisper(folder) as model:
        yield model


def noise(seconds: float = 8.0) -> np.ndarray:
    rng = np.random.default_rng(7)
    return (rng.standard_normal(int(seconds * 16_000)) * 3000).astype(np.int16)


def wav(samples: np.ndarray) -> bytes:
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(samples.astype("<i2").tobytes())
    return data.getvalue()


AUDIO = wav(noise())


def ask(
    client: httpx.Client, path: str = TRANSCRIPTIONS, audio: bytes = AUDIO, **fields: Any
) -> httpx.Response:
    """A form as openai-python sends it; the random model hears no speech, so it reads all."""
    data = {"model": "whisper-1", "vad_filter": "false", **fields}
    return client.post(path, files={"file": ("talk.wav", audio)}, data=data)


def said_by(model: SpeechModel, **options: Any) -> Transcription:
    return model.transcribe(AUDIO, vad=False, **options)


def test_the_text_is_that_of_the_model(client, model) -> None:
    said = said_by(model)
    assert said.text.strip()
    answer = ask(client)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "text": said.text.strip(),
        "usage": {"type": "duration", "seconds": 8.0},
    }


def test_options_reach_the_model(client, model) -> None:
    for fields, options in (
        ({"language": "German"}, {"language": "de"}),
        ({"language": "de", "prompt": "Hello"}, {"language": "de", "prompt": "Hello"}),
        ({"language": "de", "hotwords": "akunu"}, {"language": "de", "hotwords": "akunu"}),
        (
            {"language": "de", "temperature": "0.7", "seed": "3"},
            {"language": "de", "temperature": 0.7, "seed": 3},
        ),
    ):
        assert ask(client, **fields).json()["text"] == said_by(model, **options).text.strip()


@pytest.mark.parametrize("form", ["srt", "vtt"])
def test_subtitles_are_plain_text(client, model, form: str) -> None:
    answer = ask(client, response_format=form)
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text == said_by(model).render(form)


def test_a_text_is_plain_text(client, model) -> None:
    answer = ask(client, response_format="text")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text == f"{said_by(model).text.strip()}\n"


def test_verbose_json_has_the_segments(client, model) -> None:
    said = said_by(model, language="de")
    fields = {"response_format": "verbose_json", "timestamp_granularities[]": "segment"}
    found = ask(client, language="de", **fields).json()
    assert (found["task"], found["language"], found["duration"]) == ("transcribe", "german", 8.0)
    assert found["text"] == said.text.strip()
    expected = said.to_dict()["segments"]
    assert found["segments"] == json.loads(json.dumps(expected))
    assert set(found["segments"][0]) == {
        *("id", "seek", "start", "end", "text", "tokens", "temperature"),
        *("avg_logprob", "compression_ratio", "no_speech_prob"),
    }


def test_words_have_times(client, model) -> None:
    said = said_by(model, language="de", word_timestamps=True)
    form = {"response_format": "verbose_json", "language": "de"}
    both = ask(client, **form, **{"timestamp_granularities[]": ["segment", "word"]}).json()
    expected = [{"word": w.word.strip(), "start": w.start, "end": w.end} for w in said.words or ()]
    assert expected
    assert both["words"] == expected
    assert len(both["segments"]) == len(said.segments)
    words = ask(client, **form, **{"timestamp_granularities[]": "word"}).json()
    assert words["words"] == expected
    assert "segments" not in words


def test_a_translation_is_english(client, model) -> None:
    said = said_by(model, language="de", task="translate")
    answer = ask(client, TRANSLATIONS, language="de", response_format="verbose_json").json()
    assert (answer["task"], answer["language"]) == ("translate", "english")
    assert answer["text"] == said.text.strip()


def events_of(answer: httpx.Response) -> list[dict[str, Any]]:
    lines = [line for line in answer.text.split("\n\n") if line and not line.startswith(":")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def test_a_stream_tells_segment_after_segment(client, model) -> None:
    said = said_by(model)
    answer = ask(client, stream="true")
    assert answer.headers["content-type"].startswith("text/event-stream")
    *deltas, done = events_of(answer)
    assert {each["type"] for each in deltas} == {"transcript.text.delta"}
    assert done["type"] == "transcript.text.done"
    assert "".join(each["delta"] for each in deltas) == done["text"] == said.text.lstrip()
    assert len(deltas) == len(said.segments)


def test_a_stream_that_cannot_begin_is_an_error(client) -> None:
    answer = ask(client, stream="true", prompt="word " * 1000, language="zz")
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "language"


@pytest.mark.parametrize(("kind", "subtype"), [("FLAC", None), ("OGG", "VORBIS"), ("MP3", None)])
def test_files_of_other_formats_are_read(client, kind: str, subtype: str | None) -> None:
    import soundfile

    data = io.BytesIO()
    soundfile.write(data, noise(), 16_000, format=kind, subtype=subtype)
    answer = ask(client, audio=data.getvalue())
    assert answer.status_code == 200, answer.text
    assert answer.json()["text"]


def test_silence_has_no_text(client) -> None:
    answer = client.post(TRANSCRIPTIONS, files={"file": wav(np.zeros(80_000))})
    assert answer.json() == {"text": "", "usage": {"type": "duration", "seconds": 5.0}}


def test_without_a_name_the_first_speech_model_is_asked(client, model) -> None:
    audio = {"file": ("talk.wav", AUDIO)}
    answer = client.post("/audio/transcriptions", files=audio, data={"vad_filter": "false"})
    assert answer.json()["text"] == said_by(model).text.strip()
    assert ask(client, model="small").status_code == 200  # its alias


def test_what_has_no_effect_is_named(client) -> None:
    answer = ask(client, mood="good", user="me", language="")
    assert answer.headers["x-akunu-ignored"] == "mood, user"


def test_voice_activity_as_openai_asks_for_it(client) -> None:
    fields = {
        "chunking_strategy[type]": "server_vad",
        "chunking_strategy[threshold]": "0.3",
        "chunking_strategy[prefix_padding_ms]": "100",
        "chunking_strategy[silence_duration_ms]": "300",
    }
    files = {"file": ("talk.wav", AUDIO)}
    for data in (fields, {"chunking_strategy": "auto"}):
        answer = client.post(TRANSCRIPTIONS, files=files, data={"model": "whisper-1", **data})
        assert answer.json()["text"] == ""  # steady noise is no speech


BAD = {
    "language": ({"language": "klingon"}, "language", None),
    "format": ({"response_format": "xml"}, "response_format", None),
    "diarized": ({"response_format": "diarized_json"}, "response_format", "unsupported_parameter"),
    "temperature": ({"temperature": "1.5"}, "temperature", None),
    "NaN": ({"temperature": "nan"}, "temperature", None),
    "no number": ({"temperature": "warm"}, "temperature", None),
    "stream": ({"stream": "perhaps"}, "stream", None),
    "stream of subtitles": ({"stream": "true", "response_format": "srt"}, "response_format", None),
    "granularity": (
        {"timestamp_granularities[]": "hour", "response_format": "verbose_json"},
        "timestamp_granularities[]",
        None,
    ),
    "granularity of json": (
        {"timestamp_granularities[]": "segment"},
        "timestamp_granularities[]",
        None,
    ),
    "logprobs": ({"include[]": "logprobs"}, "include[]", "unsupported_parameter"),
    "speakers": (
        {"known_speaker_names[]": "Ann"},
        "known_speaker_names[]",
        "unsupported_parameter",
    ),
    "chunking": ({"chunking_strategy": "none"}, "chunking_strategy", None),
    "chunking's field": (
        {"chunking_strategy[type]": "server_vad", "chunking_strategy[mood]": "1"},
        "chunking_strategy",
        None,
    ),
    "both vads": ({"chunking_strategy": "auto"}, "chunking_strategy", None),
    "seed": ({"seed": "x"}, "seed", None),
    "twice": ({"language": ["de", "en"]}, "language", None),
    "unknown model": ({"model": "nobody"}, "model", "model_not_found"),
    "text model": ({"model": "ember"}, "model", "unsupported_model"),
}


@each_line("case", BAD)
def test_a_bad_field_is_named(client, case: str) -> None:
    fields, param, code = BAD[case]
    answer = ask(client, **fields)
    error = answer.json()["error"]
    assert (answer.status_code // 100, error["param"], error["code"]) == (4, param, code)
    assert error["message"]


@each_line(
    ("audio", "words"),
    [
        (b"", "is empty"),
        (b"no audio at all, just words", "in a known format"),
        (AUDIO[:30_000], "is cut off"),
        (wav(np.zeros(0)), "holds no samples"),
    ],
    ids=["empty", "words", "cut off", "no samples"],
)
def test_audio_that_cannot_be_read_is_said(client, audio: bytes, words: str) -> None:
    answer = ask(client, audio=audio)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (400, "file", "invalid_audio")
    assert words in error["message"]


def test_a_body_that_is_no_form_is_said(client) -> None:
    boundary = {"content-type": "multipart/form-data; boundary=x"}
    for body in (
        {"json": {"file": "talk.wav"}},
        {"content": b"", "headers": {"content-type": "text/plain"}},
        {"content": b"nonsense", "headers": boundary},
        {"content": b"--x\r\nnonsense\r\n--x--", "headers": boundary},
        {"content": b"", "headers": {"content-type": "multipart/form-data"}},
        {"data": {"a": "b"}},
    ):
        answer = client.post(TRANSCRIPTIONS, **body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["message"]
    assert ask(client).status_code == 200


def test_a_form_without_its_file_is_said(client) -> None:
    for files in ([("model", (None, "whisper-1"))], [("file", (None, "talk.wav"))]):
        answer = client.post(TRANSCRIPTIONS, files=files)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "file")
    two = [("file", ("a.wav", AUDIO)), ("file", ("b.wav", AUDIO))]
    assert client.post(TRANSCRIPTIONS, files=two).status_code == 400


def test_a_damaged_form_is_never_a_failure(serving) -> None:
    request = httpx.Request(
        "POST",
        "http://localhost/",
        files={"file": ("talk.wav", AUDIO[:2000])},
        data={"model": "ember", "language": "de", "timestamp_granularities[]": ["word"]},
    )
    whole, kind = request.read(), request.headers["content-type"]
    draw = np.random.default_rng(11)
    with serving() as client:
        for number in range(150):
            body = bytearray(whole)
            if number < 75:
                del body[int(draw.integers(0, len(body))) :]
            else:
                for at in draw.integers(0, 700, 5):
                    body[at] = int(draw.integers(0, 256))
            answer = client.post(
                TRANSCRIPTIONS, content=bytes(body), headers={"content-type": kind}
            )
            assert answer.status_code in (400, 404), answer.text
            assert answer.json()["error"]["message"]
        for kind in ("multipart/form-data; boundary=" + "x" * 5000, 'multipart/form-data; "', ""):
            answer = client.post(TRANSCRIPTIONS, content=whole, headers={"content-type": kind})
            assert answer.status_code == 400, answer.text


def test_text_routes_refuse_a_speech_model(client) -> None:
    messages = [{"role": "user", "content": "Hello"}]
    for path, body in (
        ("/v1/chat/completions", {"messages": messages}),
        ("/v1/completions", {"prompt": "Hello"}),
        ("/v1/responses", {"input": "Hello"}),
        ("/v1/embeddings", {"input": "Hello"}),
        ("/v1/rerank", {"query": "a", "documents": ["b"]}),
        ("/tokenize", {"content": "Hello"}),
    ):
        answer = client.post(path, json={"model": "whisper-1", **body})
        error = answer.json()["error"]
        assert (answer.status_code, error["param"]) == (400, "model"), path
        assert "/v1/audio/transcriptions" in error["message"]
    first = client.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 1})
    assert first.json()["model"] == "ember"


def test_models_are_listed(client) -> None:
    ask(client)
    found = {each["id"]: each for each in client.get("/v1/models").json()["data"]}
    assert found["whisper-1"]["capabilities"] == ["transcription"]
    assert found["whisper-1"]["loaded"] is True
    assert "completion" in found["ember"]["capabilities"] if found["ember"]["loaded"] else True
    assert client.get("/v1/models/whisper-1").json()["capabilities"] == ["transcription"]
    assert client.get("/api/tags").json()["models"][1]["name"] == "whisper-1"
    loaded = client.get("/api/ps").json()["models"]
    assert "whisper-1" in [each["name"] for each in loaded]
    anthropic = client.get("/v1/models", headers={"anthropic-version": "2023-06-01"}).json()
    assert [each["id"] for each in anthropic["data"]] == ["ember", "whisper-1"]


def test_seconds_are_counted(client) -> None:
    def seconds() -> float:
        models = client.get("/v1/metrics").json()["models"]
        return float(models.get("whisper-1", {}).get("audio_seconds", 0))

    before = seconds()
    ask(client)
    assert seconds() == before + 8


def test_a_speech_model_is_unloaded_and_loaded_again(client) -> None:
    text = ask(client).json()["text"]
    assert client.post("/v1/models/unload", json={"model": "whisper-1"}).status_code == 200
    assert ask(client).json()["text"] == text


def test_limits(folder: str) -> None:
    with running(ServedModels([folder]), max_audio_seconds=5.0, max_body=300_000) as client:
        too_long = client.post(TRANSCRIPTIONS, files={"file": AUDIO})
        assert (too_long.status_code, too_long.json()["error"]["param"]) == (400, "file")
        assert "5 seconds" in too_long.json()["error"]["message"]
        too_large = client.post(TRANSCRIPTIONS, files={"file": AUDIO + bytes(100_000)})
        assert too_large.status_code == 413
        chat = client.post("/v1/chat/completions", json={"messages": []})
        assert chat.json()["error"]["code"] == "unsupported_model" or chat.status_code == 400
        assert client.post(TRANSCRIPTIONS, files={"file": wav(noise(4))}).status_code == 200


def test_a_server_without_a_speech_model_says_so(serving) -> None:
    with serving() as client:
        answer = client.post(TRANSCRIPTIONS, files={"file": AUDIO})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "unsupported_model")
        assert "none is served here" in error["message"]


def test_requests_side_by_side_have_the_texts_that_they_have_alone(client, model) -> None:
    expected = said_by(model, language="de").text.strip()
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: ask(client, language="de").json()["text"], range(6)))
    assert found == [expected] * 6


def test_a_client_that_goes_away_ends_its_work(client) -> None:
    long = wav(noise(120))
    files, data = {"file": long}, {"vad_filter": "false", "stream": "true"}
    with client.stream("POST", TRANSCRIPTIONS, files=files, data=data) as answer:
        next(answer.iter_bytes())
    for _ in range(500):
        names = [each.name for each in threading.enumerate()]
        if "akunu transcription" not in names:
            break
        threading.Event().wait(0.02)
    assert "akunu transcription" not in names
    assert ask(client).status_code == 200
