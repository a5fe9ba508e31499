"""A finished text and the facts about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from akunu.errors import AkunuError
from akunu.grammar.checking import schema_mistakes

if TYPE_CHECKING:
    from akunu.common.prefix_end import PrefixEnd
    from akunu.grammar import Weakened
    from akunu.text.logprobs import TokenLogprob
    from akunu.tools.calls import ToolCall

FinishReason = Literal["stop", "length", "cancelled", "tool_calls"]


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

    _token_ids: tuple[int, ...]
    _tool_calls: tuple[ToolCall, ...]
    _finish_reason: FinishReason
    _stop: str | None
    _reader: Callable[[str], Any] | None
    _schema: str
    _weakened: tuple[Weakened, ...]
    _n_echoed: int
    _reasoning: str
    _reasoning_tokens: int
    _unanswered: tuple[int, ...]
    _prompt_tokens: int
    _completion_tokens: int
    _cached_tokens: int
    _prefix_end: PrefixEnd
    _drafted_tokens: int
    _accepted_tokens: int
    _prompt_seconds: float
    _completion_seconds: float
    _logprobs: tuple[TokenLogprob, ...] | None
    _prompt_logprobs: tuple[TokenLogprob | None, ...] | None

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
        what of it the text was not held to. `unanswered`: places of tokens that are no part of the
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
        """The object of a text with a `schema`, or of `json=True`; None where neither was asked.

        Where the model called tools instead, it is None too.

        Of a pydantic model or a dataclass it is one of those, otherwise what JSON has: dicts,
        lists, texts, numbers. Raises AkunuError where the text was cut before its end, or where
        a type refuses what its schema allows.
        """
        if self._reader is None or self._finish_reason == "tool_calls":
            return None
        if self._finish_reason != "stop" or self._stop is not None:
            why = self._stop if self._stop is not None else self._finish_reason
            raise AkunuError(f"the text ended before its JSON was complete ({why})")
        try:
            return self._reader(self[self._n_echoed :])
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise AkunuError(
                f"the text does not make the object that was asked for: {error}"
            ) from error

    @property
    def mistakes(self) -> tuple[str, ...]:
        """What the text does against its schema; () where it fits, and where it has none.

        Each is a JSON pointer into the text and what is wrong there, at most ten. They are possible
        with `weaken_schema=True`, and where the text was cut before its end. The whole schema is
        looked at when you ask; AkunuError where that is not possible.

        >>> Completion("[1, 1]", schema='{"type": "array", "uniqueItems": true}').mistakes
        ('at its root: [1, 1] has non-unique elements',)
        """
        if not self._schema or self._tool_calls:
            return ()
        return schema_mistakes(self._schema, self[self._n_echoed :])

    @property
    def weakened(self) -> tuple[Weakened, ...]:
        """What of the schema the text was not held to, because no grammar can; () for all others.

        Each has the `pointer` of an assertion and the `reason`. There are some only with
        `weaken_schema=True`, which lets them pass; `mistakes` looks whether the text fits.
        """
        return self._weakened

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The ids of the text, without the prompt's and without the token that ended it.

        Those of the reasoning, and of the markers around it, are among them.

        A token that has only a part of its text here, because a stop string began inside it, or
        because it was cancelled within a character, is not among them.
        """
        return self._token_ids

    @property
    def finish_reason(self) -> FinishReason:
        """Why the text ended.

        "stop": the model ended it, or a stop string did (`stop` says which). "length": `max_tokens`
        or the context allowed no more. "cancelled": its stream was closed before the end.
        "tool_calls": the model ended it, and wants `tool_calls` done first.
        """
        return self._finish_reason

    @property
    def stop(self) -> str | None:
        """The stop string that ended the text, None where nothing but the model did."""
        return self._stop

    @property
    def reasoning(self) -> str:
        """What the model thought before it answered; "" where it did not, or does not say so."""
        return self._reasoning

    @property
    def reasoning_tokens(self) -> int:
        """How many of completion_tokens are reasoning, the markers around it included."""
        return self._reasoning_tokens

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of tools that the model wants done, in its order; see `Model.chat`.

        Where `finish_reason` is "length", the last one may be cut: `ToolCall.is_cut`.
        """
        return self._tool_calls

    @property
    def logprobs(self) -> tuple[TokenLogprob, ...] | None:
        """How likely each of token_ids was, with the most likely ones; None unless asked for."""
        return self._logprobs

    @property
    def answer_logprobs(self) -> tuple[TokenLogprob, ...] | None:
        """Those of `logprobs` that belong to the answer, without those of the reasoning.

        The markers around the reasoning, and whitespace behind it, are left out with it.
        """
        return None if self._logprobs is None else answered(self._logprobs, self._unanswered)

    @property
    def prompt_logprobs(self) -> tuple[TokenLogprob | None, ...] | None:
        """Likewise of the prompt's tokens, None for the first; None unless asked for."""
        return self._prompt_logprobs

    @property
    def prompt_tokens(self) -> int:
        """Number of tokens of the prompt."""
        return self._prompt_tokens

    @property
    def completion_tokens(self) -> int:
        """Number of tokens that were generated, those of a stop string included.

        The token with which the model ended the text does not count.
        """
        return self._completion_tokens

    @property
    def cached_tokens(self) -> int:
        """How many of the prompt's tokens were found in the cache, and so not computed again."""
        return self._cached_tokens

    @property
    def prefix_end(self) -> PrefixEnd:
        """Why `cached_tokens` are no more: "whole", "differs", "unknown" ...; the guide lists them.

        "": nobody looked, as of a text that was cancelled while it waited.
        """
        return self._prefix_end

    @property
    def drafted_tokens(self) -> int:
        """How many tokens were drafted (`speculation`), those that a grammar forces left out."""
        return self._drafted_tokens

    @property
    def accepted_tokens(self) -> int:
        """How many of the tokens drafted were chosen."""
        return self._accepted_tokens

    @property
    def prompt_seconds(self) -> float:
        """Seconds from the request to the first token, waiting for others included."""
        return self._prompt_seconds

    @property
    def completion_seconds(self) -> float:
        """Seconds from the first token to the last."""
        return self._completion_seconds

    @property
    def prompt_tokens_per_second(self) -> float:
        """Tokens of the prompt that were computed, per second; 0 where nothing was measured."""
        computed = self._prompt_tokens - self._cached_tokens
        return per_second(computed, self._prompt_seconds)

    @property
    def completion_tokens_per_second(self) -> float:
        """Tokens generated per second, after the first; 0 where there are fewer than two."""
        return per_second(self._completion_tokens - 1, self._completion_seconds)

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
