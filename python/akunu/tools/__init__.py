"""Tools that a model may call: how they are passed, and how their calls are read.

`notation` says how a family of models writes calls, `families` lists them, `recognise` tells a
model's from its chat template, and `calls` has what comes out.
"""

from __future__ import annotations

from akunu.tools.calls import ToolCall

__all__ = ["ToolCall"]
