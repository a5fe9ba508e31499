"""Where a model is that was requested by name, and its download if it is nowhere here.

A path that exists wins over every name; `akunu.load` looks at that first.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from akunu.common.quoting import shorten
from akunu.errors import AkunuError, ArgumentError
from akunu.hub import address as addresses
from akunu.hub import names, other_programs, repository
from akunu.hub.load_check import LoadCheck
from akunu.hub.local_models import models_here
from akunu.hub.names import Address, OllamaName, RepoName, UnknownNameError
from akunu.hub.watch import Watch
from akunu.options.text_options import LoadOptions

_LONG_NAME = 60  # characters; longer names are not typos of a model's name


def find(
    name: str, options: LoadOptions, watch: Watch, check: LoadCheck, *, local_only: bool
) -> Path:
    """Return the file of a model by its name; fetch it, unless `local_only`, if it is not here.

    Raises UnknownNameError for a name that means nothing; with `local_only` ArgumentError for what
    is not here; DownloadError; and before a download what loading the model would raise.
    """
    meant = meaning(name)
    found = find_here(meant)
    if found is not None:
        return found
    if meant is None or isinstance(meant, OllamaName):
        raise UnknownNameError(_why_nothing(name, meant))
    if local_only:
        raise ArgumentError(
            f"{name} is not on this machine, and local_only forbids the download; run `akunu pull "
            f"{name}`"
        )
    return fetch(meant, options, watch, check, must_fit=True)


def refuse_unknown_name(name: str) -> None:
    """Raise UnknownNameError for another name than a repository, address or model of Ollama."""
    meant = meaning(name)
    if meant is None or (isinstance(meant, OllamaName) and find_here(meant) is None):
        raise UnknownNameError(_why_nothing(name, meant))


def fetch(
    meant: RepoName | Address,
    options: LoadOptions,
    watch: Watch,
    check: LoadCheck,
    *,
    must_fit: bool,
) -> Path:
    """Bring a model here, in the newest state that there is, and return its file."""
    if isinstance(meant, Address):
        return addresses.pull(meant, watch, options, check, must_fit=must_fit)
    remote = repository.look_up(meant)
    return repository.pull(remote, watch, options, check, must_fit=must_fit)


def fetchable(name: str) -> RepoName | Address:
    """Return what a name means that can be fetched; raises ArgumentError."""
    meant = None if name.startswith("ollama:") else names.parse_address(name)
    meant = meant or names.parse_repo(name)
    if meant is None:
        hint = ""
        if name.startswith("ollama:") or (":" in name and "/" not in name):
            hint = "; akunu uses Ollama's models, but does not download them"
        raise ArgumentError(
            f"{name!r} cannot be downloaded: a model on the Hugging Face hub is written "
            f"org/repo or org/repo:Q4_K_M, a file elsewhere by its https address{hint}"
        )
    return meant


def meaning(name: str) -> RepoName | Address | OllamaName | None:
    """Return what a name means by its form; None: it can only be a file, and there is none."""
    if name.startswith("ollama:"):
        return names.parse_ollama(name)
    if found := names.parse_address(name):
        return found
    if names.looks_like_a_path(name):
        return None
    return names.parse_repo(name) or names.parse_ollama(name)


def find_here(meant: RepoName | Address | OllamaName | None) -> Path | None:
    """Return the file of a model that is on this machine, from any program, or None."""
    if meant is None:
        return None
    if isinstance(meant, Address):
        return addresses.cached(meant)
    if isinstance(meant, OllamaName):
        return other_programs.find_in_ollama(meant)
    return (
        repository.cached(meant)
        or other_programs.find_in_lm_studio(meant)
        or _find_repo_in_ollama(meant)
    )


def _find_repo_in_ollama(name: RepoName) -> Path | None:
    """Ollama has models of the hub under hf.co, and other names with a slash in its library."""
    if name.revision != "main":
        return None
    tag = name.wanted or "latest"
    for path in (f"hf.co/{name.repo}", f"registry.ollama.ai/{name.repo}"):
        try:
            found = other_programs.find_in_ollama(OllamaName(path, tag, is_explicit=False))
        except AkunuError:  # other formats than this one: the hub will know
            continue
        if found is not None:
            return found
    return None


def _why_nothing(name: str, meant: OllamaName | None) -> str:
    """Return where the name was looked for, and a name that the user may have meant."""
    known = {known.lower(): known for known in _known_names(name)}
    found = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    close = [known[each] for each in found]
    hint = f"; did you mean {close[0]}?" if close else ""
    if meant is not None and meant.is_explicit:
        places = ", ".join(str(folder) for folder in other_programs.ollama_folders())
        return f"Ollama has no {meant} on this machine (looked in {places}){hint}"
    also = ", nor a model of Ollama on this machine" if meant is not None else ""
    fetched = (
        "; from the Hugging Face hub it would be org/repo, such as Qwen/Qwen3-0.6B-GGUF; "
        "`akunu list` shows the models on this machine"
    )
    fetched = "" if close or len(name) > _LONG_NAME else fetched
    return (
        f"{shorten(name)} is neither a file nor the name of a model inside akunu (ember){also}"
        f"{hint}{fetched}"
    )


def _known_names(name: str) -> list[str]:
    """Return names that may have been mistyped: models that are here, and files next to it."""
    known = ["ember", *(model.name for model in models_here())]
    folder = name.rpartition("/")[0]
    try:
        files = [path.name for path in Path(folder or ".").iterdir() if path.suffix == ".gguf"]
    except (OSError, ValueError):
        files = []
    return known + [f"{folder}/{file}" if folder else file for file in files]
