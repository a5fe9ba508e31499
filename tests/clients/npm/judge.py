"""Clients of npm: the `ai` SDK, OpenAI's, Anthropic's and Ollama's own, against a server."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from environment import npm_packages
from serving import serving

_PACKAGES = {
    "ai": "6.0.326",
    "@ai-sdk/openai": "3.0.141",
    "@ai-sdk/openai-compatible": "2.0.92",
    "@ai-sdk/anthropic": "3.0.140",
    "openai": "6.49.0",
    "@anthropic-ai/sdk": "1.14.0",
    "ollama": "0.6.4",
    "zod": "4.6.7",
}
VERSION = ", ".join(f"{name} {version}" for name, version in _PACKAGES.items() if name != "zod")


def judge(work: Path) -> dict[str, str]:
    npm_packages(work, *(f"{name}@{version}" for name, version in _PACKAGES.items()))
    script = shutil.copy(Path(__file__).parent / "clients.mjs", work)
    with serving(work, "--default-max-tokens", "200") as address:
        ran = subprocess.run(
            ["node", script, address], cwd=work, check=True, stdout=subprocess.PIPE, text=True
        )
    outcomes: dict[str, str] = json.loads(ran.stdout.splitlines()[-1])
    return outcomes
