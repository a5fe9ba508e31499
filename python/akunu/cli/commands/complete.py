"""`akunu complete`: what follows a text."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path

from akunu.cli.conversation.loop_guard import STOPPED, LoopGuard
from akunu.cli.loading import load_model
from akunu.cli.output_constraint import OutputConstraint, say_mistakes, say_weakened
from akunu.cli.reply.write import prefill_of, why_cut
from akunu.cli.terminal import console
from akunu.cli.terminal.progress import Progress
from akunu.cli.text_input import text_of
from akunu.cli.wording import shortened
from akunu.hub.names import UnknownNameError
from akunu.model import Model
from akunu.options.engine_limits import SIDE_BY_SIDE
from akunu.options.text_options import LoadOptions, SamplingOptions, sampling_options
from akunu.text.completion import Completion
from akunu.text.logprobs import TokenLogprob
from akunu.text.text_stream import TextStream

MOST_ANSWERS = SIDE_BY_SIDE + LoadOptions().max_waiting


def complete_text(
    model_name: str,
    prompt: str | None,
    path: Path | None,
    load: LoadOptions,
    sampling: SamplingOptions,
    *,
    form: OutputConstraint | None,
    n: int | None = None,
    parse_special: bool = False,
    loop_guard: bool = True,
    as_json: bool,
) -> int:
    """Write what follows the text to stdout as it comes, or all of it as JSON at the end.

    `form`: what the text may be. `n`: this many texts, in JSON a list. `parse_special`: names of
    control tokens in the text are such tokens. `loop_guard`: a text that goes round in circles is
    stopped.
    """
    if n is not None and not 1 <= n <= MOST_ANSWERS:
        raise console.UsageError(f"--n is {n}; it must be an integer from 1 to {MOST_ANSWERS}")
    for name in ("logprobs", "prompt_logprobs"):
        if getattr(sampling, name) is not None and not as_json:
            raise console.UsageError(
                f"--{name.replace('_', '-')} needs --json, which has a place for them"
            )
    has_text = prompt is not None or path is not None
    if not has_text:
        _check_is_no_text(model_name)
    text = text_of(prompt, path, command="complete")
    if not text and prompt is None:
        where = "standard input" if path is None or str(path) == "-" else str(path)
        raise console.UsageError(f"{where} is empty: there is no text to continue")
    with _loaded(model_name, load, has_text=has_text) as model:
        given: str | list[int] = text
        if parse_special:
            given = model.tokenizer.encode(text, parse_special=True)
        structure = form.structure if form is not None else None
        say_weakened(structure)
        chosen = replace(sampling_options(sampling, {}), structure=structure)
        if n is None:
            streams = [model.generate(given, chosen, stream=True)]
        else:
            streams = model.generate(given, chosen, stream=True, n=n)
        completions = []
        try:
            for index, stream in enumerate(streams, 1):
                if n is not None and not as_json:
                    console.say(f"akunu: text {index} of {n}")
                completion = _written_out(stream, loop_guard=loop_guard, as_json=as_json)
                completions.append(completion)
                cut = None if as_json else why_cut(completion, model, sampling)
                if cut:
                    console.say(f"akunu: {cut}")
                if not as_json:
                    say_mistakes(completion)
        finally:
            for stream in streams:
                stream.close()
        if as_json:
            facts = [_facts(completion) for completion in completions]
            json.dump(facts[0] if n is None else facts, sys.stdout, ensure_ascii=False, indent=2)
            print()
    return 0


def _written_out(stream: TextStream, *, loop_guard: bool, as_json: bool) -> Completion:
    """Take a text as it comes, and write it unless it becomes JSON."""
    guard = LoopGuard()
    goes_round = False
    with stream:
        with Progress(lambda: prefill_of(stream)):
            piece = next(stream, "")
        while piece:
            if not as_json:
                console.write(piece)
            if loop_guard and guard.push(piece):
                goes_round = True
                break
            piece = next(stream, "")
    completion = stream.completion
    if not as_json and not completion.endswith("\n"):
        console.write("\n")
    if goes_round:
        console.say(f"akunu: {STOPPED}")
    return completion


def _check_is_no_text(name: str) -> None:
    """Raise UsageError for a model's name that is a text."""
    if any(character.isspace() for character in name.strip()) and not Path(name).exists():
        raise console.UsageError(
            f'there is no model "{shortened(name)}"; if this is the text, write it after --prompt: '
            f"akunu complete --prompt {shlex.quote(shortened(name))}"
        )


def _loaded(name: str, load: LoadOptions, *, has_text: bool) -> Model:
    try:
        return load_model(name, load)
    except UnknownNameError as error:
        if has_text:
            raise
        raise UnknownNameError(
            f"{error}; if this is the text: akunu complete --prompt {shlex.quote(name)}"
        ) from None


def _facts(completion: Completion) -> dict[str, object]:
    return {
        "text": completion.text,
        "token_ids": list(completion.token_ids),
        "finish_reason": completion.finish_reason,
        "stop": completion.stop,
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
        "cached_tokens": completion.cached_tokens,
        "prefix_end": completion.prefix_end,
        "prompt_seconds": completion.prompt_seconds,
        "completion_seconds": completion.completion_seconds,
        **_logprobs(completion),
        **_fits(completion),
    }


def _fits(completion: Completion) -> dict[str, object]:
    """Return what a text with a weakened schema was not held to, and does against it."""
    if not completion.weakened:
        return {}
    return {
        "weakened": [asdict(one) for one in completion.weakened],
        "mistakes": list(completion.mistakes),
    }


def _logprobs(completion: Completion) -> dict[str, object]:
    """Return those that were requested."""

    def shown(one: TokenLogprob | None) -> dict[str, object] | None:
        if one is None:
            return None
        top = {"top": [shown(each) for each in one.top]} if one.top else {}
        return {"token_id": one.token_id, "text": one.text, "logprob": one.logprob, **top}

    given = {"logprobs": completion.logprobs, "prompt_logprobs": completion.prompt_logprobs}
    return {
        name: [shown(one) for one in several]
        for name, several in given.items()
        if several is not None
    }
