"""The files that sentence-transformers keeps next to a model: how it embeds.

Keys and values are those of its version 6. A key that changes vectors is read, or named in
`SentenceFiles.unknown`; so is a key that no one knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from akunu.errors import ModelFormatError

Json = TypeVar("Json", dict[str, Any], list[Any])

_POOLINGS: Final[Mapping[str, str]] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}
_OURS: Final[Mapping[str, str]] = {"cls": "cls", "mean": "mean", "max": "max", "lasttoken": "last"}

_PACKAGE: Final = "sentence_transformers."  # other types of modules are code that the model brings
_TRANSFORMER_FILE: Final = "sentence_bert_config.json"
_MODEL_FILE: Final = "config_sentence_transformers.json"

# Keys of each kind of file that change no vector with one of these values; (): with any.
_ANY: Final[tuple[Any, ...]] = ()
_ROWS, _VECTOR = (None, "token_embeddings"), (None, "sentence_embedding")
_NOTHING: Final[tuple[Any, ...]] = (None, {})
_HARMLESS: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
    "Transformer": {
        "transformer_task": (None, "feature-extraction"),
        "module_output_name": _ROWS,
        "unpad_inputs": _ANY,
        **dict.fromkeys(("query_length", "document_length", "query_expansion"), (None,)),
        **dict.fromkeys(("model_args", "model_kwargs", "config_args", "config_kwargs"), _NOTHING),
        **dict.fromkeys(("tokenizer_args", "processor_kwargs", "processing_kwargs"), _NOTHING),
        "tokenizer_name_or_path": (None,),
    },
    "Pooling": dict.fromkeys(("embedding_dimension", "word_embedding_dimension"), _ANY),
    "Dense": {
        **dict.fromkeys(("in_features", "out_features", "bias", "activation_function"), _ANY),
        **dict.fromkeys(("module_input_name", "module_output_name"), _VECTOR),
        "use_residual": (None, False),
    },
    "Normalize": dict.fromkeys(("module_input_name", "module_output_name"), _VECTOR),
    _MODEL_FILE: {
        "model_type": (None, "SentenceTransformer"),
        **dict.fromkeys(("__version__", "similarity_fn_name", "requirements"), _ANY),
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceFiles:
    """What they say; None and {} where they say nothing."""

    pooling: str | None = None
    pools_prompt: bool = True
    """Whether the tokens of a prompt are pooled with those of its text."""
    normalize: bool | None = None
    dimensions: int | None = None
    """How many numbers of each vector are kept, the first ones."""
    most_tokens: int | None = None
    lower_case: bool = False
    """Whether texts are put into lower case."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None
    unknown: tuple[str, ...] = ()
    """Modules, and keys with their values, that are not done here."""


def read_sentence_files(directory: Path) -> SentenceFiles:
    """Read them; ModelFormatError where one cannot be read or contradicts itself."""
    modules = _json(directory / "modules.json", list)
    if modules is None:
        return SentenceFiles()
    names: list[str] = []
    unknown: list[str] = []
    pooling: str | None = None
    pools_prompt = True
    for module in modules:
        name, folder = _module(module)
        names.append(name)
        if name == "Transformer":
            continue  # its file is the directory's own
        if name not in _HARMLESS:
            unknown.append(name)
            continue
        path = directory / folder / "config.json"
        config = (_json(path, dict) if folder else None) or {}
        if name == "Pooling":
            if not path.is_file():
                raise ModelFormatError(f"{path} is missing; modules.json names it")
            pooling, others = _pooling(config)
            pools_prompt = _flag(config, "include_prompt", path, usually=True)
            unknown += others
        unknown += _unread(name, config, path.relative_to(directory))
    unknown += _out_of_order(names)
    if not pools_prompt and "Dense" in names:
        unknown.append("include_prompt=false before Dense")

    path = directory / _TRANSFORMER_FILE
    config = _json(path, dict) or {}
    most_tokens = _number(config, "max_seq_length", path)
    lower_case = _flag(config, "do_lower_case", path, usually=False)
    unknown += _other_rows(config)
    unknown += _unread("Transformer", config, path.relative_to(directory))

    path = directory / _MODEL_FILE
    config = _json(path, dict) or {}
    prompts, default = _prompts(config, path)
    dimensions = _number(config, "truncate_dim", path)
    unknown += _unread(_MODEL_FILE, config, path.relative_to(directory))
    return SentenceFiles(
        pooling=pooling,
        pools_prompt=pools_prompt,
        normalize="Normalize" in names,
        dimensions=dimensions,
        most_tokens=most_tokens,
        lower_case=lower_case,
        prompts=prompts,
        default_prompt=default,
        unknown=tuple(unknown),
    )


def _module(module: object) -> tuple[str, str]:
    """Return the name of a module's class, with its package where that is another, and its path."""
    if not isinstance(module, dict):
        return repr(module), ""
    kind, folder = module.get("type"), module.get("path")
    if not isinstance(kind, str):
        return repr(module), ""
    name = kind.rpartition(".")[2] if kind.startswith(_PACKAGE) else kind
    return name, folder if isinstance(folder, str) else ""


def _out_of_order(names: list[str]) -> list[str]:
    """Name an order of modules that is not Transformer, Pooling, Dense, Normalize; else nothing."""
    order = [name for name in _HARMLESS if name != _MODEL_FILE]
    places = [order.index(name) for name in names if name in order]
    if places == sorted(places) and names.count("Pooling") < 2:
        return []
    return [f"the order {', '.join(names)}"]


def _pooling(config: dict[str, Any]) -> tuple[str | None, list[str]]:
    """Take the way to pool from the keys of its file; None and its name where it is not ours."""
    flags = {key: config.pop(key) for key in _POOLINGS if key in config}
    if "pooling_mode" in config:
        mode = config.pop("pooling_mode")
        modes = list(mode) if isinstance(mode, list) else [mode]
    else:
        modes = [_POOLINGS[key] for key in flags if flags[key]] or ["mean"]
    if len(modes) == 1 and modes[0] in _OURS:
        return _OURS[modes[0]], []
    return None, [f"Pooling ({', '.join(map(str, modes))})"]


def _other_rows(config: dict[str, Any]) -> list[str]:
    """Say where the rows of a text are something else than the model's last hidden state."""
    modalities = config.pop("modality_config", None)
    if modalities is None:
        return []
    text = modalities.get("text") if isinstance(modalities, dict) else None
    usual = {"method": "forward", "method_output_name": "last_hidden_state"}
    return [] if text == usual else [f"modality_config={json.dumps(modalities)}"]


def _prompts(config: dict[str, Any], path: Path) -> tuple[dict[str, str], str | None]:
    """Take the prompts by name, and the name of the one that texts get."""
    prompts = config.pop("prompts", None) or {}
    if not isinstance(prompts, dict) or not all(isinstance(v, str) for v in prompts.values()):
        raise ModelFormatError(f"{path}: prompts must be texts by their names")
    default = config.pop("default_prompt_name", None)
    if default in ("query", "document") and default not in prompts:
        return prompts, None  # sentence-transformers has these two as "" where a file has none
    if default is not None and default not in list(prompts):
        raise ModelFormatError(
            f"{path}: default_prompt_name is {default!r}, which is not one of its prompts"
        )
    return prompts, default


def _number(config: dict[str, Any], key: str, path: Path) -> int | None:
    """Take a number of 1 or more; None where the file does not say."""
    value = config.pop(key, None)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise ModelFormatError(f"{path}: {key} is {value!r}; it must be 1 or more")


def _flag(config: dict[str, Any], key: str, path: Path, *, usually: bool) -> bool:
    value = config.pop(key, None)
    if value is None or isinstance(value, bool):
        return usually if value is None else value
    raise ModelFormatError(f"{path}: {key} is {value!r}; it must be true or false")


def _unread(kind: str, config: Mapping[str, Any], path: Path) -> list[str]:
    """Say which keys that are left may change vectors."""
    known = _HARMLESS[kind]
    return [
        f"{key}={json.dumps(value)} of {path}"
        for key, value in config.items()
        if key not in known or (known[key] and value not in known[key])
    ]


def _json(path: Path, kind: type[Json]) -> Json | None:
    """Return the object or list in a file, None where there is no such file."""
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFormatError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(found, kind):
        raise ModelFormatError(f"{path} is not a JSON {'list' if kind is list else 'object'}")
    return found
