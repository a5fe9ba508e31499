"""Real models of architectures that are not there yet: refused by name, not run wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

import akunu

pytestmark = pytest.mark.real


def test_gemma_3_is_refused_by_its_name(real_models: Path) -> None:
    """Whoever adds the architecture makes this a comparison with llama.cpp, as for SmolLM2."""
    with pytest.raises(akunu.AkunuError, match="gemma3"):
        akunu.load(real_models / "gemma3.gguf")
