"""`python -m tools.make_synthetic`: the command line."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

from tools.make_synthetic.recipes import ALIASES, PURE, RECIPES
from tools.make_synthetic.shapes import ARCHITECTURES, PRESETS, RopeFactors, Shape
from tools.make_synthetic.writer import write

_SIZES = ("n_layers", "dim", "n_heads", "n_kv_heads", "head_dim", "ffn_dim", "vocab_size")
_MORE_SIZES = ("context_length", "n_experts", "n_chosen", "expert_dim", "window", "yarn_context")
_SWITCHES = ("tied", "qkv_bias", "output_bias", "qk_norm", "expert_bias", "skewed", "sinks")


def _rope_factors(text: str) -> RopeFactors:
    try:
        factor, low, high, original = text.split(",")
        return RopeFactors(
            factor=float(factor),
            low_freq_factor=float(low),
            high_freq_factor=float(high),
            original_context=int(original),
        )
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected factor,low,high,original context as in 8,1,4,8192, got {text!r}"
        ) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.make_synthetic",
        description="Writes a GGUF file with random weights: the same arguments, the same bytes.",
    )
    parser.add_argument("path", type=Path, help="the file to write")
    parser.add_argument("--preset", choices=PRESETS, help="the shape of a known model")
    parser.add_argument(
        "--format",
        required=True,
        help=f"number format, as llama-quantize names it: {', '.join([*RECIPES, *PURE, *ALIASES])}",
    )
    parser.add_argument("--pure", action="store_true", help="every matrix in the same format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="", help="the file's general.name")
    shape = parser.add_argument_group(
        "shape", "all sizes without a preset; with one, what differs from it"
    )
    shape.add_argument("--architecture", choices=ARCHITECTURES)
    for name in (*_SIZES, *_MORE_SIZES):
        shape.add_argument("--" + name.replace("_", "-"), type=int, metavar="N")
    shape.add_argument("--rope-theta", type=float, metavar="BASE")
    shape.add_argument("--norm-epsilon", type=float, metavar="EPSILON")
    shape.add_argument("--rope-linear-factor", type=float, metavar="FACTOR")
    shape.add_argument("--yarn-factor", type=float, metavar="FACTOR")
    shape.add_argument(
        "--rope-factors", type=_rope_factors, metavar="FACTOR,LOW,HIGH,ORIGINAL",
        help="Llama 3.1's scaling",
    )  # fmt: skip
    for name in _SWITCHES:
        shape.add_argument("--" + name.replace("_", "-"), action=argparse.BooleanOptionalAction)
    return parser


def _shape(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> Shape:
    given = {
        field.name: getattr(arguments, field.name)
        for field in fields(Shape)
        if getattr(arguments, field.name) is not None
    }
    if arguments.preset is not None:
        return replace(PRESETS[arguments.preset], **given)
    missing = [name for name in ("architecture", *_SIZES) if name not in given]
    if missing:
        flags = ", ".join("--" + name.replace("_", "-") for name in missing)
        parser.error(f"without --preset, these are needed too: {flags}")
    return Shape(**given)


def main() -> int:
    parser = _parser()
    arguments = parser.parse_args()
    started = time.monotonic()

    def report(written: int, total: int) -> None:
        print(f"\r{written / 2**20:.0f} of {total / 2**20:.0f} MiB", end="", file=sys.stderr)

    try:
        write(
            arguments.path,
            _shape(parser, arguments),
            arguments.format,
            seed=arguments.seed,
            name=arguments.name or (arguments.preset or ""),
            pure=arguments.pure,
            report=report if sys.stderr.isatty() else None,
        )
    except (ValueError, OSError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")
    if sys.stderr.isatty():
        print(f", {time.monotonic() - started:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
