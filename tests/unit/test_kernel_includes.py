"""What the CPU's kernel files include.

They are compiled once per instruction set. An inline function of a standard container could be
emitted with AVX2 in one of them, and then be linked for everybody.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Of <utility> std::index_sequence alone is used, a type without code.
# Of C's headers, functions of the system's library.
FREESTANDING = {
    *("stdint.h", "cstddef", "bit", "type_traits", "utility", "math.h"),
    *("sched.h", "time.h"),
    *("immintrin.h", "arm_neon.h"),
}


def headers_behind(file: Path, found: dict[str, Path]) -> None:
    for kind, name in re.findall(r'^#include ([<"])([^>"]+)[>"]', file.read_text(), re.MULTILINE):
        if kind == "<":
            found.setdefault(name, file)
            continue
        (header,) = (
            root / name for root in (ROOT / "backend", ROOT / "src") if (root / name).exists()
        )
        if str(header) not in found:
            found[str(header)] = file
            headers_behind(header, found)


def test_kernel_files_include_no_standard_containers() -> None:
    found: dict[str, Path] = {}
    for folder in ("kernels", "kernels/tiles", "isa"):
        for file in sorted((ROOT / "backend/cpu" / folder).glob("*")):
            if file.suffix in (".cpp", ".h"):
                headers_behind(file, found)
    standard = {name: file for name, file in found.items() if not name.startswith("/")}
    assert "stdint.h" in standard
    others = {name: file for name, file in standard.items() if name not in FREESTANDING}
    assert not others, f"and the files that include them: {others}"
