"""Generated files are as the declarations of options say."""

from __future__ import annotations

from tools.command_line import DOCUMENT, document
from tools.options import ROOT, generated_files

from akunu import _core
from akunu.options import engine_limits


def test_the_generated_files_are_up_to_date() -> None:
    for path, text in generated_files().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, (
            f"{path}: run python -m tools.options"
        )


def test_the_page_of_the_command_line_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run python -m tools.command_line"


def test_limits_are_those_of_the_engine() -> None:
    engine = _core.OPTION_LIMITS
    assert engine["max_option_words"] == engine_limits.MAX_OPTION_WORDS
    assert engine["max_option_words"] // engine["words_per_bias"] == engine_limits.MOST_BIASES
    assert engine["max_logprobs"] == engine_limits.MAX_LOGPROBS
    assert engine["most_drafted"] == engine_limits.MOST_DRAFTED
    assert engine["max_gpus"] == engine_limits.MAX_GPUS
