"""Makes CUDA of a file of kernels: the same text, and an entry for each function of the host's.

    generate.py --compiler c++ --include DIR ... --depfile OUT.d IN.metal OUT.cu

Kernels of GPUs are written once, in MSL (backend/metal/kernels); those that only NVIDIA's chips
have (backend/cuda/kernels) are written in the same words. backend/gpu/msl_reader reads them. Here
address spaces and attributes go, every function becomes a __device__ function, and function
constants are what the launch says. The words themselves are in kernels/language.h.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

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

# Kernels of which a launch may say that a block is one SIMD-group (kernels/multiply_rows.h).
WIDE = {"matvec", "matvec_group", "matvec_gated"}
WIDE_BUILT_INS = {
    "simdgroup_index_in_threadgroup": "is_wide() ? 0u : threadIdx.x / 32",
    "thread_index_in_simdgroup": "is_wide() ? threadIdx.x : threadIdx.x % 32",
    "simdgroups_per_threadgroup": "is_wide() ? 1u : (blockDim.x + 31) / 32",
}

# Such kernels whose blocks stage their input, in files of this name: a block goes on with further
# threadgroups of the grid.
STAGED = "staged_"
STAGED_BUILT_INS = {"threadgroup_position_in_grid": "uint3(group, blockIdx.y, blockIdx.z)"}
STAGED_BOUNDS = "__launch_bounds__(256, 2) "

# Files of kernels for several rows that another launch staged (kernels/staged_rows.h): the input is
# in the command's workspace.
TAKES_STAGED_ROWS = "staged_rows_"
STAGED_ROWS_BOUNDS = dict.fromkeys(WIDE, "__launch_bounds__(128, 4) ")
STAGED_ROWS_ELSEWHERE = {(name, 0): 24 for name in WIDE}

# Of streamed matmuls those of one row, whose blocks have a warp less, and those of 16 rows, which
# have a multiprocessor to themselves.
STREAMED_BOUNDS = {"_q0": "__launch_bounds__(288, 2) ", "_q4": "__launch_bounds__(320, 1) "}
# Of those by tiles, which have 256 weight rows, or 128 of the larger formats (kTileRows of
# kernels/streamed_tile.h).
STREAMED_TILE_BOUNDS = "__launch_bounds__(640, 1) "
STREAMED_SHORT_TILE_BOUNDS = "__launch_bounds__(384, 1) "
LARGE_FORMATS = ("_q5_0_", "_q5_1_", "_q8_0_", "_q5_k_", "_q6_k_")

# Slots whose bytes the launch itself holds: a kernel need not go to memory for them.
BY_VALUE = {23: "arguments.pass", 25: "arguments.params"}

# What is written for NVIDIA alone, and what stands in its place: nothing where language.h has it.
REPLACED = {
    "bytes_less": "",
    "input_rows": '\n#include "cuda/kernels/input_rows.h"\n',
    "inputs_ready": "",
    "load_words": "",
    "multiply_matrices": "",
    "multiply": '\n#include "cuda/kernels/multiply_rows.h"\n',
    "multiply_tile": '\n#include "cuda/kernels/multiply_tile.h"\n',
    "multiply_prompt_tile": (
        '\n#include "cuda/kernels/warpgroup.h"\n#include "cuda/kernels/warpgroup_weights.h"\n'
        '#include "cuda/kernels/warpgroup_tile.h"\n'
    ),
    "stream_tiles": (
        '\n#include "cuda/kernels/warpgroup.h"\n'
        '#include "cuda/kernels/streamed_weights.h"\n'
        '#include "cuda/kernels/rounded_rows.h"\n'
        '#include "cuda/kernels/streamed_rows.h"\n'
        '#include "cuda/kernels/streamed_tile.h"\n'
    ),
    "stream_tile": "",
    "attend_row": (
        '\n#include "cuda/kernels/warpgroup.h"\n#include "cuda/kernels/rows_attention.h"\n'
    ),
    "attend_prompt_tile": (
        '\n#include "cuda/kernels/warpgroup.h"\n#include "cuda/kernels/warpgroup_tile.h"\n'
        '#include "cuda/kernels/warpgroup_attention.h"\n'
    ),
}

# Operands of a kernel that lie at another slot: the input of a prompt's matmul, in parts, in the
# command's workspace (kernels/split_input.h).
ELSEWHERE = {("gemm", 0): 24, ("gemm_group", 0): 24}

# Threads of a block at most, and how many blocks a multiprocessor is to have registers for: of a
# kernel, or of one of its instances as the host names it.
LAUNCH_BOUNDS = (
    dict.fromkeys(("gemm", "gemm_group"), "__launch_bounds__(256, 2) ")
    | dict.fromkeys(
        ("streamed_matmul", "streamed_matmul_group", "streamed_matmul_gated"),
        "__launch_bounds__(320, 2) ",
    )
    | dict.fromkeys(
        ("warpgroup_matmul", "warpgroup_matmul_group", "warpgroup_attention"),
        "__launch_bounds__(384, 1) ",
    )
    | {
        f"{name}_d{dims}_q{heads}": f"__launch_bounds__(128, {blocks}) "
        for name in ("attention_rows", "rope_attention_rows")
        for dims, heads, blocks in ((128, 4, 5), (128, 8, 4), (256, 4, 2), (256, 8, 2))
    }
    | dict.fromkeys(
        ("warpgroup_attention_d64_x1", "warpgroup_attention_d128_x1"), "__launch_bounds__(256, 1) "
    )
)


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


def translated(program: Program) -> str:
    """The text as CUDA: function constants are names of what the launch says."""
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
            edits.append((tokens[0].start, tokens[-1].end, REPLACED[replaced.pop()]))
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
    return edited(program.text, edits)


def entry(
    function: HostFunction,
    waits_itself: bool,
    stages: bool,
    elsewhere: dict[tuple[str, int], int],
    bounds_of: dict[str, str],
) -> str:
    """The __global__ function of one that the host names."""
    name = function.expression.partition("<")[0].strip()
    built_ins = dict(BUILT_INS)
    if stages:
        built_ins |= STAGED_BUILT_INS
    elif name in WIDE:
        built_ins |= WIDE_BUILT_INS
    arguments: list[str] = []
    for parameter in function.kernel.parameters:
        if parameter.kind == "built_in":
            arguments.append(built_ins[parameter.built_in])
            continue
        if parameter.kind == "threadgroup":
            at = f"akunu_shared + arguments.shared_offset[{parameter.index}]"
        else:
            slot = elsewhere.get((name, parameter.index), parameter.index)
            at = BY_VALUE.get(slot, f"arguments.slots[{slot}]")
        arguments.append(f"{'deref' if parameter.is_reference else 'any'}({at})")
    of_name = bounds_of.get(name, "")
    bounds = STAGED_BOUNDS if stages else bounds_of.get(function.host_name, of_name)
    if name.startswith("streamed_"):
        bounds = STREAMED_BOUNDS.get(function.host_name[-3:], bounds)
    if name.startswith("streamed_tile_"):
        is_large = any(name in function.host_name for name in LARGE_FORMATS)
        bounds = STREAMED_SHORT_TILE_BOUNDS if is_large else STREAMED_TILE_BOUNDS
    lines = [
        f'extern "C" __global__ void {bounds}akunu_{function.host_name}('
        "const __grid_constant__ AkunuArguments arguments) {",
    ]
    if function.constants:
        lines += [
            "  if (threadIdx.x < 8)",
            "    akunu_constants.values[threadIdx.x] = arguments.constants[threadIdx.x];",
            *(["  is_staged() = false;"] * stages),
            "  __syncthreads();",
        ]
    if not waits_itself:
        lines.append("  inputs_ready();")
    if stages:
        lines.append("  for (uint group = blockIdx.x; group < n_groups(); group += gridDim.x)")
    lines.append(f"  {function.expression}({', '.join(arguments)});")
    lines.append("}")
    return "\n".join(lines) + "\n"


PRELUDE = """\
#include "cuda/kernels/language.h"
#include "cuda/kernels/split_input.h"

namespace gpu {
namespace metal {}
struct AkunuConstants {
  uint32_t values[8];
};
// Of the launch; each block has a copy, which its first threads fill before anything else runs.
static __shared__ AkunuConstants akunu_constants;
extern __shared__ __align__(16) unsigned char akunu_shared[];

// Whether the launch says that its blocks are one SIMD-group each.
__device__ inline bool is_wide() { return akunu_constants.values[6] != 0; }

// Of launches that stage their input: the launch says how many warps have work in the whole grid.
// Threadgroups of them; how many of this block have work; whether the input is there for a warp.
__device__ inline uint n_groups() {
  const uint n_warps = blockDim.x / 32;
  return (akunu_constants.values[6] + n_warps - 1) / n_warps;
}
__device__ inline uint warps_with_work() {
  const uint n_warps = blockDim.x / 32, left = akunu_constants.values[6] - blockIdx.x * n_warps;
  return left < n_warps ? left : n_warps;
}
__device__ inline bool& is_staged() {
  static __shared__ bool of_warps[32];
  return of_warps[threadIdx.x / 32];
}

// An operand is what the kernel says that it is.
struct Any {
  const void* at;
  template <class T>
  __device__ operator T*() const { return static_cast<T*>(const_cast<void*>(at)); }
};
struct Dereferenced {
  const void* at;
  template <class T>
  __device__ operator T&() const { return *static_cast<T*>(const_cast<void*>(at)); }
};
__device__ inline Any any(const void* at) { return Any{at}; }
__device__ inline Dereferenced deref(const void* at) { return Dereferenced{at}; }
"""


def write_cuda(program: Program, source: Path) -> str:
    """The whole generated file."""
    for function in program.functions:
        if function.declaration.namespace:
            raise msl.error(function.declaration.tokens[0], "a kernel is in no namespace")
    takes_staged_rows = source.stem.startswith(TAKES_STAGED_ROWS)
    stages = source.stem.startswith(STAGED) and not takes_staged_rows
    elsewhere, bounds_of = ELSEWHERE, LAUNCH_BOUNDS
    if takes_staged_rows:
        elsewhere, bounds_of = STAGED_ROWS_ELSEWHERE, STAGED_ROWS_BOUNDS
    entries = [
        entry(
            function,
            "inputs_ready" in programs.reachable(program.declarations, function),
            stages,
            elsewhere,
            bounds_of,
        )
        for function in program.functions
    ]
    return (
        f"// Made by generate.py of {source.name}. Do not edit.\n"
        f"{PRELUDE}"
        f"[[maybe_unused]] constexpr bool kStages = {str(stages).lower()};\n"
        "[[maybe_unused]] constexpr bool kTakesStagedRows = "
        f"{str(takes_staged_rows).lower()};\n\n"
        f"{translated(program)}\n"
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
        options.output.write_text(write_cuda(programs.read(text), options.source))
    except SourceError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
