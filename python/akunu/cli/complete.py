"""`akunu complete`: what follows a text."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from akunu.cli import console
from akunu.cli.loading import load_model
from akunu.cli.progress import Progress
from akunu.cli.reply import prefill_of, why_cut
from akunu.cli.text_input import text_of
from akunu.completion import Completion
from akunu.options import LoadOptions, SamplingOptions
from akunu.text_stream import TextStream


def complete_text(
    model_name: str,
    prompt: str | None,
    path: Path | None,
    load: LoadOptions,
    sampling: SamplingOptions,
    *,
    as_json: bool,
) -> int:
    """Write what follows the text to stdout as it comes, or all of it as JSON at the end."""
    text = text_of(prompt, path, command="complete")
    with load_model(model_name, load) as model:
        stream: TextStream = model.generate(text, stream=True, **asdict(sampling))
        with stream:
            with Progress(lambda: prefill_of(stream)):
                piece = next(stream, "")
            while piece:
                if not as_json:
                    console.write(piece)
                piece = next(stream, "")
        completion = stream.completion
        if as_json:
            json.dump(_facts(completion), sys.stdout, ensure_ascii=False, indent=2)
            print()
            return 0
        if not completion.endswith("\n"):
            console.write("\n")
        cut = why_cut(completion, model, sampling)
        if cut:
            console.say(f"akunu: {cut}")
    return 0


def _facts(completion: Completion) -> dict[str, object]:
    return {
        "text": completion.text,
        "token_ids": list(completion.token_ids),
        "finish_reason": completion.finish_reason,
        "stop": completion.stop,
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
        "cached_tokens": completion.cached_tokens,
        "prompt_seconds": completion.prompt_seconds,
        "completion_seconds": completion.completion_seconds,
    }
