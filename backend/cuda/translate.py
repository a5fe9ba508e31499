"""Makes CUDA of kernels that all GPUs share, which are in Metal's language.

    translate.py --compiler c++ --include DIR ... --depfile OUT.d IN.h OUT.cuh
    translate.py --compiler c++ --include DIR ... --depfile OUT.d IN.metal OUT.cu

A file becomes one of the same name, its headers included as what was made of those: address spaces
and attributes go, every function becomes a __device__ function, and function constants are what
the launch says. A .metal file also gets a __global__ function for each that the host calls.
backend/gpu/msl_reader reads the files; kernels/language.cuh gives the words a meaning.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gpu"))

from msl_reader import program as programs
from msl_reader import source as msl
from msl_reader.program import HostFunction, Program
from msl_reader.source import Declaration, SourceError, Token
from msl_reader.text import (
    attribute_edits,
    edited,
    finish_depfile,
    preprocess,
    space_edits,
)

BUILT_INS = {
    "thread_position_in_grid": (
        "uint3(blockIdx.x * blockDim.x + threadIdx.x, blockIdx.y, blockIdx.z)"
    ),
    "threadgroup_position_in_grid": "uint3(blockIdx.x, blockIdx.y, blockIdx.z)",
    "threadgroups_per_grid": "uint3(gridDim.x, gridDim.y, gridDim.z)",
    "threads_per_threadgroup": "uint3(blockDim.x, 1u, 1u)",
    "thread_index_in_threadgroup": "threadIdx.x",
    "simdgroup_index_in_threadgroup": "threadIdx.x / 32",
    "thread_index_in_simdgroup": "threadIdx.x % 32",
    "simdgroups_per_threadgroup": "(blockDim.x + 31) / 32",
    "threads_per_simdgroup": "32u",
}

# Kernels of which a launch may say that a block is one SIMD-group (kernels/multiply_rows.cuh).
WIDE = {"matvec", "matvec_group", "matvec_gated"}
WIDE_BUILT_INS = {
    "simdgroup_index_in_threadgroup": "is_wide() ? 0u : threadIdx.x / 32",
    "thread_index_in_simdgroup": "is_wide() ? threadIdx.x : threadIdx.x % 32",
    "simdgroups_per_threadgroup": "is_wide() ? 1u : (blockDim.x + 31) / 32",
}


class Replacement(NamedTuple):
    """NVIDIA's own version of a function, and what it asks of kernels that call it."""

    header: str | None = None  # None: language.cuh has it
    launch_bounds: str = ""
    elsewhere: Mapping[int, int] = MappingProxyType({})  # operands that lie at another slot


REPLACED = {
    "bytes_less": Replacement(),
    "input_rows": Replacement(),  # multiply_rows.cuh has it
    "inputs_ready": Replacement(),
    "load_words": Replacement(),
    "multiply_matrices": Replacement(),
    "multiply": Replacement("cuda/kernels/multiply_rows.cuh"),
    # Its input is in the workspace (slot 24): another launch has split it (split_input.cuh).
    "multiply_tile": Replacement(
        "cuda/kernels/multiply_tile.cuh", "AKUNU_TILE_LAUNCH_BOUNDS", {0: 24}
    ),
}


def after_template(tokens: list[Token], index: int) -> int:
    """Behind every `template <...>` that begins at `index`."""
    while tokens[index].text == "template":
        index = msl.closing_angle(tokens, index + 1) + 1
    return index


def members(tokens: list[Token]) -> list[Token]:
    """The first token of each function in the body of a type."""
    found: list[Token] = []
    start = next((i for i, token in enumerate(tokens) if token.text == "{"), None)
    if start is None:
        return found
    end = msl.closing(tokens, start)
    index = start + 1
    while index < end:
        first = after_template(tokens, index)
        is_function = False
        is_initialized = False
        while index < end and tokens[index].text != ";":
            text = tokens[index].text
            if text == "=":
                is_initialized = True
            if text == "(" and not is_initialized:
                is_function = True
            if text in ("(", "[", "{"):
                index = msl.closing(tokens, index)
                if text == "{" and is_function:
                    break
            index += 1
        if is_function:
            found.append(tokens[first])
        index += 1
    return found


def device_functions(declaration: Declaration) -> list[Token]:
    """The tokens that __device__ goes before."""
    tokens = declaration.tokens
    if declaration.kind == "function":
        return [tokens[after_template(tokens, 0)]]
    if declaration.kind == "type" and tokens[after_template(tokens, 0)].text in ("struct", "class"):
        return members(tokens)
    return []


def translation_edits(program: Program) -> list[tuple[int, int, str]]:
    """What makes CUDA of the text: function constants are names of what the launch says."""
    edits: list[tuple[int, int, str]] = []
    variables = {id(c.declaration): c for c in program.constants + program.derived}
    for declaration in program.declarations:
        tokens = declaration.tokens
        constant = variables.get(id(declaration))
        if constant is not None:
            if constant.index is not None:
                value = f"akunu_constants.values[{constant.index}]"
                value = f"({value} != 0)" if constant.type_text == "bool" else value
            else:
                value = f"({constant.value_text})"
            edits.append((tokens[0].start, tokens[-1].end, f"\n#define {constant.name} {value}\n"))
            continue
        replaced = declaration.names & REPLACED.keys()
        if declaration.kind == "function" and replaced:
            header = REPLACED[replaced.pop()].header
            text = "" if header is None else outside_namespace(f'#include "{header}"')
            edits.append((tokens[0].start, tokens[-1].end, text))
            continue
        hidden = attribute_edits(tokens)
        for token in device_functions(declaration):
            at = next((edit for edit in hidden if edit[0] == token.start), None)
            if at is None:
                edits.append((token.start, token.start, "__device__ "))
            else:  # an attribute stands there
                hidden[hidden.index(at)] = (at[0], at[1], "__device__ ")
        edits += hidden
        if declaration.kind == "variable" and any(token.text == "[" for token in tokens):
            # A table that kernels index at run time has to lie on the device; numbers are folded.
            edits.append((tokens[0].start, tokens[0].start, "__device__ "))
        edits += [
            edit
            for edit in space_edits(declaration)
            if not any(start <= edit[0] < end for start, end, _ in hidden)
        ]
        if declaration.kind == "instantiation":
            edits = [edit for edit in edits if edit[0] < tokens[0].start]
            edits.append((tokens[0].start, tokens[-1].end, ""))
    return edits


def outside_namespace(text: str) -> str:
    """The text between two parts of the namespace in which all kernels are."""
    return f"\n}}  // namespace gpu\n{text}\nnamespace gpu {{\n"


_MARKER = re.compile(r'^#[ \t]*(?:line[ \t]+)?([0-9]+)[ \t]+"([^"]*)".*\n', re.MULTILINE)


def own_text(program: Program, source: Path) -> str:
    """The file's own declarations, as CUDA: not those of its headers."""
    edits = translation_edits(program)
    markers = list(_MARKER.finditer(program.text))
    ends = [marker.start() for marker in markers[1:]] + [len(program.text)]
    parts: list[str] = []
    for marker, end in zip(markers, ends, strict=True):
        if marker.group(2) != str(source):
            continue
        start = marker.end()
        inside = [(a - start, b - start, text) for a, b, text in edits if start <= a < end]
        parts.append(f'#line {marker.group(1)} "{source}"\n')
        parts.append(edited(program.text[start:end], inside))
    return "".join(parts)


_INCLUDE = re.compile(r'^#include "([^"]*)\.h"$', re.MULTILINE)


def includes(source: Path) -> str:
    """The headers that the file names, as what is made of them."""
    return "".join(f'#include "{header}.cuh"\n' for header in _INCLUDE.findall(source.read_text()))


def operand(parameter: msl.Parameter, slot: int) -> str:
    """What a launch has at a slot; its row range and its parameters lie in the launch itself."""
    pointers = {25: "launch.numbers()"}
    references = {23: "launch.pass()", 25: "launch.parameters()"}
    if parameter.is_reference and slot in references:
        return references[slot]
    if parameter.is_reference or slot == 23:
        raise msl.error(parameter.token, f"{parameter.name}: slots 23 and 25 are references")
    return pointers.get(slot, f"launch.slot({slot})")


def entry(function: HostFunction, reached: set[str]) -> str:
    """The __global__ function of one that the host names, which uses the names `reached`."""
    name = function.expression.partition("<")[0].strip()
    built_ins = BUILT_INS | WIDE_BUILT_INS if name in WIDE else BUILT_INS
    replacements = [REPLACED[name] for name in sorted(reached & REPLACED.keys())]
    bounds = "".join(replacement.launch_bounds for replacement in replacements)
    elsewhere = {
        slot: at for replacement in replacements for slot, at in replacement.elsewhere.items()
    }
    arguments: list[str] = []
    for parameter in function.kernel.parameters:
        if parameter.kind == "built_in":
            arguments.append(built_ins[parameter.built_in])
            continue
        if parameter.kind == "threadgroup":
            arguments.append(f"launch.shared({parameter.index})")
        else:
            arguments.append(operand(parameter, elsewhere.get(parameter.index, parameter.index)))
    lines = [f"AKUNU_KERNEL({function.host_name}, {bounds}) {{"]
    if function.constants:
        lines.append("  take_constants(launch);")
    if "inputs_ready" not in reached:
        lines.append("  inputs_ready();")
    lines.append(f"  {function.expression}({', '.join(arguments)});")
    lines.append("}")
    return "\n".join(lines) + "\n"


def write_header(program: Program, source: Path) -> str:
    """What is made of a header."""
    return (
        f"// Made by translate.py of {source.name}. Do not edit.\n#pragma once\n\n"
        f'#include "cuda/kernels/constants.cuh"\n{includes(source)}\n'
        f"namespace gpu {{\n{own_text(program, source)}\n}}  // namespace gpu\n"
    )


def write_kernels(program: Program, source: Path) -> str:
    """What is made of a file of kernels."""
    for function in program.functions:
        if function.declaration.namespace:
            raise msl.error(function.declaration.tokens[0], "a kernel is in no namespace")
    entries = [
        entry(function, programs.reachable(program.declarations, function))
        for function in program.functions
    ]
    return (
        f"// Made by translate.py of {source.name}. Do not edit.\n"
        f'#include "cuda/kernels/launch.cuh"\n{includes(source)}\n'
        f"namespace gpu {{\n{own_text(program, source)}\n"
        '#line 1 "generated"\n'
        f"{''.join(entries)}"
        "}  // namespace gpu\n"
    )


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--depfile", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    try:
        text = preprocess(options.source, options.compiler, options.include, options.depfile)
        if options.depfile is not None:
            finish_depfile(options.depfile, options.output)
        write = write_header if options.source.suffix == ".h" else write_kernels
        options.output.write_text(write(programs.read(text), options.source))
    except SourceError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
