"""An MCP server on its standard input and output, with one tool: mcp_server.py FILE.

The tool `write` writes its `text` to the file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

WRITE = {
    "name": "write",
    "description": "Write a text.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
}


def answer(method: str, given: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return {
            "protocolVersion": given["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "writer", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [WRITE]}
    if method == "tools/call":
        Path(sys.argv[1]).write_text(given["arguments"]["text"], encoding="utf-8")
        return {"content": [{"type": "text", "text": "It is written."}]}
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:  # the others are no requests
        result = answer(request["method"], request.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
