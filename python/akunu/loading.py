"""From a path or a name to a model that is ready to generate."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from akunu import _core
from akunu.common.checks import flag
from akunu.common.quoting import shorten
from akunu.errors import AkunuError, ArgumentError, UnsupportedModelError
from akunu.model import Model
from akunu.options.text_options import AUTO, LoadOptions, lists_load_options
from akunu.storage.model_files import open_model_files, read_tokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from akunu.hub.watch import Watch
    from akunu.options.arguments import LoadArguments

_DATA = Path(__file__).parent / "data"

# The models inside the package, by the names that `load` knows.
PACKAGED_MODELS: Mapping[str, Path] = {"ember": _DATA / "ember-q8_0.gguf"}


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
    file with its config.json beside it ("~" is your home); "ember", the small demonstration model
    (a file of that name is "./ember"); "org/repo" or "org/repo:Q4_K_M" on the Hugging Face hub; an
    https address; or a model that Ollama has here, "llama3.2:1b". `local_only`: never use the
    network. The others are explained at `LoadOptions`. `Model.notes` says what was decided that you
    might not expect.

    Raises ArgumentError (no such file or name, or an option that makes no sense), DownloadError (a
    model could not be fetched), ModelFormatError (the file contradicts its format),
    UnsupportedModelError (it asks for something that akunu does not have, or `draft` has another
    vocabulary), OutOfMemoryError (it
    does not fit; nothing was allocated) or DeviceError.

    >>> import akunu
    >>> with akunu.load("ember", context=512) as model:
    ...     model.context
    512
    """
    chosen = LoadOptions(**options)  # type: ignore[arg-type]  # None is the default
    flag("local_only", local_only)
    path = find_model(path_or_name, chosen, local_only=local_only)
    if path.suffix != ".gguf":  # which is looked into below, when it is open
        _refuse_speech(path)
    draft_path = None
    if chosen.draft is not None:
        draft_path = find_model(chosen.draft, chosen, local_only=local_only)
    choice = None
    if chosen.threads == AUTO:
        from akunu.thread_choice import with_chosen_threads

        chosen, choice = with_chosen_threads(path, chosen)
    # The engine maps the weights in a thread of its own while this one checks the vocabulary (which
    # takes longer, if it is large) and stays open for Ctrl-C.
    loading = begin_load(path, chosen, draft_path=draft_path)
    try:
        files = open_model_files(path)
        if files.get("general.architecture") == "whisper":
            raise _speech_refusal(path)
        tokenizer = read_tokenizer(files)
        if draft_path is not None:
            from akunu.tokenizers.draft_vocabulary import check_draft_vocabulary

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
    model = Model(loading.result(), tokenizer, path, files, chosen.max_waiting, choice)
    if chosen.cache_dir is None and chosen.cache_size != LoadOptions().cache_size:
        model._notes += ("cache_size is given without cache_dir: nothing is kept on the disk",)
    if chosen.cache_dir is not None:
        from akunu.storage.disk_cache import keep_on_disk

        try:
            model._notes += keep_on_disk(model, chosen)
        except BaseException:
            model.close()
            raise
    return model


def _refuse_speech(path: Path) -> None:
    from akunu.speech.model_kind import is_speech_model

    if is_speech_model(path):
        raise _speech_refusal(path)


def _speech_refusal(path: Path) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"{path} is a speech model: akunu.load_whisper loads it, and akunu transcribe, listen and "
        "serve use it"
    )


def begin_load(
    path: Path,
    options: LoadOptions,
    alignment_heads: Sequence[tuple[int, int]] = (),
    draft_path: Path | None = None,
) -> _core.NativeLoad:
    """Have the engine load its part of a model; nobody has to wait for it.

    `alignment_heads`: (layer, head) of a model of speech whose attention says when words are said.
    `draft_path`: of the model that proposes tokens; its vocabulary is the caller's to check.
    """
    return _core.NativeLoad(
        os.fspath(path),
        device=options.device,
        context=options.context,
        threads=int(options.threads or 0),
        kv_type=options.kv_type,
        kv_memory=options.kv_memory,
        gpu_memory=options.gpu_memory,
        gpus=options.gpus,
        prefix_cache=options.prefix_cache,
        max_waiting=options.max_waiting,
        adapters={name: os.fspath(each) for name, each in dict(options.adapters or {}).items()},
        alignment_heads=alignment_heads,
        draft=None if draft_path is None else os.fspath(draft_path),
        prediction_head=options.prediction_head,
        mmproj=None if options.mmproj is None else os.path.expanduser(options.mmproj),
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
        raise ArgumentError(f"{shown} is a link to {os.readlink(path)}, which is not there")
    if isinstance(path_or_name, str) and path_or_name.lower() in PACKAGED_MODELS:
        return PACKAGED_MODELS[path_or_name.lower()]  # as a sentence or a title writes it
    if isinstance(path_or_name, str):
        from akunu.hub.find import find  # what is a file needs none of it
        from akunu.hub.watch import SILENT

        return find(path_or_name, options or LoadOptions(), watch or SILENT, local_only=local_only)
    raise ArgumentError(f"{shorten(shown)} is not a file, and only a str can be a model's name")


def refuse_unknown(name: str) -> None:
    """Raise UnknownNameError for a name of nothing that is here, nor could be fetched."""
    path = Path(name)
    if name.lower() in PACKAGED_MODELS or (name and _exists(path)):
        return
    with suppress(RuntimeError):
        if name.startswith("~") and _exists(path.expanduser()):
            return
    from akunu.hub.find import refuse_unknown_name

    refuse_unknown_name(name)


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except (ValueError, OSError):
        return False


def _exists(path: Path) -> bool:
    """Whether there is something at a path; ArgumentError where nobody lets us look."""
    try:
        return path.exists()
    except PermissionError as error:
        raise ArgumentError(f"{path}: cannot be opened: {error.strerror}") from None
    except (ValueError, OSError):  # a null character, a name too long
        return False
