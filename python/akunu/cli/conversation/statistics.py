"""What replies took: show tokens, speeds and the context in use."""

from __future__ import annotations

from akunu.cli.reply.summary import ended_by, seconds_text, tokens_used
from akunu.cli.wording import counted
from akunu.common.prefix_end import explained
from akunu.text.completion import Completion


class Statistics:
    """Sums over a chat; `lines` shows them."""

    def __init__(self, context: int) -> None:
        """`context`: the positions that there are."""
        self._context = context
        self._last: Completion | None = None
        self._reused = 0
        self._prefilled = 0
        self._generated = 0

    def add(self, completion: Completion) -> None:
        """Count a reply."""
        self._last = completion
        self._reused += completion.cached_tokens
        self._prefilled += completion.prompt_tokens - completion.cached_tokens
        self._generated += completion.completion_tokens

    def lines(self, turns: int) -> list[str]:
        """Return what to show, while the conversation has this many turns."""
        last = self._last
        if last is None:
            return [f"no reply yet; the conversation has {counted(turns, 'turn')}"]
        prefilled = last.prompt_tokens - last.cached_tokens
        used = tokens_used(last, self._context)
        prompt = counted(last.prompt_tokens, "token")
        reply = counted(last.completion_tokens, "token")
        return [
            f"last prompt   {prompt}: {last.cached_tokens} reused, "
            f"{prefilled} prefilled{seconds_text(last.prompt_seconds)}"
            f"{_speed(last.prompt_tokens_per_second)}",
            *([f"cache         {why}"] if (why := explained(last.prefix_end)) else []),
            f"last reply    {reply}{seconds_text(last.completion_seconds)}"
            f"{_speed(last.completion_tokens_per_second)}, "
            f"ended by {ended_by(last, cancelled_by='Ctrl-C')}",
            f"context       {used} of {self._context} tokens used ({used / self._context:.0%})",
            f"conversation  {counted(turns, 'turn')}",
            f"this chat     {self._reused} tokens reused, {self._prefilled} prefilled, "
            f"{self._generated} generated",
        ]


def _speed(tokens_per_second: float) -> str:
    return f" ({tokens_per_second:.1f} tokens/s)" if tokens_per_second > 0 else ""
