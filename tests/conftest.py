"""What tests of several folders share, and how a run of them goes and is summed up."""

from __future__ import annotations

import os
import signal
from collections import Counter

# NumPy reads this when it is loaded. Its threads spin while they wait, next to other processes of
# the same run: small products took ten times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A person's Ctrl-C is not ignored, as it is in what a script has put into the background; programs
# inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
from hypothesis import settings

from akunu import _core
from arithmetic import available_levels, is_one_arithmetic

# Assertions of tests/kernels/harness.py and reference.py say what they compared.
pytest.register_assert_rewrite("harness", "reference")

# Examples of tests that draw them. Every change has the same ones, so that none fails for a fault
# that it did not bring; `--hypothesis-profile=nightly` draws new ones, and many.
settings.register_profile("change", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=1000)
settings.load_profile("change")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--line",
        help="of tests that are tables (tests/lines.py), the lines with this text; in "
        "tests/kernels the lines with these words: q4_k,rows=17",
    )


def pytest_report_header() -> list[str]:
    """Say which levels of the CPU are tested, and why others are not."""
    missing = [
        f"{level['name']} ({'not of this processor' if level['is_built'] else 'not built'})"
        for level in _core.levels("cpu")
        if not (level["is_built"] and level["is_available"])
    ]
    devices, levels = (", ".join(names) for names in (_core.backends(), available_levels()))
    without = f"; without {', '.join(missing)}" if missing else ""
    return [f"devices: {devices}; levels of the CPU: {levels}{without}"]


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One file, or one test, runs in this process: others would take longer to start."""
    files = {argument.partition("::")[0] for argument in config.args}
    return 0 if len(files) == 1 and files.pop().endswith(".py") else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line for each reason to skip tests. (`-rs` has one for each reason and place.)"""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") for report in reports if report.longrepr
    )
    if reasons:
        terminalreporter.section("skipped", sep="-")
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count:5} {reason}")


@pytest.fixture
def one_arithmetic(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The best level of the CPU at which prompt rows have the bits of generated ones, now in use.

    That is with a cache in F32, for the test's `weight_format`, or weights in blocks: their inputs
    are rounded to int8 throughout, as llama.cpp does it.
    """
    params = getattr(request.node, "callspec", None)
    weight_format = params.params.get("weight_format", "q8_0") if params else "q8_0"
    best = [name for name in available_levels() if is_one_arithmetic(weight_format, name)][-1]
    monkeypatch.setenv("AKUNU_CPU_ISA", best)
    return best


@pytest.fixture
def matrix_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The level of the CPU whose prompt rows go through a matrix unit; skips without one."""
    found = [name for name in available_levels() if not is_one_arithmetic("q8_0", name)]
    if not found:
        pytest.skip("this CPU, or its operating system, offers no matrix unit that akunu knows")
    monkeypatch.setenv("AKUNU_CPU_ISA", found[-1])
