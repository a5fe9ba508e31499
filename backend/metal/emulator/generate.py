"""Makes C++ of a .metal file: the same text, with a table of its functions behind it.

    generate.py translate --compiler c++ --include DIR ... --depfile OUT.d IN.metal OUT.cpp
    generate.py table OUT.cpp [NAME ...]

`translate` preprocesses the file (address spaces and attributes are words to the preprocessor),
finds kernels, function constants and instantiations, and writes what the emulator needs to run
them. The file is then compiled once per level. `table` writes what lists the files of a library;
a NAME is what `translate` made of the file's name.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "gpu"))

from msl_reader import program as programs
from msl_reader.program import HostFunction, Program
from msl_reader.source import Declaration, SourceError
from msl_reader.text import (
    attribute_edits,
    edited,
    finish_depfile,
    preprocess,
    space_edits,
)

POSITIONS = {
    "thread_position_in_grid": "binding::thread_in_grid(lane_)",
    "threads_per_grid": "binding::threads_per_grid(lane_)",
    "threadgroup_position_in_grid": "lane_.threadgroup",
    "threadgroups_per_grid": "lane_.threadgroups",
    "thread_position_in_threadgroup": "lane_.thread",
    "threads_per_threadgroup": "lane_.threads",
    "thread_index_in_threadgroup": "lane_.index",
    "simdgroup_index_in_threadgroup": "lane_.index / 32",
    "thread_index_in_simdgroup": "lane_.index % 32",
    "simdgroups_per_threadgroup": "lane_.simdgroups",
    "threads_per_simdgroup": "uint32_t(32)",
}


def translated(program: Program) -> str:
    """The text as C++: no attributes of MSL, no address spaces but the const of `constant`."""
    edits: list[tuple[int, int, str]] = []
    variables = {id(c.declaration): c for c in program.constants + program.derived}
    for declaration in program.declarations:
        tokens = declaration.tokens
        if declaration.kind == "instantiation":
            edits.append((tokens[0].start, tokens[-1].end, ""))
            continue
        constant = variables.get(id(declaration))
        if constant is not None:
            edits.append(
                (tokens[0].start, tokens[-1].end, f"static {constant.type_text} {constant.name};")
            )
            continue
        attributes = attribute_edits(tokens)
        hidden = [(start, end) for start, end, _ in attributes]
        edits += attributes
        edits += [
            edit
            for edit in space_edits(declaration)
            if not any(start <= edit[0] < end for start, end in hidden)
        ]
    return edited(program.text, edits)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _function_code(number: int, function: HostFunction) -> str:
    """The trampoline and the description of one function, in its namespace."""
    kernel = function.kernel
    arguments: list[str] = []
    described: list[str] = []
    details: list[str] = []
    for position, parameter in enumerate(kernel.parameters):
        at = f"Signature_, {position}"
        if parameter.kind == "built_in":
            arguments.append(f"binding::built_in<{at}>({POSITIONS[parameter.built_in]})")
            continue
        memory = "buffers" if parameter.kind == "buffer" else "threadgroup"
        arguments.append(f"binding::bind<{at}>(bound_.{memory}[{parameter.index}])")
        is_constant = "true" if parameter.space == "constant" else "false"
        described.append(
            f"binding::describe<{at}>({_quoted(parameter.name)}, "
            f"emulator::Argument::Kind::{parameter.kind}, {parameter.index}, {is_constant})"
        )
        condition = "nullptr"
        if parameter.condition is not None:
            condition = f"[]() -> bool {{ return {parameter.condition}; }}"
        details.append(f"{{{str(parameter.is_reference).lower()}, {condition}}}")
    constants = [
        f"{{{_quoted(c.name)}, {c.index}, sizeof({c.name}), {str(c.type_text == 'bool').lower()}}}"
        for c in function.constants
    ]
    first = function.declaration.tokens[0]
    place = f"#line {first.line} {_quoted(first.file)}\n"
    lines = [
        f"struct Function{number} {{",
        f"  using Signature_ = decltype({function.expression});",
        "  static void run_(const emulator::Bound& bound_, const emulator::Lane& lane_) {",
        "    (void)bound_, (void)lane_;",
        f"    {function.expression}({', '.join(arguments)});",
        "  }",
    ]
    for kind, name, items in (
        ("emulator::Argument", "arguments", described),
        ("emulator::ArgumentDetail", "details", details),
        ("emulator::FunctionConstantInfo", "constants", constants),
    ):
        if items:
            lines.append(f"  static constexpr {kind} {name}_[] = {{{', '.join(items)}}};")
        else:
            lines.append(f"  static constexpr std::span<const {kind}> {name}_ = {{}};")
    lines.append("};")
    # Every line of it stands for the place that names the function.
    return _in_namespace(function.declaration, "".join(f"{place}{line}\n" for line in lines))


def _in_namespace(declaration: Declaration, code: str) -> str:
    opening = "".join(f"namespace {name} {{ " for name in declaration.namespace)
    return f"{opening}\n{code}\n{'}' * len(declaration.namespace)}\n"


def _set_constants(program: Program) -> str:
    """set_constants(): one function per constant, in its namespace, called in order."""
    parts: list[str] = []
    calls: list[str] = []
    for number, constant in enumerate(program.constants + program.derived):
        if constant.index is not None:
            value = f"values[{constant.index}]"
            value = f"{value} != 0" if constant.type_text == "bool" else value
        else:
            value = constant.value_text
        first = constant.declaration.tokens[0]
        code = (
            f"static void set_constant_{number}(const uint32_t* values) {{\n  (void)values;\n"
            f"#line {first.line} {_quoted(first.file)}\n  {constant.name} = {value};\n}}"
        )
        parts.append(_in_namespace(constant.declaration, code))
        scope = "".join(f"{name}::" for name in constant.declaration.namespace)
        calls.append(f"  {scope}set_constant_{number}(values);\n")
    body = "".join(calls) or "  (void)values;\n"
    parts.append(f"static void set_constants(const uint32_t* values) {{\n{body}}}\n")
    return "".join(parts)


def write_cpp(program: Program, source: Path, name: str) -> str:
    """The whole generated file."""
    rows: list[str] = []
    for number, function in enumerate(program.functions):
        scope = "".join(f"{space}::" for space in function.declaration.namespace)
        record = f"file_{name}::{scope}Function{number}"
        first = function.declaration.tokens[0]
        rows.append(
            f"    {{{_quoted(function.host_name)}, {_quoted(first.file)}, {first.line}, "
            f"{record}::arguments_, {record}::details_, {record}::constants_, "
            f"&{record}::run_, &file_{name}::set_constants}},\n"
        )
    table = (
        f"static constexpr emulator::FunctionCode functions[] = {{\n{''.join(rows)}}};\n"
        if rows
        else "static constexpr std::span<const emulator::FunctionCode> functions = {};\n"
    )
    return (
        f"// Made by generate.py of {source.name}. Do not edit.\n"
        '#include "metal/emulator/msl/metal.h"\n\n'
        "namespace AKUNU_METAL_BUILD {\n"
        f"namespace file_{name} {{\nnamespace {{\n"
        f"{translated(program)}\n"
        '#line 1 "generated"\n'
        f"{''.join(_function_code(i, f) for i, f in enumerate(program.functions))}"
        f"{_set_constants(program)}"
        f"}}  // namespace\n}}  // namespace file_{name}\n{table}"
        "}  // namespace AKUNU_METAL_BUILD\n\n"
        "namespace akunu::metal::emulator {\n"
        "#ifdef AKUNU_METAL_CHECKED\n"
        f"std::span<const FunctionCode> checked_{name}() {{ return metal_checked::functions; }}\n"
        "#else\n"
        f"std::span<const FunctionCode> plain_{name}() {{ return metal_plain::functions; }}\n"
        "#endif\n"
        "}  // namespace akunu::metal::emulator\n"
    )


def write_table(names: list[str]) -> str:
    """The file that lists all files of a library."""
    declared = "".join(
        f"std::span<const FunctionCode> {level}_{name}();\n"
        for name in names
        for level in ("plain", "checked")
    )
    rows = "".join(f"      {{plain_{name}(), checked_{name}()}},\n" for name in names)
    return (
        "// Made by generate.py. Do not edit.\n"
        '#include "metal/emulator/library.h"\n\n'
        "namespace akunu::metal::emulator {\n\n"
        f"{declared}\n"
        "std::span<const FileCode> library_files() {\n"
        f"  static const std::vector<FileCode> files = {{\n{rows}  }};\n"
        "  return files;\n}\n\n"
        "}  // namespace akunu::metal::emulator\n"
    )


def name_of(source: Path) -> str:
    """A C++ name for a file."""
    return re.sub(r"\W", "_", source.stem)


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    translate = commands.add_parser("translate")
    translate.add_argument("--compiler", required=True)
    translate.add_argument("--include", action="append", default=[])
    translate.add_argument("--depfile", type=Path)
    translate.add_argument("source", type=Path)
    translate.add_argument("output", type=Path)
    table = commands.add_parser("table")
    table.add_argument("output", type=Path)
    table.add_argument("names", nargs="*")
    options = parser.parse_args()
    try:
        if options.command == "table":
            options.output.write_text(write_table(options.names))
            return 0
        text = preprocess(options.source, options.compiler, options.include, options.depfile)
        if options.depfile is not None:
            finish_depfile(options.depfile, options.output)
        program = programs.read(text)
        options.output.write_text(write_cpp(program, options.source, name_of(options.source)))
    except SourceError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
