"""What tools/options.py writes for C++, C and Swift: fields of structs, and how they are read.

The order of C's structs is never changed: a new option goes to their end. C's zero is a default.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final

from akunu.options.declarations import Declared, declared_of
from akunu.options.load_options import LoadOptions
from akunu.options.option_checks import SAMPLERS, Integers, Numbers
from akunu.options.sampling_options import SamplingOptions

_WORDS: Final = {"f": "float", "I": "uint32_t", "Q": "uint64_t", "?": "bool"}
WRITTEN: Final = (
    "// Written by tools/options.py from the declarations in python/akunu/options; do not edit.\n"
)


def packed(kind: type) -> dict[str, Declared]:
    """Return the options that the engine reads as numbers."""
    return {name: each for name, each in declared_of(kind).items() if each.packed}


def default_of(kind: Any, name: str) -> Any:
    return kind.__dataclass_fields__[name].default


def literal(value: Any) -> str:
    """Return a number as C++ has it."""
    if isinstance(value, float):
        return f"{value:g}" if value.is_integer() and abs(value) < 1e6 else f"{value!r}f"
    return hex(value) if int(value) >= 2**16 else str(int(value))


def _open_struct(before: str) -> str:
    """Return what stands by hand in the struct that a part belongs to."""
    return re.split(r"\bstruct\b", before)[-1]


# ---- src/core/rows.h and src/python/kernel_structs.cpp ----


def _words() -> Iterator[tuple[str, str, str, str]]:
    """Yield type, name, default and note of each word of `Sampling`."""
    for name, declared in packed(SamplingOptions).items():
        default = default_of(SamplingOptions, name)
        number = 0 if default is None else declared.number(default)
        if declared.packed != "Q":
            yield _WORDS[declared.packed], name, literal(number), declared.note
            continue
        low, high = (f"{number >> shift & 0xFFFFFFFF:#x}" for shift in (0, 32))
        yield "uint32_t", f"{name}_low", low.replace("0x0", "0"), declared.note
        yield "uint32_t", f"{name}_high", high.replace("0x0", "0"), ""


def engine_struct(_before: str, _now: str) -> str:
    """Return `struct Sampling`."""
    lines, n = ["struct Sampling {"], 0
    for kind, name, default, note in _words():
        line = f"  {kind} {name} = {default};" + (f"  // {note}" if note else "")
        lines.append(line if len(line) <= 100 else line.replace(" = ", " =\n      ", 1))
        n += 1
    lines += [
        "};",
        f'static_assert(sizeof(Sampling) == {4 * n}, "options of sampling are packed words");',
    ]
    return "\n".join(lines) + "\n"


def engine_names(_before: str, _now: str) -> str:
    """Return the names of its fields, for tests."""
    names = "AKUNU_STRUCT(Sampling, " + ", ".join(name for _, name, _, _ in _words()) + ");"
    return textwrap.fill(names, 100, subsequent_indent=" " * 13) + "\n"


# ---- LoadOptions of src/inference/context_plan.h, and from Python ----


def engine_load_fields(before: str, _now: str) -> str:
    """Return fields of options that the struct does not have by hand."""
    lines = ""
    for name, declared in packed(LoadOptions).items():
        if re.search(rf"\b{name}\b", _open_struct(before)):
            continue
        kind, default = _WORDS[declared.packed], default_of(LoadOptions, name)
        value = "{}" if default is None else str(default).lower()
        lines += f"  {f'std::optional<{kind}>' if default is None else kind} {name} = {value};\n"
    return lines


def python_load() -> str:
    """Return src/python/load_options.inc."""
    read = "".join(f'  take(given, "{name}", options.{name});\n' for name in packed(LoadOptions))
    return f"{WRITTEN}void take_numbers(py::dict& given, LoadOptions& options) {{\n{read}}}\n"


# ---- include/akunu/types.h ----


def _c_name(name: str, declared: Declared) -> str:
    return declared.opposite or name


def _c_type(declared: Declared) -> str:
    if isinstance(declared.check, Numbers):
        return "float "
    if isinstance(declared.check, Integers):
        highest = declared.check.highest
        return "uint64_t " if highest is None or highest >= 2**32 else "uint32_t "
    return "const char* " if declared.metavar else "bool "


def _in_order(kind: type, text: str) -> dict[str, Declared]:
    """Return packed options in the order in which a struct has them, new ones last."""
    found = {_c_name(name, each): (name, each) for name, each in packed(kind).items()}
    there = [name for name in re.findall(r"(\w+);", text) if name in found]
    return dict(found[name] for name in dict.fromkeys([*there, *found]))


def c_sampling(_before: str, now: str) -> str:
    """Return the fields of akunu_sampling."""
    return "".join(
        _c_field(SamplingOptions, name, each)
        for name, each in _in_order(SamplingOptions, now).items()
    )


def c_load(before: str, now: str) -> str:
    """Return fields of akunu_load_options that are not written by hand."""
    return "".join(
        _c_field(LoadOptions, name, each)
        for name, each in _in_order(LoadOptions, now).items()
        if not re.search(rf"\b{_c_name(name, each)};", _open_struct(before))
    )


def _c_field(kind: type, name: str, declared: Declared) -> str:
    default = default_of(kind, name)
    said = declared.help
    if declared.opposite:
        said = f"The opposite of: {said}"
    elif declared.metavar == "NAME,NAME":
        said += " Names between commas; null: all, in the usual order."
    elif default and "default" not in said:
        said += " 0: the default."
    comment = textwrap.fill(f"/* {said} */", 98, initial_indent="  ", subsequent_indent="   * ")
    return f"{comment}\n  {_c_type(declared)}{_c_name(name, declared)};\n"


# ---- src/capi/options.inc ----


def c_sampling_reader() -> str:
    """Return src/capi/sampling_options.inc."""
    names = ", ".join(f'"{name}"' for name in SAMPLERS)
    wrapped = textwrap.fill(names, 96, initial_indent="    ", subsequent_indent="    ")
    reads = "".join(f"  {_c_read(name, each)}\n" for name, each in packed(SamplingOptions).items())
    needs = "".join(
        f"  need_sampler(sampling, {number}, "
        f'sampling.{name} != {literal(default_of(SamplingOptions, name))}, "{name}");\n'
        for number, options in enumerate(SAMPLERS.values(), 1)
        for name in options
    )
    return (
        f"{WRITTEN}// In the order of their numbers, kSampler... in core/rows.h.\n"
        f"constexpr std::string_view kSamplers[] = {{\n{wrapped}}};\n\n"
        "void take_numbers(const akunu_sampling& given, Sampling& sampling) {\n"
        f"{reads}{needs}}}\n"
    )


def c_load_reader() -> str:
    """Return src/capi/load_options.inc."""
    reads = "".join(f"  {_c_load_read(name, each)}\n" for name, each in packed(LoadOptions).items())
    return (
        f"{WRITTEN}void take_numbers(const akunu_load_options& given, LoadOptions& options) {{\n"
        f"{reads}}}\n"
    )


def _c_read(name: str, declared: Declared) -> str:
    if not isinstance(declared.check, (Integers, Numbers)):
        if declared.metavar:
            return f"take_{name}(given.{name}, sampling);"
        given = f"!given.{declared.opposite}" if declared.opposite else f"given.{name}"
        return f"sampling.{name} = {given};"
    default = default_of(SamplingOptions, name)
    if declared.packed == "Q":
        return (
            f"sampling.{name}_low = static_cast<uint32_t>(given.{name});\n"
            f"  sampling.{name}_high = static_cast<uint32_t>(given.{name} >> 32);"
        )
    lowest, highest = declared.check.lowest, declared.check.highest
    assert highest is not None
    suffix = "f" if isinstance(declared.check, Numbers) else "u"
    if 0 < lowest < 1:  # as C has had it: 0 is allowed, and what is next to it
        lowest = 0
    least, most, usual = (_with(suffix, each) for each in (lowest, highest, default))
    return f'sampling.{name} = number_of(given.{name}, {least}, {most}, {usual}, "{name}");'


def _with(suffix: str, value: Any) -> str:
    return f"{float(value)!r}f" if suffix == "f" else f"{value}u"


def _c_load_read(name: str, declared: Declared) -> str:
    if declared.packed == "?":
        given = f"!given.{declared.opposite}" if declared.opposite else f"given.{name}"
        return f"options.{name} = {given};"
    return f"if (given.{name} != 0) options.{name} = given.{name};"


# ---- bindings/swift ----


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def swift_sampling(_before: str, _now: str) -> str:
    """Return Swift's Sampling."""
    fields = reads = ""
    for name, declared in packed(SamplingOptions).items():
        field, default = _camel(_c_name(name, declared)), default_of(SamplingOptions, name)
        c_name = _c_name(name, declared)
        said = "The opposite of: " * bool(declared.opposite) + declared.help
        if isinstance(declared.check, Numbers):
            kind, value = "Float", f"{default:g}"
            given = f'try nonzero({field}, "{field}")' if default else field
        elif declared.packed == "Q" and isinstance(declared.check, Integers):
            kind, value, given = "UInt64", "0", field
        elif isinstance(declared.check, Integers):
            kind, value = ("Int", str(default)) if default else ("Int?", "")
            given = f'try positive({field}, "{field}")'
        elif declared.metavar:
            kind, value, given = "[String]", "[]", ""  # its text lives as long as the call
        else:
            kind, value, given = "Bool", "false", field
        fields += f"  /// {said}\n  public var {field}: {kind}{f' = {value}' if value else ''}\n"
        reads += f"    given.{c_name} = {given}\n" if given else ""
    return (
        f"public struct Sampling: Sendable, Hashable {{\n{fields}\n  public init() {{}}\n\n"
        "  func c() throws(AkunuError) -> akunu_sampling {\n    var given = akunu_sampling()\n"
        "    given.size = MemoryLayout<akunu_sampling>.size\n"
        f"{reads}    return given\n  }}\n}}\n"
    )


def swift_load_fields(_before: str, _now: str) -> str:
    """Return fields of Swift's LoadOptions that are not written by hand."""
    return "".join(
        f"  /// {each.help}\n  public var {_camel(_c_name(name, each))}"
        f"{' = false' if each.packed == '?' else ': Int?'}\n"
        for name, each in _new_in_swift().items()
    )


def swift_load_reads(_before: str, _now: str) -> str:
    """Return how they are handed to C."""
    reads = ""
    for name, each in _new_in_swift().items():
        c_name = _c_name(name, each)
        field = _camel(c_name)
        value = field if each.packed == "?" else f'.init(try positive({field}, "{field}"))'
        reads += f"    given.{c_name} = {value}\n"
    return reads


def _new_in_swift() -> dict[str, Declared]:
    by_hand = ("context", "gpu_memory", "kv_memory", "prediction_head")
    return {name: each for name, each in packed(LoadOptions).items() if name not in by_hand}
