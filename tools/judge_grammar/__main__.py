"""Outside judges of structured output.

python -m tools.judge_grammar maskbench SCHEMAS.jsonl.gz [-m MODEL] [-o REPORT.json]
python -m tools.judge_grammar suite FOLDER [-o REPORT.json]
python -m tools.judge_grammar llguidance tests/judges/llguidance_tests.json [-o REPORT.json]
python -m tools.judge_grammar read-llguidance CHECKOUT -o tests/judges/llguidance_tests.json
python -m tools.judge_grammar ask-node -o tests/judges/ecma.json
python -m tools.judge_grammar cost SCHEMAS.jsonl.gz [-m MODEL] [-n 300] [-o REPORT.json]
python -m tools.judge_grammar generate SCHEMAS.jsonl.gz -m MODEL [-n 300] [-o REPORT.json]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tools.judge_grammar.acceptance import Judge

import akunu

JUDGES = ["maskbench", "suite", "llguidance", "read-llguidance", "ask-node", "cost", "generate"]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("judge", choices=JUDGES)
    parser.add_argument("data", type=Path, nargs="?", help="not of ask-node")
    parser.add_argument("-m", "--model", default="ember", help="whose tokens; a name or a file")
    parser.add_argument("-n", type=int, default=0, help="schemas; 0: all; cost, generate: 300")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--open", action="store_true", help="generate without `brief`'s bounds")
    parser.add_argument("--progress", type=Path, help="generate: a file that gets each text")
    parser.add_argument("--weaken", action="store_true", help="ignore what no grammar can enforce")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(arguments)
    result: dict[str, Any]
    if options.judge == "maskbench":
        from tools.judge_grammar.maskbench import judged, report, schemas

        judge = Judge(akunu.Tokenizer.from_gguf(options.model))
        cases = list(schemas(options.data))[: options.n or None]
        outcomes = [judged(judge, case, weaken=options.weaken, masks=True) for case in cases]
        result = report(outcomes, judge)
    elif options.judge == "suite":
        from tools.judge_grammar.suite import judged_suite

        result = judged_suite(options.data, Judge(akunu.Tokenizer.from_gguf(options.model)))
    elif options.judge == "llguidance":
        from tools.judge_grammar.llguidance import judged_tests, published

        tokenizer = akunu.Tokenizer.from_gguf(options.model)
        result = judged_tests(published(options.data), Judge(tokenizer))
    elif options.judge == "read-llguidance":
        from tools.judge_grammar.rust_tests import as_data

        options.output.write_text(as_data(options.data), encoding="utf-8")
        return 0
    elif options.judge == "ask-node":
        from tools.judge_grammar.ecma import table

        result = table(n=options.n or 300)
    elif options.judge == "cost":
        from tools.judge_grammar.cost import cost

        result = cost(options.model, options.data, options.n or 300)
    else:
        from tools.judge_grammar.generation import generated

        result = generated(
            options.model,
            options.data,
            options.n or 300,
            options.seeds,
            is_brief=not options.open,
            progress=options.progress,
        )
    text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
