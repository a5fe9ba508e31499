"""What a model computes when it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from edited_model import edited

import akunu
from akunu.server.settings import ServerSettings

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
HI = [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize("warm_up", [False, True])
def test_a_model_that_is_warm_has_built_its_tokenizer_and_no_prefix(warm_up: bool) -> None:
    with akunu.load(warm_up=warm_up) as model:
        assert model.tokenizer._is_built == warm_up
        assert ("template" in model._pipeline.__dict__) == warm_up
        reply = model.chat(HI, max_tokens=4)
        assert reply.cached_tokens == 0
    with akunu.load() as model:
        assert model.chat(HI, max_tokens=4) == reply


def test_a_model_without_a_template_is_warmed_up_too(tmp_path: Path) -> None:
    broken = {"tokenizer.chat_template": "{% if %}"}
    with akunu.load(edited(EMBER, tmp_path / "a.gguf", broken), warm_up=True) as model:
        assert model.tokenizer._is_built
        assert model.generate("A", max_tokens=1)


def test_a_server_does_it_unless_it_is_told_not_to() -> None:
    assert ServerSettings().load_options.warm_up
    assert not ServerSettings(warm_up=False).load_options.warm_up
    with pytest.raises(akunu.ArgumentError, match="warm_up is 'x'; it must be True or False"):
        akunu.LoadOptions(warm_up="x")  # type: ignore[arg-type]
