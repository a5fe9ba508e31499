"""A chat template in place of the model's own: in Python, on the command line, in the server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import akunu
from akunu import ArgumentError
from akunu.cli.main import main

sys.path.append(str(Path(__file__).parents[1] / "server"))
from running_server import running

from akunu.server import ServedModels, ServerSettings

PLAIN = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
HI = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "plain.jinja"
    path.write_text(PLAIN)
    return path


def test_a_model_takes_a_file_or_a_text(file: Path) -> None:
    for given in (PLAIN, file, str(file)):
        with akunu.load(chat_template=given) as model:
            assert model.tokenizer.chat_template == PLAIN
            n = len(model.tokenizer.encode("user: Hi\nassistant:"))
            assert model.chat(HI, max_tokens=1).prompt_tokens == n
    with akunu.load() as model:
        assert model.tokenizer.chat_template != PLAIN


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{% for %}", "chat_template: the chat template, line 1: Expected"),
        ("gone.jinja", "chat_template gone.jinja: No such file"),
        (Path("empty"), "chat_template empty is empty"),
        (Path("binary"), "chat_template binary is not text in UTF-8"),
        (Path("large"), "chat_template large has more than 1048576 bytes"),
        (3, "chat_template is 3; it must be the path of a file, or a template"),
    ],
)
def test_what_is_no_template_is_refused(
    given: object, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").write_text(" \n")
    Path("binary").write_bytes(b"\xff\xfe\xfa")
    Path("large").write_text("x" * (2**20 + 1))
    with pytest.raises(ArgumentError) as told:
        akunu.load(chat_template=given)  # type: ignore[arg-type]
    assert message in str(told.value)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}",
    ],
)
def test_a_template_runs_in_a_sandbox(template: str) -> None:
    with (
        akunu.load(chat_template=template) as model,
        pytest.raises(ArgumentError, match="the chat template refuses"),
    ):
        model.chat(HI, max_tokens=1)


def test_inspect_shows_what_a_template_writes_and_knows(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", "--template", "--chat-template", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "system: Answer briefly.\nuser: What is 2 + 2?\nassistant: 4\n" in shown
    assert "no: the template does not show the model which tools there are" in shown
    assert main(["inspect", "ember", "--template", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    with akunu.load() as model:
        assert model.tokenizer.chat_template is not None
    assert "What is 2 + 2?" in facts["example"]
    assert set(facts) == {"example", "tools", "thinking", "variables"}


def test_the_server_has_one_for_each_model(file: Path) -> None:
    settings = ServerSettings(port=0, chat_template=f"b={file}")
    models = ServedModels.of(settings, ["a=ember", "b=ember"])
    with running(models) as client:
        prompts = {}
        for name in ("a", "b"):
            answer = client.post("/apply-template", json={"model": name, "messages": HI})
            prompts[name] = answer.json()["prompt"]
    assert prompts["b"] == "user: Hi\nassistant:"
    assert prompts["a"] != prompts["b"]
    with pytest.raises(ArgumentError, match="chat_template 'gone=x': there is no model 'gone'"):
        ServedModels.of(ServerSettings(chat_template="gone=x"), ["a=ember", "b=ember"])
