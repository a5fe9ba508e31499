"""Texts to vectors: what `Model.embed` does with its texts, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, SupportsIndex, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from tokenizers.normalizers import Lowercase

from akunu.common.checks import flag, integer, priority_of, refusal
from akunu.common.error_context import naming
from akunu.embedding.row_jobs import RowJob
from akunu.embedding.sentence_files import SentenceFiles, read_sentence_files
from akunu.errors import (
    ArgumentError,
    ContextOverflowError,
    ModelFormatError,
    UnsupportedModelError,
)
from akunu.tokenizers.token_ids import token_ids

if TYPE_CHECKING:
    from akunu import _core
    from akunu.tokenizers.tokenizer import Tokenizer

Pooling: TypeAlias = Literal["mean", "cls", "last", "max", "none"]
Precision: TypeAlias = Literal["float32", "float16", "int8", "binary"]
Truncate: TypeAlias = Literal["right", "left"]

POOLINGS: tuple[Pooling, ...] = ("mean", "cls", "last", "max", "none")
_LOWERCASE = Lowercase()  # of each character alone: str.lower knows what is next to it

PRECISIONS: tuple[Precision, ...] = ("float32", "float16", "int8", "binary")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingFacts:
    """How a model embeds where the caller does not say."""

    dim: int
    """Numbers of a vector."""
    pooling: Pooling
    """How the rows of a text become one vector."""
    normalize: bool
    """Whether vectors are scaled to length 1."""
    most_tokens: int
    """Tokens of a text, at most."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """What `prompt_name` puts in front of texts, by name."""
    default_prompt: str | None = None
    """The name of the prompt that is put there where the caller names none."""
    pools_prompt: bool = True
    """Whether the tokens of a prompt are pooled with those of its text."""
    lower_case: bool = False
    """Whether texts are put into lower case first."""
    dimensions: int | None = None
    """How many numbers of a vector are kept where the caller does not say; None: all."""

    def prompt(self, name: str | None, given: str | None) -> str | None:
        """Return the prompt to put before a text; ArgumentError for an unknown name."""
        if given is not None and not isinstance(given, str):
            raise refusal("prompt", given, "a str", "or None")
        if given is not None and name is not None:
            raise ArgumentError("prompt and prompt_name both set the prompt: use one of them")
        if given is not None:
            return given
        name = self.default_prompt if name is None else name
        if name is None:
            return None
        if name not in self.prompts:
            known = ", ".join(map(repr, self.prompts)) or "none"
            raise ArgumentError(f"prompt_name is {name!r}; the model's prompts are {known}")
        return self.prompts[name]


@dataclass(frozen=True, slots=True)
class EmbeddingOptions:
    """The arguments of `Model.embed`, checked."""

    pooling: Pooling
    normalize: bool
    dimensions: int
    truncate: Truncate | None
    precision: Precision
    batch_rows: int | None
    priority: int


def embedding_options(
    facts: EmbeddingFacts,
    *,
    pooling: str | None,
    normalize: bool | None,
    dimensions: int | None,
    truncate: bool | str,
    precision: str,
    batch_rows: int | None,
    priority: int,
) -> EmbeddingOptions:
    """Check the arguments, and fill in what the model says; ArgumentError for nonsense."""
    if pooling is not None and pooling not in POOLINGS:
        raise refusal("pooling", pooling, f"one of {', '.join(POOLINGS)}", "or None")
    if precision not in PRECISIONS:
        raise refusal("precision", precision, f"one of {', '.join(PRECISIONS)}", "")
    if normalize is not None:
        flag("normalize", normalize)
    if not isinstance(truncate, bool) and truncate not in ("left", "right"):
        raise refusal("truncate", truncate, "True, False, 'right' or 'left'", "")
    side = ("right" if truncate else None) if isinstance(truncate, bool) else truncate
    width = (
        facts.dimensions or facts.dim
        if dimensions is None
        else integer("dimensions", dimensions, 1, facts.dim, "(what the model has), or None")
    )
    if precision == "binary" and width % 8:
        raise ArgumentError(f"dimensions is {width}; binary vectors need a multiple of 8")
    return EmbeddingOptions(
        pooling=pooling or facts.pooling,
        normalize=facts.normalize if normalize is None else bool(normalize),
        dimensions=width,
        truncate=cast("Truncate | None", side),
        precision=precision,
        batch_rows=None if batch_rows is None else integer("batch_rows", batch_rows, 1),
        priority=priority_of(priority),
    )


def facts_of(native: _core.NativeModel, path: Path) -> EmbeddingFacts | None:
    """Return how the model embeds, None where it does not.

    `path`: the model's; where it is a directory, files of sentence-transformers in it are heeded.
    Raises ModelFormatError for one of these that cannot be read, and UnsupportedModelError for what
    is requested there and not done here.
    """
    found = native.embedding
    if found is None or found["classifies"]:
        return None
    directory = path if path.is_dir() else path.parent
    is_directory = path.is_dir() or path.suffix == ".safetensors"
    said = read_sentence_files(directory) if is_directory else SentenceFiles()
    if said.unknown:
        raise UnsupportedModelError(
            f"{directory / 'modules.json'} asks for {', '.join(said.unknown)}; akunu has "
            "Transformer, Pooling (cls, mean, max, lasttoken), Dense and Normalize, in this order"
        )
    if said.dimensions is not None and said.dimensions > found["dim"]:
        raise ModelFormatError(
            f"{directory / 'config_sentence_transformers.json'}: truncate_dim is "
            f"{said.dimensions}; vectors have {found['dim']} numbers"
        )
    pooling = said.pooling or found["pooling"]
    return EmbeddingFacts(
        dim=found["dim"],
        pooling=pooling if pooling in POOLINGS and pooling != "none" else "mean",
        normalize=True if said.normalize is None else said.normalize,
        most_tokens=min(native.context, said.most_tokens or native.context),
        prompts=said.prompts,
        default_prompt=said.default_prompt,
        pools_prompt=said.pools_prompt,
        lower_case=said.lower_case,
        dimensions=said.dimensions,
    )


def no_embedding(architecture: str, *, ranks: bool = False) -> UnsupportedModelError:
    """Return the error of a model that embeds nothing."""
    if ranks:
        return UnsupportedModelError(
            "this model scores pairs of texts: use Model.rank; it computes no embeddings"
        )
    return UnsupportedModelError(
        f"{architecture} models generate text; to embed texts, load an encoder such as "
        f"all-MiniLM-L6-v2"
    )


def fitting_ids(
    tokenizer: Tokenizer,
    text: str | Sequence[SupportsIndex],
    vocab_size: int,
    most: int,
    truncate: Truncate | None,
) -> NDArray[np.uint32]:
    """Return the ids of a text, at most this many: ContextOverflowError, or cut on request.

    What the tokenizer puts around a text stays around what is left. Ids are taken as they are.
    """
    if isinstance(text, str):
        ids = tokenizer.encode(text)
    else:
        ids = token_ids(text, vocab_size, "ids").tolist()
    if len(ids) > most:
        if truncate is None:
            raise ContextOverflowError(
                f"the text has {len(ids)} tokens, the model takes {most}; "
                "truncate=True embeds what fits"
            )
        inner = tokenizer.encode(text, add_special=False) if isinstance(text, str) else ids
        n_added = len(ids) - len(inner)
        n_before = next(n for n in range(n_added + 1) if ids[n : n + len(inner)] == inner)
        n_left = max(0, most - n_added)
        kept = inner[:n_left] if truncate == "right" else inner[len(inner) - n_left :]
        ids = [*ids[:n_before], *kept, *ids[n_before + len(inner) :]]
    if not ids:
        raise ArgumentError("there are no tokens to embed")
    return np.array(ids, np.uint32)


def pooled(rows: NDArray[np.float32], pooling: Pooling) -> NDArray[np.float32]:
    """Return one vector of the rows of a text, float32 [dim], where the engine pools others.

    >>> pooled(np.array([[1, 5], [2, 3]], np.float32), "mean")
    array([1.5, 4. ], dtype=float32)
    """
    vector: NDArray[np.float32]
    if pooling == "mean":
        vector = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    elif pooling == "max":
        vector = rows.max(axis=0)
    else:
        vector = rows[0 if pooling == "cls" else -1]
    return vector


def _prompt_rows(tokenizer: Tokenizer, prompt: str) -> int:
    """Return how many tokens a prompt has, counted as sentence-transformers does.

    That is with what the tokenizer puts around a text, but for one token at its end.
    """
    ids = tokenizer.encode(prompt)
    inner = tokenizer.encode(prompt, add_special=False)
    return len(ids) - (len(ids) > len(inner) and ids[-1:] != inner[-1:])


def finished(vector: NDArray[np.float32], options: EmbeddingOptions) -> NDArray[np.float32]:
    """Return a pooled row cut and scaled as wanted, by its own numbers alone."""
    vector = vector[: options.dimensions]
    if options.normalize:
        length = np.sqrt(np.sum(vector.astype(np.float64) ** 2))
        vector = (vector / max(length, 1e-12)).astype(np.float32)
    return vector


def in_precision(vectors: NDArray[np.float32], precision: Precision) -> NDArray[np.generic]:
    """Return vectors in fewer bits.

    "int8": each vector by its own largest number, which becomes 127, so that cosines stay.
    "binary": a bit for each number, set where it is above 0, the first one highest; bytes are
    shifted by -128 to int8, as sentence-transformers has them.

    >>> in_precision(np.array([[1.0, -0.5, 0.0]], np.float32), "int8")
    array([[127, -64,   0]], dtype=int8)
    """
    if precision == "float16":
        return vectors.astype(np.float16)
    if precision == "int8":
        largest = np.abs(vectors).max(axis=-1, keepdims=True)
        scaled = vectors * (127 / np.where(largest > 0, largest, 1))
        return np.rint(scaled).astype(np.int8)
    if precision == "binary":
        return (np.packbits(vectors > 0, axis=-1).astype(np.int16) - 128).astype(np.int8)
    return vectors


def checked_texts(texts: object) -> Sequence[str | Sequence[SupportsIndex]]:
    """Return several texts, each a str or token ids; ArgumentError for anything else."""
    if isinstance(texts, (str, bytes)) or not isinstance(texts, (Sequence, np.ndarray)):
        raise refusal("texts", texts, "a text or a sequence of texts", "")
    if isinstance(texts, np.ndarray) and texts.ndim == 0:
        raise refusal("texts", texts, "a text or a sequence of texts", "")
    for index, text in enumerate(texts):
        if not isinstance(text, (str, Sequence, np.ndarray)) or isinstance(text, bytes):
            raise refusal(f"texts[{index}]", text, "a text (str) or its token ids", "")
    return cast("Sequence[str | Sequence[SupportsIndex]]", texts)


class EmbeddingJob(RowJob[NDArray[np.uint32]]):
    """The texts of one call of `embed`."""

    def __init__(
        self,
        native: _core.NativeModel,
        tokenizer: Tokenizer,
        texts: Sequence[str | Sequence[SupportsIndex]],
        options: EmbeddingOptions,
        *,
        prompt: str | None,
        facts: EmbeddingFacts,
        vocab_size: int,
        progress: Callable[[int, int], None] | None,
        name: Callable[[int], str],
    ) -> None:
        """Begin nothing yet. `name`: what errors call the text of an index."""
        super().__init__(batch_rows=options.batch_rows)
        self._native = native
        self._tokenizer = tokenizer
        self._texts = texts
        self._options = options
        self._prompt = prompt
        self._facts = facts
        self._vocab_size = vocab_size
        self._progress = progress
        self._name = name
        self._n_done = 0
        self._is_pooled = options.pooling != "none"
        self._n_left_out = 0  # first rows of each text, which are not pooled
        if prompt and self._is_pooled and not facts.pools_prompt:
            self._n_left_out = _prompt_rows(tokenizer, self._spelled(prompt))
        n_vectors = len(texts) if self._is_pooled else 0
        self._vectors = np.empty((n_vectors, options.dimensions), np.float32)
        self._of_tokens: list[NDArray[np.generic]] = []

    @property
    def result(self) -> NDArray[np.generic] | list[NDArray[np.generic]]:
        """The vectors, once all texts are done; with pooling "none", those of each text."""
        if not self._is_pooled:
            return self._of_tokens
        return in_precision(self._vectors, self._options.precision)

    def prepared(self) -> Iterator[NDArray[np.uint32]]:
        """Yield the ids of each text; an error names it."""
        for index, text in enumerate(self._texts):
            with naming(self._name(index)):
                if self._prompt:
                    if not isinstance(text, str):
                        raise ArgumentError("a prompt is for texts, not for token ids")
                    text = self._prompt + text
                if isinstance(text, str):
                    text = self._spelled(text)
                most, side = self._facts.most_tokens, self._options.truncate
                ids = fitting_ids(self._tokenizer, text, self._vocab_size, most, side)
                if len(ids) <= self._n_left_out:
                    raise ArgumentError(
                        f"the prompt has {self._n_left_out} tokens, which this model does not "
                        "pool, and no token of the text is left after it"
                    )
                yield ids

    def _spelled(self, text: str) -> str:
        """Return the text as the model reads it."""
        return _LOWERCASE.normalize_str(text) if self._facts.lower_case else text

    def n_rows_of(self, text: NDArray[np.uint32]) -> int:
        """Return how many tokens it has."""
        return len(text)

    def begin(self, text: NDArray[np.uint32]) -> _core.PendingLogits:
        """Have the engine begin a text."""
        options = self._options
        pooling = "none" if self._n_left_out else options.pooling
        return self._native.start_encode(text, pooling=pooling, priority=options.priority)

    def take(self, rows: NDArray[np.float32]) -> None:
        """Keep the result of the next text."""
        if self._is_pooled:
            row = rows[0]
            if self._n_left_out:
                row = pooled(rows[self._n_left_out :], self._options.pooling)
            self._vectors[self._n_done] = finished(row, self._options)
        else:
            vectors = np.stack([finished(row, self._options) for row in rows])
            self._of_tokens.append(in_precision(vectors, self._options.precision))
        self._n_done += 1
        if self._progress is not None:
            self._progress(self._n_done, len(self._texts))
