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

from akunu.common.checks import MAX_UINT32, number, refusal, texts
from akunu.common.typos import explains_typos_of_init
from akunu.errors import ArgumentError
from akunu.options.declarations import Declared, check_options, declared_of, option
from akunu.options.load_options import LoadOptions, ModelOptions
from akunu.options.option_checks import CONTEXT_OVERFLOWS, Integers, flag_check, one_of
from akunu.server.http.proxies import TrustedProxies

REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "both")
LOG_FORMATS: Final = ("text", "json", "none")
_YEAR: Final = 366 * 86400
# As a browser sends it: in small letters, without a path, without the port that is the usual one.
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\sA-Z]+")
_USUAL_PORTS: Final = {"http": ":80", "https": ":443"}


def _seconds(name: str, value: Any) -> float:
    return number(name, value, 0.0, _YEAR)


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
        "127.0.0.1", _text, "The address to listen at; 0.0.0.0 is all of them.", "ADDRESS"
    )
    port: int = option(8080, Integers(0, 65535), "The port; 0: any that is free.", flag="--port,-p")
    unix_socket: Path | None = option(
        None, _path, "Listen at this socket of the file system instead.", "FILE"
    )
    unix_socket_mode: str = option(
        "600", _mode, "Who may use that socket: 600 its owner, 660 its group too, 666 all.", "MODE"
    )
    tls_certificate: Path | None = option(
        None, _path, "A certificate with its chain (PEM): https.", "FILE"
    )
    tls_key: Path | None = option(None, _path, "The certificate's key (PEM).", "FILE")
    api_keys: tuple[str, ...] = option(
        (), texts, "Keys of which a client must have one.", "KEY", is_secret=True, is_list=True
    )
    api_key_file: Path | None = option(
        None, _path, "A file with keys, one a line; # begins a comment.", "FILE"
    )
    without_key: bool = option(False, flag_check, "Serve other machines without asking for a key.")
    cors_origins: tuple[str, ...] = option(
        (),
        _origins,
        "Pages of this origin may use the server (https://example.org; * is all).",
        "ORIGIN",
        is_list=True,
    )
    allowed_hosts: tuple[str, ...] = option(
        (),
        texts,
        "Names by which a local server without keys may be called, besides localhost.",
        "NAME",
        is_list=True,
    )
    trusted_proxies: tuple[str, ...] = option(
        (),
        _proxies,
        "A proxy whose x-forwarded-for says who asks: an address, a network, or unix.",
        "ADDRESS",
        is_list=True,
    )
    max_body: int = option(
        32 << 20, Integers(1, None), "The most bytes that a request may have.", "BYTES"
    )
    max_audio_seconds: float = option(
        7200.0, _seconds, "The longest audio that a request may have.", "SECONDS"
    )
    rate_limit: int = option(
        0, Integers(0, MAX_UINT32), "Requests per minute and key, or address; 0: any."
    )
    default_max_tokens: int | None = option(
        None,
        Integers(1, None),
        "max_tokens where a request has none; default: until the context is full.",
    )
    most_tokens: int | None = option(
        None, Integers(1, None), "The most max_tokens that a request may ask for."
    )
    context_overflow: str = option(
        "stop",
        one_of(CONTEXT_OVERFLOWS),
        "For requests that do not say: stop, error, or shift or reread, which forget the oldest.",
        "NAME",
    )
    most_answers: int = option(
        64, Integers(1, MAX_UINT32), "The most n that a request may ask for."
    )
    idle_seconds: float = option(
        0.0, _seconds, "A model that nobody used for so long is unloaded; 0: never.", "SECONDS"
    )
    memory: int | None = option(
        None,
        Integers(1, None),
        "Bytes that loaded models may take together; the least recently used is unloaded.",
        "BYTES",
    )
    pinned: tuple[str, ...] = option(
        (), texts, "A model that stays loaded once it is, by its name.", "NAME", is_list=True
    )
    adapters: Sequence[str] | tuple[tuple[str, str], ...] = option(
        (),
        _adapters,
        "A LoRA adapter; requests name it as MODEL:NAME. Of several models: MODEL:NAME=PATH.",
        "NAME=PATH",
        is_list=True,
        flag="--adapters,--adapter",
    )
    mmproj: str | None = option(
        None,
        _text,
        "The encoder of images of a model in GGUF. Of several models: NAME=FILE,NAME=FILE.",
        "FILE",
    )
    draft: str | None = option(
        None,
        _text,
        "A smaller model that proposes tokens. Of several models: NAME=DRAFT,NAME=DRAFT.",
        "MODEL",
    )
    ping_seconds: float = option(
        15.0, _seconds, "A stream that is silent for so long gets a comment; 0: none.", "SECONDS"
    )
    drain_seconds: float = option(
        30.0, _seconds, "When it is stopped, texts under way have so long to end.", "SECONDS"
    )
    grammar_seconds: float = option(
        5.0, _seconds, "Compiling the grammars of a request may take so long.", "SECONDS"
    )
    grammar_memory: int = option(
        512 << 20, Integers(1 << 20, None), "Bytes that compiling a grammar may take.", "BYTES"
    )
    body_seconds: float = option(
        60.0, _seconds, "A request whose body takes longer to arrive is given up.", "SECONDS"
    )
    header_seconds: float = option(
        15.0, _seconds, "A connection whose headers take longer to arrive is closed.", "SECONDS"
    )
    read_seconds: float = option(
        120.0, _seconds, "A client that reads nothing for so long is given up.", "SECONDS"
    )
    reasoning_field: str = option(
        "reasoning_content",
        one_of(REASONING_FIELDS),
        "Where thoughts are: reasoning_content, reasoning or both.",
        "NAME",
    )
    page: bool = option(True, flag_check, "Whether there is a page to chat on, at /.")
    access_log: str = option(
        "text", one_of(LOG_FORMATS), "A line for each request: text, json or none.", "FORMAT"
    )
    log_prompts: bool = option(
        False, flag_check, "Whether the log has the bodies of requests, prompts and all."
    )
    journal: Path | None = option(
        None,
        _path,
        "A folder where answers to requests with an Idempotency-Key are kept, to go on.",
        "FOLDER",
    )
    journal_size: int = option(
        2**30, Integers(1, None), "Bytes that it may have; the oldest answers are deleted.", "BYTES"
    )
    journal_seconds: float = option(
        86400.0, _seconds, "Answers that are older are deleted from it.", "SECONDS"
    )
    max_waiting: int = option(
        256, Integers(1, MAX_UINT32), "Texts that may wait for a place; more get 503."
    )

    def __post_init__(self) -> None:
        """Refuse what makes no sense, alone or together."""
        check_options(self)
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ArgumentError("tls_certificate and tls_key need each other: give both")
        if (self.default_max_tokens or 0) > (self.most_tokens or MAX_UINT32):
            raise ArgumentError(
                f"default_max_tokens is {self.default_max_tokens}; it must not be more than "
                f"most_tokens, {self.most_tokens}"
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
