"""CUDA's translator (backend/cuda/translate.py): what it makes of files in Metal's language."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lines import each_line

ROOT = Path(__file__).resolve().parents[2]
TRANSLATOR = ROOT / "backend" / "cuda" / "translate.py"
HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
KERNEL = (
    "kernel void f(device const float* in [[buffer(0)]], device float* out [[buffer(1)]],\n"
    "              constant uint& n [[buffer(25)]], threadgroup float* t [[threadgroup(0)]],\n"
    "              uint i [[thread_index_in_threadgroup]]) { out[i] = in[i]; }\n"
)


def translate(source: Path, output: Path) -> subprocess.CompletedProcess[str]:
    compiler = next((name for name in ("c++", "g++", "clang++") if shutil.which(name)), None)
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    command = [sys.executable, str(TRANSLATOR), "--compiler", compiler]
    command += [f"--include={source.parent}", f"--include={ROOT / 'src'}"]
    command += [f"--include={ROOT / 'backend'}", str(source), str(output)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def made_of(folder: Path, text: str, name: str = "part.h") -> str:
    """What is made of a file, without the lines that say where each comes from."""
    source = folder / name
    source.write_text(text)
    output = folder / f"{source.stem}.out"
    result = translate(source, output)
    assert (result.returncode, result.stderr) == (0, "")
    kept = [line for line in output.read_text().splitlines() if not line.startswith("#line")]
    return re.sub(r"\s+", " ", " ".join(kept))


PARTS = {
    "spaces go": (
        "inline float f(device const float* p, threadgroup float& t) { return p[0] + t; }",
        "__device__ inline float f( const float* p, float& t) { return p[0] + t; }",
    ),
    "constant is const": (
        "inline uint f(constant uint* p) { return p[0]; }",
        "__device__ inline uint f(const uint* p) { return p[0]; }",
    ),
    "templates": (
        "template <class T>\ninline T f(device const T* p) { return p[0]; }",
        "template <class T> __device__ inline T f( const T* p) { return p[0]; }",
    ),
    "members are functions": (
        "struct S { uint n; uint f() const { return n; } };",
        "struct S { uint n; __device__ uint f() const { return n; } };",
    ),
    "a number": ("constant constexpr uint kTile = 64;", "static constexpr uint kTile = 64;"),
    "a table": (
        "constant constexpr uint kAll[2] = {1, 2};",
        "__device__ static constexpr uint kAll[2] = {1, 2};",
    ),
    "a function constant": (
        "constant uint kPart [[function_constant(4)]];",
        "#define kPart akunu_constants.values[4]",
    ),
    "a bool": (
        "constant bool kAdds [[function_constant(1)]];",
        "#define kAdds (akunu_constants.values[1] != 0)",
    ),
    "a constant made of another": (
        "constant uint kA [[function_constant(0)]];\nconstant bool kB = (kA & 2u) != 0;",
        "#define kB (( kA & 2u ) != 0)",
    ),
    "a function of which NVIDIA has its own": (
        "inline void multiply() { }\ninline void after() { }",
        '} // namespace gpu #include "cuda/kernels/multiply_rows.cuh" namespace gpu {',
    ),
}


@each_line("name", PARTS)
def test_a_part_of_a_header(name: str, tmp_path: Path) -> None:
    text, expected = PARTS[name]
    assert expected in made_of(tmp_path, f"{HEAD}{text}\n")


def test_a_header_includes_what_is_made_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "other.h").write_text("#pragma once\ninline float other() { return 1.0f; }\n")
    made = made_of(
        tmp_path,
        f'#pragma once\n{HEAD}#include "other.h"\ninline float f() {{ return other(); }}\n',
    )
    assert '#include "other.cuh"' in made
    assert "float other()" not in made  # it is there once, in its own file
    assert "__device__ inline float f()" in made


def test_an_entry_hands_over_operands(tmp_path: Path) -> None:
    made = made_of(tmp_path, HEAD + KERNEL, "part.metal")
    call = "f(launch.slot(0), launch.slot(1), launch.parameters(), launch.shared(0), threadIdx.x);"
    assert f"AKUNU_KERNEL(f, ) {{ inputs_ready(); {call} }}" in made
    assert "kernel" not in made.replace("kernels", "")


def test_an_instance_has_its_own_name(tmp_path: Path) -> None:
    made = made_of(
        tmp_path,
        f"{HEAD}template <class T>\n"
        "kernel void f(device T* out [[buffer(2)]]) { out[0] = T(0); }\n"
        'template [[host_name("f_float")]] [[kernel]] decltype(f<float>) f<float>;\n',
        "part.metal",
    )
    assert "AKUNU_KERNEL(f_float, ) { inputs_ready(); f < float >(launch.slot(2)); }" in made
    assert "decltype" not in made


def test_a_kernel_that_waits_itself_is_not_waited_for(tmp_path: Path) -> None:
    made = made_of(
        tmp_path,
        f"{HEAD}inline void inputs_ready() {{ }}\ninline void wait() {{ inputs_ready(); }}\n"
        "kernel void f(device float* out [[buffer(0)]]) { wait(); out[0] = 1.0f; }\n",
        "part.metal",
    )
    assert "AKUNU_KERNEL(f, ) { f(launch.slot(0)); }" in made


def test_function_constants_are_taken_where_a_kernel_reads_one(tmp_path: Path) -> None:
    made = made_of(
        tmp_path,
        f"{HEAD}constant uint kA [[function_constant(0)]];\n"
        "kernel void reads(device uint* out [[buffer(0)]]) { out[0] = kA; }\n"
        "kernel void other(device uint* out [[buffer(0)]]) { out[0] = 1; }\n",
        "part.metal",
    )
    assert "AKUNU_KERNEL(reads, ) { take_constants(launch);" in made
    assert "AKUNU_KERNEL(other, ) { inputs_ready();" in made


def test_tiles_of_prompts_take_their_input_in_parts(tmp_path: Path) -> None:
    made = made_of(tmp_path, '#include "metal/kernels/gemm.h"\nAKUNU_GEMM(f16, F16)\n', "x.metal")
    for kernel in re.findall(r"AKUNU_KERNEL\((.*?)\) \{(.*?)\}", made):
        assert kernel[0].endswith("_f16, AKUNU_TILE_LAUNCH_BOUNDS")
        assert "(launch.slot(24), launch.slot(1)" in kernel[1]


REFUSED = {
    "a kernel in a namespace": (f"namespace a {{\n{KERNEL}}}\n", "a kernel is in no namespace"),
    "an operand by reference": (
        "kernel void f(constant uint& n [[buffer(3)]]) { }\n",
        "n: slots 23 and 25 are references",
    ),
    "no attribute": ("kernel void f(device float* out) { }\n", "needs one attribute"),
}


@each_line("name", REFUSED)
def test_refuses(name: str, tmp_path: Path) -> None:
    text, message = REFUSED[name]
    source = tmp_path / "wrong.metal"
    source.write_text(HEAD + text)
    result = translate(source, tmp_path / "wrong.cu")
    assert result.returncode == 1
    assert message in result.stderr
    assert "wrong.metal:" in result.stderr
    assert not (tmp_path / "wrong.cu").exists()


def test_it_needs_nothing_of_metals_emulator() -> None:
    script = (
        "import sys; sys.argv = ['translate.py', '--help']\n"
        f"import runpy\ntry: runpy.run_path({str(TRANSLATOR)!r}, run_name='__main__')\n"
        "except SystemExit: pass\n"
        "files = [str(getattr(m, '__file__', '')) for m in sys.modules.values()]\n"
        "print([file for file in files if 'emulator' in file])"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.splitlines()[-1] == "[]"
