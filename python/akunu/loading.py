"""From a path or a name to a model that is ready to generate."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from akunu.common.checks import flag
from akunu.common.quoting import shorten
from akunu.errors import AkunuError, ArgumentError, UnsupportedModelError
from akunu.hub import find as hub
from akunu.hub.load_check import named
from akunu.hub.names import Address, RepoName
from akunu.hub.packaged_models import PACKAGED_MODELS
from akunu.hub.transfer import size_text
from akunu.hub.watch import SILENT, Watch
from akunu.model import Model
from akunu.options.option_checks import AUTO
from akunu.options.text_options import LoadOptions, lists_load_options
from akunu.speech.loading import load_whisper_with
from akunu.speech.model import SpeechModel
from akunu.speech.model_kind import is_speech_model
from akunu.storage.disk_cache import keep_on_disk
from akunu.storage.draft_vocabulary import check_draft_vocabulary
from akunu.storage.loaded_files import LoadedFiles
from akunu.storage.model_files import open_model_files, read_tokenizer
from akunu.storage.native_load import begin_load
from akunu.templates.chosen_template import template_text
from akunu.thread_choice import with_chosen_threads
from akunu.warm_up import warm_up

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from akunu.options.arguments import LoadArguments


@lists_load_options
def load(
    path_or_name: str | os.PathLike[str] = "ember",
    /,
    *,
    local_only: bool = False,
    **options: Unpack[LoadArguments],
) -> Model:
    """Load a model from its file or directory, or by name; one of the hub is fetched if missing.

    `path_or_name`: the path of a GGUF file, of a Hugging Face or MLX directory, or of a safetensors
    file with its config.json next to it ("~" is your home); "ember", the small demonstration model
    (a file of that name is "./ember"); "org/repo" or "org/repo:Q4_K_M" on the Hugging Face hub; an
    https address; or a model that Ollama has here, "llama3.2:1b". `local_only`: never use the
    network. `LoadOptions` explains the others. `Model.notes` names decisions that you might not
    expect.

    Raises ArgumentError (no such file or name, or an option that makes no sense), DownloadError (a
    model could not be fetched), ModelFormatError (the file contradicts its format),
    UnsupportedModelError (the model needs a feature that akunu lacks, or `draft` has another
    vocabulary), OutOfMemoryError (it does not fit; nothing was allocated) or DeviceError.

    >>> import akunu
    >>> with akunu.load("ember", context=512) as model:
    ...     model.context
    512
    """
    chosen = LoadOptions(**options)  # type: ignore[arg-type]  # None is the default
    flag("local_only", local_only)
    template = template_text(chosen.chat_template)
    path = find_model(path_or_name, chosen, local_only=local_only)
    if path.suffix != ".gguf":  # which is looked into below, when it is open
        _refuse_speech(path)
    draft_path = None
    if chosen.draft is not None:
        draft_path = find_model(chosen.draft, chosen, local_only=local_only)
    choice = None
    if chosen.threads == AUTO:
        chosen, choice = with_chosen_threads(path, chosen)
    # The engine maps the weights in its own thread while this one checks the vocabulary (which
    # takes longer, if it is large) and stays open for Ctrl-C.
    loading = begin_load(path, chosen, draft_path=draft_path)
    try:
        files = open_model_files(path)
        if files.get("general.architecture") == "whisper":
            raise _speech_refusal(path)
        tokenizer = read_tokenizer(files, template)
        if draft_path is not None:
            check_draft_vocabulary(tokenizer, path, draft_path)
    except (AkunuError, OSError):
        try:
            loading.result().close()
        except (AkunuError, OSError) as error:
            raise error from None  # what is wrong with the model says more
        raise
    except BaseException:
        loading.abandon()
        raise
    of_files = LoadedFiles(path, tokenizer, files)
    model = Model(loading.result(), of_files, chosen.max_waiting, choice)
    if chosen.cache_dir is None and chosen.cache_size != LoadOptions().cache_size:
        model._notes += ("cache_size is set without cache_dir: the disk is not used",)
    try:
        if chosen.warm_up:
            warm_up(model)
        if chosen.cache_dir is not None:
            model._notes += keep_on_disk(model, chosen)
    except BaseException:
        model.close()
        raise
    return model


def _refuse_speech(path: Path) -> None:
    if is_speech_model(path):
        raise _speech_refusal(path)


def _speech_refusal(path: Path) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"{path} is a speech model: akunu.load_whisper loads it, and akunu transcribe, listen and "
        "serve use it"
    )


def find_model(
    path_or_name: str | os.PathLike[str],
    options: LoadOptions | None = None,
    watch: Watch | None = None,
    *,
    local_only: bool = False,
) -> Path:
    """Return the file of a path or name, fetched if need be; ArgumentError where there is none."""
    if isinstance(path_or_name, str) and path_or_name in PACKAGED_MODELS:
        return PACKAGED_MODELS[path_or_name]
    if not isinstance(path_or_name, (str, os.PathLike)):
        raise ArgumentError(
            f"path_or_name must be a str or a path, got {type(path_or_name).__name__}"
        )
    shown = os.fsdecode(path_or_name)
    path = Path(shown)
    if not _exists(path) and shown.startswith("~"):
        with suppress(RuntimeError):  # there is no such user
            path = path.expanduser()
    if shown and _exists(path):
        return path  # the engine says what a directory is
    if shown and _is_link(path):
        raise ArgumentError(f"{shown} is a link to {os.readlink(path)}, which does not exist")
    if isinstance(path_or_name, str) and path_or_name.lower() in PACKAGED_MODELS:
        return PACKAGED_MODELS[path_or_name.lower()]  # as a sentence or a title writes it
    if isinstance(path_or_name, str):
        return hub.find(
            path_or_name,
            options or LoadOptions(),
            watch or SILENT,
            refuse_unloadable,
            local_only=local_only,
        )
    raise ArgumentError(f"{shorten(shown)} is not a file, and only a str can be a model's name")


def refuse_unknown(name: str) -> None:
    """Raise UnknownNameError for a name of nothing that is here, nor could be fetched."""
    path = Path(name)
    if name.lower() in PACKAGED_MODELS or (name and _exists(path)):
        return
    with suppress(RuntimeError):
        if name.startswith("~") and _exists(path.expanduser()):
            return
    hub.refuse_unknown_name(name)


def fetch(meant: RepoName | Address, options: LoadOptions, watch: Watch, *, must_fit: bool) -> Path:
    """Fetch the newest state of a model and return its file.

    Raises before the download what loading it would raise; with `must_fit`, also OutOfMemoryError.
    """
    return hub.fetch(meant, options, watch, refuse_unloadable, must_fit=must_fit)


def pull(name: str) -> Path:
    """Fetch a model from the Hugging Face hub or an https address, and return its file.

    `name`: "org/repo", "org/repo:Q4_K_M", "org/repo:file.gguf", "org/repo@revision", or an address.
    A file that is here is not downloaded again, but the newest state of a repository is requested.
    The download continues where an earlier one was interrupted.

    Raises ArgumentError for another name, DownloadError with what to do, and before
    the download ModelFormatError or UnsupportedModelError for a model that akunu cannot load.

    >>> pull("ember.gguf")
    Traceback (most recent call last):
    ...
    akunu.errors.ArgumentError: 'ember.gguf' cannot be downloaded: a model on the ...
    """
    meant = hub.fetchable(name)
    return fetch(meant, LoadOptions(), SILENT, must_fit=False)


def load_either(path: Path, options: LoadOptions) -> Model | SpeechModel:
    """Load a text or speech model; `context` and `adapters` mean nothing for a speech model.

    Raises what `akunu.load` and `load_whisper` raise.
    """
    if is_speech_model(path):
        return load_whisper_with(path, options)
    return load(path, **asdict(options))


def refuse_unloadable(path: Path, shown: str, options: LoadOptions) -> str:
    """Raise what loading the model would raise, under the name that the user knows.

    Else return a sentence about the memory that it needs.
    """

    def run() -> str:
        with load_either(path, replace(options, warm_up=False)) as model:
            need = size_text(model.memory["total"])
            if isinstance(model, Model):
                return f"it takes {need} of memory with a context of {model.context} tokens"
            return f"it transcribes speech, and takes {need} of memory"

    return named(run, path, shown)


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except (ValueError, OSError):
        return False


def _exists(path: Path) -> bool:
    """Whether there is something at a path; ArgumentError where no one lets us look."""
    try:
        return path.exists()
    except PermissionError as error:
        raise ArgumentError(f"{path}: cannot be opened: {error.strerror}") from None
    except (ValueError, OSError):  # a null character, a name too long
        return False
