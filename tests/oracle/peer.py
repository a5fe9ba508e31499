"""What llama.cpp makes of a text, in a process of its own; `asked` starts it.

peer.py MODEL TEXT   JSON on standard output: the tokens of the text, their text again, and logits
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TEXT = "The sea is 12 miles away, não?\n"


def asked(python: str, model: Path, text: str = TEXT) -> dict[str, Any]:
    """`tokens`, `text` and `logits` of llama.cpp in the interpreter `python`."""
    done = subprocess.run(
        [python, __file__, model, text], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout))


def main(path: str, text: str) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "compare" / "workers"))
    from llama_cpp_api import api, every_logit, load_model, new_context, tokenise

    model = load_model(path)
    vocabulary = api.llama_model_get_vocab(model)
    tokens = tokenise(model, text, add_special=False, parse_special=False)
    room = ctypes.create_string_buffer(16 * len(tokens) + 64)
    ids = (api.llama_token * len(tokens))(*tokens)
    n = api.llama_detokenize(vocabulary, ids, len(tokens), room, len(room), False, False)
    context = new_context(model, 64, kv_type="f16", threads=1)
    logits = every_logit(context, api.llama_vocab_n_tokens(vocabulary), tokens)
    answer = {"tokens": tokens, "text": room.raw[:n].decode(), "logits": logits.tolist()}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
