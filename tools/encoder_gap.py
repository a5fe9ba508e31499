"""How long other texts wait for a token while an image or a window of speech is encoded.

    python -m tools.encoder_gap MODEL [--device cuda] [--threads 2] [--texts 4]

MODEL reads images, or is a Whisper model. Texts generate; then one with a new image, or new speech,
begins. A line of CSV for each round: gaps between two tokens of a text in milliseconds, before that
and until the new text's first token. Inputs are random numbers.
"""

from __future__ import annotations

import argparse
import threading
import time
from typing import Any

import numpy as np

import akunu
from akunu import SamplingOptions, _core

ROUNDS = 3
CONTEXT = 4096
PROMPT_TOKENS, SETTLED, USUAL = 16, 8, 24  # tokens of a text before gaps count, and that count


class Text:
    """A text that generates, and when each of its tokens came."""

    def __init__(self, generation: _core.Generation) -> None:
        self.generation = generation
        self.times: list[float] = []
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        while (more := self.generation.next()) is not None:
            self.times += [time.perf_counter()] * len(more)

    def wait_for(self, n: int) -> None:
        """Wait until there are n tokens."""
        while len(self.times) < n and self.thread.is_alive():
            time.sleep(0.001)


def start(native: _core.NativeModel, tokens: Any, n: int, **more: Any) -> Text:
    """A text of n tokens, whether or not the model would end it before."""
    return Text(
        native.start(
            np.asarray(tokens, np.uint32),
            max_tokens=n,
            stop_ids=[],
            sampling=SamplingOptions().packed(seed=0),
            logit_bias={},
            logprobs=0,
            **more,
        )
    )


def with_image(native: _core.NativeModel, rng: np.random.Generator) -> tuple[list[int], Any]:
    """A prompt with a new image, the largest that the model reads at once."""
    facts = native.images
    assert facts is not None
    n = facts["most_patches"]
    numbers = rng.standard_normal((n, 3 * facts["n_frames"] * facts["patch_size"] ** 2))
    width = facts["patches_per_side"] or facts["square_side"] * round(n**0.5 / facts["square_side"])
    image = native.image(numbers[: width * width].astype(np.float32), width)
    tokens = [facts["token"]] * (width // facts["square_side"]) ** 2
    return [1, *tokens, 2], {"images": [(1, image)]}


def with_speech(native: _core.NativeModel, rng: np.random.Generator) -> tuple[list[int], Any]:
    """A prompt with a new window of speech."""
    facts = native.audio
    assert facts is not None
    mel = rng.standard_normal((facts["n_mels"], facts["n_frames"])).astype(np.float32)
    return [1], {"window": _core.SpeechWindow(mel)}


def gaps_of(texts: list[Text], begin: float, end: float) -> list[float]:
    """Seconds between two tokens of a text, of gaps that touch this time."""
    return [
        later - earlier
        for text in texts
        for earlier, later in zip(text.times, text.times[1:], strict=False)
        if later > begin and earlier < end
    ]


def milliseconds(gaps: list[float]) -> str:
    """The median, the 95th percentile and the largest."""
    return ",".join(f"{1000 * np.quantile(gaps, share):.2f}" for share in (0.5, 0.95, 1))


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--texts", type=int, default=4)
    parser.add_argument("--kv-memory", type=int, default=4 << 30, help="bytes, for all texts")
    options = parser.parse_args()
    with akunu.load(
        options.model,
        device=options.device,
        threads=options.threads,
        context=CONTEXT,
        kv_memory=options.kv_memory,
        prefix_cache=False,
    ) as model:
        native = model._open()
        make = with_image if native.images is not None else with_speech
        rng = np.random.default_rng(1)
        print("round,median,95th,largest,during_median,during_95th,during_largest,encoded_in_ms")
        for number in range(ROUNDS + 1):  # in the first, the engine learns what a row takes
            more = make(native, rng)[1] if make is with_speech else {}
            texts = [
                start(native, rng.integers(3, 200, PROMPT_TOKENS), CONTEXT - PROMPT_TOKENS, **more)
                for _ in range(options.texts)
            ]
            for text in texts:
                text.wait_for(SETTLED)
            began = time.perf_counter()
            for text in texts:
                text.wait_for(SETTLED + USUAL)
            before = milliseconds(gaps_of(texts, began, time.perf_counter()))
            tokens, given = make(native, rng)
            began = time.perf_counter()
            new = start(native, tokens, 1, **given)
            new.thread.join()
            ended = time.perf_counter()
            for text in texts:
                text.generation.cancel()
                text.thread.join()
            during = milliseconds(gaps_of(texts, began, ended))
            if number > 0:
                print(f"{number},{before},{during},{1000 * (ended - began):.0f}", flush=True)


if __name__ == "__main__":
    main()
