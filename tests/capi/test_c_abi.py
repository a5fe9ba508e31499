"""What tools/c_abi.py finds in a library: which changes break programs, and which do not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
from tools import c_abi

HEADER = """
#include <stddef.h>
typedef struct akunu_options { size_t size; int threads; } akunu_options;
typedef struct akunu_message { const char* role; const char* content; } akunu_message;
typedef enum akunu_status { AKUNU_OK = 0, AKUNU_FAILED = 1 } akunu_status;
akunu_status akunu_load(const akunu_options* options);
int akunu_chat(const akunu_message* messages, size_t n_messages);
"""
SOURCE = """
#include "akunu.h"
struct hidden { int number; };
akunu_status akunu_load(const akunu_options* options) {
  struct hidden made = {options->threads};
  return made.number;
}
int akunu_chat(const akunu_message* messages, size_t n) { return messages[n - 1].role != 0; }
"""


@pytest.fixture(scope="module", autouse=True)
def _tools() -> None:
    for program in ("abidw", "abidiff", "cc"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def written(folder: Path, header: str = HEADER, source: str = SOURCE, flags: str = "-g") -> Path:
    """Return the file with the interface of a library of these texts."""
    folder.mkdir()
    (folder / "akunu.h").write_text(header)
    (folder / "akunu.c").write_text(source)
    library = folder / "libakunu.so"
    command = ["cc", "-shared", "-fPIC", flags, folder / "akunu.c", "-o", library]
    subprocess.run(command, check=True)
    out = folder / "akunu.abi"
    out.write_text(c_abi.dump(library, folder))
    return out


def changed(folder: Path, header: tuple[str, str], source: tuple[str, str]) -> c_abi.Change:
    assert header[0] in HEADER
    assert source[0] in SOURCE
    before = written(folder / "before")
    after = written(folder / "after", HEADER.replace(*header), SOURCE.replace(*source))
    return c_abi.compare(before, after)


SAME = ("", "")


def test_the_same_sources_have_the_same_interface(tmp_path: Path) -> None:
    # Neither where they lie nor how they are compiled is part of it; nor are types of the source.
    before = written(tmp_path / "before")
    after = written(
        tmp_path / "after", source=SOURCE.replace("int number", "long number"), flags="-g3"
    )
    assert c_abi.compare(before, after) == c_abi.Change("", False)
    assert "hidden" not in before.read_text()
    assert str(tmp_path) not in before.read_text()


def test_a_function_may_be_added(tmp_path: Path) -> None:
    more = "int akunu_more(void) { return 1; }\n"
    header = ("#include", "int akunu_more(void);\n#include")
    change = changed(tmp_path, header, ("struct hidden {", more + "struct hidden {"))
    assert "akunu_more" in change.report
    assert not change.is_incompatible


def test_an_enumerator_may_be_added(tmp_path: Path) -> None:
    change = changed(tmp_path, ("AKUNU_FAILED = 1", "AKUNU_FAILED = 1, AKUNU_BUSY = 2"), SAME)
    assert "AKUNU_BUSY" in change.report
    assert not change.is_incompatible


def test_a_struct_with_a_size_may_grow_at_its_end(tmp_path: Path) -> None:
    change = changed(tmp_path, ("int threads;", "int threads; const char* device;"), SAME)
    assert "device" in change.report
    assert not change.is_incompatible


@pytest.mark.parametrize(
    ("header", "source"),
    [
        pytest.param(
            ("size_t size; int threads;", "size_t size; double context; int threads;"), SAME,
            id="a field in the middle",
        ),
        pytest.param(("AKUNU_FAILED = 1", "AKUNU_FAILED = 2"), SAME, id="another status"),
        pytest.param(("int threads;", "double threads;"), SAME, id="another type of a field"),
        pytest.param(
            ("const char* content;", "const char* content; int more;"), SAME,
            id="a struct without a size has grown",
        ),
        pytest.param(SAME, ("int akunu_chat", "static int akunu_chat"), id="a function is gone"),
        pytest.param(
            ("size_t n_messages", "int n_messages"), ("size_t n)", "int n)"),
            id="another type of an argument",
        ),
    ],
)  # fmt: skip
def test_what_breaks_programs(
    tmp_path: Path, header: tuple[str, str], source: tuple[str, str]
) -> None:
    if "static" in source[1]:  # its declaration goes too
        header = ("int akunu_chat(const akunu_message* messages, size_t n_messages);", "")
    assert changed(tmp_path, header, source).is_incompatible


def test_a_library_without_debug_information_is_refused(tmp_path: Path) -> None:
    with pytest.raises(c_abi.AbiError, match="AKUNU_C_DEBUG_INFO"):
        written(tmp_path / "stripped", flags="-g0")
    with pytest.raises(c_abi.AbiError, match="is not there"):
        c_abi.dump(tmp_path / "missing.so")
