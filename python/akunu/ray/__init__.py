"""Many replicas of the server on a Ray cluster, and each conversation where its cache is.

`akunu ray` starts it; `serve run akunu.ray:app models=ember replicas=2 processors=8`, or a
configuration of Ray Serve whose `import_path` is `akunu.ray:app`, do so where a cluster has its own
ways. Needs the extra `ray`. The routes are those of `akunu serve`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def app(arguments: Mapping[str, Any]) -> Any:
    """Return the application for Ray Serve, which calls this.

    `arguments`: `models`, and settings of `akunu serve` and `akunu ray` by their names; those of
    the environment and of an `akunu.toml` are read, too. Raises ArgumentError for what makes no
    sense, and for what says how to listen: here Ray Serve listens, as its `http_options` say.
    """
    # Ray itself is an extra, and readers of facts do not need it.
    from akunu.ray.application import built
    from akunu.ray.settings import options_of_serve  # with Ray's packages

    return built(options_of_serve(arguments))
