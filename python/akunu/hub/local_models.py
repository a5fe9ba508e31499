"""What models are on this machine, where from, and how those are removed that akunu may remove."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from akunu.errors import ArgumentError
from akunu.hub import address as addresses
from akunu.hub import other_programs, repository
from akunu.hub.choice import label_of
from akunu.hub.load_check import why_not_loadable
from akunu.hub.names import Address, RepoName
from akunu.hub.packaged_models import PACKAGED_MODELS

HUB, AKUNU, OLLAMA, LM_STUDIO = "Hugging Face", "akunu", "Ollama", "LM Studio"
PACKAGE = "package"
"""Where a model is from: caches of these, or the package itself."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A model on this machine."""

    name: str
    """By which akunu finds it."""
    source: str
    paths: tuple[Path, ...] = field(compare=False)
    """The file that opens it, and its other parts; for an unfinished download, the parts so far."""
    is_whole: bool = True
    repo: RepoName | None = None
    address: Address | None = None

    @property
    def path(self) -> Path:
        """The file that opens it, or the folder that it is."""
        first = self.paths[0]
        return first.parent if first.name == "config.json" else first

    def size(self) -> int:
        """Return how many bytes it takes."""
        return sum(path.stat().st_size for path in self.paths if path.exists())

    def problem(self) -> str:
        """Return why akunu does not load it, "" if it does."""
        if not self.is_whole:
            return "not finished: `akunu pull` continues it"
        return why_not_loadable(self.path)


def models_here() -> Iterator[LocalModel]:
    """Go through the models on this machine: those of akunu first, then those of others."""
    for name, path in PACKAGED_MODELS.items():
        yield LocalModel(name, PACKAGE, (path,))
    yield from _in_hub_cache()
    yield from _in_own_cache()
    for found in other_programs.lm_studio_models():
        yield LocalModel(found.name, LM_STUDIO, found.paths)
    for found in other_programs.ollama_models():
        yield LocalModel(found.name, OLLAMA, found.paths)


def _in_hub_cache() -> Iterator[LocalModel]:
    for folder in sorted(_folders(repository.cache_folder(), "models--")):
        repo = folder.name.removeprefix("models--").replace("--", "/")
        seen = set()
        for snapshot in repository.snapshots(folder, "main"):
            models = repository.local_models(snapshot)
            labels = [model.label for model in models]
            for model in models:
                paths = tuple(snapshot / file.name for file in model.files)
                contents = tuple(path.resolve() for path in paths)
                if contents in seen:  # two states of the repository have it
                    continue
                seen.add(contents)
                unique = model.label and labels.count(model.label) == 1
                name = RepoName(repo, wanted=model.label if unique else model.name)
                yield LocalModel(str(name), HUB, paths, repo=name)
        for partial in sorted(folder.glob("blobs/*.incomplete")):
            if "." in partial.stem:  # a download of huggingface_hub 2, which cannot be resumed
                continue
            name = RepoName(repo)
            yield LocalModel(str(name), HUB, (partial,), is_whole=False, repo=name)


def _in_own_cache() -> Iterator[LocalModel]:
    for folder in sorted(_folders(addresses.cache_folder(), "")):
        url = addresses.source_of(folder)
        if not url:
            continue
        address = Address(url)
        whole = addresses.cached(address)
        paths = tuple(sorted(folder.glob("*.gguf" if whole else "*.incomplete")))
        if whole:
            paths = (whole, *(path for path in paths if path != whole))
        if paths:
            yield LocalModel(url, AKUNU, paths, is_whole=whole is not None, address=address)


def to_remove(name: RepoName | Address) -> list[LocalModel]:
    """Return the models that removing a name removes; raises ArgumentError if there are none.

    A repository without a format means all of its models, unfinished ones too.
    """
    found = []
    for model in models_here():
        if isinstance(name, Address):
            if model.address == name:
                found.append(model)
        elif model.repo is not None and model.repo.repo.lower() == name.repo.lower():
            wanted = name.wanted.lower()
            own = {
                model.repo.wanted.lower(),
                model.path.name.lower(),
                label_of(model.path.name).lower(),
            }
            if not wanted or wanted in own:
                found.append(model)
    if not found:
        raise ArgumentError(f"{name} is not in the caches; `akunu list` shows their models")
    return found


def owner_of(name: str) -> str:
    """Return the other program that has a model of this name, "" if there is none."""
    for model in models_here():
        if model.source in (OLLAMA, LM_STUDIO) and name.removeprefix("ollama:") in (
            model.name,
            model.name.removesuffix(":latest"),
            model.name.rpartition(":")[0],
        ):
            return model.source
    return ""


def remove(models: list[LocalModel]) -> None:
    """Delete models from akunu's cache, and from Hugging Face's by huggingface_hub's means."""
    for model in models:
        if model.address is not None:
            shutil.rmtree(addresses.folder_of(model.address))
        elif not model.is_whole:
            model.path.unlink(missing_ok=True)
    whole = [model for model in models if model.repo is not None and model.is_whole]
    if whole:
        _remove_from_hub_cache({path for model in whole for path in model.paths})


def _remove_from_hub_cache(paths: set[Path]) -> None:
    from huggingface_hub import scan_cache_dir

    contents = {path.resolve() for path in paths}
    cache = scan_cache_dir(repository.cache_folder())
    for repo in cache.repos:
        chosen = [
            file
            for revision in repo.revisions
            for file in revision.files
            if file.blob_path.resolve() in contents
        ]
        if not chosen:
            continue
        everything = {file for revision in repo.revisions for file in revision.files}
        if everything <= set(chosen):
            commits = [revision.commit_hash for revision in repo.revisions]
            cache.delete_revisions(*commits).execute()
        elif hasattr(cache, "delete_files"):
            cache.delete_files(*chosen).execute()
        else:  # huggingface_hub 1, whose contents belong to one repository only
            kept = {file.blob_path for file in everything - set(chosen)}
            for file in chosen:
                file.file_path.unlink(missing_ok=True)
            for blob in {file.blob_path for file in chosen} - kept:
                blob.unlink(missing_ok=True)


def _folders(root: Path, prefix: str) -> list[Path]:
    try:
        return [path for path in root.iterdir() if path.name.startswith(prefix) and path.is_dir()]
    except OSError:
        return []
