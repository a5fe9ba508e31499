"""Documents in the order of how well they answer a query: what `Model.rank` does.

A cross-encoder reads the query and a document together and gives a score. Two kinds are known:
encoders with a classifier's head, and Qwen3-Reranker, a decoder that says yes or no.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from akunu.common.checks import flag, integer, priority_of, refusal
from akunu.common.error_context import naming
from akunu.embedding.row_jobs import RowJob
from akunu.embedding.sentence_files import read_sentence_files
from akunu.errors import ArgumentError, ContextOverflowError, UnsupportedModelError

if TYPE_CHECKING:
    from akunu import _core
    from akunu.tokenizers.tokenizer import Tokenizer

Reads: TypeAlias = Literal["pair", "question"]

# What Qwen3-Reranker was trained with.
_QUESTION_BEGINS: Final = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    'the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n'
    "<|im_start|>user\n"
)
_QUESTION_ENDS: Final = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
_INSTRUCTION: Final = "Given a web search query, retrieve relevant passages that answer the query"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A document and how well it answers the query."""

    index: int
    """Index of the document, in the order in which they were passed."""
    score: float
    """A higher score is better."""
    document: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingFacts:
    """How a model ranks where the caller does not say."""

    reads: Reads
    """What it reads: a "pair" of texts, or a "question" that it answers with yes or no."""
    normalize: bool
    """Whether scores are between 0 and 1; else they are logits."""
    most_tokens: int
    """Tokens of a query and a document together, at most."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a document as the model reads them."""

    ids: NDArray[np.uint32]
    second_segment: int | None


def ranking_facts_of(
    native: _core.NativeModel, path: Path, tokenizer: Tokenizer
) -> RankingFacts | None:
    """Return how the model ranks, None where it does not.

    A decoder of Qwen3's family ranks where its vocabulary has "yes" and "no": whether it was
    trained for it, its file does not say.
    """
    found = native.embedding
    if found is None or native.config["architecture"] == "qwen3":
        if native.config["architecture"] != "qwen3" or not (found is None or found["classifies"]):
            return None
        if None in (tokenizer.token_id("yes"), tokenizer.token_id("no")):
            return None
        return RankingFacts(reads="question", normalize=True, most_tokens=native.context)
    if not found["classifies"] or found["dim"] != 1:
        return None
    directory = path if path.is_dir() else path.parent
    is_directory = path.is_dir() or path.suffix == ".safetensors"
    said = read_sentence_files(directory).most_tokens if is_directory else None
    return RankingFacts(
        reads="pair",
        normalize=not (is_directory and _wants_logits(directory)),
        most_tokens=min(native.context, said or native.context),
    )


def _wants_logits(directory: Path) -> bool:
    """Whether sentence-transformers leaves this model's scores as they are."""
    for name, keys in (
        ("config.json", ("sentence_transformers", "activation_fn")),
        ("config.json", ("sbert_ce_default_activation_function",)),
        ("config_sentence_transformers.json", ("activation_fn",)),
    ):
        try:
            value: Any = json.loads((directory / name).read_bytes())
        except (OSError, ValueError):
            continue  # what is wrong with it, others say
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str):
            return value.endswith("Identity")
    return False


def no_ranking(architecture: str, n_labels: int | None) -> UnsupportedModelError:
    """Return the error of a model that does not rank; `n_labels`: of a classifier."""
    if n_labels is not None:
        return UnsupportedModelError(
            f"this {architecture} model tells {n_labels} classes apart; ranking needs one score"
        )
    return UnsupportedModelError(
        f"this {architecture} model does not rank; load a cross-encoder such as "
        "ms-marco-MiniLM-L6-v2 or bge-reranker-v2-m3, or Qwen3-Reranker"
    )


def checked_documents(documents: object) -> Sequence[str]:
    """Return the documents; ArgumentError for anything but a sequence of texts."""
    if isinstance(documents, (str, bytes)) or not isinstance(documents, Sequence):
        raise refusal("documents", documents, "a sequence of texts", "")
    for index, document in enumerate(documents):
        if not isinstance(document, str):
            raise refusal(f"documents[{index}]", document, "a text (str)", "")
    return documents


def pair_of(tokenizer: Tokenizer, query: str, document: str, most: int, *, truncate: bool) -> Pair:
    """Return a pair as the tokenizer's own template joins it.

    A pair that is too long is a ContextOverflowError, or with `truncate` its document is cut.
    """
    found = tokenizer.encode_pair(query, document)
    if len(found.ids) > most:
        n_document = len(tokenizer.encode(document, add_special=False))
        n_kept = most - (len(found.ids) - n_document)
        _refuse_or_cut(len(found.ids), most, n_kept, truncate=truncate)
        found = tokenizer.encode_pair(query, document, most_of_second=n_kept)
    return Pair(np.array(found.ids, np.uint32), found.second_begins)


def question_of(
    tokenizer: Tokenizer,
    query: str,
    document: str,
    most: int,
    *,
    truncate: bool,
    instruction: str | None,
) -> Pair:
    """Return the question whether the document answers the query, in Qwen3-Reranker's words."""
    begins = tokenizer.encode(_QUESTION_BEGINS, add_special=False, parse_special=True)
    ends = tokenizer.encode(_QUESTION_ENDS, add_special=False, parse_special=True)
    told = f"<Instruct>: {instruction or _INSTRUCTION}\n<Query>: {query}\n<Document>: "
    ids = tokenizer.encode(told + document, add_special=False)
    n_kept = most - len(begins) - len(ends)
    if len(ids) > n_kept:
        n_before = len(tokenizer.encode(told, add_special=False))
        _refuse_or_cut(
            len(ids) + len(begins) + len(ends), most, n_kept - n_before, truncate=truncate
        )
        ids = ids[:n_kept]
    return Pair(np.array([*begins, *ids, *ends], np.uint32), None)


def _refuse_or_cut(n: int, most: int, n_of_document: int, *, truncate: bool) -> None:
    if not truncate:
        raise ContextOverflowError(
            f"the query and the document have {n} tokens, the model takes {most}; truncate=True "
            "cuts the document"
        )
    if n_of_document < 1:
        raise ContextOverflowError(
            f"the query alone leaves no room for a document: the model takes {most} tokens"
        )


def sigmoid(logit: float) -> float:
    """Return the probability that a logit stands for.

    >>> sigmoid(0.0), sigmoid(-1000.0)
    (0.5, 0.0)
    """
    if logit >= 0:
        return 1 / (1 + math.exp(-logit))
    power = math.exp(logit) if logit > -745 else 0.0
    return power / (1 + power)


class RankJob(RowJob[Pair]):
    """The documents of one call of `rank`."""

    def __init__(
        self,
        native: _core.NativeModel,
        tokenizer: Tokenizer,
        facts: RankingFacts,
        query: str,
        documents: Sequence[str],
        *,
        top_k: int | None,
        normalize: bool | None,
        instruction: str | None,
        truncate: bool,
        priority: int,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        """Check the arguments; begin nothing yet."""
        super().__init__()
        if not isinstance(query, str):
            raise refusal("query", query, "a text (str)", "")
        if instruction is not None and not isinstance(instruction, str):
            raise refusal("instruction", instruction, "a text (str)", "or None")
        if instruction is not None and facts.reads != "question":
            raise ArgumentError("instruction is for models that read a question; this one does not")
        self._native = native
        self._tokenizer = tokenizer
        self._facts = facts
        self._query = query
        self._documents = documents
        self._top_k = None if top_k is None else integer("top_k", top_k, 1)
        if normalize is not None:
            flag("normalize", normalize)
        self._normalize = facts.normalize if normalize is None else normalize
        self._instruction = instruction
        flag("truncate", truncate)
        self._truncate = truncate
        self._priority = priority_of(priority)
        self._progress = progress
        self._logits: list[float] = []
        self._is_decoder = native.embedding is None

    @property
    def result(self) -> list[Ranked]:
        """The documents, best first, once all are done; equal ones stay in their order."""
        scores = [sigmoid(logit) if self._normalize else logit for logit in self._logits]
        order = sorted(range(len(scores)), key=lambda index: -self._logits[index])
        return [
            Ranked(index=index, score=scores[index], document=self._documents[index])
            for index in order[: self._top_k]
        ]

    def prepared(self) -> Iterator[Pair]:
        """Yield the tokens of each pair; an error names the document."""
        facts = self._facts
        for index, document in enumerate(self._documents):
            with naming(f"documents[{index}]"):
                arguments: Mapping[str, Any] = {"truncate": self._truncate}
                if facts.reads == "question":
                    yield question_of(
                        self._tokenizer,
                        self._query,
                        document,
                        facts.most_tokens,
                        instruction=self._instruction,
                        **arguments,
                    )
                else:
                    yield pair_of(
                        self._tokenizer, self._query, document, facts.most_tokens, **arguments
                    )

    def n_rows_of(self, text: Pair) -> int:
        """Return how many tokens it has."""
        return len(text.ids)

    def begin(self, text: Pair) -> _core.PendingLogits:
        """Have the engine begin a pair."""
        if self._is_decoder:
            return self._native.start_logits(text.ids, len(text.ids) - 1, self._priority)
        found = self._native.embedding
        assert found is not None
        return self._native.start_encode(
            text.ids,
            pooling=found["pooling"],
            second_segment=text.second_segment,
            priority=self._priority,
        )

    def take(self, rows: NDArray[np.float32]) -> None:
        """Keep the result of the next document."""
        row = rows[-1]
        if self._is_decoder:
            yes, no = (self._tokenizer.token_id(word) for word in ("yes", "no"))
            logit = float(row[yes]) - float(row[no])
        elif self._facts.reads == "question":
            logit = float(row[0]) - float(row[1])  # a file made to rank has these two rows
        else:
            logit = float(row[0])
        self._logits.append(logit)
        if self._progress is not None:
            self._progress(len(self._logits), len(self._documents))
