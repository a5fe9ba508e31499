"""litellm through five of its providers, and as plain texts."""

from __future__ import annotations

from pathlib import Path

from client_checks import client_checks

VERSION = "litellm 1.110.2"


def judge(work: Path) -> dict[str, str]:
    """What was wrong with each of our checks, "" for nothing."""
    # Without the variable it asks the network for the prices of models.
    return client_checks(
        work, Path(__file__).parent, "litellm==1.110.2", LITELLM_LOCAL_MODEL_COST_MAP="True"
    )
