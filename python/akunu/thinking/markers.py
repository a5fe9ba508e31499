"""How models mark their thoughts: what opens them, what closes them, what begins the answer.

What a family marks is in its file (src/models), and recognised by texts in the chat template. Other
models, and those that were trained to think without their template's knowledge, have `<think>`.

>>> from akunu.thinking.markers import markers_of
>>> markers_of("... [THINK] ...").closing
'[/THINK]'
>>> markers_of("").is_open("user: Why?\\nassistant: <think>\\n")
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from akunu import _core


@dataclass(frozen=True, slots=True)
class ThinkingMarkers:
    """The texts around a model's thoughts; control tokens in them by their names."""

    opening: str
    """Stands before the thoughts, at the beginning of a reply or at the end of the prompt."""
    closing: str
    """Stands after the thoughts."""
    answer_openings: tuple[str, ...] = ()
    """Texts that may be between the thinking, or the prompt if there is none, and the answer. They
    are part of neither. The longest is first."""
    answer_closings: tuple[str, ...] = ()
    """Texts that end the answer and are not part of it."""
    further_openings: tuple[str, ...] = ()
    """Where a reply may think several times: what opens the thoughts after the first ones."""

    def is_open(self, prompt: str) -> bool:
        """Whether a prompt, rendered or decoded, ends within thoughts: nothing but space follows.

        >>> ThinkingMarkers("<think>", "</think>").is_open("assistant: <think>\\n\\n</think>")
        False
        """
        return prompt.rstrip().endswith(self.opening.rstrip())


@dataclass(frozen=True, slots=True)
class ThinkingFamily:
    """A line of the table: templates that have all of `signs` mark thoughts like this."""

    signs: tuple[str, ...]
    markers: ThinkingMarkers


def _family_of(signs: tuple[str, ...], **marks: Any) -> ThinkingFamily:
    return ThinkingFamily(signs, ThinkingMarkers(**marks))


_THINK: Final = ThinkingMarkers("<think>", "</think>")

# Marks of models that have no file in src/models.
_OTHERS: Final = (
    # Solar Open
    ThinkingFamily(
        ("<|think|>", "<|content|>", "<|begin|>assistant"),
        ThinkingMarkers(
            "<|think|>", "<|end|>", ("<|begin|>assistant<|content|>", "<|content|>"), ("<|end|>",)
        ),
    ),
    # Muse: a message to itself
    ThinkingFamily(
        (" to=self", " to=user"),
        ThinkingMarkers(
            " to=self<|message|>",
            "<|eom|>",
            ("<|start|>assistant to=user<|message|>", " to=user<|message|>"),
        ),
    ),
    # Kimi K3, whose template assembles its tags
    ThinkingFamily(
        ("<|open|>", "open_tag('think'"),
        ThinkingMarkers(
            "<|open|>think<|sep|>",
            "<|close|>think<|sep|>",
            ("<|open|>response<|sep|>",),
            ("<|close|>response<|sep|><|close|>message<|sep|>", "<|close|>response<|sep|>"),
        ),
    ),
    # MiniMax M3
    ThinkingFamily(("<mm:think>",), ThinkingMarkers("<mm:think>", "</mm:think>")),
    # Hy3
    ThinkingFamily(
        ("<think{}>", ":opensource"),
        ThinkingMarkers("<think:opensource>", "</think:opensource>"),
    ),
    # Apertus
    ThinkingFamily(("<|inner_prefix|>",), ThinkingMarkers("<|inner_prefix|>", "<|inner_suffix|>")),
    # Apriel Thinker
    ThinkingFamily(
        ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
        ThinkingMarkers(
            "Here are my reasoning steps:\n",
            "[BEGIN FINAL RESPONSE]",
            (),
            ("[END FINAL RESPONSE]",),
        ),
    ),
    ThinkingFamily(("<thinking>",), ThinkingMarkers("<thinking>", "</thinking>")),
    # EXAONE Deep
    ThinkingFamily(("<thought>",), ThinkingMarkers("<thought>", "</thought>")),
)

# Families with more signs come first: if a template has the signs of two, the more specific counts.
FAMILIES: Final = tuple(
    sorted(
        (
            *(_family_of(**marks) for each in _core.families() for marks in each["thinking"]),
            *_OTHERS,
        ),
        key=lambda family: -len(family.signs),
    )
)


def markers_of(template: str | None) -> ThinkingMarkers:
    """Return how the model with this chat template marks thoughts; `<think>` where it says nothing.

    >>> markers_of(None) == ThinkingMarkers("<think>", "</think>")
    True
    """
    for family in FAMILIES:
        if template and all(sign in template for sign in family.signs):
            return family.markers
    return _THINK
