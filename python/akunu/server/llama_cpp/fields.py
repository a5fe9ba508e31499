"""What requests for llama.cpp's /completion and /infill ask for, as arguments of a model."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from akunu.server.fields.common import MOST_LOGPROBS, integer_in, n_predict
from akunu.server.fields.sampling import SAMPLING_FIELDS
from akunu.server.fields.structure import STRUCTURE_FIELDS
from akunu.server.fields.table import (
    Field,
    checked,
    flag,
    honoured,
    refused,
    table_of,
    to,
    without_effect,
)
from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.json_words import as_json
from akunu.server.llama_cpp.answer import LlamaAnswer, LlamaFormat
from akunu.server.settings import ServerSettings
from akunu.server.text_request import TextRequest, text_request

_MOST_BIASED: Final = 10_000  # characters that are split into tokens while others wait


def _n_probs(name: str, value: Any) -> Mapping[str, Any]:
    n = integer_in(name, value, 0, MOST_LOGPROBS)
    return {"logprobs": n} if n else {}


def _texts(name: str, value: Any) -> Mapping[str, Any]:
    given = checked(name, value, list)
    if not all(isinstance(each, str) for each in given):
        raise invalid(name, f"{name} is {as_json(value)}; it must be a list of texts")
    return {name: given} if given else {}


def _text(name: str, value: Any) -> Mapping[str, Any]:
    return {name: checked(name, value, str)}


def _biases(name: str, value: Any) -> Mapping[str, Any]:
    """Read biases of tokens and of texts, all of whose tokens get them; false is never."""
    pairs = list(value.items()) if isinstance(value, dict) else checked(name, value, list)
    tokens: dict[int, Any] = {}
    texts: dict[str, Any] = {}
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise invalid(name, f"{name} has {as_json(pair)}; it must have pairs of token and bias")
        of, bias = pair
        bias = -math.inf if bias is False else bias
        if isinstance(of, str) and not _TOKEN_ID.fullmatch(of):
            texts[of] = bias
        elif isinstance(of, (str, int)) and not isinstance(of, bool):
            tokens[int(of)] = bias
        else:
            raise invalid(name, f"{name} has {as_json(of)}; it must be a token id or a text")
    if (n := sum(map(len, texts))) > _MOST_BIASED:
        raise invalid(name, f"{name} has texts of {n} characters; they may have {_MOST_BIASED}")
    return {"logit_bias": tokens, "text_bias": texts}


def _extra(name: str, value: Any) -> Mapping[str, Any]:
    found = []
    for index, each in enumerate(checked(name, value, list)):
        given = each if isinstance(each, dict) else {}
        text, filename = given.get("text"), given.get("filename") or "tmp"
        if not isinstance(text, str) or not isinstance(filename, str):
            raise invalid(name, f"{name}[{index}] must be an object with a filename and a text")
        found.append((filename, text))
    return {name: found} if found else {}


_MOST_TEXTS: Final = 1_000  # of a prompt that has ids, too: each is split into tokens
_TOKEN_ID: Final = re.compile(r"[0-9]{1,10}")
_OTHERS: Final = ("n_probs", "logit_bias")  # which are read in another way here
_SAMPLING: Final = tuple(each for each in SAMPLING_FIELDS if each.name not in _OTHERS)
_BOTH: Final = (
    honoured("model", "string", lambda name, value: {"model": checked(name, value, str)}),
    honoured("stream", "boolean", flag("stream")),
    honoured("n_predict", "integer", n_predict),
    honoured("max_tokens", "integer", n_predict),
    honoured("n_probs", "integer", _n_probs),
    honoured("logit_bias", {"type": ["object", "array", "null"]}, _biases),
    honoured("return_tokens", "boolean", flag("return_tokens")),
    honoured("response_fields", "array", _texts),
    *_SAMPLING,
    *STRUCTURE_FIELDS,
    refused("post_sampling_probs", "n_probs reports probabilities before sampling", False),
    refused("n_indent", "a least indentation is not supported", 0),
    refused("image_data", "only text is supported", []),
    without_effect("cache_prompt", "boolean", "the text is the same"),
    without_effect("n_cache_reuse", "integer", "the text is the same"),
    without_effect("id_slot", "integer", "there are no slots"),
    without_effect("n_keep", "integer", "texts are never cut without an error"),
    without_effect("n_discard", "integer", "texts are never cut without an error"),
    without_effect("min_keep", "integer", "filters keep at least one token"),
    without_effect("t_max_predict_ms", "integer", "there is no time limit: see n_predict"),
    without_effect("t_max_prompt_ms", "integer", "there is no time limit"),
    without_effect("timings_per_token", "boolean", "timings come once, at the end"),
    without_effect("return_progress", "boolean", "a stream begins with comments"),
)

COMPLETION_FIELDS: Final[Mapping[str, Field]] = table_of(
    [*_BOTH, honoured("prompt", {"type": ["string", "array", "object"]}, to("prompt"))]
)

INFILL_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        *_BOTH,
        honoured("input_prefix", "string", _text),
        honoured("input_suffix", "string", _text),
        honoured("input_extra", "array", _extra),
        honoured("prompt", "string", _text, "the beginning of the missing text"),
    ]
)


def completion_request(body: Mapping[str, Any], settings: ServerSettings) -> TextRequest:
    """Read a request for /completion; ApiError for values that make no sense."""
    wanted = text_request(COMPLETION_FIELDS, body)
    if "prompt" not in wanted.arguments:
        raise invalid("prompt", "prompt is missing", "missing_required_parameter")
    prompt = wanted.arguments.pop("prompt")
    is_several = isinstance(prompt, list) and (
        any(isinstance(each, (list, dict)) for each in prompt)
        or (bool(prompt) and all(isinstance(each, str) for each in prompt))
    )
    prompts = [_plain(each) for each in (prompt if is_several else [prompt])]
    for each in prompts:
        _check_prompt(each)
    # The events of a stream have an index instead.
    return _with_answer(
        wanted, prompts, "prompt", is_list=len(prompts) > 1 and not wanted.is_stream
    )


def infill_request(body: Mapping[str, Any], settings: ServerSettings) -> TextRequest:
    """Read a request for /infill; ApiError for values that make no sense.

    Texts of other files stand before what is before the gap.
    """
    wanted = text_request(INFILL_FIELDS, body)
    options = wanted.arguments
    for name in ("input_prefix", "input_suffix"):
        if name not in options:
            raise invalid(name, f"{name} is missing", "missing_required_parameter")
    wanted.suffix, wanted.suffix_name = options.pop("input_suffix"), "input_suffix"
    others = "".join(f"--- {name}\n{text}\n\n" for name, text in options.pop("input_extra", ()))
    before = others + options.pop("input_prefix") + options.pop("prompt", "")
    return _with_answer(wanted, [before], "input_prefix")


def _with_answer(
    wanted: TextRequest, prompts: list[Any], prompt_name: str, *, is_list: bool = False
) -> TextRequest:
    """Return the request with its prompts, and with how its answer is written."""
    options = wanted.arguments
    wanted.prompts, wanted.prompt_name, wanted.spells_tokens = prompts, prompt_name, True
    wanted.text_bias = options.pop("text_bias", {})
    how = LlamaFormat(
        returns_tokens=options.pop("return_tokens", False),
        response_fields=options.pop("response_fields", []),
        arguments=options,
        prompts=prompts,
        is_list=is_list,
    )
    wanted.answer = lambda context: LlamaAnswer(context, how)
    return wanted


def _plain(prompt: Any) -> Any:
    """Return the text of a prompt that is an object, as models that see pictures take it."""
    if not isinstance(prompt, dict):
        return prompt
    if prompt.get("multimodal_data"):
        raise unsupported("prompt", "prompt.multimodal_data: only text is supported")
    return checked("prompt.prompt_string", prompt.get("prompt_string"), str)


def _check_prompt(prompt: Any) -> None:
    if isinstance(prompt, str):
        return
    parts = prompt if isinstance(prompt, list) else [None]
    n_texts = sum(isinstance(each, str) for each in parts)
    if n_texts > _MOST_TEXTS:
        raise invalid(
            "prompt", f"prompt has {n_texts} texts among its ids; at most {_MOST_TEXTS} are read"
        )
    for each in parts:
        if isinstance(each, bool) or not isinstance(each, (int, str)):
            raise invalid(
                "prompt",
                f"prompt has {as_json(prompt)}; it must be a text, a list of token ids and texts, "
                "or a list of such prompts",
            )
