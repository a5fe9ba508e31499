"""A finished text and the facts about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from akunu.errors import AkunuError
from akunu.grammar.checking import schema_mistakes

if TYPE_CHECKING:
    from akunu.common.prefix_end import PrefixEnd
    from akunu.grammar import Weakened
    from akunu.text.logprobs import TokenLogprob
    from akunu.tools.calls import ToolCall

FinishReason = Literal["stop", "length", "cancelled", "tool_calls"]


def _fact(name: str, what: str) -> Any:
    """A property that reads a slot without a call of Python: answers ask for many."""
    return property(attrgetter(f"_{name}"), doc=what)


class Completion(str):
    """What `generate` and `chat` return: the text itself, which knows how it came about.

    It is a str in every way, its repr, hash and comparisons included; what str's own methods make
    of it (`strip`, `+`, ...) is a plain str. It can be copied and pickled, and does not change.

    >>> import akunu
    >>> with akunu.load() as model:
    ...     reply = model.generate("user\\nSpell apple.\\nassistant\\n", max_tokens=8)
    >>> isinstance(reply, str), reply.prompt_tokens + reply.completion_tokens >= 2
    (True, True)
    """

    __slots__ = (
        "_accepted_tokens",
        "_cached_tokens",
        "_completion_seconds",
        "_completion_tokens",
        "_drafted_tokens",
        "_finish_reason",
        "_logprobs",
        "_n_echoed",
        "_prefix_end",
        "_prompt_logprobs",
        "_prompt_seconds",
        "_prompt_tokens",
        "_reader",
        "_reasoning",
        "_reasoning_tokens",
        "_schema",
        "_stop",
        "_token_ids",
        "_tool_calls",
        "_unanswered",
        "_weakened",
    )

    weakened: tuple[Weakened, ...] = _fact(
        "weakened",
        "What of the schema the text was not held to, because no grammar can; () for all "
        "others.\n\nEach has the `pointer` of an assertion and the `reason`. There are some "
        "only with `weaken_schema=True`, which lets them pass; `mistakes` looks whether the "
        "text fits.",
    )
    token_ids: tuple[int, ...] = _fact(
        "token_ids",
        "The ids of the text, without the prompt's and without the token that ended "
        "it.\n\nThose of the reasoning, and of the markers around it, are among them.\n\nA "
        "token that has only a part of its text here, because a stop string began inside it, "
        "or because it was cancelled within a character, is not among them.",
    )
    finish_reason: FinishReason = _fact(
        "finish_reason",
        'Why the text ended.\n\n"stop": the model ended it, or a stop string did (`stop` '
        'says which). "length": `max_tokens` or the context allowed no more. "cancelled": '
        'its stream was closed before the end. "tool_calls": the model ended it, and wants '
        "`tool_calls` done first.",
    )
    stop: str | None = _fact(
        "stop", "The stop string that ended the text, None if the model ended it."
    )
    reasoning: str = _fact(
        "reasoning",
        'What the model thought before it answered; "" where it did not, or does not say so.',
    )
    reasoning_tokens: int = _fact(
        "reasoning_tokens",
        "How many of completion_tokens are reasoning, the markers around it included.",
    )
    tool_calls: tuple[ToolCall, ...] = _fact(
        "tool_calls",
        "The calls of tools that the model wants done, in its order; see "
        '`Model.chat`.\n\nWhere `finish_reason` is "length", the last one may be cut: '
        "`ToolCall.is_cut`.",
    )
    logprobs: tuple[TokenLogprob, ...] | None = _fact(
        "logprobs",
        "How likely each of token_ids was, with the most likely ones; None unless asked for.",
    )
    prompt_logprobs: tuple[TokenLogprob | None, ...] | None = _fact(
        "prompt_logprobs",
        "Likewise of the prompt's tokens, None for the first; None unless asked for.",
    )
    prompt_tokens: int = _fact("prompt_tokens", "Number of tokens of the prompt.")
    completion_tokens: int = _fact(
        "completion_tokens",
        "Number of tokens that were generated, those of a stop string included.\n\nThe token "
        "with which the model ended the text does not count.",
    )
    cached_tokens: int = _fact(
        "cached_tokens",
        "How many of the prompt's tokens were found in the cache, and so not computed again.",
    )
    prefix_end: PrefixEnd = _fact(
        "prefix_end",
        'Why `cached_tokens` are no more: "whole", "differs", "unknown" ...; the guide lists '
        'them.\n\n"": unknown, for example for a text that was cancelled while it waited.',
    )
    drafted_tokens: int = _fact(
        "drafted_tokens",
        "How many tokens were drafted (`speculation`), those that a grammar forces left out.",
    )
    accepted_tokens: int = _fact("accepted_tokens", "How many of the tokens drafted were chosen.")
    prompt_seconds: float = _fact(
        "prompt_seconds",
        "Seconds from the request to the first token, waiting for others included.",
    )
    completion_seconds: float = _fact(
        "completion_seconds", "Seconds from the first token to the last."
    )
    _reader: Callable[[str], Any] | None
    _schema: str
    _n_echoed: int
    _unanswered: tuple[int, ...]

    def __new__(
        cls,
        text: str = "",
        /,
        *,
        token_ids: Sequence[int] = (),
        finish_reason: FinishReason = "stop",
        stop: str | None = None,
        reader: Callable[[str], Any] | None = None,
        schema: str = "",
        weakened: Sequence[Weakened] = (),
        n_echoed: int = 0,
        reasoning: str = "",
        tool_calls: Sequence[ToolCall] = (),
        reasoning_tokens: int = 0,
        unanswered: Sequence[int] = (),
        prompt_tokens: int = 0,
        completion_tokens: int | None = None,
        cached_tokens: int = 0,
        prefix_end: PrefixEnd = "",
        drafted_tokens: int = 0,
        accepted_tokens: int = 0,
        prompt_seconds: float = 0.0,
        completion_seconds: float = 0.0,
        logprobs: Sequence[TokenLogprob] | None = None,
        prompt_logprobs: Sequence[TokenLogprob | None] | None = None,
    ) -> Completion:
        """Make one by hand, as a test of your own program may want to.

        `completion_tokens`: None means as many as there are token_ids. `reader`: makes `parsed` of
        the text. `schema`: as JSON, what `mistakes` looks at; "" where there is none. `weakened`:
        what of it the text was not held to. `unanswered`: places of tokens that are not part of the
        answer: those of the reasoning.
        `n_echoed`: characters of the prompt that the text begins with, which neither looks at.
        """
        self = super().__new__(cls, text)
        ids = tuple(token_ids)
        facts: dict[str, object] = {
            "token_ids": ids,
            "finish_reason": finish_reason,
            "stop": stop,
            "reader": reader,
            "schema": schema,
            "weakened": tuple(weakened),
            "n_echoed": n_echoed,
            "reasoning": reasoning,
            "tool_calls": tuple(tool_calls),
            "reasoning_tokens": reasoning_tokens,
            "unanswered": tuple(unanswered),
            "prompt_tokens": prompt_tokens,
            "completion_tokens": len(ids) if completion_tokens is None else completion_tokens,
            "cached_tokens": cached_tokens,
            "prefix_end": prefix_end,
            "drafted_tokens": drafted_tokens,
            "accepted_tokens": accepted_tokens,
            "prompt_seconds": prompt_seconds,
            "completion_seconds": completion_seconds,
            "logprobs": None if logprobs is None else tuple(logprobs),
            "prompt_logprobs": None if prompt_logprobs is None else tuple(prompt_logprobs),
        }
        for name, value in facts.items():
            object.__setattr__(self, f"_{name}", value)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a completion does not change."""
        raise AttributeError(f"a Completion does not change; {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        """Refuse: a completion does not change."""
        raise AttributeError(f"a Completion does not change; {name!r} cannot be deleted")

    @property
    def text(self) -> str:
        """The text as a plain str."""
        return str(self)

    @property
    def parsed(self) -> Any:
        """The object of a text with a `schema`, or of `json=True`; None without both.

        Where the model called tools instead, it is None too.

        With a pydantic model or a dataclass it is an object of that class, otherwise a value of
        JSON: dicts, lists, texts, numbers. Raises AkunuError where the text was cut before its
        end, or where a type refuses what its schema allows.
        """
        if self._reader is None or self.finish_reason == "tool_calls":
            return None
        if self.finish_reason != "stop" or self.stop is not None:
            why = self.stop if self.stop is not None else self.finish_reason
            raise AkunuError(f"the text ended before its JSON was complete ({why})")
        try:
            return self._reader(self[self._n_echoed :])
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise AkunuError(f"the text does not fit the requested type: {error}") from error

    @property
    def mistakes(self) -> tuple[str, ...]:
        """What the text does against its schema; () where it fits, and where it has none.

        Each is a JSON pointer into the text and what is wrong there, at most ten. They are possible
        with `weaken_schema=True`, and where the text was cut before its end. The whole schema is
        looked at when you ask; AkunuError where that is not possible.

        >>> Completion("[1, 1]", schema='{"type": "array", "uniqueItems": true}').mistakes
        ('at its root: [1, 1] has non-unique elements',)
        """
        if not self._schema or self.tool_calls:
            return ()
        return schema_mistakes(self._schema, self[self._n_echoed :])

    @property
    def answer_logprobs(self) -> tuple[TokenLogprob, ...] | None:
        """Those of `logprobs` that belong to the answer, without those of the reasoning.

        The markers around the reasoning, and whitespace after it, are left out with it.
        """
        return None if self.logprobs is None else answered(self.logprobs, self._unanswered)

    @property
    def prompt_tokens_per_second(self) -> float:
        """Tokens of the prompt that were computed, per second; 0 where nothing was measured."""
        computed = self.prompt_tokens - self.cached_tokens
        return per_second(computed, self.prompt_seconds)

    @property
    def completion_tokens_per_second(self) -> float:
        """Tokens generated per second, after the first; 0 where there are fewer than two."""
        return per_second(self.completion_tokens - 1, self.completion_seconds)

    def __reduce__(self) -> tuple[partial[Completion], tuple[str]]:
        """Copy and pickle all of it."""
        facts = {name.removeprefix("_"): getattr(self, name) for name in Completion.__slots__}
        return partial(type(self), **facts), (str(self),)


def answered(
    logprobs: tuple[TokenLogprob, ...], unanswered: Sequence[int]
) -> tuple[TokenLogprob, ...]:
    """Return those of an answer: without the tokens at these places."""
    if not unanswered:
        return logprobs
    left_out = set(unanswered)
    return tuple(each for place, each in enumerate(logprobs) if place not in left_out)


def per_second(n: int, seconds: float) -> float:
    """Return a rate; 0 where no time was measured."""
    return n / seconds if seconds > 0 else 0.0
