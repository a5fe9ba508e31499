"""`akunu serve`: the server, with its settings from command line, environment and file."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from akunu.cli.loading import load_model, model_path
from akunu.cli.speech_model import load_speech_model
from akunu.cli.terminal import console
from akunu.cli.wording import without_notation
from akunu.errors import AkunuError
from akunu.loading import refuse_unknown
from akunu.options.text_options import LoadOptions
from akunu.server.catalogue.created import CreatedModels
from akunu.server.catalogue.discovered import discovering
from akunu.server.configuration import from_environment, from_file
from akunu.server.model_names import named_sources
from akunu.server.models import ServedModels
from akunu.server.running import noted, servers_folder
from akunu.server.served_model import Loaded
from akunu.server.settings import ServerSettings
from akunu.speech.model_kind import is_speech_model


def serve_models(models: Sequence[str], config: Path | None, given: Mapping[str, Any]) -> int:
    """Serve until it is ended; the first model is loaded before.

    Raises ArgumentError for settings that make no sense, and what loading raises.
    """
    configured = from_file(config)
    told = {name: value for name, value in given.items() if value is not None}
    with without_notation():
        settings = ServerSettings(**{**configured.settings, **from_environment(), **told})
    run = _installed()
    named = configured.chosen(models)
    everywhere = settings.all_models or settings.allow_pull or not named
    discover = discovering(settings.models_dir, everywhere=everywhere)
    presets = configured.presets
    created = CreatedModels.of_user() if everywhere else None
    sources = named_sources(named or ["ember"])
    served = ServedModels.of(settings, sources, discover, presets, created)

    def ready(address: str) -> None:
        ends.enter_context(noted(address, served.names, servers_folder()))
        others = "" if discover is None else " and the models found on this machine"
        console.tell(f"akunu: serving {', '.join(served.names)}{others} at {address}/v1")

    with ExitStack() as ends:
        sockets = ends.enter_context(run.listening(settings))  # before what takes a while
        first, *others = served.all
        for each in others:  # a path that is mistyped is reported now, not to anyone who asks first
            refuse_unknown(each.source)
        run.keep_address_space()
        served.adopt(first.name, _loaded(first.source, first.options))
        from akunu.server.app import create_app  # after the first model, which takes longest

        run.check_address_space()
        run.prepare_log()
        run.allow_connections()
        run.serve(create_app(settings, served), settings, sockets, ready)
    run.leave_threads()
    gc.freeze()  # what Python looks for in a process that ends takes longer than all the rest
    return 0


def _loaded(source: str, options: LoadOptions) -> Loaded:
    """Return a model of texts, or of speech."""
    path = model_path(source, options)
    if is_speech_model(path):
        return load_speech_model(source, options)
    return load_model(source, options)


def _installed() -> Any:
    """Return the module that serves; AkunuError where what it needs is not installed."""
    try:
        from akunu.server import run  # an extra, which may not be installed
    except ImportError as error:
        raise AkunuError(
            f"packages of the server are missing ({error.name}): "
            "pip install 'akunu[server]', or '.[server]' in a clone"
        ) from None
    return run
