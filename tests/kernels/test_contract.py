"""docs/kernels.md, the table of operations and the tests name the same things."""

from __future__ import annotations

import re
from pathlib import Path

import test_fused
from harness import n_params, pack_params
from tables import table

from akunu import _core

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "kernels.md"
OPERATIONS = {operation["name"]: operation for operation in _core.operations()}


def documented() -> dict[str, str]:
    """Operation to its column of operands, from the table of the page."""
    rows = re.findall(r"^\| (\w+) \| (.*?) \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    return {name: operands for name, operands in rows if name != "operation"}


def slots(name: str, table: dict[str, str]) -> dict[int, str]:
    """Slot to name, out of `0 input, 7 out` with ranges of slots, or `as above, 6 query_norm`."""
    text, found = table[name], {}
    if text.startswith("as above"):
        names = list(table)
        found = slots(names[names.index(name) - 1], table)
    for first, last, label in re.findall(r"(?<![\w*])(\d+)(?:\u2013(\d+))? ([a-z_]+)", text):
        if last:
            found |= {
                slot: f"{label.removesuffix('es' if label.endswith('ses') else 's')}_{i}"
                for i, slot in enumerate(range(int(first), int(last) + 1))
            }
        else:
            found[int(first)] = label
    return found


def test_every_operation_has_its_row_in_the_contract():
    assert list(documented()) == list(OPERATIONS)


@table(name=list(OPERATIONS))
def test_the_contract_s_slots_are_the_table_s(name):
    operands = OPERATIONS[name]["operands"]
    expected = {slot: operand["name"] for slot, operand in enumerate(operands)}
    assert slots(name, documented()) == expected


@table(name=list(OPERATIONS))
def test_every_operation_has_a_test(name):
    assert len(pack_params(name, *[0] * n_params(name))) % 16 == 0
    test = name.removesuffix("_add") if name.startswith("all_reduce") else name
    assert hasattr(test_fused, f"test_{name}") or (HERE / f"test_{test}.py").is_file()
