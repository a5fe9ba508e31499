"""`python -m tools.compare`: one command per module."""

from __future__ import annotations

import argparse
import sys

from tools.compare import (
    accuracy,
    embeddings,
    machines,
    report,
    scaling,
    servers,
    speech,
    speed,
    summary,
)

COMMANDS = {
    "speed": speed,
    "scaling": scaling,
    "servers": servers,
    "accuracy": accuracy,
    "embeddings": embeddings,
    "speech": speech,
    "report": report,
    "machines": machines,
    "summary": summary,
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.compare", description="akunu beside llama.cpp on the same file."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in COMMANDS.items():
        what = (module.__doc__ or "").splitlines()[0]
        module.add_arguments(commands.add_parser(name, help=what, description=what))
    arguments = parser.parse_args()
    try:
        return COMMANDS[arguments.command].run(arguments)
    except (OSError, ValueError, RuntimeError) as error:
        parser.exit(1, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    sys.exit(main())
