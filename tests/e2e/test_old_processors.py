"""Processors that this machine is not: the level that akunu chooses there, in an emulator."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys

import pytest
from cli_support import ENVIRONMENT

EMULATOR = shutil.which("qemu-x86_64")

SCRIPT = """
import json
import akunu
from akunu import _core

levels = {level["name"]: level["is_available"] for level in _core.levels("cpu")}
with akunu.load(threads=1, context=64) as model:
    text = str(model.generate("The", max_tokens=4))
print(json.dumps([_core.devices()[0]["level"], levels, text]))
"""


def chosen(*command: str, **environment: str) -> tuple[str, dict[str, bool], str]:
    done = subprocess.run(
        [*command, sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=300,
        env={**ENVIRONMENT, **environment},
    )
    assert done.returncode == 0, done.stderr
    level, levels, text = json.loads(done.stdout)
    return level, levels, text


def has_avx2(emulator: str) -> bool:
    done = subprocess.run([emulator, "--version"], capture_output=True, text=True, timeout=60)
    version = re.search(r"version (\d+)\.(\d+)", done.stdout)
    return version is not None and (int(version[1]), int(version[2])) >= (7, 2)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="emulates x86-64 processors")
@pytest.mark.skipif(EMULATOR is None, reason="no qemu-x86_64 in PATH (Debian's qemu-user)")
@pytest.mark.parametrize(
    ("processor", "level"),
    [
        ("Nehalem", "generic"),  # has SSE4.2 only
        ("max,-avx2", "generic"),
        pytest.param("max,-fma", "generic", marks=pytest.mark.slow),
        pytest.param("max,-f16c", "generic", marks=pytest.mark.slow),
        ("max", "avx2"),  # the emulator has no AVX-512
    ],
)
def test_a_processor_gets_the_best_level_that_it_has(processor: str, level: str) -> None:
    assert EMULATOR is not None
    if processor != "Nehalem" and not has_avx2(EMULATOR):
        pytest.skip("this emulator has no AVX2; QEMU 7.2 has")
    # NumPy's OpenBLAS takes a Nehalem emulated on some newer machines for one with AVX.
    blas = {"OPENBLAS_CORETYPE": "Nehalem"}
    name, levels, text = chosen(EMULATOR, "-cpu", processor, **blas)
    assert name == level
    for emulated in ("avxvnni-emulated", "amx-emulated"):  # of builds for tests
        levels.pop(emulated, None)
    beyond = dict.fromkeys(("avxvnni", "avx512", "amx"), False)
    assert levels == {"generic": True, "avx2": level == "avx2", **beyond}
    assert text == chosen(AKUNU_CPU_ISA="generic")[2]
