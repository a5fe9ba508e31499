"""The program `llm`: prompts, conversations, schemas and tools on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MODEL = {
    "model_id": "ember",
    "model_name": "ember",
    "api_base": os.environ["AKUNU_URL"] + "/v1",
    "supports_tools": True,
    "supports_schema": True,
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("llm")
    (folder / "extra-openai-models.yaml").write_text(json.dumps([MODEL]))  # JSON is YAML
    return folder


def llm(settings: Path, *arguments: str) -> str:
    """What it prints."""
    environment = {**os.environ, "LLM_USER_PATH": str(settings), "OPENAI_API_KEY": "any"}
    program = Path(sys.executable).with_name("llm")
    command = [str(program), *arguments]
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_a_prompt_is_answered_whole_and_in_parts(settings: Path) -> None:
    assert llm(settings, "-m", "ember", "What is 12 + 7?") == "12 + 7 = 19"
    assert llm(settings, "-m", "ember", "--no-stream", "What is 12 + 7?") == "12 + 7 = 19"


def test_options_and_a_system_prompt(settings: Path) -> None:
    options = ("-o", "max_tokens", "2", "-o", "temperature", "0", "-s", "Be brief.")
    assert llm(settings, "-m", "ember", *options, "What is 12 + 7?")


def test_a_conversation_goes_on(settings: Path) -> None:
    llm(settings, "-m", "ember", "Hello")
    assert llm(settings, "-c", "What is 12 + 7?")


def test_a_schema_is_kept(settings: Path) -> None:
    told = llm(settings, "-m", "ember", "--schema", "sure bool, number int", "Is 4 even?")
    answer = json.loads(told)
    assert {"sure", "number"} <= set(answer)  # its schemas leave room for more
    assert isinstance(answer["sure"], bool)


def test_a_function_is_called(settings: Path) -> None:
    function = (
        'def get_weather(city: str) -> str:\n    "The weather in a city."\n'
        '    open(__import__("os").environ["LLM_USER_PATH"] + "/asked", "w").write(city)\n'
        '    return "sunny"\n'
    )
    question = "What is the weather in Paris?"
    assert llm(settings, "-m", "ember", "--functions", function, question)
    assert (settings / "asked").read_text() == "Paris"
