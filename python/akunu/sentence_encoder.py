"""sentence-transformers' words for models of akunu: the one line that loads the model changes.

>>> from akunu import SentenceEncoder
>>> encoder = SentenceEncoder("sentence-transformers/all-MiniLM-L6-v2")  # doctest: +SKIP
>>> vectors = encoder.encode(["a cat", "a tractor"])  # doctest: +SKIP
>>> encoder.similarity(vectors, vectors).round(2)  # doctest: +SKIP
array([[1.  , 0.29],
       [0.29, 1.  ]], dtype=float32)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from akunu.embedding.embed import EmbeddingFacts, no_embedding
from akunu.errors import ArgumentError
from akunu.loading import load
from akunu.model import Model
from akunu.tokenizers.tokenizer import Tokenizer

_SHORTEST = 1e-12  # a vector of zeros is similar to nothing


class SentenceEncoder:
    """An encoder with the methods of sentence-transformers' SentenceTransformer.

    It also has those of LangChain's embeddings (`embed_documents`, `embed_query`); who checks for
    LangChain's class finds it in `akunu.langchain`. Texts that are too long are cut at their end,
    as sentence-transformers does; `Model.embed` refuses them. Arrays are NumPy's.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | Model,
        *,
        truncate_dim: int | None = None,
        **options: Any,
    ) -> None:
        """Load a model, or use one that is loaded.

        `model` and `options`: what `akunu.load` takes. `truncate_dim`: only this many first numbers
        of each vector. Raises what `akunu.load` raises, and UnsupportedModelError for a model that
        embeds nothing.
        """
        if isinstance(model, Model) and options:
            raise ArgumentError(
                f"the model is loaded already: {', '.join(options)} would have no effect"
            )
        self._owns = not isinstance(model, Model)
        self._model = model if isinstance(model, Model) else load(model, **options)
        facts = self._model.embedding
        if facts is None:
            self.close()
            raise no_embedding(self._model.config.architecture)
        self._facts: EmbeddingFacts = facts
        self.truncate_dim = truncate_dim

    @property
    def model(self) -> Model:
        """The model itself."""
        return self._model

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return self._model.tokenizer

    @property
    def max_seq_length(self) -> int:
        """Tokens of a text, at most; longer ones are cut."""
        return self._facts.most_tokens

    @property
    def prompts(self) -> dict[str, str]:
        """What is put in front of texts, by name."""
        return dict(self._facts.prompts)

    def get_sentence_embedding_dimension(self) -> int:
        """Return how many numbers a vector has."""
        return self.truncate_dim or self._facts.dim

    def encode(
        self,
        sentences: str | Sequence[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | Callable[[int, int], None] | None = None,
        *,
        precision: str = "float32",
        normalize_embeddings: bool | None = None,
        truncate_dim: int | None = None,
        convert_to_numpy: bool = True,
    ) -> NDArray[Any]:
        """Return a vector for each text, float32 [n, dim], or [dim] for a single text.

        `batch_size` changes nothing: texts share steps without it. `show_progress_bar`: True
        shows a line on a terminal, a function is called with how many texts are done, of how many.
        `normalize_embeddings`: None leaves it to the model. Raises what `Model.embed` raises.
        """
        if not convert_to_numpy:
            raise ArgumentError("convert_to_numpy is False; akunu has NumPy's arrays only")
        found: NDArray[Any] = self._model.embed(
            sentences,
            prompt_name=prompt_name,
            prompt=prompt,
            normalize=normalize_embeddings,
            dimensions=self.truncate_dim if truncate_dim is None else truncate_dim,
            truncate=True,
            precision=precision,
            progress=False if show_progress_bar is None else show_progress_bar,
        )
        return found

    def encode_query(self, sentences: str | Sequence[str], **arguments: Any) -> NDArray[Any]:
        """Encode questions: with the model's prompt "query", if it has one."""
        return self.encode(sentences, **self._prompted(("query",), arguments))

    def encode_document(self, sentences: str | Sequence[str], **arguments: Any) -> NDArray[Any]:
        """Encode what is searched: with the model's prompt for documents, if it has one."""
        names = ("document", "passage", "corpus")
        return self.encode(sentences, **self._prompted(names, arguments))

    def _prompted(self, names: Sequence[str], arguments: dict[str, Any]) -> dict[str, Any]:
        if {"prompt", "prompt_name"} & arguments.keys():
            return arguments
        found = next((name for name in names if name in self._facts.prompts), None)
        return arguments if found is None else {**arguments, "prompt_name": found}

    @staticmethod
    def similarity(first: ArrayLike, second: ArrayLike) -> NDArray[np.float32]:
        """Return the cosine of each vector of the first with each of the second, [n, m].

        Raises ArgumentError for vectors that are not equally long.

        >>> SentenceEncoder.similarity([[1, 0], [1, 1]], [[2, 0]]).round(3)
        array([[1.   ],
               [0.707]], dtype=float32)
        """
        rows, others = _scaled("first", first), _scaled("second", second)
        _check_widths(rows, others)
        return rows @ others.T

    @staticmethod
    def similarity_pairwise(first: ArrayLike, second: ArrayLike) -> NDArray[np.float32]:
        """Return the cosine of each vector of the first with its own one of the second, [n].

        Raises ArgumentError for vectors that are not equally long, or not equally many (one is
        compared with all).
        """
        rows, others = _scaled("first", first), _scaled("second", second)
        _check_widths(rows, others)
        if len(rows) != len(others) and 1 not in (len(rows), len(others)):
            raise ArgumentError(
                f"pairs need equal numbers of vectors: got {len(rows)} and {len(others)}"
            )
        cosines: NDArray[np.float32] = (rows * others).sum(axis=-1)
        return cosines

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of texts to be searched, as LangChain has them."""
        found: list[list[float]] = self.encode_document(list(texts)).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question, as LangChain has it."""
        found: list[float] = self.encode_query(text).tolist()
        return found

    def close(self) -> None:
        """Free the model, unless it was passed."""
        if self._owns:
            self._model.close()

    def __enter__(self) -> SentenceEncoder:
        """Return the encoder itself."""
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()


def _scaled(name: str, vectors: ArrayLike) -> NDArray[np.float32]:
    """Return vectors of length 1, [n, dim]."""
    try:
        rows = np.atleast_2d(np.asarray(vectors, np.float32))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} must be vectors of numbers, equally long: {error}") from error
    if rows.ndim > 2:
        raise ArgumentError(f"{name} must be a vector or [n, dim], got {list(rows.shape)}")
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    scaled: NDArray[np.float32] = rows / np.maximum(lengths, np.float32(_SHORTEST))
    return scaled


def _check_widths(first: NDArray[np.float32], second: NDArray[np.float32]) -> None:
    if first.shape[1] != second.shape[1]:
        raise ArgumentError(
            f"vectors have {first.shape[1]} numbers in first and {second.shape[1]} in second: "
            "only those of one model, with the same dimensions, have a cosine"
        )
