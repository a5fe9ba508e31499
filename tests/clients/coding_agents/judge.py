"""Coding agents, each with one task: it calls a tool, runs it, sends the result back, and ends.

The model is one that thinks and surely calls a tool (`scripted_model.py`); prompts have 10,000 to
30,000 tokens. Server and agent run in a network of their own that has nothing but loopback.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import scripted_model
from environment import npm_packages
from serving import serving

import akunu

VERSION = "codex 0.171.0, claude-code 2.1.197, opencode 1.18.33"
_PACKAGES = (
    "@openai/codex@0.171.0",
    "@anthropic-ai/claude-code@2.1.197",
    "opencode-ai@1.18.33",
)
_PROJECT = "project"
_TASK = "Write akunu into made.txt"
_COMMAND = "printf akunu > made.txt"
_THOUGHT = "A shell will do."
_LAST_WORDS = "The file is written."


@dataclass(frozen=True, kw_only=True)
class Agent:
    """How an agent is told of the server, what it calls, and what of its requests has no effect."""

    command: Callable[[Path, Path, str], list[str]]
    """Takes the packages, an empty home and the server's address; writes settings, returns it."""
    tool: str
    arguments: dict[str, Any]
    without_effect: str
    environment: Callable[[str], dict[str, str]] = lambda address: {}


def _codex(packages: Path, home: Path, address: str) -> list[str]:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(
        f"""\
model = "agent"
model_provider = "akunu"
model_context_window = {scripted_model.CONTEXT}
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.akunu]
name = "akunu"
base_url = "{address}/v1"
wire_api = "responses"
""",
        encoding="utf-8",
    )
    options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return [str(packages / ".bin" / "codex"), "exec", *options, _TASK]


def _codex_with_mcp(packages: Path, home: Path, address: str) -> list[str]:
    command = _codex(packages, home, address)
    server = [
        str(Path(__file__).parent / "mcp_server.py"),
        str(home.parent / _PROJECT / "made.txt"),
    ]
    with (home / ".codex" / "config.toml").open("a", encoding="utf-8") as settings:
        settings.write(f"[mcp_servers.writer]\ncommand = '{sys.executable}'\nargs = {server}\n")
    return command


def _codex_oss(packages: Path, home: Path, address: str) -> list[str]:
    command = _codex(packages, home, address)
    (home / ".codex" / "config.toml").unlink()
    return [*command[:-1], "--oss", "--local-provider", "ollama", "--model", "agent", _TASK]


def _claude_code(packages: Path, home: Path, address: str) -> list[str]:
    (binary,) = (packages / "@anthropic-ai").glob("claude-code-linux-*/claude")
    return [str(binary), "-p", _TASK, "--allowedTools", "Bash"]


def _opencode(packages: Path, home: Path, address: str) -> list[str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "akunu",
        "options": {"baseURL": f"{address}/v1"},
        "models": {"agent": {"limit": {"context": scripted_model.CONTEXT, "output": 8192}}},
    }
    settings = {"provider": {"akunu": provider}, "autoupdate": False, "share": "disabled"}
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")
    binary = sorted(packages.glob("opencode-linux-*/bin/opencode"))[-1]  # -baseline, if it is there
    return [str(binary), "run", "--auto", "--model", "akunu/agent", _TASK]


_CODEX_WITHOUT_EFFECT = (
    "store, prompt_cache_key, client_metadata, tools.namespace.description, tools.web_search, "
    "reasoning.summary, include.reasoning.encrypted_content"
)
AGENTS = {
    "codex": Agent(
        command=_codex,
        tool="exec_command",
        arguments={"cmd": _COMMAND},
        without_effect=_CODEX_WITHOUT_EFFECT,
    ),
    "codex with MCP": Agent(
        command=_codex_with_mcp,
        tool="mcp__writer__write",
        arguments={"text": "akunu"},
        without_effect=_CODEX_WITHOUT_EFFECT,
    ),
    "codex --oss": Agent(
        command=_codex_oss,
        tool="exec_command",
        arguments={"cmd": _COMMAND},
        without_effect=_CODEX_WITHOUT_EFFECT,
        environment=lambda address: {"CODEX_OSS_BASE_URL": f"{address}/v1"},
    ),
    "claude-code": Agent(
        command=_claude_code,
        tool="Bash",
        arguments={"command": _COMMAND, "description": "Write a file"},
        without_effect="metadata, context_management, output_config.effort, "
        "x-anthropic-billing-header, cache_control",
        environment=lambda address: {
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_AUTH_TOKEN": "any",
            "ANTHROPIC_MODEL": "agent",
            "ANTHROPIC_DEFAULT_OPUS_MODEL": "agent",
            "ANTHROPIC_DEFAULT_SONNET_MODEL": "agent",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": "agent",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    ),
    "opencode": Agent(
        command=_opencode,
        tool="bash",
        arguments={"command": _COMMAND, "description": "Write a file"},
        without_effect="",
        environment=lambda address: {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
    ),
}


def judge(work: Path) -> dict[str, str]:
    npm_packages(work / "npm", *_PACKAGES)
    inside = ["unshare", "--net", "--map-root-user", sys.executable, str(Path(__file__)), str(work)]
    modules = str(Path(scripted_model.__file__).parent)
    subprocess.run(inside, check=True, env={**os.environ, "PYTHONPATH": modules})
    outcomes: dict[str, str] = json.loads((work / "outcomes.json").read_text(encoding="utf-8"))
    return outcomes


def _judge_within(work: Path) -> None:
    """Run all agents in a network that was just made, and write down what was wrong by test."""
    _bring_up_loopback()
    outcomes = {}
    for name, agent in AGENTS.items():
        folder = work / name.replace(" ", "-")
        folder.mkdir()
        found = _outcomes(agent, folder, work / "npm" / "node_modules")
        outcomes.update({f"{name} {test}": wrong for test, wrong in found.items()})
    (work / "outcomes.json").write_text(json.dumps(outcomes), encoding="utf-8")


def _bring_up_loopback() -> None:
    set_flags, up, running = 0x8914, 0x1, 0x40  # SIOCSIFFLAGS, IFF_UP, IFF_RUNNING: netdevice(7)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh", b"lo", up | running))


def _outcomes(agent: Agent, folder: Path, packages: Path) -> dict[str, str]:
    ember = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
    model = folder / "agent.gguf"
    texts = {"thought": _THOUGHT, "done": _LAST_WORDS}
    scripted_model.write(model, ember, agent.tool, agent.arguments, **texts)
    home, project = folder / "home", folder / _PROJECT
    home.mkdir()
    project.mkdir()
    # A limit for an agent that leaves the script; scripted replies are much shorter.
    options = ["--access-log", "json", "--log-prompts", "--most-tokens", "100000"]
    with serving(folder, f"agent={model}", *options) as address:
        ended = subprocess.run(
            agent.command(packages, home, address),
            cwd=project,
            env={"HOME": str(home), "PATH": os.environ["PATH"], **agent.environment(address)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        requests = _requests(folder / "server.log")
        # The model calls its tool in the first request that has it, and ends in the next.
        rounds = [each for each in requests if "tools" in each["body"]]
        ignored = _without_effect(address, rounds[0]) if rounds else "no request has tools"
    made = project / "made.txt"
    refused = [f"{each['path']}: {each['status']}" for each in requests if each["status"] != 200]
    has_prefix = len(rounds) == 2 and rounds[1]["cached_tokens"] >= rounds[0]["prompt_tokens"] - 1
    rest = f"{ended.stdout}\n{ended.stderr}"
    return {
        "is refused nothing": ", ".join(refused),
        "runs the tool": "" if made.exists() and made.read_text() == "akunu" else rest,
        "ends": "" if ended.returncode == 0 and _LAST_WORDS in ended.stdout else rest,
        "sends thoughts back": "" if _THOUGHT in json.dumps(rounds[1:]) else rest,
        "finds its first prompt in the cache": "" if has_prefix else f"{len(rounds)} requests",
        "is told what has no effect": "" if ignored == agent.without_effect else ignored,
    }


def _requests(log: Path) -> list[dict[str, Any]]:
    """The requests for replies, with their bodies."""
    found = []
    for line in log.read_text(encoding="utf-8").splitlines():
        facts = json.loads(line[line.index("{") :]) if "{" in line else {}
        if facts.get("method") == "POST":
            found.append({**facts, "body": json.loads(facts["body"])})
    return found


def _without_effect(address: str, request: dict[str, Any]) -> str:
    """The fields without effect of a request, which is asked once more."""
    body = {**request["body"], "stream": False}
    answer = httpx.post(f"{address}{request['path']}", json=body, timeout=120)
    return answer.headers.get("x-akunu-ignored", "")


if __name__ == "__main__":
    _judge_within(Path(sys.argv[1]))
