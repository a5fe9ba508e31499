"""llama.cpp's tokens, in a process of its own: `llama_cpp_tokens.py MODEL CONTEXT THREADS`.

Speaks `protocol`: {"texts": [...]} is answered with {"tokens": a list for each}, without tokens at
the ends and with names of control tokens as text.
"""

from __future__ import annotations

import sys
from typing import Any

from llama_cpp_api import PEER, load_model, tokenise
from protocol import serve


def main(path: str) -> None:
    model = load_model(path)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        texts = request["texts"]
        return {
            "tokens": [
                tokenise(model, text, add_special=False, parse_special=False) for text in texts
            ]
        }

    serve({"engine": "llama.cpp", "version": PEER}, answer)


if __name__ == "__main__":
    main(sys.argv[1])
