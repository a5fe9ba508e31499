"""Texts side by side: how fast all of them come together, and how long the first token takes.

    python -m tools.crowd MODEL 1x128x128 64x128x128 ...

A case is texts x tokens of a prompt x tokens of a reply. A line of CSV for each, the middle of
three rounds; the last column says whether three of the texts have the tokens and logprobs, to the
bit, that they have alone. Prompts are random tokens.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray

import akunu
from akunu import SamplingOptions, _core

ROUNDS = 3


def begin(native: _core.NativeModel, prompt: NDArray[np.uint32], n: int) -> _core.Generation:
    """A text of so many tokens, whether or not the model would end it before."""
    return native.start(
        prompt,
        max_tokens=n,
        stop_ids=[],
        sampling=SamplingOptions().packed(seed=0),
        logit_bias={},
        logprobs=0,
    )


def run(
    native: _core.NativeModel, prompts: list[NDArray[np.uint32]], n: int
) -> tuple[float, list[_core.Generation], list[bytes]]:
    """The seconds of all of them together, and of each its tokens and logprobs."""
    began = time.perf_counter()
    texts = [begin(native, prompt, n) for prompt in prompts]
    tokens: list[list[int]] = [[] for _ in texts]
    for text, own in zip(texts, tokens, strict=True):
        while (more := text.next()) is not None:
            own += more
    seconds = time.perf_counter() - began
    results = [
        np.array(own, np.uint32).tobytes() + text.logprobs(0, len(own))[0].tobytes()
        for text, own in zip(texts, tokens, strict=True)
    ]
    return seconds, texts, results


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("cases", nargs="+", metavar="TEXTSxPROMPTxREPLY")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--kv-memory", type=int, default=None, help="bytes")
    options = parser.parse_args()
    with akunu.load(
        options.model,
        device=options.device,
        context=options.context,
        kv_memory=options.kv_memory,
        prefix_cache=False,
    ) as model:
        native = model._open()
        vocab_size = model.config.vocab_size
        print("prompt_tokens,reply_tokens,texts,tokens_per_second,first_token_median_ms,"
              "first_token_last_ms,as_alone")  # fmt: skip
        for case in options.cases:
            n, prompt_tokens, reply = (int(part) for part in case.split("x"))
            rng = np.random.default_rng(n * 1000 + prompt_tokens)
            prompts = [
                rng.integers(0, vocab_size, prompt_tokens).astype(np.uint32) for _ in range(n)
            ]
            run(native, prompts[:4], reply)  # warms up
            rounds = []
            for _ in range(ROUNDS):
                seconds, texts, results = run(native, prompts, reply)
                first = sorted(text.prompt_seconds * 1e3 for text in texts)
                rounds.append((n * reply / seconds, first[n // 2], first[-1]))
            speed, median, last = sorted(rounds)[ROUNDS // 2]
            as_alone = all(
                run(native, [prompts[i]], reply)[2][0] == results[i]
                for i in range(0, n, max(1, n // 3))
            )
            print(f"{prompt_tokens},{reply},{n},{speed:.1f},{median:.1f},{last:.1f},"
                  f"{'yes' if as_alone else 'NO'}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
