"""LangChain's models of OpenAI, Anthropic and Ollama."""

from __future__ import annotations

from pathlib import Path

from client_checks import client_checks

VERSION = "langchain 1.5.2"
MODELS = ("langchain-openai==1.7.4", "langchain-anthropic==1.7.10", "langchain-ollama==1.1.0")


def judge(work: Path) -> dict[str, str]:
    """What was wrong with each of our checks, "" for nothing."""
    return client_checks(work, Path(__file__).parent, "langchain==1.5.2", *MODELS)
