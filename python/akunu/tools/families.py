"""The notations of the families of models that are known, the more particular first."""

from __future__ import annotations

from typing import Final

from akunu.tools.notation import Family, Notation

_HERMES: Final = Notation(call="<tool_call>\n{call}\n</tool_call>")

_XML_FUNCTION: Final = "<function={name}>\n{parameters}\n</function>"

_ARGUMENT_PAIRS: Final = Notation(
    call="<tool_call>{name}\n{parameters}\n</tool_call>",
    parameter="<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n",
)

_DSML_CALL: Final = '<｜DSML｜invoke name="{name}">\n{parameters}\n</｜DSML｜invoke>'
_DSML_PARAMETER: Final = (
    '<｜DSML｜parameter name="{key}" string="{type}">{value}</｜DSML｜parameter>\n'
)

_MISTRAL_LIST: Final = Notation(
    before="[TOOL_CALLS][", call="{call}", between=", ", after="]", id_form="9"
)
_MISTRAL_ID: Final = Notation(call="[TOOL_CALLS]{name}[CALL_ID]{id}[ARGS]{arguments}", id_form="9")
_MISTRAL: Final = Notation(call="[TOOL_CALLS]{name}[ARGS]{arguments}", id_form="9")

_LLAMA_TAG: Final = Notation(
    before="<|python_tag|>",
    call="{call}",
    between=";",
    arguments_keys=("parameters", "arguments"),
)
_LLAMA_BARE: Final = Notation(
    call="{call}", between=";", at_start=True, arguments_keys=("parameters", "arguments")
)
_PYTHONIC: Final = Notation(before="[", call="{python}", between=", ", after="]", at_start=True)
_PYTHONIC_TAG: Final = Notation(
    before="<|python_start|>[", call="{python}", between=", ", after="]<|python_end|>"
)

_HARMONY: Final = (
    Notation(
        call="{?<|start|>assistant} to=functions.{name}<|channel|>commentary json<|message|>"
        "{arguments}<|call|>",
        at_start=True,
    ),
    Notation(
        call="{?<|start|>assistant}<|channel|>commentary to=functions.{name} {?<|constrain|>}"
        "{?json}<|message|>{arguments}<|call|>"
    ),
    Notation(
        call="<|start|>assistant to=functions.{name}<|channel|>commentary {?<|constrain|>}{?json}"
        "<|message|>{arguments}<|call|>"
    ),
)

_LFM2: Final = Notation(
    before="<|tool_call_start|>[", call="{python}", between=", ", after="]<|tool_call_end|>"
)

HERMES: Final = Family(name="hermes", signs=("<tool_call>",), ways=(_HERMES,))

FAMILIES: Final = (
    Family(name="harmony", signs=("<|channel|>", "to=functions."), ways=_HARMONY),
    Family(
        name="kimi-k3",
        signs=("<|open|>", "<|sep|>", "argument"),
        ways=(
            Notation(
                before="<|open|>tools<|sep|>",
                call='<|open|>call tool="{name}" index="{index}"<|sep|>{parameters}'
                "<|close|>call<|sep|>",
                after="<|close|>tools<|sep|>{?<|close|>message<|sep|>}",
                parameter='<|open|>argument key="{key}" type="{type}"<|sep|>{value}'
                "<|close|>argument<|sep|>",
            ),
        ),
    ),
    Family(
        name="kimi-k2",
        signs=("<|tool_calls_section_begin|>",),
        ways=(
            Notation(
                before="<|tool_calls_section_begin|>",
                call="<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>"
                "{arguments}<|tool_call_end|>",
                after="<|tool_calls_section_end|>",
                id_form="functions.{name}:{index}",
            ),
        ),
    ),
    Family(
        name="solar",
        signs=("<|tool_call:begin|>", "<|tool_call:args|>"),
        ways=(
            Notation(
                before="{?<|begin|>assistant}<|tool_calls|>",
                call="<|tool_call:begin|>{id}<|tool_call:name|>{name}<|tool_call:args|>{arguments}"
                "<|tool_call:end|>",
                after="<|calls|>",
            ),
        ),
    ),
    Family(
        name="muse",
        signs=("atem:invoke",),
        ways=(
            Notation(
                call="{?<|eom|>}{?<|start|>assistant} to={any}<|message|><atem:function_calls>\n"
                '<atem:invoke name="{name}">\n{parameters}\n</atem:invoke>\n'
                "</atem:function_calls>",
                parameter='<atem:parameter name="{key}">{value}</atem:parameter>\n',
                at_start=True,
            ),
        ),
    ),
    Family(
        name="deepseek-v4",
        signs=("<｜DSML｜", "tool_calls>"),
        ways=(
            Notation(
                before="<｜DSML｜tool_calls>",
                call=_DSML_CALL,
                after="</｜DSML｜tool_calls>",
                parameter=_DSML_PARAMETER,
            ),
        ),
    ),
    Family(
        name="deepseek-v3.2",
        signs=("<｜DSML｜",),
        ways=(
            Notation(
                before="<｜DSML｜function_calls>",
                call=_DSML_CALL,
                after="</｜DSML｜function_calls>",
                parameter=_DSML_PARAMETER,
            ),
        ),
    ),
    Family(
        name="deepseek-r1",
        signs=("<｜tool▁sep｜>", "```json"),
        ways=(
            Notation(
                before="{?<｜tool▁calls▁begin｜>}",
                call="<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```"
                "<｜tool▁call▁end｜>",
                after="<｜tool▁calls▁end｜>",
            ),
        ),
    ),
    Family(
        name="deepseek-v3.1",
        signs=("<｜tool▁sep｜>",),
        ways=(
            Notation(
                before="{?<｜tool▁calls▁begin｜>}",
                call="<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>",
                after="<｜tool▁calls▁end｜>",
            ),
        ),
    ),
    Family(
        name="hunyuan",
        signs=("<tool_sep{}>", ":opensource"),
        ways=(
            Notation(
                before="<tool_calls:opensource>",
                call="<tool_call:opensource>{name}<tool_sep:opensource>\n{parameters}\n"
                "</tool_call:opensource>",
                after="</tool_calls:opensource>",
                parameter="<arg_key:opensource>{key}</arg_key:opensource>\n"
                "<arg_value:opensource>{value}</arg_value:opensource>\n",
            ),
        ),
    ),
    Family(
        name="minimax-m3",
        signs=("]<]minimax[>[",),
        ways=(
            Notation(
                before="]<]minimax[>[<tool_call>",
                call=']<]minimax[>[<invoke name="{name}">{parameters}]<]minimax[>[</invoke>',
                after="]<]minimax[>[</tool_call>",
                parameter="]<]minimax[>[<{key}>{value}]<]minimax[>[</{key}>",
            ),
        ),
    ),
    Family(
        name="minimax-m2",
        signs=("<minimax:tool_call>",),
        ways=(
            Notation(
                before="<minimax:tool_call>",
                call='<invoke name="{name}">\n{parameters}\n</invoke>',
                after="</minimax:tool_call>",
                parameter='<parameter name="{key}">{value}</parameter>\n',
            ),
        ),
    ),
    Family(
        name="minicpm5",
        signs=('<function name="', '<param name="'),
        ways=(
            Notation(
                call='<function name="{name}">{parameters}</function>',
                parameter='<param name="{key}">{value}</param>',
            ),
        ),
    ),
    Family(
        name="seed-oss",
        signs=("<seed:tool_call>",),
        ways=(
            Notation(
                call=f"<seed:tool_call>\n{_XML_FUNCTION}\n</seed:tool_call>",
                parameter="<parameter={key}>{value}</parameter>\n",
            ),
        ),
    ),
    Family(
        name="qwen3-coder",
        signs=("<function=", "<parameter="),
        ways=(
            Notation(
                call=f"<tool_call>\n{_XML_FUNCTION}\n</tool_call>",
                parameter="<parameter={key}>\n{value}\n</parameter>\n",
            ),
            Notation(call=_XML_FUNCTION, parameter="<parameter={key}>\n{value}\n</parameter>\n"),
        ),
    ),
    Family(
        name="glm-4.5",
        signs=("<arg_key>", "<arg_value>"),
        ways=(_ARGUMENT_PAIRS,),
    ),
    Family(
        name="gemma-4",
        signs=("<|tool_call>", "call:"),
        ways=(Notation(call="<|tool_call>call:{name}{words}<tool_call|>", quote='<|"|>'),),
    ),
    Family(
        name="function-gemma",
        signs=("<start_function_call>",),
        ways=(
            Notation(
                call="<start_function_call>call:{name}{words}<end_function_call>",
                quote="<escape>",
            ),
        ),
    ),
    Family(
        name="mistral-id",
        signs=("[TOOL_CALLS]", "[CALL_ID]"),
        ways=(_MISTRAL_ID, _MISTRAL, _MISTRAL_LIST),
    ),
    Family(
        name="mistral-args",
        signs=("[TOOL_CALLS]", "[ARGS]"),
        ways=(_MISTRAL, _MISTRAL_ID, _MISTRAL_LIST),
    ),
    Family(
        name="mistral",
        signs=("[TOOL_CALLS]",),
        ways=(_MISTRAL_LIST, _MISTRAL_ID, _MISTRAL),
    ),
    Family(
        name="command-r7b",
        signs=("<|START_ACTION|>",),
        ways=(
            Notation(
                before="<|START_ACTION|>[",
                call="{call}",
                between=", ",
                after="]<|END_ACTION|>",
                name_key="tool_name",
                arguments_keys=("parameters", "arguments"),
            ),
        ),
    ),
    Family(
        name="command-r",
        signs=("Action:", "tool_name"),
        ways=(
            Notation(
                before="Action: ```json\n[",
                call="{call}",
                between=",",
                after="]\n```",
                name_key="tool_name",
                arguments_keys=("parameters", "arguments"),
            ),
        ),
    ),
    Family(
        name="apertus",
        signs=("<|tools_prefix|>",),
        ways=(
            Notation(
                before="<|tools_prefix|>[", call="{keyed}", between=", ", after="]<|tools_suffix|>"
            ),
        ),
    ),
    Family(
        name="nemotron-v2",
        signs=("<TOOLCALL>",),
        ways=(Notation(before="<TOOLCALL>[", call="{call}", between=", ", after="]</TOOLCALL>"),),
    ),
    Family(name="lfm2", signs=("<|tool_call_start|>",), ways=(_LFM2,)),
    Family(name="lfm2", signs=("<|tool_list_start|>",), ways=(_LFM2,)),
    Family(name="lfm2", signs=('"List of tools: [',), ways=(_LFM2,)),
    Family(
        name="gigachat-3.1",
        signs=("<|function_call|>",),
        ways=(Notation(call="<|function_call|>{call}"),),
    ),
    Family(
        name="gigachat-3",
        signs=("function call<|role_sep|>",),
        ways=(Notation(call="<|message_sep|>\n\nfunction call<|role_sep|>\n{call}"),),
    ),
    Family(
        name="granite-3",
        signs=("<|tool_call|>", "<|start_of_role|>"),
        ways=(
            Notation(before="<|tool_call|>[", call="{call}", between=", ", after="]"),
            Notation(call="<|tool_call|>{call}"),
        ),
    ),
    Family(
        name="phi-4",
        signs=("<|tool_call|>",),
        ways=(
            Notation(before="<|tool_call|>[", call="{call}", between=", ", after="]<|/tool_call|>"),
        ),
    ),
    Family(
        name="functionary-3.1",
        signs=("<function=", "</function>"),
        ways=(Notation(call="<function={name}>{arguments}</function>"),),
    ),
    Family(
        name="functionary-3.2",
        signs=(">>>", "recipient"),
        ways=(
            Notation(call="{name}\n{arguments}", between=">>>", at_start=True),
            Notation(call=">>>{name}\n{arguments}"),
        ),
    ),
    Family(
        name="firefunction",
        signs=("functools[",),
        ways=(Notation(before="functools[", call="{call}", between=", ", after="]"),),
    ),
    HERMES,
    Family(
        name="apriel",
        signs=("<tool_calls>[",),
        ways=(
            Notation(before="<tool_calls>[", call="{call}", between=", ", after="]</tool_calls>"),
        ),
    ),
    Family(
        name="minimax-m1",
        signs=("<tool_calls>",),
        ways=(Notation(before="<tool_calls>", call="{call}", after="</tool_calls>"),),
    ),
    Family(
        name="llama-4",
        signs=("<|python_start|>",),
        ways=(_PYTHONIC, _PYTHONIC_TAG, _LLAMA_BARE),
    ),
    Family(
        name="llama-3",
        signs=("<|python_tag|>", "parameters"),
        ways=(_LLAMA_BARE, _LLAMA_TAG, _PYTHONIC),
    ),
    Family(
        name="llama-3",
        signs=('"parameters":', "ipython"),
        ways=(_LLAMA_BARE, _LLAMA_TAG, _PYTHONIC),
    ),
    Family(
        name="pythonic",
        signs=("pythonic",),
        ways=(_PYTHONIC, _PYTHONIC_TAG, _LLAMA_BARE),
    ),
)
