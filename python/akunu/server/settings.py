"""How the server runs: each setting is declared once, for Python, command line, file, environment.

>>> from akunu.server.settings import ServerSettings
>>> ServerSettings(port=80800)
Traceback (most recent call last):
...
akunu.errors.ArgumentError: port is 80800; it must be an integer from 0 to 65535
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from akunu.common.checks import MAX_UINT32, refusal, texts
from akunu.common.typos import explains_typos_of_init
from akunu.errors import ArgumentError
from akunu.options.declarations import MEMORY, USUAL, Declared, check_options, declared_of, option
from akunu.options.load_options import LoadOptions, ModelOptions
from akunu.options.option_checks import CONTEXT_OVERFLOWS, Integers, Names, Numbers, flag_check
from akunu.server.http.proxies import TrustedProxies

REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "both")
LOG_FORMATS: Final = ("text", "json", "none")
LIMITS: Final = "Limits of requests"
_seconds: Final = Numbers(0.0, 366 * 86400)
# As a browser sends it: in small letters, without a path, without the port that is the usual one.
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\sA-Z]+")
_USUAL_PORTS: Final = {"http": ":80", "https": ":443"}


def _adapters(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    """Return names and paths, from texts NAME=PATH."""
    if isinstance(value, tuple) and all(isinstance(each, tuple) for each in value):
        return value  # checked before
    pairs = [each.partition("=") for each in texts(name, value)]
    if not all(key and path for key, _, path in pairs):
        raise refusal(name, value, "NAME=PATH")
    names = [key for key, _, _ in pairs]
    if len(set(names)) < len(names):
        raise ArgumentError(f"{name}: two adapters have one name: {', '.join(names)}")
    return tuple((key, path) for key, _, path in pairs)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise refusal(name, value, "a text")
    return value


def _path(name: str, value: Any) -> Path:
    if not isinstance(value, (str, Path)) or not str(value):
        raise refusal(name, value, "a path")
    return Path(value).expanduser()


def _proxies(name: str, value: Any) -> tuple[str, ...]:
    given = texts(name, value)
    try:
        TrustedProxies(given)
    except ValueError:
        allowed = "addresses, networks as 10.0.0.0/8, or 'unix'"
        raise refusal(name, value, allowed) from None
    return given


def _origins(name: str, value: Any) -> tuple[str, ...]:
    given = texts(name, value)
    for each in given:
        usual_port = _USUAL_PORTS.get(each.partition("://")[0], "/")
        if each != "*" and (not _ORIGIN.fullmatch(each) or each.endswith(usual_port)):
            raise ArgumentError(
                f"{name} has {each!r}, which no browser sends: write the origin of the page as "
                "https://example.org or http://localhost:3000, without a path, or * for all"
            )
    return given


def _mode(name: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch("0?[0-7]{3}", value):
        raise refusal(name, value, "three octal digits, such as '600' or '660'")
    return value


@explains_typos_of_init
@dataclass(frozen=True, kw_only=True)
class ServerSettings(ModelOptions):
    """How the server runs. None is a setting's default. Raises ArgumentError for bad values."""

    host: str = option(
        "127.0.0.1",
        _text,
        "The address to listen on. 0.0.0.0: all addresses of this machine.",
        "ADDRESS",
        group=USUAL,
    )
    port: int = option(
        8080,
        Integers(0, 65535),
        "The port to listen on. 0: any free port.",
        flag="--port,-p",
        group=USUAL,
    )
    unix_socket: Path | None = option(
        None, _path, "Listen on this Unix socket instead of a port.", "FILE"
    )
    unix_socket_mode: str = option(
        "600",
        _mode,
        "Permissions of that socket, as three octal digits: 600 its owner, 660 its group "
        "as well, 666 everyone.",
        "MODE",
    )
    tls_certificate: Path | None = option(
        None, _path, "A certificate with its chain (PEM); the server then speaks https.", "FILE"
    )
    tls_key: Path | None = option(None, _path, "The private key of the certificate (PEM).", "FILE")
    api_keys: tuple[str, ...] = option(
        (), texts, "API keys; a client must send one of them.", "KEY", is_secret=True, is_list=True
    )
    api_key_file: Path | None = option(
        None,
        _path,
        "A file with API keys, one on each line; # begins a comment.",
        "FILE",
        group=USUAL,
    )
    without_key: bool = option(False, flag_check, "Serve other machines without an API key.")
    cors_origins: tuple[str, ...] = option(
        (),
        _origins,
        "Web pages of this origin may use the server, such as https://example.org; * allows all.",
        "ORIGIN",
        is_list=True,
    )
    allowed_hosts: tuple[str, ...] = option(
        (),
        texts,
        "A host name that requests may use, in addition to localhost, if the server is "
        "local and has no keys.",
        "NAME",
        is_list=True,
    )
    trusted_proxies: tuple[str, ...] = option(
        (),
        _proxies,
        "A proxy whose x-forwarded-for header is trusted: an address, a network, or unix.",
        "ADDRESS",
        is_list=True,
    )
    max_body: int = option(
        32 << 20,
        Integers(1, None),
        "The most bytes of a request.",
        "BYTES",
        group=LIMITS,
    )
    max_audio_seconds: float = option(
        7200.0,
        _seconds,
        "The longest audio in a request.",
        "SECONDS",
        group=LIMITS,
    )
    rate_limit: int = option(
        0,
        Integers(0, MAX_UINT32),
        "The most requests per minute of each key, or of each address. 0: no limit.",
        group=LIMITS,
    )
    default_max_tokens: int | None = option(
        None,
        Integers(1, None),
        "max_tokens of requests that do not set it.",
        group=LIMITS,
        default_is="until the context is full",
    )
    most_tokens: int | None = option(
        None,
        Integers(1, None),
        "The highest max_tokens that a request may set.",
        group=LIMITS,
        default_is="no limit",
    )
    context_overflow: str = option(
        "stop",
        Names(CONTEXT_OVERFLOWS),
        "What happens when the context is full, for requests that do not set it: stop, "
        "raise an error, or drop the oldest tokens and continue.",
        "NAME",
    )
    most_answers: int = option(
        64,
        Integers(1, MAX_UINT32),
        "The highest n that a request may set.",
        group=LIMITS,
    )
    all_models: bool = option(
        False,
        flag_check,
        "Serve every model on this machine, as `akunu list` shows them. They are loaded when a "
        "request names them. This is the default if the command line names no model.",
        group=USUAL,
    )
    allow_pull: bool = option(
        False,
        flag_check,
        "Let requests download, create and delete models (/api/pull, /api/create, /api/copy and "
        "/api/delete), and load adapters (/v1/load_lora_adapter). Includes all_models.",
    )
    models_dir: Path | None = option(
        None,
        _path,
        "Serve every model in this folder and the folders in it, by its path there.",
        "FOLDER",
        group=USUAL,
    )
    idle_seconds: float = option(
        0.0,
        _seconds,
        "Unload a model after this time without requests. 0: never.",
        "SECONDS",
        group=MEMORY,
    )
    memory: int | None = option(
        None,
        Integers(1, None),
        "The most bytes of all loaded models together; the least recently used one is unloaded.",
        "BYTES",
        group=MEMORY,
        default_is="no limit",
    )
    max_loaded: int | None = option(
        None,
        Integers(1, None),
        "The most models that are loaded at a time; the least recently used one is unloaded.",
        group=MEMORY,
        default_is="no limit",
    )
    pinned: tuple[str, ...] = option(
        (),
        texts,
        "The name of a model that is never unloaded.",
        "NAME",
        is_list=True,
        group=MEMORY,
    )
    adapters: Sequence[str] | tuple[tuple[str, str], ...] = option(
        (),
        _adapters,
        "A LoRA adapter; requests name it as MODEL:NAME. With several models, write "
        "MODEL:NAME=PATH.",
        "NAME=PATH",
        is_list=True,
        flag="--adapters,--adapter",
        group=USUAL,
    )
    mmproj: str | None = option(
        None,
        _text,
        "The image encoder of a GGUF model: its mmproj file. With several models, write "
        "NAME=FILE,NAME=FILE.",
        "FILE",
        group=USUAL,
    )
    default_model: str | None = option(
        None,
        _text,
        "The model that answers requests for names that no model has. The answer says its name.",
        "NAME",
        default_is="none, such requests are refused",
    )
    chat_template: str | None = option(
        None,
        _text,
        "A file with a Jinja chat template, in place of the model's own. With several "
        "models, write NAME=FILE,NAME=FILE.",
        "FILE",
    )
    draft: str | None = option(
        None,
        _text,
        "A smaller model with the same vocabulary that drafts tokens. With several "
        "models, write NAME=DRAFT,NAME=DRAFT.",
        "MODEL",
    )
    warm_up: bool = option(
        True,
        flag_check,
        "Compute a few tokens when a model is loaded, so that its first request is as fast as "
        "others.",
        flag="--warmup",
    )
    ping_seconds: float = option(
        15.0,
        _seconds,
        "Send a comment in a stream after this time without tokens. 0: never.",
        "SECONDS",
    )
    drain_seconds: float = option(
        30.0,
        _seconds,
        "When the server stops, running requests have this long to finish.",
        "SECONDS",
    )
    grammar_seconds: float = option(
        5.0,
        _seconds,
        "The most time to compile the grammars of a request.",
        "SECONDS",
        group=LIMITS,
    )
    grammar_memory: int = option(
        512 << 20,
        Integers(1 << 20, None),
        "The most bytes of memory to compile a grammar.",
        "BYTES",
        group=LIMITS,
    )
    body_seconds: float = option(
        60.0,
        _seconds,
        "Refuse a request whose body takes longer than this to arrive.",
        "SECONDS",
        group=LIMITS,
    )
    header_seconds: float = option(
        15.0,
        _seconds,
        "Close a connection whose headers take longer than this to arrive.",
        "SECONDS",
        group=LIMITS,
    )
    read_seconds: float = option(
        120.0,
        _seconds,
        "Close a connection whose client reads nothing for this time.",
        "SECONDS",
        group=LIMITS,
    )
    reasoning_field: str = option(
        "reasoning_content",
        Names(REASONING_FIELDS),
        "The field of a reply that has the model's thinking.",
        "NAME",
    )
    page: bool = option(True, flag_check, "Serve a chat page at /.")
    access_log: str = option(
        "text",
        Names(LOG_FORMATS),
        "Format of the log, which has a line for each request.",
        "FORMAT",
        group=USUAL,
    )
    log_prompts: bool = option(False, flag_check, "Log the bodies of requests, prompts included.")
    journal: Path | None = option(
        None,
        _path,
        "A folder that keeps answers to requests with an Idempotency-Key, so that they "
        "can be resumed, and stored responses, files and batches.",
        "FOLDER",
    )
    journal_size: int = option(
        2**30,
        Integers(1, None),
        "The most bytes of the journal's answers; the oldest are deleted. Also of its files.",
        "BYTES",
    )
    journal_seconds: float = option(
        86400.0, _seconds, "Delete answers from the journal after this time.", "SECONDS"
    )
    max_waiting: int = option(
        256,
        Integers(1, MAX_UINT32),
        "The most completions that may wait; further ones get status 503.",
        group=LIMITS,
    )

    def __post_init__(self) -> None:
        """Raise ArgumentError for values that make no sense, alone or together."""
        check_options(self)
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ArgumentError("tls_certificate and tls_key need each other: set both")
        if (self.default_max_tokens or 0) > (self.most_tokens or MAX_UINT32):
            raise ArgumentError(
                f"default_max_tokens is {self.default_max_tokens}; it must not be more than "
                f"most_tokens, {self.most_tokens}"
            )
        if self.allow_pull and self.without_key and not self.is_local:
            raise ArgumentError(
                "allow_pull lets clients download and delete models: with without_key it works on "
                "this machine only"
            )
        self.load_options  # noqa: B018 - refused here rather than by the first request

    @property
    def load_options(self) -> LoadOptions:
        """How models are loaded."""
        names = {each.name for each in fields(LoadOptions)} & set(declared_settings())
        return LoadOptions(**{name: getattr(self, name) for name in names})

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.unix_socket is not None or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:  # a name
            return False


def declared_settings(kind: type = ServerSettings) -> Mapping[str, Declared]:
    """Return what is declared of each setting, by its name; last how models are loaded.

    `kind`: the class of settings.
    """
    declared = declared_of(kind)
    own = [name for name in declared if name in kind.__annotations__]
    return {name: declared[name] for name in [*own, *declared]}
