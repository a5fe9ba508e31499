"""One reply of a model, written to stdout as it comes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from akunu.cli.conversation.loop_guard import HINT, STOPPED, LoopGuard
from akunu.cli.reply.output import ReplyOptions
from akunu.cli.reply.summary import reply_summary
from akunu.cli.reply.terminal_output import open_output
from akunu.cli.terminal import console
from akunu.cli.terminal.progress import Progress
from akunu.cli.terminal.suspension import SuspensionWatch, without_times
from akunu.cli.wording import counted
from akunu.errors import AkunuError
from akunu.grammar.structure import Structure
from akunu.model import Model
from akunu.options.text_options import SamplingOptions, TextOptions, sampling_options
from akunu.text.completion import Completion
from akunu.text.conversation import Conversation
from akunu.text.deltas import Delta, ReasoningDelta, TextDelta
from akunu.text.text_stream import TextStream

_AS_USUAL = ReplyOptions()


class Interrupted(Exception):  # noqa: N818 - it is not an error
    """Ctrl-C ended the reply; `completion` is as far as it came, None if it had not begun."""

    def __init__(self, completion: Completion | None) -> None:
        """Keep what came."""
        super().__init__()
        self.completion = completion


def write_reply(
    model: Model,
    conversation: Conversation,
    question: str,
    sampling: SamplingOptions,
    options: ReplyOptions = _AS_USUAL,
    *,
    structure: Structure | None = None,
    images: Sequence[bytes] = (),
) -> Completion:
    """Answer the question, write the reply to stdout, and add both to the conversation.

    `options` say how a terminal shows the answer; a file or pipe gets it unchanged. `structure`:
    the form of the answer, which a terminal then shows unchanged, too. `images`: those that the
    question is about; they come before it.

    An interrupted reply is added as far as it came. Interrupted is raised, with the cursor at the
    end of the last line. A question without any reply, such as one that no longer fits
    (ContextOverflowError), is not added. The completion has no times if the process was suspended
    meanwhile.
    """
    chosen = replace(sampling_options(sampling, {}), structure=structure)
    if structure is not None:
        options = replace(options, markdown=False)
    if images or conversation.has_images:
        stream = _with_images(model, conversation, question, images, chosen)
    else:
        prompt = conversation.prompt(question)
        splitter = conversation.splitter(prompt)
        stream = model._reply(
            prompt, splitter, chosen, conversation.free(splitter), conversation.shorten(question)
        )
    output = open_output(options)
    deltas = stream.deltas()
    guard = LoopGuard()
    watch = SuspensionWatch()
    goes_round = False

    def write(delta: Delta) -> str:
        if not isinstance(delta, (TextDelta, ReasoningDelta)):
            return ""
        is_thought = isinstance(delta, ReasoningDelta)
        tokens, seconds = stream.completion_tokens, stream.completion_seconds
        output.push(delta.text, is_thought=is_thought, tokens=tokens, seconds=seconds)
        return delta.text

    def measured() -> Completion:
        completion = stream.completion
        return without_times(completion) if watch.was_suspended else completion

    try:
        with stream, watch:
            # Not before there is something to show: the progress is on the same line.
            with Progress(lambda: prefill_of(stream)):
                delta = next(deltas, None)
            while delta is not None:
                piece = write(delta)
                if options.loop_guard and not goes_round and guard.push(piece):
                    goes_round = True
                    if options.stops_loops:
                        break
                    output.hint(HINT)
                delta = next(deltas, None)
            output.finish()
    except KeyboardInterrupt:
        completion = measured()
        if not completion and not completion.reasoning:
            raise Interrupted(None) from None
        output.finish()
        conversation.add(question, completion, completion.token_ids, completion.reasoning, images)
        raise Interrupted(completion) from None
    except AkunuError:
        output.break_off()
        raise
    output.end_line()
    completion = measured()
    conversation.add(question, completion, completion.token_ids, completion.reasoning, images)
    is_watched = console.is_terminal(sys.stdout) and console.is_terminal(sys.stderr)
    if is_watched or options.verbose:
        console.say(reply_summary(completion, model.context, verbose=options.verbose))
    if goes_round and options.stops_loops:
        console.say(f"akunu: {STOPPED}")
    return completion


def _with_images(
    model: Model,
    conversation: Conversation,
    question: str,
    images: Sequence[bytes],
    options: TextOptions,
) -> TextStream:
    return model.chat(
        conversation.messages_with(question, images),
        options,
        thinking=conversation.thinking,
        thinking_budget=conversation.thinking_budget,
        stream=True,
    )


def why_cut(completion: Completion, model: Model, sampling: SamplingOptions) -> str | None:
    """Return why a reply ended before its end, None where it did not."""
    if completion.finish_reason != "length":
        return None
    limit = sampling.max_tokens
    if limit is not None and completion.completion_tokens >= limit:
        return f"the reply was cut after {counted(limit, 'token')} (--max-tokens)"
    return f"the reply was cut: the context of {model.context} tokens is full"


def prefill_of(stream: TextStream) -> str:
    """Return how far a prompt is computed."""
    return f"read {stream.prompt_tokens_done} of {stream.prompt_tokens} tokens"
