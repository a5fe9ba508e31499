"""What fields ask for, for the OpenAPI document and docs/reference/request-fields.md.

Most names mean the same in every API; where one does not, its table says so in a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from akunu.server.fields.table import Field

_CALLS: Final = "which tools the model may or must call"
_FORMAT: Final = "the format of the reply: text, a JSON object, or JSON that fits a schema"
_LEVEL: Final = "how much the model thinks before it answers"
_LONGEST: Final = "the most tokens of a reply, thinking included"
_N_PREDICT: Final = "the most tokens of a reply; -1 and -2: until the context is full"
_SCHEMA: Final = "a JSON schema that the reply fits"

MEANINGS: Final = {
    "best_of": "how many completions to generate for each prompt; the n most likely are returned",
    "add_generation_prompt": "false with continue_final_message",
    "chat_template_kwargs": "variables of the model's chat template, by their names",
    "continue_final_message": "continue the last message, of the assistant, in place of a new one",
    "echo": "begin the completion with the prompt",
    "enable_thinking": "let the model think before it answers",
    "format": '"json", or a JSON schema that the reply fits',
    "function_call": "the older form of tool_choice",
    "functions": "the older form of tools",
    "grammar": "a grammar (GBNF or Lark) that the reply fits",
    "guided_choice": "the reply is one of these texts",
    "guided_grammar": "a grammar that the reply fits, as vLLM calls it",
    "guided_json": "a JSON schema that the reply fits, as vLLM calls it",
    "guided_regex": "a regular expression that the reply fits",
    "include": "what else is returned: logprobs",
    "images": "images for the prompt, each in base64",
    "input": "the conversation: a text, or a list of items",
    "input_extra": "other files: objects with a filename and a text",
    "input_prefix": "the text before the gap",
    "input_suffix": "the text after the gap",
    "instructions": "instructions before the conversation",
    "json_schema": _SCHEMA,
    "keep_alive": "how long the model stays loaded afterwards: a duration such as 5m, or seconds",
    "logprobs": "return the log-probability of each token",
    "logit_bias": "numbers to add to the logits of tokens, by ids or texts",
    "max_completion_tokens": _LONGEST,
    "max_output_tokens": _LONGEST,
    "max_tokens": _LONGEST,
    "messages": "the conversation; some models read images in it",
    "modalities": 'only ["text"]',
    "model": "the name of a model; default: the first",
    "n": "how many replies to generate",
    "n_predict": _N_PREDICT,
    "n_probs": "how many of the most likely tokens to return with each token",
    "num_predict": _N_PREDICT,
    "options": "sampling options, see below",
    "output_config": "format: a JSON schema that the reply fits",
    "output_format": _SCHEMA,
    "parallel_tool_calls": "allow several tool calls in a reply",
    "prompt": "the text to continue, or its token ids, or a list of either",
    "random_seed": "the same seed gives the same text",
    "raw": "use the prompt without the chat template",
    "reasoning": "effort, enabled, max_tokens: " + _LEVEL,
    "reasoning_effort": _LEVEL + ": none, minimal, low, medium, high, xhigh or max",
    "reasoning_format": "where the thinking is: in its own field",
    "response_fields": "fields of the answer; others are not sent",
    "response_format": _FORMAT,
    "return_tokens": "return the token ids of the completion",
    "stop_sequences": "stop strings: the reply ends before the first of them",
    "stream": "send the reply in chunks while it is generated",
    "stream_options": "include_usage: end the stream with the usage",
    "structured_outputs": "json, regex, choice or grammar, in vLLM's form",
    "suffix": "the text after the gap, where the model fills in",
    "system": "instructions before the conversation",
    "text": "format: " + _FORMAT,
    "think": _LEVEL + ": true, false or a level",
    "thinking": _LEVEL,
    "thinking_budget": "the most tokens of thinking",
    "thinking_budget_tokens": "the most tokens of thinking",
    "timings_per_token": "send times in each chunk of a stream",
    "ttl": "how many seconds the model stays loaded afterwards, as LM Studio calls it",
    "tool_choice": _CALLS,
    "tools": "functions that the model may call",
    "top_logprobs": "how many of the most likely tokens to return with each token, 0 to 20",
}


def meaning_of(field: Field) -> str:
    """Return what a field asks for, "" where no one has said it."""
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
            words = "Not supported" if each.effect == "refused" else "Without effect"
            schema["description"] = f"{words}: {each.note}" if each.note else f"{words}."
        properties[each.name] = schema
    return {"type": "object", "properties": properties, "required": list(required)}
