"""What a benchmark shall measure: llama-bench's lists and ranges, and the tests they make."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from akunu.cli.terminal.console import UsageError
from akunu.storage.model_files import ModelDirectory, ModelFiles

_RANGE = re.compile(r"(\d+)(?:-(\d+)(?:([+*])(\d+))?)?")
_MOST_VALUES = 10_000
_HIGHEST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Test:
    """One measurement: a prompt, a generated text or both, after `n_depth` tokens."""

    n_prompt: int
    n_gen: int
    n_depth: int

    @property
    def name(self) -> str:
        """The name that llama-bench gives it: "pp512", "tg128 @ d4096", "pp512+tg128"."""
        parts = [f"pp{self.n_prompt}"] if self.n_prompt else []
        parts += [f"tg{self.n_gen}"] if self.n_gen else []
        return "+".join(parts) + (f" @ d{self.n_depth}" if self.n_depth else "")

    @property
    def n_tokens(self) -> int:
        """The tokens that are measured."""
        return self.n_prompt + self.n_gen

    @property
    def n_positions(self) -> int:
        """The positions that it needs: one token more opens or ends it."""
        return self.n_depth + self.n_tokens + 1


def numbers(
    option: str,
    given: Sequence[str] | None,
    default: int,
    *,
    lowest: int = 0,
    highest: int = _HIGHEST,
) -> list[int]:
    """Return the numbers of lists (`1,2`) and ranges (`1-4`, `1-8*2`, `0-64+16`), or the default.

    Raises UsageError naming the option.
    """
    if given is None:
        return [default]
    found: list[int] = []
    for part in ",".join(given).split(","):
        found += _range(option, part.strip())
        if len(found) > _MOST_VALUES:
            raise UsageError(f"{option} has more than {_MOST_VALUES} values")
    for number in found:
        if not lowest <= number <= highest:
            raise UsageError(f"{option} is {number}; it must be {lowest} to {highest}")
    return found


def _range(option: str, text: str) -> list[int]:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{option} is {text!r}; it must be numbers such as 512, 1,2,4 or the range 1-8*2"
        )
    first, last = int(match[1]), int(match[2] or match[1])
    step = int(match[4] or 1)
    if last < first or (match[3] == "*" and (step < 2 or first == 0)) or step < 1:
        raise UsageError(f"{option} is {text!r}; this range does not end")
    values = [first]
    while len(values) <= _MOST_VALUES:
        value = values[-1] * step if match[3] == "*" else values[-1] + step
        if value > last:
            break
        values.append(value)
    return values


def pairs(given: Sequence[str] | None) -> list[tuple[int, int]]:
    """Return the pairs of `-pg 512,128`; raises UsageError."""
    found = []
    for text in given or ():
        values = numbers("-pg", [text], 0, lowest=1)
        if len(values) != 2:
            raise UsageError(f"-pg is {text!r}; it must be two numbers such as 512,128")
        found.append((values[0], values[1]))
    return found


def plan(
    prompts: Sequence[int],
    gens: Sequence[int],
    both: Sequence[tuple[int, int]],
    depths: Sequence[int],
) -> list[Test]:
    """Return every test in llama-bench's order; sizes of 0 switch a kind off. Raises UsageError."""
    tests = []
    for depth in depths:
        tests += [Test(n, 0, depth) for n in prompts if n]
        tests += [Test(0, n, depth) for n in gens if n]
        tests += [Test(n_prompt, n_gen, depth) for n_prompt, n_gen in both]
    if not tests:
        raise UsageError("there is nothing to measure: -p and -n are 0")
    return tests


def check_positions(file: ModelFiles, tests: Sequence[Test]) -> None:
    """Raise UsageError where a test is longer than the positions that the model has."""
    if isinstance(file, ModelDirectory):
        positions = file.text_config.get("max_position_embeddings")
    else:
        positions = file.get(f"{file.get('general.architecture')}.context_length")
    for test in tests:
        tokens = test.n_depth + test.n_tokens
        if isinstance(positions, int) and tokens > positions:
            raise UsageError(f"{test.name} takes {tokens} positions; the model has {positions}")
