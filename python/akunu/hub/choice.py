"""Chooses a file of a repository: the one that a name means, or the default if it names none.

A file's name has its number format. Q4_K_M is the usual compromise between size and quality;
`PREFERENCE` has the order of the others. The header is read later.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from akunu.errors import ArgumentError

PREFERENCE = (
    *("Q4_K_M", "Q4_K_S", "Q4_K_L", "Q5_K_M", "Q5_K_S", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q6_K"),
    *("Q8_0", "IQ4_XS", "IQ4_NL", "MXFP4", "MXFP4_MOE", "NVFP4", "Q3_K_L", "Q3_K_M", "Q3_K_S"),
    *("BF16", "F16", "F32", "IQ3_M", "IQ3_S", "IQ3_XS", "IQ3_XXS", "Q2_K", "Q2_K_S"),
    *("IQ2_M", "IQ2_S", "IQ2_XS", "IQ2_XXS"),
)
"""Formats to take if a name has only the repository, the preferred one first."""

_LABEL = re.compile(
    r"(?:^|[-_.])((?:UD-)?(?:IQ|TQ|Q)\d+(?:_[A-Z0-9]+)*|MXFP4(?:_MOE)?|NVFP4|BF16|FP?16|FP?32)"
    r"(?=$|[-.])",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
_SHARD = re.compile(r"model-\d{5}-of-(?P<count>\d{5})\.safetensors")
_BESIDE_WEIGHTS = (
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "tiktoken.model",
    "chat_template.jinja",
    "model.safetensors.index.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
)
"""Files that akunu reads from a folder with safetensors files, in addition to config.json."""
_MODULE = re.compile(r"\d+_[A-Za-z]+/(?:config\.json|model\.safetensors)")
"""What it reads of the folders that a modules.json names: how vectors are pooled, dense layers."""
_WHISPER_CPP = re.compile(r"ggml-(?P<model>[^/]+)\.bin", re.IGNORECASE)
_BESIDE_MODELS = re.compile(r"mmproj|imatrix", re.IGNORECASE)
_LISTED = 12  # files in an error


@dataclass(frozen=True, slots=True)
class File:
    """A file of a repository."""

    name: str
    """With its folders, as the hub writes it."""
    size: int
    sha256: str = ""
    """Checksum of its content; "" if the hub does not know it."""
    git_id: str = ""
    """Git's checksum of its content, for a file that is not in large-file storage."""

    @property
    def base(self) -> str:
        """The name without folders."""
        return self.name.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model in a repository: one file, or all parts of one that is split."""

    files: tuple[File, ...]
    label: str
    """The number format that its name tells, in capitals; "" where it tells none."""
    is_directory: bool = False
    """Whether it is all of its folder: config.json, then whatever belongs to it."""

    @property
    def is_whisper_cpp(self) -> bool:
        """Whether it is a file of whisper.cpp, whose tensors have no table at its beginning."""
        return _WHISPER_CPP.fullmatch(self.files[0].base) is not None

    @property
    def name(self) -> str:
        """The file that opens the model."""
        return self.files[0].name

    @property
    def size(self) -> int:
        """Bytes of all its parts."""
        return sum(file.size for file in self.files)

    @property
    def names(self) -> set[str]:
        """What one may call it besides its format, in lower case."""
        if whisper_cpp := _WHISPER_CPP.fullmatch(self.files[0].base):
            base = self.files[0].base
            return {each.lower() for each in (self.name, base, whisper_cpp["model"])}
        stem = split_stem(self.name) or self.name.removesuffix(".gguf")
        found = {self.name, stem, f"{stem}.gguf", *(file.name for file in self.files)}
        return {each.lower() for name in found for each in (name, name.rpartition("/")[2])}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What was chosen, and why."""

    candidate: Candidate
    reason: str


def label_of(name: str) -> str:
    """Return the number format that a file's name tells, "" if it tells none.

    >>> label_of("Qwen3-0.6B-Q8_0.gguf"), label_of("model.q4_k_m.gguf"), label_of("model.gguf")
    ('Q8_0', 'Q4_K_M', '')
    """
    base = name.rpartition("/")[2]
    stem = split_stem(base) or re.sub(r"\.(gguf|bin)$", "", base, flags=re.IGNORECASE)
    found = _LABEL.findall(stem)
    return found[-1].upper().replace("FP16", "F16").replace("FP32", "F32") if found else ""


def split_stem(name: str) -> str:
    """Return a part's name without its number, "" for a file that is not a part.

    >>> split_stem("big-Q8_0-00001-of-00003.gguf")
    'big-Q8_0'
    """
    found = _SPLIT.fullmatch(name)
    return found["stem"] if found else ""


def part_names(name: str) -> list[str]:
    """Return the names of all parts of the model that a file belongs to; its own if it is whole.

    >>> part_names("m-00002-of-00002.gguf")
    ['m-00001-of-00002.gguf', 'm-00002-of-00002.gguf']
    """
    found = _SPLIT.fullmatch(name)
    if found is None:
        return [name]
    count = found["count"]
    return [f"{found['stem']}-{n:05d}-of-{count}.gguf" for n in range(1, int(count) + 1)]


def candidates(files: Iterable[File]) -> list[Candidate]:
    """Return the models among some files, smallest first; a split one only if it is whole.

    Where none is a GGUF file, the folder itself may be a model, of safetensors files; and where it
    is none, ggml-NAME.bin of whisper.cpp are.
    """
    files = list(files)
    by_name = {file.name: file for file in files if file.name.lower().endswith(".gguf")}
    found = []
    for name, file in by_name.items():
        parts = part_names(name)
        if _BESIDE_MODELS.search(file.base) or name != parts[0]:
            continue  # what sees images, statistics for quantising; a later part
        if all(part in by_name for part in parts):
            found.append(Candidate(tuple(by_name[part] for part in parts), label_of(name)))
    if not found and (directory := _directory(files)):
        return [directory]
    if not found:
        found = [
            Candidate((file,), label_of(file.name) or "F16")
            for file in files
            if _WHISPER_CPP.fullmatch(file.base)
        ]
    return sorted(found, key=lambda candidate: (candidate.size, candidate.name))


def _directory(files: Sequence[File]) -> Candidate | None:
    """Return the model that a folder is, if it is one."""
    here = {file.name: file for file in files if "/" not in file.name}
    weights = [here[name] for name in _weights(set(here))]
    if "config.json" not in here or not weights:
        return None
    beside = [here[name] for name in _BESIDE_WEIGHTS if name in here]
    if "modules.json" in here:
        beside += [file for file in files if _MODULE.fullmatch(file.name)]
    return Candidate((here["config.json"], *beside, *weights), "SAFETENSORS", is_directory=True)


def _weights(names: set[str]) -> list[str]:
    """Return which safetensors files of a folder are its model; [] where not all are there."""
    if "model.safetensors" in names:
        return ["model.safetensors"]
    parts = [found for name in sorted(names) if (found := _SHARD.fullmatch(name))]
    if parts:
        count = parts[0]["count"]
        wanted = [f"model-{n:05d}-of-{count}.safetensors" for n in range(1, int(count) + 1)]
        is_whole = "model.safetensors.index.json" in names and names.issuperset(wanted)
        return wanted if is_whole else []
    single = [name for name in names if name.endswith(".safetensors")]
    return single if len(single) == 1 else []


def choose(models: Sequence[Candidate], wanted: str, repo: str) -> ModelChoice:
    """Return the model that is wanted, or without a wish the one that akunu prefers.

    Raises ArgumentError, which lists what there is, where that is nothing or more than one.
    """
    if wanted:
        return _choose_wanted(models, wanted, repo)
    if len(models) == 1:
        return ModelChoice(models[0], "the only model in it")
    for label in PREFERENCE:
        same = [model for model in models if model.label == label]
        if len(same) == 1:
            return ModelChoice(same[0], f"the preferred one of {len(models)} models")
        if same:
            raise ArgumentError(
                f"{repo} has several models in {label}: name one of its files, as in "
                f"{repo}:{same[0].files[0].base} ({listed(same)})"
            )
    raise ArgumentError(
        f"{repo} has no model in a format that akunu chooses by default; name one of "
        f"{listed(models)}"
    )


def _choose_wanted(models: Sequence[Candidate], wanted: str, repo: str) -> ModelChoice:
    plain = wanted.lower()
    for matches in (
        [model for model in models if plain in model.names],
        [model for model in models if plain == model.label.lower()],
        [model for model in models if plain == model.label.lower().removeprefix("ud-")],
    ):
        if len(matches) == 1:
            return ModelChoice(matches[0], "as named")
        if matches:
            raise ArgumentError(
                f"{repo} has several models that {wanted!r} may mean; name one of its files: "
                f"{listed(matches)}"
            )
    known = {model.label or model.files[0].base: model for model in models}
    close = difflib.get_close_matches(wanted.upper(), list(known), n=1, cutoff=0.5)
    hint = f"did you mean {repo}:{close[0]}? There is" if close else "there is"
    raise ArgumentError(f"{repo} has no {wanted!r}; {hint} {listed(models)}")


def listed(models: Sequence[Candidate]) -> str:
    """Return models as an error lists them: by format where that says which."""
    labels = [model.label for model in models]
    shown = [
        model.label if model.label and labels.count(model.label) == 1 else model.name
        for model in models
    ]
    more = f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
    return ", ".join(shown[:_LISTED]) + more
