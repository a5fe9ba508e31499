"""llama.cpp's quantiser: `llama_cpp_quantise.py SOURCE TARGET FILE_TYPE PURE`."""

from __future__ import annotations

import sys

from llama_cpp_api import PEER, api


def main(source: str, target: str, file_type: int, pure: bool) -> None:
    if not hasattr(api, "llama_model_quantize"):
        sys.exit(
            f"{PEER} has no quantiser, llama-cpp-python has one; see docs/reference/benchmarks.md"
        )
    options = api.llama_model_quantize_default_params()
    options.ftype = file_type
    options.pure = pure
    code = api.llama_model_quantize(source.encode(), target.encode(), options)
    if code != 0:
        sys.exit(f"llama_model_quantize returned {code}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")
