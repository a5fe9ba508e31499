"""--adapter NAME=PATH: loaded, used, and chosen anew by /set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ember_adapter import write_adapter

import akunu
from akunu.cli.conversation import settings
from akunu.cli.options import adapter_paths
from akunu.cli.terminal.console import UsageError

PROMPT = "user\nTell me something about the sea.\nassistant\n"


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_adapter(tmp_path_factory.mktemp("adapters") / "odd.gguf")


def test_what_is_loaded_is_used(run_akunu: Any, odd: Path) -> None:
    with akunu.load(adapters={"odd": odd}) as model:
        expected = model.generate(PROMPT, max_tokens=8, adapters="odd")
        assert expected != model.generate(PROMPT, max_tokens=8)
    asked = ("--prompt", PROMPT, "--max-tokens", "8")
    done = run_akunu("complete", "ember", *asked, "--adapter", f"odd={odd}")
    assert done.stdout.rstrip("\n") == expected.rstrip("\n")


def test_an_adapter_that_cannot_be_read_is_named(run_akunu: Any, tmp_path: Path) -> None:
    missing = tmp_path / "none.gguf"
    done = run_akunu("complete", "-p", "a", "--adapter", f"odd={missing}")
    assert done.returncode == 1
    assert f'adapter "odd": {missing}' in done.stderr


@pytest.mark.parametrize("given", ["odd.gguf", "=odd.gguf", "odd="])
def test_it_takes_a_name_and_a_path(given: str) -> None:
    with pytest.raises(UsageError, match=f"--adapter is '{given}'; write NAME=PATH"):
        adapter_paths([given])
    with pytest.raises(UsageError, match="two adapters have the name odd"):
        adapter_paths(["odd=a.gguf", "odd=b.gguf"])


def test_a_chat_can_set_weights() -> None:
    given = settings.changed({}, "adapters", "poet=0.5 terse")
    assert given == {"adapters": {"poet": 0.5, "terse": 1.0}}
    assert settings.shown(akunu.SamplingOptions(**given).adapters) == "poet=0.5 terse=1"
    assert settings.changed(given, "adapters", "none") == {"adapters": ()}
    with pytest.raises(akunu.ArgumentError, match=r"adapters is .*a dict of names and numbers"):
        settings.changed({}, "adapters", "poet=much")
