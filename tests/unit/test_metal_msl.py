"""The generator and the checker of Metal kernels: what they refuse, with its place.

`snippet` stands in a file of its own; `LINE` is where the error is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lines import each_line

EMULATOR = Path(__file__).resolve().parents[2] / "backend" / "metal" / "emulator"
RIGHT = Path(__file__).with_name("metal_emulator.metal")

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


def kernel(parameters: str, body: str = "") -> str:
    return f"kernel void f({parameters}) {{ {body} }}\n"


OUT = "device float* out [[buffer(0)]]"

# Refused by the generator: name -> (text after HEAD, part of the message).
SIGNATURES = {
    "two arguments with one index": (
        kernel(f"{OUT}, device float* b [[buffer(0)]]"),
        "kernel f: out and b are both [[buffer(0)]]",
    ),
    "no attribute": (kernel("device float* out"), "parameter out: needs one attribute"),
    "unknown attribute": (
        kernel("device float* out [[stage_in]]"),
        "parameter out: attribute `stage_in` is not known",
    ),
    "index 31": (kernel("device float* out [[buffer(31)]]"), "`buffer(31)`: the largest is 30"),
    "threadgroup index 8": (
        kernel("threadgroup float* t [[threadgroup(8)]]"),
        "`threadgroup(8)`: the largest is 7",
    ),
    "no address space": (kernel("float* out [[buffer(0)]]"), "needs one address space, has none"),
    "thread space": (
        kernel("thread float* out [[buffer(0)]]"),
        "a buffer is `device` or `constant`, not `thread`",
    ),
    "by value": (kernel("device float out [[buffer(0)]]"), "a pointer or a reference"),
    "built-in by pointer": (
        kernel("device uint* i [[thread_position_in_grid]]"),
        "thread_position_in_grid is passed by value",
    ),
    "result": (f"kernel float f({OUT}) {{ return 1.0f; }}\n", "a kernel returns void"),
    "declaration": (f"kernel void f({OUT});\n", "declared without a body"),
    "threadgroup variable": (
        kernel(OUT, "threadgroup float tile[32]; out[0] = tile[0];"),
        "threadgroup memory only as an argument",
    ),
    "no template": (
        kernel(OUT) + 'template [[host_name("g")]] [[kernel]] decltype(f<1>) f<1>;\n',
        "g: f is no template of a kernel",
    ),
    "one name twice": (
        f"template <uint N> kernel void f({OUT}) {{ out[0] = N; }}\n"
        'template [[host_name("g")]] [[kernel]] decltype(f<1>) f<1>;\n'
        'template [[host_name("g")]] [[kernel]] decltype(f<2>) f<2>;\n',
        "a second function g",
    ),
    "no host name": (
        f"template <uint N> kernel void f({OUT}) {{ out[0] = N; }}\n"
        "template decltype(f<1>) f<1>;\n",
        "needs [[host_name(...)]]",
    ),
    "one constant twice": (
        "constant uint a [[function_constant(1)]];\nconstant uint b [[function_constant(1)]];\n",
        "a and b are both function_constant(1)",
    ),
    "float constant": (
        "constant float a [[function_constant(1)]];\n",
        "a function constant is uint or bool",
    ),
    "global variable": ("uint counter = 0;\n", "a variable at program scope is `constant`"),
    "unclosed": ("kernel void f(", "is never closed"),
    "missing header": ('#include "no_such_file.h"\n', "no_such_file.h"),
}

# Refused by the checker.
CONSTRUCTS = {
    "recursion": ("int f(int n) { return n < 2 ? n : f(n - 1); }\n", "f calls itself"),
    "mutual recursion": (
        "int g(int n);\nint f(int n) { return g(n); }\nint g(int n) { return f(n); }\n",
        "f calls itself",
    ),
    "double": ("double f(float a) { return a; }\n", "MSL has no double"),
    "long double": ("float f(long double a) { return a; }\n", "MSL has no double"),
    "double literal": ("float f(float a) { return a * 0.5; }\n", "0.5 is a double in C++"),
    "virtual": ("struct S { virtual int f() { return 1; } };\n", "MSL has no virtual"),
    "try": ("int f() { try { return 1; } catch (...) { return 2; } }\n", "MSL has no exceptions"),
    "throw": ("int f() { throw 1; }\n", "MSL has no exceptions"),
    "new": ("int f() { return *new int(1); }\n", "MSL has no new"),
    "delete": ("void f(thread int* p) { delete p; }\n", "MSL has no delete"),
    "goto": ("int f() { goto end; end: return 1; }\n", "MSL has no goto"),
    "base class": (
        "struct A { int a; };\nstruct B : A { int b; };\n",
        "no derived classes",
    ),
    "lambda": ("int f() { auto g = [](int a) { return a; }; return g(1); }\n", "no lambdas"),
    "capturing lambda": ("int f(int b) { return [&] { return b; }(); }\n", "no lambdas"),
    "function pointer": ("int f(int (*g)(int)) { return g(1); }\n", "no pointers to functions"),
    "static local": ("int f() { static int n = 0; return ++n; }\n", "no static variables"),
    "std": ("float f(float a) { return std::exp(a); }\n", "MSL has no std"),
    "bfloat": ("float f(ushort a) { return as_type<bfloat>(a); }\n", "bfloat"),
    "variable-length array": ("float f(int n) { float a[n]; return a[0]; }\n", "variable length"),
    "lost device": (
        kernel(OUT, "float* p = out; p[0] = 1.0f;"),
        "cannot initialize a variable of type 'float *'",
    ),
    "wrong space": (
        "void set(threadgroup float* p) { p[0] = 1.0f; }\n" + kernel(OUT, "set(out);"),
        "no matching function for call to 'set'",
    ),
    "lost space in an instantiation": (
        f"template <uint N> kernel void f({OUT}) {{ thread float* p = out + N; p[0] = N; }}\n"
        'template [[host_name("g")]] [[kernel]] decltype(f<1>) f<1>;\n',
        "cannot initialize a variable of type 'float *'",
    ),
    "write to constant": (
        kernel("constant float& a [[buffer(0)]]", "a = 1.0f;"),
        "cannot assign to variable 'a'",
    ),
    "two types in min": (
        kernel(OUT, "out[0] = float(min(1u, 2));"),
        "no matching function for call to 'min'",
    ),
    "unknown function": (
        kernel(OUT, "out[0] = quad_sum(1.0f);"),
        "use of undeclared identifier 'quad_sum'",
    ),
    "missing return": ("float f(float a) { }\n", "non-void function does not return a value"),
}

# Accepted: what looks like the above, but is MSL.
RIGHT_SNIPPETS = {
    "copy of a struct": "struct S { float a; uint b; };\n"
    + kernel("device S* s [[buffer(0)]]", "S own = s[1]; own.a = 2.0f; s[0] = own;"),
    "overloads": "float f(float a) { return a; }\nfloat f(float2 a) { return f(a.x); }\n",
    "array of arrays": "void f(thread float4 (&x)[2], thread float (&y)[2][3])\n"
    "{ x[0] = y[1][2]; }\n",
    "static in a struct": "struct S { static constexpr constant uint kN = 3;\n"
    "  static uint f() { return kN; } };\n",
    "literals": "float f() { return 1.0f + 0x1.8p1f + 1e-3f + float(1.5h); }\n",
    "members": kernel(OUT, "float4 v = float4(1.0f); v.xyz = float3(2.0f); out[0] = v.w;"),
}


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EMULATOR / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def compiler(*names: str) -> str:
    for name in names:
        if shutil.which(name):
            return name
    pytest.skip(f"needs {' or '.join(names)}")


def check(path: Path) -> subprocess.CompletedProcess[str]:
    root = EMULATOR.parents[2]
    includes = [f"--include={root / 'src'}", f"--include={root / 'backend'}"]
    return run("check_msl.py", "--clang", compiler("clang++"), *includes, str(path))


@each_line("name", SIGNATURES)
def test_the_generator_refuses(name: str, tmp_path: Path) -> None:
    text, message = SIGNATURES[name]
    source = tmp_path / "wrong.metal"
    source.write_text(HEAD + text)
    result = run(
        "generate.py",
        "translate",
        "--compiler",
        compiler("c++", "g++", "clang++"),
        str(source),
        str(tmp_path / "wrong.cpp"),
    )
    assert result.returncode == 1
    assert message in result.stderr
    assert "wrong.metal:" in result.stderr
    assert not (tmp_path / "wrong.cpp").exists()


@each_line("name", CONSTRUCTS)
def test_the_checker_refuses(name: str, tmp_path: Path) -> None:
    text, message = CONSTRUCTS[name]
    source = tmp_path / "wrong.metal"
    source.write_text(HEAD + text)
    result = check(source)
    assert result.returncode == 1
    found = [line for line in result.stderr.splitlines() if message in line]
    assert found, result.stderr
    n_lines = HEAD.count("\n")
    lines = range(n_lines + 1, n_lines + text.count("\n") + 1)
    assert any(f"wrong.metal:{line}: error: " in found[0] for line in lines), found[0]


@each_line("name", RIGHT_SNIPPETS)
def test_the_checker_accepts(name: str, tmp_path: Path) -> None:
    source = tmp_path / "right.metal"
    source.write_text(HEAD + RIGHT_SNIPPETS[name])
    result = check(source)
    assert (result.returncode, result.stderr) == (0, "")


def test_the_checker_accepts_the_kernels_of_the_emulators_test() -> None:
    result = check(RIGHT)
    assert (result.returncode, result.stderr) == (0, "")


def test_an_error_is_at_the_line_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "part.h").write_text("float f(float a) {\n\n  return a * 0.5;\n}\n")
    source = tmp_path / "whole.metal"
    source.write_text(HEAD + '#include "part.h"\n')
    result = check(source)
    assert result.stderr.count("\n") == 1
    assert f"{tmp_path / 'part.h'}:3: error: 0.5 is a double" in result.stderr
