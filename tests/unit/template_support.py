"""Chat templates of real models: those in `tests/data`, and others where they are."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet
from tokenizer_support import DATA, shared

# Models whose licenses are not for everyone; what they do, `like-*` does.
_ELSEWHERE = {
    "google-gemma-2-2b-it": "like-gemma-2",
    "meta-llama-Llama-3.1-8B-Instruct": "like-llama-3.1",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "like-hermes-2-pro",
}

TEMPLATES = sorted(path.stem for path in (DATA / "templates").glob("*.jinja"))


def with_others(*names: str) -> list[ParameterSet]:
    """These names of templates, and nightly those that the ones of our own are like."""
    others = [other for other, ours in _ELSEWHERE.items() if ours in names]
    marked = [pytest.param(name, marks=pytest.mark.slow) for name in others]
    return [*map(pytest.param, names), *marked]


def template_source(name: str) -> str:
    """Return a template of that name, or skip."""
    folder = DATA / "templates"
    if name in _ELSEWHERE:
        folder = shared("AKUNU_TEST_TEMPLATES", "templates")
    path = folder / f"{name}.jinja"
    if name in _ELSEWHERE and not path.is_file():
        pytest.skip(f"no test data: {path}")
    return path.read_text(encoding="utf-8")
