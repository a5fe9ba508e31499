"""A plugin of pytest: llama.cpp's tests of its server meet `akunu serve` in its place.

A server is started for each combination of settings that a test asks for, and serves all further
tests that ask for the same. A setting that akunu does not have fails the test by its name. What
depends on the weights of the tests' own model is relaxed: any text will do.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import utils  # llama.cpp's
from serving import serving

# What the tests call their models; llama.cpp serves the one that it has under any name.
NAMES = (
    *("gpt-3.5-turbo-instruct", "gpt-3.5-turbo", "davinci-002", "codellama70b", "gpt-4.1"),
    *("test", "text-davinci-003"),
)
# What changes nothing here, or nothing that a test can see.
NO_MATTER = {
    *("debug", "server_port", "server_host", "external_server", "process", "offline", "log_path"),
    *("model_hf_repo", "model_hf_file", "model_file", "model_url", "model_alias", "temperature"),
    *("seed", "n_ctx", "n_slots", "n_batch", "n_ubatch", "n_predict", "n_threads", "n_prompts"),
    *("n_gpu_layer", "cache_prompt", "server_continuous_batching", "kv_unified", "server_metrics"),
    *("api_key", "cors_origins", "jinja", "fa", "ctk", "ctv", "swa_full", "no_cache_idle_slots"),
}
_SERVERS: dict[tuple[tuple[str, str], ...], str] = {}
_ENDS = contextlib.ExitStack()


def start(self: Any, timeout_seconds: float = 60) -> None:
    """Stand in for ServerProcess.start: have a server with these settings at self.server_port."""
    asked = {**vars(type(self)), **vars(self)}
    for name in type(self).__annotations__:
        if name not in NO_MATTER and asked.get(name) not in (None, False):
            raise NotImplementedError(f"akunu serve has no {name}")
    if self.server_host != "127.0.0.1":
        raise NotImplementedError("akunu serve listens at one address")
    names = [self.model_alias or "model", *NAMES]
    settings = {"models": f"{','.join(dict.fromkeys(names))}={os.environ['MODEL']}"}
    if self.n_ctx:
        settings["AKUNU_SERVE_CONTEXT"] = str(
            self.n_ctx if self.kv_unified else self.n_ctx // (self.n_slots or 1)
        )
    if self.n_predict and self.n_predict > 0:
        settings["AKUNU_SERVE_DEFAULT_MAX_TOKENS"] = str(self.n_predict)
    if self.api_key:
        settings["AKUNU_SERVE_API_KEYS"] = self.api_key
    if self.cors_origins:
        settings["AKUNU_SERVE_CORS_ORIGINS"] = self.cors_origins
    key = tuple(sorted(settings.items()))
    if key not in _SERVERS:
        models = settings.pop("models")
        work = Path(tempfile.mkdtemp(dir=os.environ["WORK"]))
        _SERVERS[key] = _ENDS.enter_context(serving(work, models, **settings))
    self.server_port = urlsplit(_SERVERS[key]).port


def any_text(regex: str, text: str) -> bool:
    """Stand in for match_regex: the words are those of another model."""
    return isinstance(text, str)


utils.ServerProcess.start = start
utils.ServerProcess.stop = lambda self: None
utils.ServerPreset.load_all = staticmethod(lambda: None)
utils.match_regex = any_text


def pytest_sessionfinish() -> None:
    """End the servers; one that failed at anything fails the run."""
    try:
        _ENDS.close()
    except AssertionError as error:
        print(error, file=sys.stderr)
        raise
