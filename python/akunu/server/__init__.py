"""The server: what OpenAI's clients talk to, over the asynchronous calls of `akunu.Model`.

`akunu serve` runs it; `create_app` makes the same application for a program of your own. It needs
`pip install 'akunu[server]'`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from akunu.server.app import create_app
    from akunu.server.models import ServedModels
    from akunu.server.settings import ServerSettings

__all__ = ["ServedModels", "ServerSettings", "create_app"]

_EXPORTS = {
    "ServedModels": "akunu.server.models",
    "ServerSettings": "akunu.server.settings",
    "create_app": "akunu.server.app",
}


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'akunu.server' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_EXPORTS[name]), name)
