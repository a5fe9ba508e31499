"""Models that requests create from served ones, as Ollama's clients do."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from ember_adapter import write_adapter
from running_server import EMBER, running

from akunu import LoadOptions
from akunu.server import ServedModels
from akunu.server.catalogue.created import CreatedModel, CreatedModels
from akunu.server.http.errors import ApiError
from akunu.server.ollama.modelfile import read_modelfile
from lines import each_line

HI = [{"role": "user", "content": "Hi"}]
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "created"


@pytest.fixture
def client(folder: Path) -> Iterator[httpx.Client]:
    with running(served(folder), allow_pull=True) as client:
        yield client


def served(folder: Path) -> ServedModels:
    return ServedModels(["ember"], created=CreatedModels(folder))


def post(client: httpx.Client, path: str, **body: Any) -> Any:
    answer = client.post(f"/api/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def create(client: httpx.Client, **body: Any) -> Any:
    return post(client, "create", **{"model": "poet", "from": "ember", "stream": False, **body})


def delete(client: httpx.Client, name: str) -> httpx.Response:
    return client.request("DELETE", "/api/delete", json={"model": name})


def names(client: httpx.Client) -> list[str]:
    return [each["name"] for each in client.get("/api/tags").json()["models"]]


def chat(client: httpx.Client, model: str = "poet", **body: Any) -> Any:
    wanted = {"model": model, "messages": HI, "stream": False, "options": {"num_predict": 2}}
    return post(client, "chat", **{**wanted, **body})


def n_prompt(client: httpx.Client, messages: list[dict[str, str]], model: str = "ember") -> int:
    found: int = chat(client, model, messages=messages)["prompt_eval_count"]
    return found


def test_a_model_is_created_listed_shown_used_and_deleted(
    client: httpx.Client, folder: Path
) -> None:
    examples = [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]
    made = create(
        client,
        system="Write verses.",
        parameters={"num_predict": 3, "stop": ["\n", "Q"], "num_ctx": 256, "seed": 4},
        messages=examples,
        license="free",
    )
    assert made == {"status": "success"}
    assert names(client) == ["ember", "poet"]
    assert [each["id"] for each in client.get("/v1/models").json()["data"]] == ["ember", "poet"]
    shown = post(client, "show", model="poet:latest")
    lines = ["num_ctx 256", "num_predict 3", "seed 4", 'stop "Q"', r'stop "\n"', "temperature 0.0"]
    assert sorted(shown["parameters"].splitlines()) == lines
    assert (shown["system"], shown["license"]) == ("Write verses.", "free")
    assert (shown["messages"], shown["details"]["parent_model"]) == (examples, "ember")
    assert shown["template"] == post(client, "show", model="ember")["template"]
    again = read_modelfile(shown["modelfile"])
    assert again["from"] == "ember"
    parameters = {"num_predict": 3, "stop": ["\n", "Q"], "num_ctx": 256, "seed": 4}
    assert again["parameters"] == {**parameters, "temperature": 0.0}
    assert again["messages"] == examples
    system = {"role": "system", "content": "Write verses."}
    assert chat(client, options={})["eval_count"] == 3
    assert n_prompt(client, HI, "poet") == n_prompt(client, [system, *examples, *HI])
    mine = {"role": "system", "content": "Mine."}
    assert n_prompt(client, [mine, *HI], "poet") == n_prompt(client, [mine, *examples, *HI])
    assert len(list(folder.glob("*.json"))) == 1
    assert delete(client, "POET").status_code == 200
    assert names(client) == ["ember"]
    assert not list(folder.glob("*.json"))
    assert delete(client, "poet").status_code == 404


def test_a_template_is_jinja(client: httpx.Client) -> None:
    create(client, template=TEMPLATE)
    assert post(client, "show", model="poet")["template"] == TEMPLATE
    prompt = client.post("/v1/apply-template", json={"model": "poet", "messages": HI}).json()
    assert "user: Hi\n" in prompt["prompt"]
    endless = "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}"
    create(client, template=endless)
    refused = client.post("/api/chat", json={"model": "poet", "messages": HI})
    assert refused.status_code == 400, refused.text


def test_an_older_client_sends_a_modelfile(client: httpx.Client) -> None:
    text = (
        '# mine\nfrom ember\nPARAMETER stop "Q"\nparameter num_predict 2\nSYSTEM """Two\nlines"""\n'
        "MESSAGE user A\nMESSAGE assistant B\n"
    )
    post(client, "create", name="old", modelfile=text, stream=False)
    shown = post(client, "show", model="old")
    assert shown["system"] == "Two\nlines"
    assert [each["content"] for each in shown["messages"]] == ["A", "B"]
    answer = client.post("/api/create", json={"name": "old", "modelfile": text})
    lines = [json.loads(line)["status"] for line in answer.text.splitlines()]
    assert lines[-1] == "success"


def test_a_model_is_created_from_a_created_one_and_copied(client: httpx.Client) -> None:
    create(client, system="One.", parameters={"num_predict": 3, "seed": 4})
    create(client, model="child", **{"from": "poet"}, parameters={"num_predict": 1})
    post(client, "copy", source="child", destination="copy")
    post(client, "copy", source="ember", destination="me/alias:v1")
    assert delete(client, "poet").status_code == delete(client, "child").status_code == 200
    assert names(client) == ["ember", "copy", "me/alias:v1"]
    shown = post(client, "show", model="copy")
    assert (shown["system"], shown["details"]["parent_model"]) == ("One.", "ember")
    assert sorted(shown["parameters"].splitlines()) == [
        "num_predict 1",
        "seed 4",
        "temperature 0.0",
    ]
    assert chat(client, "me/alias:v1")["message"] == chat(client, "ember")["message"]


def test_numbers_of_messages_in_errors_are_those_of_the_request(client: httpx.Client) -> None:
    create(client, system="One.", messages=[{"role": "user", "content": "A"}])
    bad: list[Any] = [*HI, {"role": "user", "content": 3}]
    for model in ("ember", "poet"):
        for path in ("/v1/chat/completions", "/v1/apply-template"):
            told = client.post(path, json={"model": model, "messages": bad}).json()["error"]
            assert "messages[1].content" in told["message"], told


@each_line(
    ("body", "status", "message"),
    [
        ({"from": "/etc/passwd"}, 404, "is not served here"),
        ({"from": "gone"}, 404, "is not served here"),
        ({"from": None}, 400, "from is missing"),
        ({"model": "../x"}, 400, 'model is "../x"; a name has letters'),
        ({"model": "a b"}, 400, "a name has letters"),
        ({"model": "ember"}, 409, "ember was not created by a request"),
        ({"model": "EMBER:latest"}, 409, "ember was not created by a request"),
        ({"template": "{{ .Prompt }}"}, 400, "template is a Go template"),
        ({"template": "{{- if .System }}x{{ end }}"}, 400, "template is a Go template"),
        ({"template": "{{ range $i, $m := .Messages }}"}, 400, "template is a Go template"),
        ({"template": "/etc/passwd"}, 400, "template has neither"),
        ({"template": "{% if %}"}, 400, "template: the chat template, line 1"),
        ({"parameters": {"temprature": 1}}, 400, 'parameters has "temprature"'),
        ({"parameters": {"temperature": -1}}, 400, "temperature is -1"),
        ({"parameters": {"mirostat": 1}}, 400, "mirostat is not supported"),
        ({"parameters": {"num_ctx": "x"}}, 400, 'num_ctx is "x"'),
        ({"parameters": {"num_ctx": -5}}, 400, "context is -5"),
        ({"parameters": {"priority": 1}}, 400, "priority"),
        ({"messages": [{"role": "tool", "content": ""}]}, 400, "messages[0] must have a role"),
        ({"messages": [{"role": "user", "content": 3}]}, 400, "messages[0].content must be a text"),
        ({"adapters": {"a.gguf": "sha256:0"}}, 400, "one adapter of ember (there is none)"),
        ({"files": {"a.gguf": "sha256:0"}}, 400, "models are created from models"),
        ({"quantize": "q4_K_M"}, 400, "akunu quantize"),
        ({"license": 3}, 400, "license is 3"),
        ({"modelfile": "FROM ember"}, 400, "modelfile and from say the same"),
        ({"from": None, "modelfile": "RUN x"}, 400, 'line 1: "RUN" is not one of FROM'),
        ({"from": None, "modelfile": 'FROM ember\nSYSTEM """x'}, 400, "line 2: "),
        ({"from": None, "modelfile": "PARAMETER seed"}, 400, "line 1: PARAMETER has no value"),
    ],
)
def test_what_makes_no_sense_is_refused(
    client: httpx.Client, folder: Path, body: dict[str, Any], status: int, message: str
) -> None:
    answer = client.post("/api/create", json={"model": "poet", "from": "ember", **body})
    assert (answer.status_code, message in answer.json()["error"]) == (status, True), answer.text
    assert not list(folder.glob("*.json"))


def test_parameters_without_effect_are_named(client: httpx.Client) -> None:
    body = {"model": "poet", "from": "ember", "parameters": {"num_gpu": 3}, "mood": "good"}
    ignored = client.post("/api/create", json=body).headers["x-akunu-ignored"]
    assert ignored == "mood, parameters.num_gpu"


def test_a_created_model_may_have_an_adapter(folder: Path, tmp_path: Path) -> None:
    odd = write_adapter(tmp_path / "odd.gguf")
    options = LoadOptions(adapters={"odd": odd})
    models = ServedModels(["ember"], options, created=CreatedModels(folder))
    with running(models, allow_pull=True) as client:
        create(client, adapters={"odd": ""})
        create(client, model="same", **{"from": "ember:odd"})
        said = {
            name: chat(client, name, options={"num_predict": 8})["message"]["content"]
            for name in ("ember", "ember:odd", "poet", "same", "poet:odd")
        }
        assert "ADAPTER odd\n" in post(client, "show", model="poet")["modelfile"]
    assert said["ember"] != said["ember:odd"]
    assert said["poet"] == said["same"] == said["poet:odd"] == said["ember:odd"]


def test_a_model_that_is_used_is_not_replaced(folder: Path) -> None:
    async def work() -> None:
        models = served(folder)
        poet = CreatedModel("poet", "ember")
        await models.create(poet)
        async with models.use("poet"):
            with pytest.raises(ApiError, match="in use"):
                await models.create(CreatedModel("poet", "ember", {"system": "One."}))
            with pytest.raises(ApiError, match="in use"):
                await models.delete_created(poet)
        assert models.created("poet") == poet
        await models.create(CreatedModel("poet", "ember", {"system": "One."}))
        assert models.find("poet").preset.system == "One."
        await models.close()

    asyncio.run(work())


def test_a_server_has_to_allow_it(folder: Path) -> None:
    with running(served(folder)) as client:
        for path in ("create", "copy"):
            answer = client.post(f"/api/{path}", json={"model": "poet", "from": "ember"})
            assert (answer.status_code, "--allow-pull" in answer.json()["error"]) == (403, True)


def test_created_models_outlive_the_server_and_need_their_base(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(served(folder), allow_pull=True) as client:
        create(client, system="One.")
    (folder / "broken.json").write_text("{}")
    with running(served(folder)) as client, caplog.at_level(logging.WARNING):
        assert names(client) == names(client) == ["ember", "poet"]
    assert len([each for each in caplog.messages if "broken.json" in each]) == 1
    others = ServedModels([f"other={EMBER}"], created=CreatedModels(folder))
    with running(others, allow_pull=True) as client:
        assert names(client) == ["other"]
        answer = client.post("/api/chat", json={"model": "poet", "messages": HI})
        assert answer.status_code == 404
        assert 'its base "ember" is missing' in answer.json()["error"]
        assert delete(client, "poet").status_code == 200
    with running(served(folder)) as client:
        assert names(client) == ["ember"]


def test_a_full_disk_is_an_answer(
    client: httpx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client, system="One.")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("akunu.common.atomic_file.os.fsync", full)
        body = {"model": "poet", "from": "ember", "system": "Two."}
        answer = client.post("/api/create", json=body)
    assert (answer.status_code, "No space left" in answer.json()["error"]) == (500, True)
    assert str(folder) not in answer.text
    assert post(client, "show", model="poet")["system"] == "One."
    assert [each.name for each in folder.glob("*.json")] == ["poet.json"]


def _write_many(folder: Path, number: int) -> None:
    store = CreatedModels(folder)
    for i in range(30):
        store.put(CreatedModel("shared", "ember", {"system": f"{number} " * 1000}))
        store.put(CreatedModel(f"own-{number}-{i}", "ember"))
        assert "shared" in store.read()


def test_several_processes_may_write_at_once(folder: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(folder, i)) for i in range(3)]
    for each in writers:
        each.start()
    for each in writers:
        each.join(60)
        assert each.exitcode == 0
    found = CreatedModels(folder).read()
    assert len(found) == 91
    assert len(set(found["shared"].preset.system.split())) == 1
