"""One reply of a model, written to stdout as it comes."""

from __future__ import annotations

from dataclasses import asdict

from akunu.cli import console
from akunu.cli.progress import Progress
from akunu.cli.thinking import ThinkingSplitter
from akunu.completion import Completion
from akunu.conversation import Conversation
from akunu.model import Model
from akunu.options import SamplingOptions
from akunu.text_stream import TextStream


class Interrupted(Exception):  # noqa: N818 - it is no error
    """Ctrl-C ended the reply; `completion` is as far as it came, None if it had not begun."""

    def __init__(self, completion: Completion | None) -> None:
        """Keep what came."""
        super().__init__()
        self.completion = completion


def write_reply(
    model: Model, conversation: Conversation, question: str, sampling: SamplingOptions
) -> Completion:
    """Answer the question, write the reply to stdout, and add both to the conversation.

    An interrupted reply is added as far as it came, and raises Interrupted. A question without
    any reply, as one that does not fit any more (ContextOverflowError), is not added.
    """
    prompt = conversation.prompt(question)
    stream: TextStream = model.generate(prompt, stream=True, **asdict(sampling))
    splitter = ThinkingSplitter(thinking=conversation.opens_thinking(prompt))
    try:
        with stream:
            # Not before there is something to show: the progress is on the same line.
            with Progress(lambda: prefill_of(stream)):
                piece = next(stream, "")
            while piece:
                _write(splitter.push(piece))
                piece = next(stream, "")
            _write(splitter.finish())
    except KeyboardInterrupt:
        completion = stream.completion
        if not completion:
            raise Interrupted(None) from None
        conversation.add(question, completion, completion.token_ids)
        raise Interrupted(completion) from None
    completion = stream.completion
    if not completion.endswith("\n"):
        console.write("\n")
    conversation.add(question, completion, completion.token_ids)
    return completion


def why_cut(completion: Completion, model: Model, sampling: SamplingOptions) -> str | None:
    """Return why a reply ended before its end, None where it did not."""
    if completion.finish_reason != "length":
        return None
    limit = sampling.max_tokens
    if limit is not None and completion.completion_tokens >= limit:
        return f"the text was cut after {limit} tokens (--max-tokens)"
    return f"the text was cut: the context of {model.context} tokens is full"


def prefill_of(stream: TextStream) -> str:
    """Return how far a prompt is computed."""
    return f"read {stream.prompt_tokens_done} of {stream.prompt_tokens} tokens"


def _write(parts: list[tuple[str, bool]]) -> None:
    for text, is_thought in parts:
        console.write(text, console.DIM if is_thought else None)
