"""Exact match on held-out dialogues: `python -m tools.train_ember.evaluate MODEL.gguf`.

The same questions for everyone: they come from a fixed seed. With `--backend torch`, MODEL is the
folder of a checkpoint and the replies come from the PyTorch model.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from . import mixture
from .dialogue import Dialogue, Draw

Answer = Callable[[list[Dialogue]], list[str]]
REFUSES = "Sorry, "


def held_out(n_per_task: int, seed: str = "evaluation") -> list[tuple[Dialogue, str]]:
    """(dialogue up to its last question, the expected reply), all from the held-out side."""
    cases = []
    for _, module in mixture.FAMILIES:
        for generator, _ in module.TASKS:
            n = n_per_task * (10 if len(module.TASKS) == 1 else 1)
            draw = Draw(f"{seed}/{module.FAMILY}/{generator.__name__}", held_out=True)
            for _ in range(min(n, 400)):
                made = generator(draw)
                expected = made.messages[-1]["content"]
                cases.append((Dialogue(made.family, made.task, made.messages[:-1], made.tools),
                              expected))
    return cases


def akunu_answers(path: str, max_tokens: int) -> Answer:
    import akunu

    model = akunu.load(path)

    def answer(dialogues: list[Dialogue]) -> list[str]:
        made = []
        for at, dialogue in enumerate(dialogues):
            extra = {"tools": dialogue.tools} if dialogue.tools else {}
            reply = model.chat(dialogue.messages, max_tokens=max_tokens, temperature=0, **extra)
            made.append(str(reply))
            if at % 100 == 99:
                print(f"{at + 1} of {len(dialogues)}", file=sys.stderr)
        return made

    return answer


def torch_answers(folder: str, tokenizer_path: Path, stored: str, max_tokens: int) -> Answer:
    from . import generate, tokenizer

    model = generate.load_model(Path(folder), stored)
    bpe = tokenizer.load(tokenizer_path)
    return lambda dialogues: generate.replies(model, bpe, dialogues, max_tokens=max_tokens)


def score(cases: list[tuple[Dialogue, str]], replies: list[str]) -> dict[str, dict[str,
                                                                                   list[bool]]]:
    """family -> task -> right or wrong; a refusal counts when it refuses."""
    results: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for (dialogue, expected), reply in zip(cases, replies, strict=True):
        right = reply.strip() == expected
        if dialogue.family == "refusals":
            right = reply.startswith(REFUSES)
        results[dialogue.family][dialogue.task].append(right)
    return results


def _percent(hits: list[bool]) -> str:
    return f"{100 * sum(hits) / len(hits):.1f} %"


def report(cases: list[tuple[Dialogue, str]], replies: list[str], *, by_task: bool) -> str:
    results = score(cases, replies)
    lines = ["| family | exact match | questions |", "|---|---:|---:|"]
    shares = []
    for family, tasks in results.items():
        hits = [hit for task in tasks.values() for hit in task]
        if family in mixture.CLOSED:
            shares.append(sum(hits) / len(hits))
        lines.append(f"| {family} | {_percent(hits)} | {len(hits)} |")
        if by_task and len(tasks) > 1:
            lines += [f"| … {task} | {_percent(hits)} | {len(hits)} |" for task,
                      hits in tasks.items()]
    macro = 100 * sum(shares) / len(shares)
    lines.append(f"| **macro average, closed families** | **{macro:.1f} %** | |")
    refused = [reply.startswith(REFUSES) for (d, _), reply in zip(cases, replies, strict=True)
               if d.family in mixture.CLOSED]
    lines.append(f"| closed questions refused | {_percent(refused)} | {len(refused)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a GGUF file, or the folder of a checkpoint")
    parser.add_argument("--backend", choices=("akunu", "torch"), default="akunu")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json, for --backend torch")
    parser.add_argument("--stored", choices=("exact", "q8_0", "q4_0"), default="exact")
    parser.add_argument("--per-task", type=int, default=40, help="questions for each task")
    parser.add_argument("--max-tokens", type=int, default=120)
    parser.add_argument("--by-task", action="store_true", help="a row for each task as well")
    parser.add_argument("--wrong", type=Path, help="write the wrong replies here, one JSON a line")
    options = parser.parse_args()
    cases = held_out(options.per_task)
    if options.backend == "akunu":
        answer = akunu_answers(options.model, options.max_tokens)
    else:
        if not options.tokenizer:
            parser.error("--backend torch needs --tokenizer")
        answer = torch_answers(options.model, options.tokenizer, options.stored, options.max_tokens)
    replies = answer([dialogue for dialogue, _ in cases])
    print(report(cases, replies, by_task=options.by_task))
    if options.wrong:
        with options.wrong.open("w") as file:
            for (dialogue, expected), reply in zip(cases, replies, strict=True):
                if reply.strip() != expected:
                    line = {"task": dialogue.task, "asked": dialogue.messages[-1]["content"],
                            "expected": expected, "reply": reply}
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
