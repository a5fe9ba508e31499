"""What a name of a model means, by its form alone.

>>> parse_repo("Qwen/Qwen3-0.6B-GGUF:Q8_0")
RepoName(repo='Qwen/Qwen3-0.6B-GGUF', revision='main', wanted='Q8_0')
>>> str(parse_repo("hf.co/org/name@v2"))
'org/name@v2'
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from akunu.errors import ArgumentError

_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_REPO = re.compile(
    rf"(?:(?:hf\.co|huggingface\.co)/)?(?P<repo>{_PART}/{_PART})"
    r"(?:/(?P<file>[^:@]+\.gguf))?(?:@(?P<revision>[^:@\s]+))?(?::(?P<wanted>[^:\s][^:]*))?",
    re.IGNORECASE,
)
_FILE_PAGE = re.compile(
    rf"/(?P<repo>{_PART}/{_PART})/(?:resolve|blob|raw)/"
    r"(?P<revision>refs(?:/|%2F)(?:pr|convert)(?:/|%2F)[^/]+|[^/]+)/(?P<file>.+)"
)
_REPO_PAGE = re.compile(rf"/(?P<repo>{_PART}/{_PART})(?:/tree/(?P<revision>[^/]+))?/?")
_HUB_HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co"})
_PLACES_OF_OTHERS = ("datasets/", "spaces/", "api/", "docs/", "models/", "papers/", "collections/")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_OLLAMA = re.compile(
    rf"(?:ollama:)?(?P<path>(?:[A-Za-z0-9._-]+/){{0,2}}{_PART})(?::(?P<tag>{_PART}))?"
)
_LONGEST_OLLAMA_NAME = 200


class UnknownNameError(ArgumentError):
    """A name means no model that is here, and none that could be fetched."""


@dataclass(frozen=True, slots=True)
class RepoName:
    """A repository on the Hugging Face hub, and what of it is wanted."""

    repo: str
    revision: str = "main"
    wanted: str = ""
    """A number format ("Q4_K_M") or a file; "": akunu chooses."""

    def __str__(self) -> str:
        """Return it as one types it."""
        revision = "" if self.revision == "main" else f"@{self.revision}"
        return f"{self.repo}{revision}{':' if self.wanted else ''}{self.wanted}"


@dataclass(frozen=True, slots=True)
class Address:
    """A file anywhere, by https."""

    url: str

    def __str__(self) -> str:
        """Return the address."""
        return self.url


@dataclass(frozen=True, slots=True)
class OllamaName:
    """A model of Ollama."""

    path: str
    """Path of its manifest: "registry.ollama.ai/library/llama3.2"."""
    tag: str
    is_explicit: bool
    """Whether the name began with "ollama:" and cannot mean anything else."""

    def __str__(self) -> str:
        """Return it as Ollama writes it."""
        shown = self.path
        for usual in ("registry.ollama.ai/library/", "registry.ollama.ai/"):
            shown = shown.removeprefix(usual)
        return f"{shown}:{self.tag}"


def parse_repo(text: str) -> RepoName | None:
    """Return the repository that a name means by its form, or None: `org/name[@rev][:wanted]`."""
    found = _REPO.fullmatch(text)
    if found is None or (found["file"] and (found["wanted"] or not _is_of_hub(text))):
        return None
    repo, file, wanted = found["repo"], found["file"] or "", found["wanted"] or ""
    if ".." in repo or "--" in repo or repo.endswith((".", "-", "/.")):
        return None  # no name that the hub allows
    if repo.lower().endswith(".gguf"):
        return None  # a file in a folder, not a repository
    return RepoName(repo, found["revision"] or "main", file or wanted)


def parse_address(text: str) -> RepoName | Address | None:
    """Return what an address leads to, or None where the text is none.

    An address of the hub (or of `HF_ENDPOINT`) is a file of a repository. Raises ArgumentError for
    http, whose contents anybody on the way can change, except on this very machine.

    >>> parse_address("https://huggingface.co/org/name/resolve/main/model.gguf")
    RepoName(repo='org/name', revision='main', wanted='model.gguf')
    """
    scheme = text.partition("://")[0].lower()
    if "://" not in text or scheme not in ("https", "http"):
        return None
    try:
        parts = urlsplit(text)
        host = parts.hostname
        parts.port  # noqa: B018 - raises where it is not a number
    except ValueError:
        host = None
    if not host:
        raise ArgumentError(f"{text!r} is not an address that akunu understands")
    endpoint = urlsplit(os.environ.get("HF_ENDPOINT", ""))
    if host in _HUB_HOSTS or parts.netloc == endpoint.netloc:
        path = parts.path.removeprefix(endpoint.path.rstrip("/"))
        if not path.startswith(tuple(f"/{place}" for place in _PLACES_OF_OTHERS)):
            if found := _FILE_PAGE.fullmatch(path):
                return RepoName(found["repo"], unquote(found["revision"]), unquote(found["file"]))
            if (found := _REPO_PAGE.fullmatch(path)) and not path.lower().endswith(".gguf"):
                return RepoName(found["repo"], unquote(found["revision"] or "main"))
    if scheme == "http" and host not in _LOOPBACK:
        raise ArgumentError(
            f"{text} is not encrypted, so the network could change the model; use its https address"
        )
    return Address(text)


def parse_ollama(text: str) -> OllamaName | None:
    """Return the model of Ollama that a name may mean, or None.

    >>> parse_ollama("llama3.2:1b").path
    'registry.ollama.ai/library/llama3.2'
    """
    found = _OLLAMA.fullmatch(text)
    if found is None or len(text) > _LONGEST_OLLAMA_NAME:
        return None
    folders = found["path"].split("/")
    if len(folders) == 1:
        folders = ["library", *folders]
    if len(folders) == 2:
        folders = ["registry.ollama.ai", *folders]
    if any(folder in (".", "..") for folder in folders):
        return None
    return OllamaName("/".join(folders), found["tag"] or "latest", text.startswith("ollama:"))


def looks_like_a_path(text: str) -> bool:
    """Whether a text that names no file was meant to.

    >>> looks_like_a_path("./model"), looks_like_a_path("models/m.gguf"), looks_like_a_path("a/b")
    (True, True, False)
    """
    if text.startswith(("/", "./", "../", "~")):
        return True
    return text.lower().endswith(".gguf") and ":" not in text and not _is_of_hub(text)


def _is_of_hub(text: str) -> bool:
    return text.lower().startswith(("hf.co/", "huggingface.co/"))
