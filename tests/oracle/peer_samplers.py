"""llama.cpp's samplers, by the wheel xllamacpp, in a process of its own; `asked` starts it.

peer_samplers.py MODEL <cases as JSON   JSON on standard output: for each case the logits that the
samplers leave, [token, logit] of every candidate. A case has logits, the tokens before them, and
samplers: [name, arguments...].
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from ctypes import (
    POINTER,
    c_bool,
    c_char_p,
    c_float,
    c_int32,
    c_int64,
    c_size_t,
    c_uint32,
    c_void_p,
)
from pathlib import Path
from typing import Any


def asked(python: str, model: Path, cases: list[dict[str, Any]]) -> list[list[tuple[int, float]]]:
    """What llama.cpp's samplers leave of each case."""
    done = subprocess.run(
        [python, __file__, model],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [[(int(t), float(z)) for t, z in each] for each in json.loads(done.stdout)]


class TokenData(ctypes.Structure):
    """llama_token_data."""

    _fields_ = (("id", c_int32), ("logit", c_float), ("p", c_float))


class TokenDataArray(ctypes.Structure):
    """llama_token_data_array."""

    _fields_ = (
        ("data", POINTER(TokenData)),
        ("size", c_size_t),
        ("selected", c_int64),
        ("sorted", c_bool),
    )


# Arguments of llama_sampler_init_NAME.
SAMPLERS: dict[str, tuple[Any, ...]] = {
    "top_k": (c_int32,),
    "top_p": (c_float, c_size_t),
    "min_p": (c_float, c_size_t),
    "typical": (c_float, c_size_t),
    "top_n_sigma": (c_float,),
    "xtc": (c_float, c_float, c_size_t, c_uint32),
    "temp": (c_float,),
    "penalties": (c_int32, c_int32, c_float, c_float, c_float),
}


def main(path: str) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "compare" / "workers"))
    import xllamacpp_api as api

    def function(name: str, result: Any, *arguments: Any) -> Any:
        found = getattr(api._library, name)
        found.restype, found.argtypes = result, arguments
        return found

    apply = function("llama_sampler_apply", None, c_void_p, POINTER(TokenDataArray))
    accept = function("llama_sampler_accept", None, c_void_p, c_int32)
    dry = function(
        "llama_sampler_init_dry",
        c_void_p,
        *(c_void_p, c_float, c_float, c_int32, c_int32, POINTER(c_char_p), c_size_t),
    )
    params = api.llama_model_default_params()
    params.vocab_only = True
    model = api.llama_model_load_from_file(path.encode(), params)
    vocabulary = api.llama_model_get_vocab(model)

    def made(name: str, *arguments: Any) -> Any:
        if name == "dry":
            *numbers, breakers = arguments
            texts = (c_char_p * len(breakers))(*[text.encode() for text in breakers])
            return dry(vocabulary, *numbers, texts, len(breakers))
        return function(f"llama_sampler_init_{name}", c_void_p, *SAMPLERS[name])(*arguments)

    answers = []
    for case in json.load(sys.stdin):
        data = (TokenData * len(case["logits"]))(
            *[TokenData(token, logit, 0.0) for token, logit in enumerate(case["logits"])]
        )
        candidates = TokenDataArray(data, len(data), -1, False)
        for each in case["samplers"]:
            sampler = made(*each)
            for token in case["tokens"]:
                accept(sampler, token)
            apply(sampler, ctypes.byref(candidates))
        left = [candidates.data[i] for i in range(candidates.size)]
        answers.append([(each.id, each.logit) for each in left if each.logit > -1e38])
    print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1])
