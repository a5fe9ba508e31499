"""A call goes through a model's chat template and is read back from what that writes.

The templates of llama.cpp's `models/templates` (they lie in the source package of
`llama-cpp-python`, and have licenses of their own) are tried in a folder that
`AKUNU_TEST_LLAMA_CPP_TEMPLATES` names. The table says what each can do; it was made with those of
llama-cpp-python 0.3.36.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from template_support import TEMPLATES, template_source
from tool_support import text_and_calls

from akunu.templates.chat_template import ChatTemplate
from akunu.tools.calls import ToolCall
from akunu.tools.recognise import read_reply, recognise, rendered_reply
from lines import each_line

# The family; then what the template, and so the round trip, cannot do:
#   unshown: it shows no calls at all, so the family is told from its text alone
#   single: it refuses several calls in one reply, or shows only one
#   textless: it leaves out text beside calls
#   quotes: it does not escape quotes within strings
#   nested: it writes nested arguments in a way that is none of JSON, or leaves out what is null
#   strict: it refuses tools whose schema it has no words for
COMMITTED = {
    "HuggingFaceTB-SmolLM3-3B": "none unshown",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "hermes",
    "like-gemma-2": "none unshown",
    "like-hermes-2-pro": "hermes textless",
    "like-llama-3.1": "llama-3 single textless",
    "microsoft-Phi-3.5-mini-instruct": "none unshown",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral textless",
    "openai-gpt-oss-120b": "harmony single textless",
}
LLAMA_CPP = {
    "Apertus-8B-Instruct": "apertus",
    "Apriel-1.6-15b-Thinker-fixed": "apriel",
    "Bielik-11B-v3.0-Instruct": "hermes",
    "ByteDance-Seed-OSS": "seed-oss",
    "Cohere2MoE": "command-r7b textless",
    "CohereForAI-c4ai-command-r-plus-tool_use": "command-r strict",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "command-r7b textless",
    "GLM-4.6": "glm-4.5",
    "GLM-4.7-Flash": "glm-4.5",
    "GigaChat3-10B-A1.8B": "gigachat-3 single",
    "GigaChat3.1-10B-A1.8B": "gigachat-3.1 single",
    "HuggingFaceTB-SmolLM3-3B": "none unshown",
    "Kimi-K2-Instruct": "kimi-k2",
    "Kimi-K2-Thinking": "kimi-k2",
    "Kimi-K3": "kimi-k3",
    "LFM2-8B-A1B": "lfm2 unshown",
    "LFM2.5-8B-A1B": "lfm2 quotes",
    "LFM2.5-Instruct": "lfm2 unshown",
    "MiMo-VL": "hermes",
    "MiniMax-M1": "minimax-m1 textless",
    "MiniMax-M2": "minimax-m2",
    "MiniMax-M3": "minimax-m3 nested",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral-id textless",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "qwen3-coder",
    "NVIDIA-Nemotron-Nano-v2": "nemotron-v2",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes textless",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes textless",
    "Qwen-QwQ-32B": "hermes",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "hermes",
    "Qwen3-Coder": "qwen3-coder",
    "Qwen3.5-4B": "qwen3-coder",
    "Reka-Edge": "hermes",
    "Spark2.5": "glm-4.5",
    "StepFun3.5-Flash": "qwen3-coder",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek-r1 textless",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek-r1",
    "deepseek-ai-DeepSeek-V3.1": "deepseek-v3.1",
    "deepseek-ai-DeepSeek-V3.2": "deepseek-v3.2",
    "deepseek-ai-DeepSeek-V4": "deepseek-v4",
    "deepseek-ai-DeepSeek-V4-Flash-0731": "deepseek-v4",
    "fireworks-ai-llama-3-firefunction-v2": "firefunction unshown",
    "google-gemma-2-2b-it": "none unshown",
    "google-gemma-4-31B-it": "gemma-4",
    "google-gemma-4-31B-it-interleaved": "gemma-4",
    "ibm-granite-granite-3.3-2B-Instruct": "granite-3 unshown",
    "ibm-granite-granite-4.0": "hermes",
    "ibm-granite-granite-4.1": "hermes",
    "inclusionai-ling-3.0-flash": "glm-4.5",
    "llama-cpp-deepseek-r1": "deepseek-r1 textless",
    "llama-cpp-rwkv-world": "none unshown",
    "meetkai-functionary-medium-v3.1": "functionary-3.1",
    "meetkai-functionary-medium-v3.2": "functionary-3.2",
    "meta-llama-Llama-3.1-8B-Instruct": "llama-3 single textless",
    "meta-llama-Llama-3.2-3B-Instruct": "llama-3 single textless",
    "meta-llama-Llama-3.3-70B-Instruct": "llama-3 single textless",
    "microsoft-Phi-3.5-mini-instruct": "none unshown",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral-args",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral textless",
    "moonshotai-Kimi-K2": "kimi-k2",
    "muse-glimmer": "muse textless",
    "openai-gpt-oss-120b": "harmony single textless",
    "openbmb-MiniCPM5-1B": "minicpm5 quotes",
    "poolside-Laguna-S-2.1": "glm-4.5",
    "poolside-Laguna-XS-2.1": "glm-4.5",
    "poolside-Laguna-XS.2": "glm-4.5",
    "tencent-Hy3": "hunyuan",
    "unsloth-Apriel-1.5": "apriel",
    "unsloth-mistral-Devstral-Small-2507": "mistral-args",
    "upstage-Solar-Open-100B": "solar textless",
}

SCHEMAS: dict[str, dict[str, Any]] = {
    "get_weather": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "A city."},
            "days": {"type": "integer", "description": "How many."},
            "where": {"type": "object", "description": "More about the place."},
        },
        "required": ["city"],
    },
    "now": {"type": "object", "properties": {}},
}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}
    for name, schema in SCHEMAS.items()
]


def call(name: str, number: int = 3, **arguments: object) -> ToolCall:
    return ToolCall(f"abcdef12{number}", name, json.dumps(arguments, ensure_ascii=False))


PARIS = call("get_weather", city="Paris", days=3)
ODD = 'He said "hi"\n\tüñ 漢 🙂 </tool_call> \\ {"a": 1} it\'s'
CASES = {
    "single": ([PARIS, call("get_weather", 4, city="Rome")], ""),
    "quotes": ([call("get_weather", city=ODD, days=-3)], ""),
    "nested": (
        [call("get_weather", city="1", where={"lat": 1.5, "tags": ["a"], "on": True, "off": None})],
        "",
    ),
    "empty": ([call("now")], ""),
    "textless": ([PARIS], "I will look."),
}


def goes_through(template: ChatTemplate, calls: list[ToolCall], content: str) -> bool:
    """Whether a reply is read back from its rendering, wherever that begins."""
    found = recognise(template)
    assert found is not None
    for given in (content, content or None):
        messages = [one.message for one in calls]
        message = {"role": "assistant", "content": given, "tool_calls": messages}
        rendered = rendered_reply(template, message, TOOLS)
        if rendered is None:
            continue
        text, latest = rendered
        for begin in range(latest, -1, -1):
            shown, read = text_and_calls(read_reply(found.family, template, text[begin:], SCHEMAS))
            if read == [(one.name, one.arguments) for one in calls]:
                return content in shown
    return False


def check(template: ChatTemplate, expected: str) -> None:
    family, *cannot = expected.split()
    found = recognise(template)
    assert (found.family.name if found else "none") == family
    assert (found is not None and found.is_checked) == ("unshown" not in cannot)
    if "unshown" in cannot or "strict" in cannot:
        return
    worked = {name: goes_through(template, *case) for name, case in CASES.items()}
    assert [name for name in CASES if not worked[name]] == [n for n in CASES if n in cannot]


def test_every_template_here_is_in_the_table() -> None:
    assert sorted(COMMITTED) == TEMPLATES


@each_line("name", COMMITTED)
def test_a_call_goes_through_a_template_and_back(name: str) -> None:
    check(ChatTemplate(template_source(name), "<s>", "</s>"), COMMITTED[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", LLAMA_CPP)
def test_a_call_goes_through_llama_cpps_templates_and_back(name: str) -> None:
    folder = os.environ.get("AKUNU_TEST_LLAMA_CPP_TEMPLATES")
    if not folder:
        pytest.skip("no templates: set AKUNU_TEST_LLAMA_CPP_TEMPLATES to their folder")
    path = Path(folder) / f"{name}.jinja"
    if not path.is_file():
        pytest.skip(f"this llama.cpp has no template {name}")
    check(ChatTemplate(path.read_text(encoding="utf-8"), "<s>", "</s>"), LLAMA_CPP[name])
