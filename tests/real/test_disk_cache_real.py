"""Prefixes on the disk with real weights: a later process takes them over, and writes the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import akunu

pytestmark = pytest.mark.real

TEXT = (
    "The harbour lay under fog, and nobody on the quay could say which of the ships had come in "
    "during the night. A clerk with a lamp walked from bollard to bollard, read the names on the "
    "bows aloud, and wrote them down. "
)


@pytest.mark.parametrize("model_file", ["smollm2_file", "gemma3_file"])
def test_a_later_start_goes_on_where_the_first_one_was(
    model_file: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    file = request.getfixturevalue(model_file)
    prompt = TEXT * 14
    options = {"max_tokens": 24, "temperature": 0.8, "seed": 3}
    with akunu.load(file, context=2048) as model:
        expected = model.generate(prompt, **options)
        other = model.generate(prompt + "Then a bell", **options)
    with akunu.load(file, context=2048, cache_dir=tmp_path) as model:
        assert model.generate(prompt, **options) == expected
    with akunu.load(file, context=2048, cache_dir=tmp_path) as model:
        again = model.generate(prompt, **options)
        assert (again, again.token_ids) == (expected, expected.token_ids)
        assert again.cached_tokens == again.prompt_tokens - 1
        longer = model.generate(prompt + "Then a bell", **options)
        assert longer == other
        assert longer.cached_tokens >= again.prompt_tokens - 2  # a token may join the next word
