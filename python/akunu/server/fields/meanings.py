"""What fields ask for, for the OpenAPI document and docs/request-fields.md.

Most names mean the same in every API; where one does not, its table says so in a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from akunu.server.fields.table import Field

_CALLS: Final = "which tools the model may, or must, call"
_FORMAT: Final = "what the reply may be: text, any JSON object, or JSON of a schema"
_LEVEL: Final = "how much the model thinks before it answers"
_LONGEST: Final = "the most tokens of a reply, thoughts included"
_N_PREDICT: Final = "the most tokens of a reply; -1 and -2: until the context is full"
_SCHEMA: Final = "a JSON schema that the reply fits"

MEANINGS: Final = {
    "best_of": "how many texts are generated for each prompt; the n likeliest are returned",
    "chat_template_kwargs": "variables of the model's chat template, by their names",
    "echo": "whether the text begins with the prompt",
    "enable_thinking": "whether the model thinks before it answers",
    "format": '"json", or a JSON schema that the reply fits',
    "function_call": "the older form of tool_choice",
    "functions": "the older form of tools",
    "grammar": "a grammar (GBNF or Lark) that the reply fits",
    "guided_choice": "texts of which the reply is one",
    "guided_grammar": "a grammar that the reply fits, as vLLM calls it",
    "guided_json": "a JSON schema that the reply fits, as vLLM calls it",
    "guided_regex": "a regular expression that the reply fits",
    "include": "what else is returned: logprobs",
    "images": "images that the prompt is about, each a file in base64",
    "input": "the conversation: a text, or a list of items",
    "input_extra": "other files: objects with a filename and a text",
    "input_prefix": "the text before the gap",
    "input_suffix": "the text behind the gap",
    "instructions": "what the model is told before the conversation",
    "json_schema": _SCHEMA,
    "keep_alive": "0 unloads the model where there is no prompt; all else has no effect",
    "logprobs": "whether to return how likely each token was",
    "logit_bias": "what is added to the logits of tokens, by their ids or texts",
    "max_completion_tokens": _LONGEST,
    "max_output_tokens": _LONGEST,
    "max_tokens": _LONGEST,
    "messages": "the conversation; of some models it may have images",
    "modalities": '["text"] is all that there is',
    "model": "the name of a model; without it, the first that is served",
    "n": "how many replies to generate",
    "n_predict": _N_PREDICT,
    "n_probs": "how many of the most likely tokens to return beside each token",
    "num_predict": _N_PREDICT,
    "options": "how tokens are chosen, see below",
    "output_config": "format: a JSON schema that the reply fits",
    "output_format": _SCHEMA,
    "parallel_tool_calls": "whether a reply may have several calls",
    "prompt": "the text that the model goes on from, or its token ids, or a list of either",
    "random_seed": "the same seed gives the same text",
    "raw": "whether the prompt is given to the model as it is, without its chat template",
    "reasoning": "effort, enabled, max_tokens: " + _LEVEL,
    "reasoning_effort": _LEVEL + ": none, minimal, low, medium, high, xhigh or max",
    "reasoning_format": "where thoughts are: in a field of their own",
    "response_fields": "names of the fields that the answer has; all others are left out",
    "response_format": _FORMAT,
    "return_tokens": "whether the answer has the token ids of the text",
    "stop_sequences": "the reply ends before the first of these that appears",
    "stream": "whether the reply comes in pieces, as it is written",
    "stream_options": "include_usage: whether a stream ends with the usage",
    "structured_outputs": "json, regex, choice or grammar: what the reply fits, as vLLM has it",
    "suffix": "the text behind the gap, where the model fills in",
    "system": "what the model is told before the conversation",
    "text": "format: " + _FORMAT,
    "think": _LEVEL + ": true, false or a level",
    "thinking": _LEVEL,
    "thinking_budget": "the most tokens of thoughts",
    "thinking_budget_tokens": "the most tokens of thoughts",
    "timings_per_token": "whether each chunk of a stream says how long the reply took so far",
    "tool_choice": _CALLS,
    "tools": "functions that the model may call",
    "top_logprobs": "how many of the most likely tokens to return beside each token, 0 to 20",
}


def meaning_of(field: Field) -> str:
    """Return what a field asks for, "" where nobody has said it."""
    described: Any = field.schema.get("description")
    return described or field.note or MEANINGS.get(field.name, "")


def request_schema(table: Mapping[str, Field], required: Iterable[str] = ()) -> dict[str, Any]:
    """Return what a request may have, for the OpenAPI document."""
    properties = {}
    for each in table.values():
        schema: dict[str, Any] = dict(each.schema)
        meaning = meaning_of(each)
        if each.effect == "honoured" and meaning:
            schema["description"] = meaning[0].upper() + meaning[1:].rstrip(".") + "."
        if each.effect != "honoured":
            words = "Not done here" if each.effect == "refused" else "Without effect"
            schema["description"] = f"{words}: {each.note}" if each.note else f"{words}."
        properties[each.name] = schema
    return {"type": "object", "properties": properties, "required": list(required)}
