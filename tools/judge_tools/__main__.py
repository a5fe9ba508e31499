"""Calls of the Berkeley Function Calling Leaderboard, rendered and read back.

python -m tools.judge_tools BFCL TEMPLATES [-n 200] [-o REPORT.json]

BFCL: the unpacked package `bfcl-eval` (pip download --no-deps bfcl-eval, then unzip it). TEMPLATES:
a folder of chat templates. Each answer of the leaderboard is rendered as a reply by each template,
read back, and judged by the leaderboard's own check of calls (`ast_checker`). Templates that take
one call a reply are judged by the categories with one call.
"""

from __future__ import annotations

import argparse
import json
import sys
import types
from collections import defaultdict
from pathlib import Path
from typing import Any

from akunu.templates.chat_template import ChatTemplate
from akunu.tools.calls import ToolCall, calls_of
from akunu.tools.recognise import read_reply, rendered_reply

SINGLE = ("simple_python", "multiple", "live_simple", "live_multiple")
SEVERAL = ("parallel", "parallel_multiple", "live_parallel", "live_parallel_multiple")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bfcl", type=Path)
    parser.add_argument("templates", type=Path)
    parser.add_argument("-n", type=int, default=200, help="cases of each category")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(arguments)
    check = checker(options.bfcl)
    report = {}
    for path in sorted(options.templates.glob("*.jinja")):
        template = ChatTemplate(path.read_text(encoding="utf-8"), "<s>", "</s>")
        found = template.tool_notation
        if found is None or not found.is_checked:
            continue
        report[path.stem] = {
            "family": found.family.name,
            **{
                category: judged(template, category, options.bfcl, options.n, check)
                for category in (*SINGLE, *SEVERAL)
            },
        }
        print(path.stem, json.dumps(report[path.stem]), flush=True)
    if options.output:
        options.output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


def checker(folder: Path) -> Any:
    """The leaderboard's check, without its list of models, which would import their clients."""
    sys.path.insert(0, str(folder))
    models = types.ModuleType("bfcl_eval.constants.model_config")
    plain = types.SimpleNamespace(underscore_to_dot=False)
    models.MODEL_CONFIG_MAPPING = defaultdict(lambda: plain)  # type: ignore[attr-defined]
    sys.modules[models.__name__] = models
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    def check(functions: Any, calls: Any, answers: Any, category: str) -> bool:
        kind = category.removeprefix("live_")
        result = ast_checker(functions, calls, answers, Language.PYTHON, kind, "akunu")
        return bool(result["valid"])

    return check


def judged(template: ChatTemplate, category: str, folder: Path, most: int, check: Any) -> str:
    """How many of a category's answers are right when they come back, of how many."""
    data = folder / "bfcl_eval/data"
    cases = lines(data / f"BFCL_v4_{category}.json")[:most]
    answers = {
        each["id"]: each["ground_truth"]
        for each in lines(data / "possible_answer" / f"BFCL_v4_{category}.json")
    }
    right = refused = unfit = 0
    for case in cases:
        truth = answers[case["id"]]
        plain = [{name: arguments} for name, arguments in map(written, truth)]
        if not check(case["function"], plain, truth, category):
            unfit += 1  # the leaderboard's check does not take its own answer
            continue
        calls = came_back(template, case["function"], [written(call) for call in truth])
        if calls is None:
            refused += 1
        elif check(case["function"], calls, truth, category):
            right += 1
    shown = f"{right} of {len(cases) - refused - unfit}"
    return shown + (f", {refused} refused" if refused else "")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def written(call: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The first of the values that are right for each argument; those that may be missing are."""
    ((name, arguments),) = call.items()
    return name, {key: first(values) for key, values in arguments.items() if first(values) != ""}


def first(values: list[Any]) -> Any:
    return inner(next((value for value in values if value != ""), ""))


def inner(value: Any) -> Any:
    if isinstance(value, dict):  # again with a list of right values for each key
        chosen = {k: first(v) if isinstance(v, list) else v for k, v in value.items()}
        return {key: item for key, item in chosen.items() if item != ""}
    return [inner(each) for each in value] if isinstance(value, list) else value


def schema(given: Any) -> Any:
    """JSON schema's names of types in place of Python's."""
    names = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}
    if isinstance(given, dict):
        return {
            key: names.get(value, value)
            if key == "type" and isinstance(value, str)
            else schema(value)
            for key, value in given.items()
        }
    return [schema(each) for each in given] if isinstance(given, list) else given


def came_back(
    template: ChatTemplate, functions: list[Any], calls: list[tuple[str, dict[str, Any]]]
) -> list[dict[str, Any]] | None:
    """What is read of the calls that a template rendered; None: it refuses them."""
    tools = [{"type": "function", "function": schema(each)} for each in functions]
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    made = [
        ToolCall(f"abcdef{i:03d}", name, json.dumps(arguments, ensure_ascii=False))
        for i, (name, arguments) in enumerate(calls)
    ]
    found = template.tool_notation
    assert found is not None
    for content in (None, ""):
        messages = [call.message for call in made]
        message = {"role": "assistant", "content": content, "tool_calls": messages}
        rendered = rendered_reply(template, message, tools)
        if rendered is None or rendered[0].count(made[0].name) < 1:
            continue
        text, latest = rendered
        for begin in range(latest, -1, -1):
            read = calls_of(read_reply(found.family, template, text[begin:], schemas))
            if len(read) == len(made):
                return [{call.name: call.arguments} for call in read]
        return []
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
