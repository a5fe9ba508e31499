"""Repositories of the Hugging Face hub: what is in one, what of it is here, and how the rest comes.

The cache is huggingface_hub's own, where other programs look too:

    models--org--name/blobs/<etag>             contents, and <etag>.incomplete while they come
    models--org--name/snapshots/<commit>/...   names, as links to contents
    models--org--name/refs/main                the commit that a branch had when it was last asked

huggingface_hub asks the hub and makes the links; contents come through `transfer`, as its own
download begins anew after an interruption (since its version 2.0).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from akunu.errors import ArgumentError, DownloadError, ModelFormatError, OutOfMemoryError
from akunu.hub import transfer
from akunu.hub.choice import Candidate, File, ModelChoice, candidates, choose
from akunu.hub.load_check import LoadCheck, headers_only
from akunu.hub.names import RepoName
from akunu.hub.watch import Watch
from akunu.options.text_options import LoadOptions

Result = TypeVar("Result")
_WHISPER_CPP = b"lmgg"
# Endings of a model's files.
_ENDINGS = frozenset({".gguf", ".safetensors", ".json", ".jinja", ".model", ".bin"})
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHORT_SECONDS = 0.2  # of waiting for a lock; a longer wait is reported


@dataclass(frozen=True, slots=True)
class Remote:
    """A model on the hub, chosen but not yet here."""

    name: RepoName
    commit: str
    choice: ModelChoice

    @property
    def shown(self) -> str:
        """What to call it: the repository and what was chosen of it."""
        model = self.choice.candidate
        return str(RepoName(self.name.repo, self.name.revision, model.label or model.name))

    def is_here(self) -> bool:
        """Whether all its files are in the cache."""
        return not self._missing()

    def missing_bytes(self) -> int:
        """Return how much is still to come."""
        return sum(
            file.size - min(file.size, max(0, _size(_partial(self.name.repo, file))))
            for file in self._missing()
        )

    def parts(self) -> list[tuple[str, int, Callable[[int, int], bytes]]]:
        """Return its files as `headers_only` wants them."""
        return [(file.name, file.size, self._reader(file)) for file in self.choice.candidate.files]

    def source(self, file: File) -> transfer.Source:
        """Return where a file comes from; the address names the commit, so it cannot change."""
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

        return transfer.Source(
            url=hf_hub_url(self.name.repo, file.name, revision=self.commit),
            shown=file.base,
            size=file.size,
            headers=build_hf_headers(library_name="akunu"),
            sha256=file.sha256,
            git_id=file.git_id,
        )

    def path_of(self, file: File) -> Path:
        """Return where a file is, or will be."""
        return _folder(self.name.repo) / "snapshots" / self.commit / PurePosixPath(file.name)

    def _missing(self) -> list[File]:
        return [
            file
            for file in self.choice.candidate.files
            if _size(self.path_of(file)) != file.size and _size(_blob(self.name.repo, file)) < 0
        ]

    def _reader(self, file: File) -> Callable[[int, int], bytes]:
        here = self.path_of(file)

        def read(start: int, length: int) -> bytes:
            if _size(here) == file.size:
                with here.open("rb") as opened:
                    opened.seek(start)
                    return opened.read(length)
            return explained(
                lambda: transfer.read_range(self.source(file), start, length), self.name
            )

        return read


def look_up(name: RepoName) -> Remote:
    """Ask the hub for a repository and choose a model in it.

    Raises DownloadError (no such repository, no permission, no network) or ArgumentError (nothing
    in it is what is wanted).
    """
    from huggingface_hub import HfApi

    info = explained(
        lambda: HfApi(library_name="akunu").model_info(
            name.repo, revision=name.revision, files_metadata=True, timeout=30
        ),
        name,
    )
    files = [
        File(
            each.rfilename,
            each.size or 0,
            _checksum(each.lfs.sha256, 64) if each.lfs else "",
            "" if each.lfs else _checksum(each.blob_id, 40),
        )
        for each in info.siblings or ()
    ]
    models = candidates(files)
    if not models:
        raise ArgumentError(_why_nothing(name, files))
    if not info.sha:
        raise DownloadError(f"{name}: {_endpoint()} does not say which commit it has")
    choice = choose(models, name.wanted, name.repo)
    files = [_identified(name, info.sha, file) for file in choice.candidate.files]
    return Remote(
        name, info.sha, replace(choice, candidate=replace(choice.candidate, files=tuple(files)))
    )


def _checksum(text: str | None, length: int) -> str:
    """Return a checksum that is one, else "": it becomes the name of a file here."""
    return text if text and re.fullmatch(rf"[0-9a-f]{{{length}}}", text) else ""


def _identified(name: RepoName, commit: str, file: File) -> File:
    """Return a file with its size and checksum, asked for where the list lacks them."""
    if file.size and (file.sha256 or file.git_id):
        return file
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    url = hf_hub_url(name.repo, file.name, revision=commit)
    found = explained(lambda: get_hf_file_metadata(url), name)
    sha256, git_id = _checksum(found.etag, 64), _checksum(found.etag, 40)
    if not found.size or not (sha256 or git_id):
        raise DownloadError(
            f"{name}: {_endpoint()} does not report size and checksum of {file.name}"
        )
    return File(file.name, found.size, sha256, git_id)


def pull(
    remote: Remote, watch: Watch, options: LoadOptions, check: LoadCheck, *, must_fit: bool
) -> Path:
    """Fetch a model and return its file; parts that are here already are not fetched again.

    Before the download its header is looked at: a model that akunu cannot load is refused with the
    reason, one that does not fit into memory with `must_fit` too, else it is only said.
    """
    model = remote.choice.candidate
    if model.is_directory:
        weights = [file for file in model.files if file.base.endswith(".safetensors")]
        watch.say(
            f"{len(weights)} safetensors file{'s' if len(weights) > 1 else ''} of "
            f"{transfer.size_text(sum(file.size for file in weights))} and "
            f"{len(model.files) - len(weights)} other files: {remote.choice.reason}"
        )
    else:
        watch.say(f"{model.files[0].base}: {remote.choice.reason}")
    if not remote.is_here():
        _refuse_or_warn(remote, watch, options, check, must_fit)
        folder = _folder(remote.name.repo)
        transfer.refuse_without_space(folder, remote.missing_bytes(), remote.shown)
    for file in model.files:
        _fetch(remote, file, watch)
    _write_ref(remote)
    opened = remote.path_of(model.files[0])
    return opened.parent if model.is_directory else opened


def cached(name: RepoName) -> Path | None:
    """Return the file of a model that is whole in the cache, or None; without a request to the hub.

    For a branch, it is the newest state that was fetched. If the name has no format, it is the
    model that would be chosen if the repository had only the cached ones. Raises ArgumentError if
    several models are possible.
    """
    folder = _folder(name.repo)
    for snapshot in snapshots(folder, name.revision):
        models = local_models(snapshot)
        if name.wanted:
            models = [model for model in models if _matches(model, name.wanted)]
        if models:
            model = choose(models, name.wanted, name.repo).candidate
            return snapshot if model.is_directory else snapshot / PurePosixPath(model.name)
    return None


def local_models(folder: Path, *, recursive: bool = True) -> list[Candidate]:
    """Return the models below a folder, or directly in it; split ones only if they are whole."""
    return candidates(_files_in(folder, "**/*" if recursive else "*"))


def cache_folder() -> Path:
    """Return the folder of huggingface_hub's cache."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def explained(run: Callable[[], Result], name: RepoName) -> Result:
    """Return what `run` returns; what goes wrong with the hub is a DownloadError."""
    from huggingface_hub import errors

    http = transfer.http_module()
    try:
        return run()
    except errors.HFValidationError as error:
        raise ArgumentError(f"{name}: {error}") from None
    except errors.OfflineModeIsEnabled:
        raise DownloadError(
            f"{name} is not on this machine, and HF_HUB_OFFLINE forbids the network; unset it, or "
            f"fetch the "
            f"model where there is a network with `akunu pull {name}`"
        ) from None
    except errors.HfHubHTTPError as error:
        raise DownloadError(_why_refused(error, name)) from None
    except http.TransportError as error:
        raise DownloadError(f"{name}: {transfer.describe_transport(error, _endpoint())}") from None
    except http.HTTPError as error:
        raise DownloadError(f"{name}: {_endpoint()} cannot be understood ({error})") from None
    except ValueError as error:
        if type(error).__name__ != "JSONDecodeError":
            raise
        raise DownloadError(
            f"{name}: {_endpoint()} does not answer like the hub; check HF_ENDPOINT, and whether "
            f"this network requires a login"
        ) from None


def _why_refused(error: Any, name: RepoName) -> str:
    from huggingface_hub import errors, get_token

    endpoint, repo, status = _endpoint(), name.repo, error.response.status_code
    page, asked = f"{endpoint}/{repo}", error.response.request.url
    token = "make a token at https://huggingface.co/settings/tokens and set HF_TOKEN to it"
    if isinstance(error, errors.GatedRepoError):
        if get_token() is None:
            return f"{repo} is gated: accept its terms at {page}, then {token}"
        return (
            f"{repo} is gated, and your token may not read it: accept its terms at {page} with "
            f"the account of the token, or wait for its owner's approval"
        )
    if "Invalid credentials" in (error.response.headers.get("X-Error-Message") or ""):
        return f"{endpoint} does not know your token (HF_TOKEN, or `hf auth login`); {token}"
    if isinstance(error, errors.RepositoryNotFoundError):
        private = "your token may not see it" if get_token() else f"if it is private, {token}"
        return (
            f"there is no model {repo} at {endpoint}, nor a file of that name here: "
            f"check the spelling; {private}"
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return f"{repo} has no revision {name.revision!r}; its branches and tags are at {page}"
    if isinstance(error, errors.EntryNotFoundError):
        return f"{name}: the file is not there (any more): {asked}"
    said = error.response.headers.get("X-Error-Message") or error.response.reason_phrase
    if status == 429:
        return f"{name}: {endpoint} has too many requests (429 {said}); try again in some minutes"
    if status in (401, 403):
        return f"{name}: {endpoint} forbids it ({status} {said}); {token}"
    return f"{name}: {endpoint} answers {status} {said}; try again later"


def _why_nothing(name: RepoName, files: list[File]) -> str:
    title = name.repo.partition("/")[2]
    search = f"{_endpoint()}/models?library=gguf&search={title}"
    if any(file.name.lower().endswith(".gguf") for file in files):
        return (
            f"{name.repo} has GGUF files, but no whole model among them: "
            f"{', '.join(file.name for file in files if file.name.lower().endswith('.gguf'))[:200]}"
        )
    kinds = {PurePosixPath(file.name).suffix for file in files} & {".safetensors", ".bin", ".pt"}
    other = f" (its weights are {', '.join(sorted(kinds))})" if kinds else ""
    return (
        f"{name.repo} has neither a GGUF file nor a config.json with safetensors files{other}; "
        f"look for one of the same model at {search}"
    )


def _refuse_or_warn(
    remote: Remote, watch: Watch, options: LoadOptions, check: LoadCheck, must_fit: bool
) -> None:
    if remote.choice.candidate.is_whisper_cpp:
        _, _, read = remote.parts()[0]
        if read(0, len(_WHISPER_CPP)) != _WHISPER_CPP:
            raise ModelFormatError(f"{remote.shown}: it does not begin like a model of whisper.cpp")
        watch.say("how much memory it needs is known only after the download")
        return
    try:
        with headers_only(remote.parts(), remote.shown) as path:
            watch.say(check(path, remote.shown, options))
    except OutOfMemoryError as error:
        if must_fit:
            raise OutOfMemoryError(
                f"{error} (nothing was downloaded; `akunu pull` downloads it nevertheless)"
            ) from None
        watch.say(f"it will not load on this machine: {error}")


def _fetch(remote: Remote, file: File, watch: Watch) -> None:
    """Bring one file into the cache, under the lock that huggingface_hub takes for it."""
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]

    repo, path = remote.name.repo, remote.path_of(file)
    if _size(path) == file.size:
        return
    if file.size > constants.MAX_HTTP_DOWNLOAD_SIZE:  # the hub has another protocol for those
        explained(lambda: hf_hub_download(repo, file.name, revision=remote.commit), remote.name)
        return
    blob = _blob(repo, file)
    lock = cache_folder() / ".locks" / _folder(repo).name / f"{blob.name}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(WeakFileLock(lock, timeout=_SHORT_SECONDS))
        except TimeoutError:
            watch.say(f"another program is downloading {file.base}; waiting for it")
            stack.enter_context(WeakFileLock(lock))
        if not blob.exists():
            partial = _partial(repo, file)
            explained(lambda: transfer.download(remote.source(file), partial, watch), remote.name)
            os.replace(partial, blob)
    with _quiet():  # the content is there: this makes the link
        explained(lambda: hf_hub_download(repo, file.name, revision=remote.commit), remote.name)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep huggingface_hub from drawing its progress bars."""
    from huggingface_hub.utils import (  # type: ignore[attr-defined]
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


def _write_ref(remote: Remote) -> None:
    """Note which commit the branch has, as huggingface_hub does: offline that is what it is."""
    if _COMMIT.fullmatch(remote.name.revision):
        return
    ref = _folder(remote.name.repo) / "refs" / remote.name.revision
    ref.parent.mkdir(parents=True, exist_ok=True)
    if not ref.exists() or ref.read_text() != remote.commit:
        ref.write_text(remote.commit)


def snapshots(folder: Path, revision: str) -> list[Path]:
    """Return the states of a repository that are here, the one that a revision means first."""
    ref = folder / "refs" / revision
    commit = revision if _COMMIT.fullmatch(revision) else ref.read_text() if ref.is_file() else ""
    found = [folder / "snapshots" / commit] if commit else []
    if revision == "main" and (folder / "snapshots").is_dir():
        # Another program may have pointed the branch at a newer commit without fetching this file.
        others = sorted(
            (folder / "snapshots").iterdir(), key=lambda each: each.stat().st_mtime, reverse=True
        )
        found += [each for each in others if each not in found]
    return [each for each in found if each.is_dir()]


def _files_in(folder: Path, pattern: str) -> list[File]:
    return [
        File(path.relative_to(folder).as_posix(), path.stat().st_size)
        for path in sorted(folder.glob(pattern))
        if path.suffix.lower() in _ENDINGS and path.is_file()
    ]


def _matches(model: Candidate, wanted: str) -> bool:
    plain = wanted.lower()
    return plain in model.names or plain in (
        model.label.lower(),
        model.label.lower().removeprefix("ud-"),
    )


def _folder(repo: str) -> Path:
    return cache_folder() / f"models--{repo.replace('/', '--')}"


def _blob(repo: str, file: File) -> Path:
    return _folder(repo) / "blobs" / (file.sha256 or file.git_id)


def _partial(repo: str, file: File) -> Path:
    return _blob(repo, file).with_name(f"{file.sha256 or file.git_id}.incomplete")


def _size(path: Path) -> int:
    """Return a file's size, -1 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _endpoint() -> str:
    from huggingface_hub import constants

    return constants.ENDPOINT
