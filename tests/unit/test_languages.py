"""Languages by code and name."""

from __future__ import annotations

import pytest

from akunu import ArgumentError
from akunu.speech.vocabulary.languages import LANGUAGE_NAMES, language_code
from lines import each_line


def test_a_language_has_a_code_and_a_name() -> None:
    assert len(LANGUAGE_NAMES) == 100
    for code, name in LANGUAGE_NAMES.items():
        assert language_code(code) == language_code(name.title()) == code
    assert language_code(" EN ") == "en"
    assert language_code("Haitian") == "ht"


@each_line("language", ["", "xx", "klingon", "en-US"])
def test_what_is_no_language_is_said(language: str) -> None:
    with pytest.raises(ArgumentError, match="language is"):
        language_code(language)


@pytest.mark.oracle
def test_languages_are_those_of_transformers() -> None:
    from transformers.models.whisper.tokenization_whisper import LANGUAGES, TO_LANGUAGE_CODE

    assert dict(LANGUAGE_NAMES) == LANGUAGES
    assert {name: language_code(name) for name in TO_LANGUAGE_CODE} == TO_LANGUAGE_CODE
