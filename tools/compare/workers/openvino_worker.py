"""OpenVINO GenAI in a process of its own: `openvino_worker.py MODEL CONTEXT THREADS`.

Speaks `protocol`. It reads GGUF files of some architectures and formats itself (Qwen3 in Q4_0, for
example); its defaults decide all else. Like akunu's, its side is a user's call, the choice of the
token included.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import openvino
import openvino_genai
from protocol import serve


def main(path: str, threads: int) -> None:
    model = openvino_genai.LLMPipeline(path, "CPU", INFERENCE_NUM_THREADS=threads)

    def measure(request: dict[str, Any]) -> dict[str, Any]:
        """Time `n` tokens of a kind; `tokens` are the prompt, or what is there before."""
        is_prompt = request["kind"] == "pp"
        options = openvino_genai.GenerationConfig()
        options.max_new_tokens = options.min_new_tokens = 1 if is_prompt else request["n"] + 1
        options.ignore_eos = True
        options.do_sample = False
        ids = np.array([request["tokens"]], np.int64)
        prompt = openvino_genai.TokenizedInputs(
            openvino.Tensor(ids), openvino.Tensor(np.ones_like(ids))
        )
        started = time.perf_counter()
        found = model.generate(prompt, options)
        seconds = time.perf_counter() - started
        if not is_prompt:
            seconds -= found.perf_metrics.get_ttft().mean / 1000
        return {"seconds": seconds, "complete": len(found.tokens[0]) == options.max_new_tokens}

    serve(
        {
            "engine": "OpenVINO GenAI",
            "version": f"OpenVINO GenAI {openvino_genai.__version__}",
            "system": openvino.Core().get_property("CPU", "FULL_DEVICE_NAME"),
            "vocab_size": len(model.get_tokenizer().get_vocab()),
        },
        measure,
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[3]))
