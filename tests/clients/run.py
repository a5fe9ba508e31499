"""Runs the judges of `akunu serve` and compares with what passed before: see README.md.

run.py [NAME ...] [--update] [--junit FILE]
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import importlib.util
import json
import sys
import tempfile
import traceback
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # serving, environment


def main() -> int:
    parser = argparse.ArgumentParser(description="Judges of `akunu serve`; see README.md here.")
    parser.add_argument("names", nargs="*", help="folders beside this file; default: all of them")
    parser.add_argument("--update", action="store_true", help="note what passes today")
    parser.add_argument("--junit", type=Path, help="write the tests to this file")
    arguments = parser.parse_args()
    there = sorted(each.parent.name for each in HERE.glob("*/judge.py"))
    unknown = [name for name in arguments.names if name not in there]
    if unknown:
        parser.error(f"there is no judge {unknown[0]!r}; there are {', '.join(there)}")
    told: dict[str, str] = {}
    for name in arguments.names or there:
        try:
            found = run_judge(name, arguments.update)
        except Exception:
            found = {"the judge itself": traceback.format_exc()}
        for test, wrong in found.items():
            if wrong:
                print(f"{name}: {test}: {wrong}\n", flush=True)
        failed = sum(map(bool, found.values()))
        print(f"{name}: {len(found) - failed} passed, {failed} failed", flush=True)
        told.update({f"{name}: {test}": wrong for test, wrong in found.items()})
    if arguments.junit:
        write_junit(arguments.junit, told)
    failed = sum(map(bool, told.values()))
    print(f"{len(told) - failed} passed, {failed} failed")
    return 1 if failed or not told else 0


def run_judge(name: str, update: bool) -> dict[str, str]:
    """What is wrong by test, "" for nothing; tests that are skipped as expected are left out."""
    spec = importlib.util.spec_from_file_location(f"judge_{name}", HERE / name / "judge.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclasses look for it
    spec.loader.exec_module(module)
    with tempfile.TemporaryDirectory(prefix=f"akunu-{name}.") as work:
        outcomes: dict[str, str] = module.judge(Path(work))
    path = HERE / name / "expected.json"
    expected = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    skips: dict[str, str] = expected.get("skipped", {})
    if update:
        passed = sorted(test for test, wrong in outcomes.items() if not wrong)
        expected = {
            "judge": module.VERSION,
            "date": datetime.date.today().isoformat(),
            "n_passed": len(passed),
            "n_skipped": sum(
                bool(wrong and skip_of(test, skips)) for test, wrong in outcomes.items()
            ),
            "skipped": skips,
            "passed": passed,
        }
        path.write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    found = compared(outcomes, expected.get("passed", []), skips)
    if expected.get("judge") != module.VERSION:
        found["its version"] = f"{module.VERSION} runs, expected.json is of {expected.get('judge')}"
    return found


def compared(outcomes: dict[str, str], passed: list[str], skips: dict[str, str]) -> dict[str, str]:
    """What is wrong by test: another outcome than expected; by skip: nothing of its name fails."""
    found = {}
    unused = set(skips)
    for test, wrong in outcomes.items():
        pattern = skip_of(test, skips) if wrong and test not in passed else None
        unused.discard(pattern or "")
        if pattern is None:
            noted = wrong or test in passed
            found[test] = wrong if noted else "passes, which expected.json does not know: --update"
    for test in passed:
        if test not in outcomes:
            found[test] = "passed before and did not run"
    for pattern in unused:
        found[pattern] = f"nothing of this name fails any more; it is skipped: {skips[pattern]}"
    if not outcomes:
        found["any test"] = "none ran"
    return found


def skip_of(test: str, skips: dict[str, str]) -> str | None:
    """The first skip that is for a test; its name may have `*`."""
    literal = ((each, each.replace("[", "[[]")) for each in skips)
    return next((each for each, pattern in literal if fnmatch.fnmatchcase(test, pattern)), None)


def write_junit(path: Path, told: dict[str, str]) -> None:
    suite = ElementTree.Element("testsuite", name="clients")
    for test, wrong in told.items():
        case = ElementTree.SubElement(suite, "testcase", name=test)
        if wrong:
            ElementTree.SubElement(case, "failure", message=wrong.splitlines()[0])
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


if __name__ == "__main__":
    sys.exit(main())
