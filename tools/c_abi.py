"""The binary interface of libakunu, as abidw (abigail-tools) sees it, beside the one written down.

    python -m tools.c_abi check build/src/capi/libakunu.so   # fails where it is not as written
    python -m tools.c_abi renew build/src/capi/libakunu.so   # writes it, unless it breaks programs

What is written down is src/capi/abi/libakunu.abi. The library must have been built with
-DAKUNU_C_DEBUG_INFO=ON. Programs that were linked with an earlier libakunu go on with a later one
of the same SOVERSION: functions and enumerators may be added, and structs that begin with their
size may grow at their end. Anything else needs another SOVERSION (src/capi/CMakeLists.txt), and
then `renew --incompatible`.
"""

from __future__ import annotations

import argparse
import itertools
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEADERS = ROOT / "include" / "akunu"
WRITTEN = ROOT / "src" / "capi" / "abi" / "libakunu.abi"

# What differs between compilers, machines and places, and is no interface.
_OPTIONS = (
    "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--no-elf-needed",
    "--no-architecture", "--no-parameter-names", "--no-write-default-sizes",
    "--exported-interfaces-only", "--drop-private-types", "--type-id-style", "hash",
)  # fmt: skip

# Bits of abidiff's exit status.
_FAILED, _MISUSED, _CHANGED, _INCOMPATIBLE = 1, 2, 4, 8


class AbiError(Exception):
    """An abigail tool failed, or a library has nothing to look at."""


@dataclass(frozen=True)
class Change:
    """What abidiff says of two interfaces: nothing, where they are the same."""

    report: str
    is_incompatible: bool


def dump(library: Path, headers: Path = HEADERS) -> str:
    """Return the interface of a library, in the XML of libabigail.

    Raises:
        AbiError: abidw failed, or the library has no debug information.
    """
    if not library.is_file():
        raise AbiError(f"{library} is not there")
    command = ["abidw", *_OPTIONS, "--headers-dir", str(headers), str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AbiError(f"abidw {library}: {done.stderr.strip()}")
    if "<function-decl" not in done.stdout:
        raise AbiError(f"{library} has no debug information: build with -DAKUNU_C_DEBUG_INFO=ON")
    # Where sources lay is no interface; abidiff only wants each part to have a place of its own.
    places = itertools.count()
    return re.sub(
        r"(<abi-instr [^>]*?path=)'[^']*'", lambda found: f"{found[1]}'{next(places)}'", done.stdout
    )


def compare(written: Path, now: Path) -> Change:
    """Return what changed between two files of `dump`.

    Raises:
        AbiError: abidiff failed.
    """
    every = _abidiff(written, now, "--harmless")
    if not every.returncode & _CHANGED:
        return Change("", False)
    # Without what may change: what is left breaks programs.
    with tempfile.TemporaryDirectory() as folder:
        suppressions = Path(folder) / "compatible.ini"
        suppressions.write_text(
            "".join(
                f"[suppress_type]\n  type_kind = {kind}\n  name = {name}\n"
                for kind, name in _grown(written, now)
            )
        )
        options = ("--no-added-syms", "--suppressions", str(suppressions))
        breaking = _abidiff(written, now, *options)
    if breaking.returncode & (_CHANGED | _INCOMPATIBLE):
        return Change(breaking.stdout, True)
    return Change(every.stdout, False)


def _grown(written: Path, now: Path) -> list[tuple[str, str]]:
    """Return which types only grew at their end: their kind for abidiff, and their name.

    (Of abidiff's own `has_data_member_inserted_at = end`, version 2.2 also takes a field at the end
    that has another type.)
    """
    before, after = _types(written), _types(now)
    grown = []
    for (kind, name), parts in before.items():
        more = after.get((kind, name), ())
        if kind == "struct" and (not parts or parts[0][0] != "size"):
            continue
        if len(more) > len(parts) and more[: len(parts)] == parts:
            grown.append((kind, name))
    return grown


def _types(path: Path) -> dict[tuple[str, str], tuple[tuple[str, ...], ...]]:
    """Return the fields of structs (name, offset, type) and the values of enumerations."""
    found: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {}
    tree = ET.parse(path)
    for struct in tree.iter("class-decl"):
        fields = tuple(
            (variable.get("name", ""), member.get("layout-offset-in-bits", ""),
             variable.get("type-id", ""))
            for member in struct.iter("data-member")
            for variable in member.iter("var-decl")
        )  # fmt: skip
        if fields:
            found["struct", struct.get("name", "")] = fields
    for enum in tree.iter("enum-decl"):
        values = tuple(
            (one.get("name", ""), one.get("value", "")) for one in enum.iter("enumerator")
        )
        found["enum", enum.get("name", "")] = values
    return found


def _abidiff(written: Path, now: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["abidiff", "--no-show-locs", *options, str(written), str(now)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode < 0 or done.returncode & (_FAILED | _MISUSED):
        raise AbiError(f"abidiff: {(done.stderr or done.stdout).strip()}")
    return done


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("do", choices=("check", "renew"))
    parser.add_argument("library", type=Path)
    parser.add_argument("--incompatible", action="store_true", help="renew whatever changed")
    options = parser.parse_args(arguments)
    try:
        text = dump(options.library)
        with tempfile.TemporaryDirectory() as folder:
            now = Path(folder) / "now.abi"
            now.write_text(text)
            change = compare(WRITTEN, now) if WRITTEN.exists() else Change("", False)
    except (AbiError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    if options.do == "renew":
        if change.is_incompatible and not options.incompatible:
            print(change.report + "\nThis breaks programs that use libakunu.", file=sys.stderr)
            return 1
        WRITTEN.write_text(text)
        return 0
    if not change.report:
        return 0
    breaks = "breaks programs that use libakunu" if change.is_incompatible else "is compatible"
    print(
        f"{change.report}\nThis {breaks}. If it is meant: python -m tools.c_abi renew",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
