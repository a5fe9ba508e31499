"""Presets of models in akunu.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from running_server import running

from akunu import ArgumentError
from akunu.ray.settings import cluster_options
from akunu.server import ServedModels, ServerSettings
from akunu.server.configuration import from_file
from akunu.server.model_names import named_sources
from lines import each_line

HI = [{"role": "user", "content": "Hi"}]
FILE = """
[serve]
context = 256
[serve.models]
plain = "ember"
[serve.models."small,gpt-4o"]
source = "ember"
context = 512
kv-type = "q8_0"
pinned = true
system = "Be brief."
sampling = {max_tokens = 3, temperature = 0.5, seed = 7}
"""


def test_a_preset_says_how_a_model_is_loaded_and_answers(tmp_path: Path) -> None:
    path = tmp_path / "akunu.toml"
    path.write_text(FILE)
    found = from_file(path)
    assert found.chosen(["gpt-4o"]) == found.chosen(["small,gpt-4o"]) == ["small,gpt-4o=ember"]
    settings = ServerSettings(port=0, **found.settings)
    models = ServedModels.of(settings, named_sources(found.models), None, found.presets)
    assert [each.is_pinned for each in models.all] == [False, True]
    with running(models) as client:

        def ask(name: str, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
            body = {"model": name, "messages": messages, **more}
            answer = client.post("/v1/chat/completions", json=body)
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            return found

        short = ask("gpt-4o", HI)
        assert short["usage"]["completion_tokens"] == 3
        assert short["choices"][0]["message"] == ask("small", HI)["choices"][0]["message"]
        system = [{"role": "system", "content": "Be brief."}, *HI]
        assert ask("small", system)["usage"]["prompt_tokens"] == short["usage"]["prompt_tokens"]
        n_plain = ask("plain", HI, max_tokens=1)["usage"]["prompt_tokens"]
        assert n_plain < short["usage"]["prompt_tokens"]
        other = ask("small", [{"role": "system", "content": "x"}, *HI])
        assert other["usage"]["prompt_tokens"] < short["usage"]["prompt_tokens"]
        assert ask("small", HI, max_tokens=1)["usage"]["completion_tokens"] == 1
        contexts = {
            each["id"]: each["max_model_len"] for each in client.get("/v1/models").json()["data"]
        }
    assert contexts == {"plain": 256, "small": 512}


@each_line(
    ("text", "message"),
    [
        ("contxt = 3", "models.a: there is no key 'contxt'"),
        ("context = -3", "models.a: context is -3; it must be"),
        ("source = 3", "models.a.source is 3; it must be a text"),
        ("system = 3", "models.a.system is 3; it must be a text"),
        ("adapter = 3", "models.a.adapter is 3; it must be a text"),
        ("messages = 'x'", "models.a.messages must be a list of messages"),
        ("messages = [{role = 'user'}]", r"models.a.messages\[0\].content must be a text"),
        ("messages = [{role = 'tool', content = ''}]", "must have a role: system, user, assistant"),
        ("pinned = 3", "models.a.pinned is 3; it must be true or false"),
        ("sampling = 3", "models.a.sampling is 3; it must be a table"),
        ("sampling = {temperature = -1}", "models.a: temperature is -1"),
        ("sampling = {temprature = 1}", "models.a: .*temprature"),
        ("sampling = {echo = true}", "models.a.sampling has 'echo', which only requests may set"),
        ("sampling = {adapters = {b = 1.0}}", "models.a.sampling has 'adapters'"),
        ("kv_type = 'f16'\nkv-type = 'f32'", "models.a has a key twice"),
        ("[serve.models.qwen2.5]", "no key '5'; a name with a dot needs quotes: \"qwen2.5\""),
        ("[serve.models.'b=c']", "the name 'b=c' of a model has a '='"),
        ("[serve.models]\nb = 3", "models.b is 3; it must be a text"),
    ],
)
def test_a_preset_that_makes_no_sense_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "akunu.toml"
    path.write_text(text if text.startswith("[") else f"[serve.models.a]\n{text}\n")
    with pytest.raises(ArgumentError, match=message):
        from_file(path)


def test_a_cluster_has_neither_presets_nor_models_that_it_finds(tmp_path: Path) -> None:
    path = tmp_path / "akunu.toml"
    path.write_text(FILE)
    with pytest.raises(ArgumentError, match=r"models\.small,gpt-4o is a table"):
        cluster_options([], path, {})
    with pytest.raises(ArgumentError, match="all_models is set; a cluster serves"):
        cluster_options(["ember"], None, {"all_models": True})
