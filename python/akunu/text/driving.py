"""Takes the texts of a request to their end, or hands them out as streams."""

from __future__ import annotations

from collections.abc import Callable

from akunu import _core
from akunu.options.text_options import SamplingOptions
from akunu.text.batches import Prepared, generate_all
from akunu.text.completion import Completion
from akunu.text.reply_decoder import ReplyDecoder
from akunu.text.submit import answers, prepared_answers
from akunu.text.text_stream import TextStream


def driven(
    native: _core.NativeModel,
    begin: Callable[[SamplingOptions, Prepared, _core.Generation | None], ReplyDecoder],
    prepare: Callable[[], Prepared],
    options: SamplingOptions,
    n: int | None,
    stream: bool,
) -> Completion | TextStream | list[Completion] | list[TextStream]:
    """Begin the texts of one prompt, and take them to their end unless they are streams.

    `n`: how many answers, as a list; None is one that is not in a list.
    """
    if n is None:
        return _one(native, begin(options, prepare(), None), stream)
    begun = answers(begin, options, prepared_answers(prepare, n))
    streams = [TextStream(native, decoder) for decoder in begun]
    if stream:
        return streams
    try:
        return generate_all("answer", begun, lambda decoder: decoder)
    finally:
        for each in streams:
            each.close()


def _one(native: _core.NativeModel, decoder: ReplyDecoder, stream: bool) -> Completion | TextStream:
    pieces = TextStream(native, decoder)
    if stream:
        return pieces
    with pieces:
        for _ in pieces:
            pass
    return pieces.completion
