"""Wordings put together from parts: an opening, what is asked for, an end.

A list of phrasings is written as patterns: “[Tell me|Name] the capital of {k}.” stands for two
wordings. Which of them are held out is decided wording by wording, so the parts of a held-out
wording are mostly known from others while the whole was never seen.
"""

import json
import re
from collections.abc import Sequence
from itertools import product

from .word_lists import DATA

HAND_WRITTEN = DATA / "hand_written.jsonl"
_OPTIONS = re.compile(r"\[([^\]]*)\]")


def _letters(text: str) -> str:
    return re.sub("[^a-z{} ]", "", text.lower()).strip()


def _written_by_hand() -> frozenset[str]:
    lines = HAND_WRITTEN.read_text("utf-8").splitlines()
    turns = [turn for line in lines for turn in json.loads(line)["turns"]]
    return frozenset(_letters(turn) for turn in turns if isinstance(turn, str))


_BY_HAND = _written_by_hand()


def expanded(patterns: Sequence[str]) -> tuple[str, ...]:
    """Every wording of the patterns, once each, in their order; none that was written by hand.

    The prompts in `data/hand_written.jsonl` are there to be new: where putting parts together
    makes one of them by chance, case and punctuation aside, it is left out.
    """
    wordings: dict[str, None] = {}
    for pattern in patterns:
        parts = _OPTIONS.split(pattern)
        choices = [part.split("|") if at % 2 else [part] for at, part in enumerate(parts)]
        for chosen in product(*choices):
            text = "".join(chosen).strip()
            if text and _letters(text) not in _BY_HAND:
                wordings[text] = None
    return tuple(wordings)


def asking_for(*things: str) -> list[str]:
    """Patterns that ask for a noun: “the capital of {k}”."""
    patterns = []
    for thing in things:
        patterns += [
            f"[What is|What would be|What exactly is|Tell me, what is|So what is|And what is|"
            f"Can you say what is|Which is] {thing}?",
            f"[Tell me|Give me|Name|Say|Find|Write|I need|I want|I want to know|I need to know|"
            f"I'd like to know|I forgot|I am looking for|Let me know|I don't know] {thing}.",
            f"[Do you know|Can you tell me|Can you name|Can you give me|Could you say|"
            f"Will you tell me|Do you remember] {thing}?",
            f"{thing}[|?| is| is ...| is what?|, what is it?|, do you know it?]",
        ]
    return patterns


def asking(*clauses: str) -> list[str]:
    """Patterns that ask with a clause: “which country has the capital {v}”."""
    return [
        "[Tell me|Say|I want to know|I need to know|I'd like to know|I forgot|Let me know|"
        "I don't know|Do you know|Can you tell me|Could you say|Can you say|Will you tell me|"
        f"Do you remember] {clause}"
        for clause in clauses
    ]


def said_then_asked(kind: str, shown: str, questions: Sequence[str]) -> list[str]:
    """“The country is {k}. What is its capital?”"""
    asked = "|".join(questions)
    return [
        f"[The {kind} is|We talk about|Take|I think of|It is about|My question is about|Look at|"
        f"I have a question about] {shown}. [{asked}]",
        f"[{kind}: {shown}.|{shown}:|{shown}.|Of {shown}:] [{asked}]",
    ]
