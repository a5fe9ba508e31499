"""Fields that say how tokens are chosen, by the names of OpenAI and of other servers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from akunu.options.declarations import Declared
from akunu.options.sampling_options import declared_options
from akunu.server.fields.lora import LORA_SCHEMA, lora
from akunu.server.fields.table import Field, Reader, checked, honoured, refused, to
from akunu.server.http.errors import invalid
from akunu.server.http.json_words import as_json

_SEEDS: Final = 2**64


def _seed(name: str, value: Any) -> Mapping[str, Any]:
    seed = checked(name, value, int)
    # -1 is any seed, as for llama.cpp; other negative ones are seeds like all others.
    return {"seed": seed % _SEEDS if -(2**63) <= seed < -1 else seed}


def _biases(name: str, value: Any) -> Mapping[str, Any]:
    pairs = value.items() if isinstance(value, dict) else value
    try:
        found = {int(token): -math.inf if bias is False else bias for token, bias in pairs}
    except (TypeError, ValueError):
        raise invalid(
            name, f"{name} is {as_json(value)}; it must be an object of token ids and numbers"
        ) from None
    return {"logit_bias": found}


def _samplers(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, list) or not all(
        isinstance(each, (str, type(None))) for each in value
    ):
        raise invalid(name, f"{name} is {as_json(value)}; it must be a list of names")
    ours = {other: own for own, each in _DECLARED.items() for other in each.other_names}
    return {"samplers": [ours.get(each, each) for each in value if each is not None]}


def _priority(name: str, value: Any) -> Mapping[str, Any]:
    priority = checked(name, value, int)
    if abs(priority) >= 2**31:
        raise invalid(name, f"{name} is {as_json(value)}; it must be between -2**31 and 2**31")
    return {"priority": -priority}


def stop_strings(name: str, value: Any) -> Mapping[str, Any]:
    """Read texts that end the reply."""
    return {"stop": value} if value != [] else {}


_READERS: Final[Mapping[str, Reader]] = {
    "seed": _seed,
    "logit_bias": _biases,
    "samplers": _samplers,
    "stop": stop_strings,
}


def _field(name: str, option: str, declared: Declared) -> Field:
    kinds = {"NUMBER": "number", "INTEGER": "integer", "": "boolean"}
    schema = declared.schema or {"type": [kinds[declared.metavar], "null"]}
    described = {**schema, "description": declared.help}
    return honoured(name, described, _READERS.get(option, to(option)))


_DECLARED: Final = {
    name: each for name, each in declared_options().items() if "server" in each.calls
}
SAMPLING_FIELDS: Final[tuple[Field, ...]] = (
    *(_field(name, name, each) for name, each in _DECLARED.items()),
    *(_field(other, name, each) for name, each in _DECLARED.items() for other in each.other_names),
    honoured("priority", "integer", _priority, "lower values run first, as in vLLM"),
    refused("mirostat", "choose with top_p, min_p or top_n_sigma", 0),
    refused("mirostat_tau", "akunu has no mirostat", 5, 5.0),
    refused("mirostat_eta", "akunu has no mirostat", 0.1),
    refused("dynatemp_range", "the temperature does not change within a text", 0, 0.0),
    refused("dynatemp_exponent", "the temperature does not change within a text", 1, 1.0),
    refused("n_probs", "use logprobs and top_logprobs", 0),
    refused("best_of", "request n completions and choose", 1),
    refused("use_beam_search", "there is no beam search", False),
    refused("length_penalty", "there is no beam search", 1, 1.0),
    honoured("lora", LORA_SCHEMA, lora, "scales of adapters, by id: see GET /lora-adapters"),
    refused("prompt_logprobs", "use completions with echo and logprobs"),
)
