"""aider, an agent that edits files: its model says an edit, and the file has it.

The model is one that surely says it (`scripted_model.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import scripted_model
from environment import virtual_environment
from serving import serving

import akunu

VERSION = "aider-chat 0.86.2"
_EDITS = {
    "whole": "I write it.\n\nmade.txt\n```\nakunu\n```\n",
    "diff": "I write it.\n\nmade.txt\n```\n<<<<<<< SEARCH\n=======\nakunu\n>>>>>>> REPLACE\n```\n",
}
_OPTIONS = (
    *("--no-git", "--yes-always", "--no-pretty", "--no-fancy-input"),
    *("--no-check-update", "--no-show-model-warnings", "--no-show-release-notes"),
    "--analytics-disable",
)


def judge(work: Path) -> dict[str, str]:
    """What was wrong with an edit by the form of edits and of answers, "" for nothing."""
    python = virtual_environment(work / "environment", "aider-chat==0.86.2")
    aider = python.with_name("aider")
    ember = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
    models = [
        scripted_model.write(work / f"{form}.gguf", ember, "none", {}, chat=edit)
        for form, edit in _EDITS.items()
    ]
    with serving(work, *(f"{path.stem}={path}" for path in models)) as address:
        return {
            f"{form}, {answers}": _edited(aider, work / f"{form}-{answers}", address, form, answers)
            for form in _EDITS
            for answers in ("stream", "no-stream")
        }


def _edited(aider: Path, folder: Path, address: str, form: str, answers: str) -> str:
    """What was wrong with one edit, "" for nothing."""
    # What aider knows of models; without it, it would ask the network.
    known = folder / "home" / ".aider" / "caches" / "model_prices_and_context_window.json"
    known.parent.mkdir(parents=True)
    known.write_text(json.dumps({f"openai/{form}": {"max_input_tokens": 100_000}}))
    model = ("--model", f"openai/{form}", "--edit-format", form, f"--{answers}")
    ran = subprocess.run(
        [aider, *_OPTIONS, *model, "--message", "Write akunu into made.txt", "made.txt"],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "OPENAI_API_BASE": f"{address}/v1",
            "OPENAI_API_KEY": "any",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    made = folder / "made.txt"
    if ran.returncode == 0 and made.exists() and made.read_text() == "akunu\n":
        return ""
    return f"aider ended with {ran.returncode}:\n{ran.stdout}"
