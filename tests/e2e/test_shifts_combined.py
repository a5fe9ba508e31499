"""Texts that go over the end of the context: with drafts, beside forks, and before other texts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import akunu
from lines import each_line

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
CONTEXT = 256
KEPT = 192  # three quarters of it
N_NEW = 380  # three shifts behind a short prompt
PROMPT = "user\nSay it again: one two three four five, one two three four five.\nassistant\n"
SHIFTS: dict[str, Any] = {"context_overflow": "shift", "ignore_eos": True}
KINDS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"temperature": 0.8, "seed": 4},
    "penalties": {"temperature": 0.8, "seed": 4, "repetition_penalty": 1.2},
    "logprobs": {"temperature": 1.2, "seed": 5, "logprobs": 3},
}


@pytest.fixture(scope="module")
def draft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that mostly says what Ember says."""
    path = tmp_path_factory.mktemp("shifts") / "draft.gguf"
    command = [sys.executable, "-m", "akunu", "quantize", str(EMBER), str(path), "Q4_0"]
    subprocess.run([*command, "--allow-requantize"], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module", params=["n-gram", "draft-model"])
def drafting(request: pytest.FixtureRequest, draft: Path) -> Iterator[Any]:
    """A model with drafts from either source."""
    path = draft if request.param == "draft-model" else None
    with akunu.load("ember", context=CONTEXT, threads=1, draft=path) as model:
        yield model


@pytest.fixture
def model() -> Iterator[Any]:
    with akunu.load("ember", context=CONTEXT, threads=1) as model:
        yield model


def written(model: Any, prompt: Any, **options: Any) -> tuple[Any, list[Any]]:
    """A text, and what the engine had of each of its parts."""
    stream = model.generate(prompt, stream=True, **options)
    for _ in stream:
        pass
    return stream.completion, stream._decoder.generation._parts


def said(text: Any) -> tuple[Any, ...]:
    return (str(text), text.token_ids, text.finish_reason, text.logprobs)


@each_line("overflow", ["shift", "reread"])
@each_line("kind", KINDS)
def test_drafts_change_nothing_over_shifts(drafting: Any, kind: str, overflow: str) -> None:
    options = {"max_tokens": N_NEW, **SHIFTS, "context_overflow": overflow, **KINDS[kind]}
    expected, parts = written(drafting, PROMPT, speculation="off", **options)
    assert len(parts) == 4
    assert [part.moved_tokens > 0 for part in parts[1:]] == [overflow == "shift"] * 3
    assert expected.drafted_tokens == 0
    found, parts = written(drafting, PROMPT, speculation=6, **options)
    assert said(found) == said(expected)
    assert [part.moved_tokens > 0 for part in parts[1:]] == [overflow == "shift"] * 3
    if kind == "greedy":  # it says the same again and again: there are drafts behind the shifts
        assert sum(part.held_tokens for part in parts[1:]) > 0
    assert said(drafting.generate(PROMPT, speculation="auto", **options)) == said(expected)


@pytest.mark.parametrize("sampled", [{}, {"temperature": 1.2, "seed": 3}], ids=["greedy", "hot"])
def test_a_fork_keeps_its_text_while_the_other_shifts(model: Any, sampled: dict[str, Any]) -> None:
    """One after the other, and both at once."""
    session = model.session()
    session.append(PROMPT)
    session.generate(max_tokens=150, ignore_eos=True, **sampled)
    tokens = list(session.token_ids)
    with akunu.load("ember", context=CONTEXT, threads=1) as fresh:
        alone = fresh.generate(tokens, max_tokens=40, logprobs=3, ignore_eos=True, **sampled)
        over = fresh.generate(tokens, max_tokens=N_NEW, **SHIFTS, **sampled)
    before, beside, after = (session.fork() for _ in range(3))
    stays: dict[str, Any] = {"max_tokens": 40, "logprobs": 3, "ignore_eos": True, **sampled}
    assert said(before.generate(**stays)) == said(alone)
    going_on = session.generate(stream=True, max_tokens=N_NEW, **SHIFTS, **sampled)
    running = beside.generate(stream=True, **stays)
    next(running)
    pieces = []
    for piece in going_on:
        pieces.append(piece)
        if len(going_on._decoder.generation._parts) > 1:  # it has shifted
            break
    for _ in running:
        pass
    assert said(running.completion) == said(alone)
    assert "".join([*pieces, *going_on]) == over
    assert session.token_ids == (*tokens, *over.token_ids)
    assert said(after.generate(**stays)) == said(alone)
    # Of the one that went on, too, what was before the shift is there.
    session.rewind(len(tokens))
    assert said(session.generate(**stays)) == said(alone)


def test_what_was_moved_is_no_prefix_of_another_text(model: Any) -> None:
    """The same tokens at the same positions, which the engine had turned a moment before."""
    text, parts = written(model, PROMPT, max_tokens=N_NEW, temperature=1.2, seed=6, **SHIFTS)
    prompt = list(model.tokenizer.encode(PROMPT))
    done, kept = 0, []
    for part in parts[:-1]:
        done += part.completion_tokens
        kept.append([*prompt, *text.token_ids[:done]][-KEPT:])
    more: dict[str, Any] = {"max_tokens": 30, "logprobs": 5, "ignore_eos": True}
    with akunu.load("ember", context=CONTEXT, threads=1) as fresh:
        expected = [said(fresh.generate(tokens, **more)) for tokens in kept]
    for tokens, alone in zip(kept, expected, strict=True):
        found = model.generate(tokens, **more)
        assert found.cached_tokens == 0
        assert said(found) == alone
    # Read as a prompt, they are a prefix; the text that shifts takes none of it.
    assert model.generate(kept[-1], **more).cached_tokens > 0
    again = model.generate(PROMPT, max_tokens=N_NEW, temperature=1.2, seed=6, **SHIFTS)
    assert said(again) == said(text)
