"""Everything here compares with Hugging Face transformers or llama.cpp: `pytest -m oracle`.

PyTorch is imported when the first test runs, not when tests are collected, so that everyday runs
need neither it nor the seconds that it takes. llama.cpp comes from the wheel xllamacpp and runs in
processes of its own. Without the extra `oracle`, `-m oracle` fails instead of skipping.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "models"))
sys.path.append(str(Path(__file__).parents[2]))  # tools

from golden_values import SEED
from random_models import ModelCase, case_cache


@pytest.fixture(scope="session")
def model_case(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ModelCase]:
    """`model_case(kind, weight_format="f32")`: the random model, as a file."""
    return case_cache(tmp_path_factory.mktemp("models"), seed=SEED)


_MEASURED = pytest.StashKey[dict[str, dict[str, float]]]()


_TOLD = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Make room for what is measured."""
    config.stash[_MEASURED] = {}
    config.stash[_TOLD] = []


@pytest.fixture
def told(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """`told(line)`: the run ends with these lines."""
    return request.config.stash[_TOLD].append


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> Callable[[str, str, float], None]:
    """`measured(what, case, error)`: the run ends with a table of these."""

    def note(what: str, case: str, error: float) -> None:
        request.config.stash[_MEASURED].setdefault(what, {})[case] = error

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was told, and the range of every kind of error and where its ends are."""
    for line in terminalreporter.config.stash[_TOLD]:
        terminalreporter.write_line(line)
    table = terminalreporter.config.stash[_MEASURED]
    if table:
        terminalreporter.section("max |difference| / max |logit|")
    for what, errors in sorted(table.items()):
        low, high = min(errors, key=errors.__getitem__), max(errors, key=errors.__getitem__)
        terminalreporter.write_line(
            f"{what}: {len(errors)} cases, {errors[low]:.1e} ({low}) to {errors[high]:.1e} ({high})"
        )


@pytest.fixture(scope="session")
def peer() -> str:
    """An interpreter that has llama.cpp: this one, by the wheel xllamacpp."""
    return sys.executable


@pytest.fixture(scope="session")
def built_peer() -> str:
    """An interpreter with llama-cpp-python, whose llama.cpp has a quantiser and was built here."""
    python = os.environ.get("AKUNU_PEER_PYTHON")
    if not python:
        pytest.skip("no AKUNU_PEER_PYTHON: see docs/reference/benchmarks.md")
    return python


@pytest.fixture(scope="session")
def oracle() -> Any:
    """The module `hf_model`."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # what other packages warn about on import is theirs
        import hf_model
        import torch

        torch.set_num_threads(1)
    return hf_model


@pytest.fixture(scope="session")
def oracle_logits(oracle: Any) -> Callable[..., Any]:
    """`oracle_logits(case, tokens)`: float32 logits `[n, vocab_size]`, computed once."""
    known: dict[tuple[Path, tuple[int, ...]], Any] = {}

    def logits(case: ModelCase, tokens: list[int]) -> Any:
        key = (case.path, tuple(tokens))
        if key not in known:
            known[key] = oracle.logits(oracle.load(case.spec, case.weights), tokens)
        return known[key]

    return logits
