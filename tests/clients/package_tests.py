"""Tests inside the source packages of OpenAI's and Anthropic's clients."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from environment import pytest_outcomes, source_package, virtual_environment
from serving import serving

OPENAI_TESTS = (
    "tests/api_resources/chat",
    "tests/api_resources/test_completions.py",
    "tests/api_resources/responses",
    "tests/api_resources/test_responses.py",
    "tests/api_resources/test_models.py",
)


def outcomes(
    work: Path,
    version: str,
    tests: Sequence[str],
    *,
    tools: Sequence[str],
    models: Sequence[str],
    base: str = "/v1",
) -> dict[str, str]:
    """Run tests of a package, `"openai 3.57.0"`, against a server; what was wrong by test.

    `tools`: packages that the tests need besides. `models`: names of models in them, all of which
    are Ember. `base`: where the package's client finds its routes.
    """
    package, number = version.split()
    python = virtual_environment(work / "venv", *tools, f"{package}[aiohttp]=={number}")
    source = source_package(work, python, f"{package}=={number}")
    # Most tests have no max_tokens, and Ember would go on for long about "string".
    with serving(work, f"{','.join(models)}=ember", "--default-max-tokens", "16") as address:
        return pytest_outcomes(
            python,
            source,
            *("-n", "2", "-p", "without_refused"),
            *tests,
            PYTHONPATH=str(Path(__file__).parent),
            REFUSED_BY_PACKAGE=package,
            TEST_API_BASE_URL=address + base,
        )
