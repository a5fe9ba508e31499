"""Exact match on held-out dialogues: `python -m ember.evaluate MODEL.gguf`.

The same questions for everyone: they come from a fixed seed, and from
`data/hand_written.jsonl`, whose prompts no program made. The table of the lines to reach comes
last.
With `--backend torch`, MODEL is the folder of a checkpoint and the replies come from the PyTorch
model.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import mixture
from .dialogue import Dialogue, Draw, Message
from .wordings import HAND_WRITTEN

Answer = Callable[[list[Dialogue]], list[str]]
REFUSES = "Sorry, "


@dataclass(slots=True)
class HandWritten:
    """One line of the file: what the user types, turn by turn; only the last reply is judged."""

    family: str
    turns: list[Message]
    accept: list[str]
    tools: list[dict[str, Any]] = field(default_factory=list)

    def is_right(self, reply: str) -> bool:
        if self.family == "refusals":
            return reply.startswith(REFUSES)
        return reply.strip() in self.accept


def hand_written(path: Path = HAND_WRITTEN) -> list[HandWritten]:
    cases = []
    for line in path.read_text("utf-8").splitlines():
        case = json.loads(line)
        turns = [
            {"role": "user", "content": turn} if isinstance(turn, str) else turn
            for turn in case["turns"]
        ]
        cases.append(
            HandWritten(case["family"], turns, case.get("accept", []), case.get("tools", []))
        )
    return cases


def converse(cases: list[HandWritten], answer: Answer) -> list[str]:
    """The last replies; the model's own earlier ones stand between the turns."""
    dialogues = [Dialogue(case.family, "hand-written", [], case.tools) for case in cases]
    for at in range(max(len(case.turns) for case in cases)):
        going = [
            (case, made)
            for case, made in zip(cases, dialogues, strict=True)
            if at < len(case.turns)
        ]
        for case, made in going:
            made.messages.append(case.turns[at])
        for (_, made), reply in zip(going, answer([made for _, made in going]), strict=True):
            made.messages.append({"role": "assistant", "content": reply.strip()})
    return [made.messages[-1]["content"] for made in dialogues]


def held_out(n_per_task: int, seed: str = "evaluation") -> list[tuple[Dialogue, str]]:
    """(dialogue up to its last question, the expected reply), all from the held-out side."""
    cases = []
    for _, module in mixture.FAMILIES:
        for generator, _ in module.TASKS:
            n = n_per_task * max(1, round(10 / len(module.TASKS)))
            draw = Draw(f"{seed}/{module.FAMILY}/{generator.__name__}", held_out=True)
            for _ in range(min(n, 400)):
                made = generator(draw)
                expected = made.messages[-1]["content"]
                cases.append(
                    (Dialogue(made.family, made.task, made.messages[:-1], made.tools), expected)
                )
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


def score(
    cases: list[tuple[Dialogue, str]], replies: list[str]
) -> dict[str, dict[str, list[bool]]]:
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


def share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits)


@dataclass(frozen=True, slots=True)
class Line:
    """One number that the model has to reach: at least, or at most, so many per cent."""

    what: str
    percent: float
    bound: float
    at_least: bool = True

    @property
    def is_met(self) -> bool:
        return self.percent >= self.bound if self.at_least else self.percent <= self.bound


def verdict(
    cases: list[tuple[Dialogue, str]],
    replies: list[str],
    by_hand: list[HandWritten],
    hand_replies: list[str],
) -> list[Line]:
    """The lines that the packaged model is held to, and what it reached."""
    results = score(cases, replies)
    closed = {family: tasks for family, tasks in results.items() if family in mixture.CLOSED}
    families = {
        family: share([hit for hits in tasks.values() for hit in hits])
        for family, tasks in closed.items()
    }
    of_task = {task: share(hits) for tasks in closed.values() for task, hits in tasks.items()}
    family, task = min(families, key=families.__getitem__), min(of_task, key=of_task.__getitem__)
    refused = [
        reply.startswith(REFUSES)
        for (dialogue, _), reply in zip(cases, replies, strict=True)
        if dialogue.family in mixture.CLOSED
    ]
    outside = [hit for hits in results["refusals"].values() for hit in hits]
    right = [case.is_right(reply) for case, reply in zip(by_hand, hand_replies, strict=True)]
    return [
        Line("macro average, closed families", 100 * sum(families.values()) / len(families), 95),
        Line("macro average, closed tasks", 100 * sum(of_task.values()) / len(of_task), 95),
        Line(f"lowest family: {family}", 100 * families[family], 88),
        Line(f"lowest task: {task}", 100 * of_task[task], 88),
        Line("written by hand", 100 * share(right), 85),
        Line("out of scope, refused", 100 * share(outside), 90),
        Line("closed questions refused", 100 * share(refused), 2, at_least=False),
    ]


def report_verdict(lines: list[Line]) -> str:
    rows = ["| line | wanted | reached | |", "|---|---:|---:|---|"]
    rows += [
        f"| {line.what} | {'≥' if line.at_least else '≤'} {line.bound:g} % | "
        f"{line.percent:.1f} % | {'met' if line.is_met else '**not met**'} |"
        for line in lines
    ]
    return "\n".join(rows)


def report_by_hand(cases: list[HandWritten], replies: list[str], *, by_task: bool) -> list[str]:
    """Rows of the table for the prompts that were written by hand."""
    hits: dict[str, list[bool]] = defaultdict(list)
    for case, reply in zip(cases, replies, strict=True):
        hits[case.family].append(case.is_right(reply))
    together = [hit for family in hits.values() for hit in family]
    lines = [f"| **written by hand** | **{_percent(together)}** | {len(together)} |"]
    if by_task:
        lines += [f"| … {family} | {_percent(h)} | {len(h)} |" for family, h in hits.items()]
    return lines


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
            lines += [
                f"| … {task} | {_percent(hits)} | {len(hits)} |" for task, hits in tasks.items()
            ]
    macro = 100 * sum(shares) / len(shares)
    lines.append(f"| **macro average, closed families** | **{macro:.1f} %** | |")
    refused = [
        reply.startswith(REFUSES)
        for (d, _), reply in zip(cases, replies, strict=True)
        if d.family in mixture.CLOSED
    ]
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
    by_hand = hand_written()
    hand_replies = converse(by_hand, answer)
    print(report(cases, replies, by_task=options.by_task))
    print("\n".join(report_by_hand(by_hand, hand_replies, by_task=options.by_task)))
    print("\n" + report_verdict(verdict(cases, replies, by_hand, hand_replies)))
    if options.wrong:
        with options.wrong.open("w", encoding="utf-8") as file:
            for line in _wrong(cases, replies, by_hand, hand_replies):
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _wrong(
    cases: list[tuple[Dialogue, str]],
    replies: list[str],
    by_hand: list[HandWritten],
    hand_replies: list[str],
) -> Iterator[dict[str, object]]:
    for (dialogue, expected), reply in zip(cases, replies, strict=True):
        refused = dialogue.family == "refusals" and reply.startswith(REFUSES)
        if reply.strip() != expected and not refused:
            yield {
                "task": dialogue.task,
                "asked": dialogue.messages[-1]["content"],
                "expected": expected,
                "reply": reply,
            }
    for case, reply in zip(by_hand, hand_replies, strict=True):
        if not case.is_right(reply):
            yield {
                "task": f"by hand, {case.family}",
                "asked": case.turns[-1]["content"],
                "expected": case.accept,
                "reply": reply,
            }


if __name__ == "__main__":
    main()
