"""The constructions that the linter refuses, each with what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

EXCEPTIONS: Final = Path(__file__).with_name("exceptions.txt")
MOST_WORDS: Final = 30  # of a sentence in a help text

_SOFTWARE: Final = (
    "program|server|client|model|engine|process|thread|caller|library|package|kernel|worker|device"
    "|browser|scheduler|reader|writer|parser|replica|proxy|backend|driver|test|file|class|function"
)
_PREPOSITION_ENDS: Final = r"(?=[.,;:)]|$)"


@dataclass(frozen=True)
class Rule:
    """A construction."""

    name: str
    pattern: re.Pattern[str]
    instead: str


@dataclass(frozen=True)
class Hit:
    """A place where a text has a construction."""

    rule: str
    instead: str
    found: str


def _rule(name: str, pattern: str, instead: str) -> Rule:
    return Rule(name, re.compile(pattern), instead)


RULES: Final = (
    _rule(
        "fronted-of",
        r"(?:^|(?<=[.!?] ))Of (?!course\b)|(?<=[;:] )of (?=[^.;:,]+, )",
        "begin with the subject: the widths of the weights, not `Of the weights, the widths`",
    ),
    _rule(
        "so-many",
        r"\b[Ss]o (?:many|few)\b(?! (?:\w+ ){1,4}that\b)"
        rf"|\bfor so long\b|\bso (?:much|often|long)(?:{_PREPOSITION_ENDS}| to\b)",
        "this many, at most N, for this time",
    ),
    _rule(
        "told-asked-given",
        r"(?<!you )(?<!You )\b(?:is|are|was|were|be|been|being) (?:told|asked|given)\b",
        "is sent, requested, passed, set",
    ),
    _rule(
        "is-said", r"\b(?:it|this|which|that) is said\b|\bis said,? too\b", "name who reports it"
    ),
    _rule("becomes-of", r"\bbec(?:ome|omes|oming|ame) of\b", "say what is done with it"),
    _rule(
        "beside-behind",
        r"\b[Bb]eside\b|\b[Bb]ehind\b(?! (?:(?:a|an|the) )?(?:reverse )?"
        r"(?:prox(?:y|ies)|firewall|load balancer|nginx|scenes)\b)",
        "next to, after, with, in addition to",
    ),
    _rule(
        "goes-on",
        r"\b(?:go|goes|going|went|gone) on\b"
        r"(?! (?:the|a|an|each|one|its|this|that|top|standard|stdout|stderr|to)\b)",
        "continues",
    ),
    _rule(
        "who-for-software",
        r"\b(?:[Ww]hoever|[Nn]obody|[Ss]omebody)\b"
        rf"|\b(?:{_SOFTWARE})s?,? who\b"
        r"|\b(?:says|say|tells|tell|knows|know|shows) who\b",
        "which, no one, the caller, the client",
    ),
    _rule("of-its-own", r"\bof (?:its|their) own\b(?! accord\b)", "its own file, a separate file"),
    _rule(
        "clause-without-noun",
        r"\bwhat(?:ever)? (?:is|are|was|were) (?:left of|none)\b"
        r"|\b[Ww]hat (?:is|are|has|have|was) no\b"
        r"|\bwhat there (?:is|are|was) (?:of|to)\b"
        r"|\bof what (?:is|was|has|comes|follows|stands)\b"
        r"|\bwhat (?:follows|stands|goes|comes) (?:it|before|after|behind|there|in)\b"
        r"|(?:^|(?<=[.!?] ))What (?:is|are|was|has|have|takes|needs|comes|cannot|can|may)\b"
        r"[^?.!]* (?:is|are|was|has|have|goes|gets|needs|comes|stays|must|may|can)\b[^?.!]*[.;:]",
        "name the thing: the rest, the remaining tokens, text after it",
    ),
    _rule(
        "is-no",
        r"(?<!there )(?<!There )\b(?:is|are|was|were) no "
        r"(?!(?:longer|more|other|less|such|one|different|need|doubt|reason|way|better|worse|smaller"
        r"|larger|greater|faster|slower|earlier|later)\b)[a-z]",
        "is not a",
    ),
)
"""Names of rules are in docs/glossary.md, too."""


def hits(text: str, *, is_help: bool = False) -> Iterator[Hit]:
    """Yield what is refused in a text without line breaks."""
    for phrase in exceptions():
        text = text.replace(phrase, "X")
    for rule in RULES:
        for match in rule.pattern.finditer(text):
            start = max(0, match.start() - 20)
            yield Hit(rule.name, rule.instead, text[start : max(match.end(), start) + 20].strip())
    if is_help:
        for sentence in re.split(r"(?<=[.!?]) ", text):
            n = len(sentence.split())
            if n > MOST_WORDS:
                yield Hit("long-help", f"at most {MOST_WORDS} words", f"{n} words: {sentence[:50]}")


@cache
def exceptions() -> tuple[str, ...]:
    """Return phrases that are allowed wherever they are."""
    lines = EXCEPTIONS.read_text("utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))
