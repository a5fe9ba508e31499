"""The calls of encoders: vectors of texts, and documents by how well they answer a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

from akunu.common.progress_line import progress_callback
from akunu.embedding.embed import EmbeddingJob, checked_texts, embedding_options, no_embedding
from akunu.embedding.reranking import RankJob, checked_documents, no_ranking
from akunu.text.wakers import done

if TYPE_CHECKING:
    from akunu import _core
    from akunu.embedding.embed import EmbeddingFacts
    from akunu.embedding.reranking import Ranked, RankingFacts
    from akunu.model_facts import ModelConfig
    from akunu.text.pipeline import Pipeline


class EncoderCalls:
    """What `Model` has for encoders."""

    _pipeline: Pipeline
    _config: ModelConfig
    _embedding: EmbeddingFacts | None
    _ranking: RankingFacts | None

    @property
    def embedding(self) -> EmbeddingFacts | None:
        """How `embed` embeds where its caller does not say; None of a model that embeds nothing."""
        return self._embedding

    def embed(
        self,
        texts: str | Sequence[str] | Sequence[Sequence[SupportsIndex]],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        pooling: str | None = None,
        normalize: bool | None = None,
        dimensions: int | None = None,
        truncate: bool | str = False,
        batch_rows: int | None = None,
        precision: str = "float32",
        priority: int = 0,
        progress: bool | Callable[[int, int], None] = False,
    ) -> Any:
        """Return a vector for each text, float32 [n, dim], or [dim] for a single text.

        With `pooling="none"`, a vector for each token: a list of arrays [n_tokens, dim].

        A text may be passed as token ids, which are taken as they are.

        `prompt`: put in front of each text; `prompt_name`: one of `embedding.prompts` by
        its name. `pooling`: how the tokens' vectors become the text's: "mean", "cls" (the first),
        "last", "max" or "none". `normalize`: whether vectors have length 1.
        `dimensions`: only this many first numbers, for models that were trained for it. For all of
        these, None takes what the model says: see `embedding`. `truncate`: True cuts a text that is
        too long for the model at its end, "left" at its beginning. `precision`: "float32",
        "float16", "int8" (each vector's largest number becomes 127) or "binary" (a bit a number, in
        int8 [n, dim / 8]). `batch_rows`: compute at most this many tokens at a time. `progress`:
        True shows a line on a terminal, a function is called with how many texts are done, of how
        many. `priority`: as for `generate`. A text's
        vector does not depend on the texts next to it.

        Raises UnsupportedModelError for a model that embeds nothing, ArgumentError for arguments
        that make no sense and ContextOverflowError for a text that is too long; errors name the
        text: "texts[2]: ...".

        >>> import akunu
        >>> with akunu.load("all-minilm.gguf") as model:  # doctest: +SKIP
        ...     vectors = model.embed(["a cat", "a kitten", "a tractor"])
        >>> vectors @ vectors[0]  # doctest: +SKIP
        array([1.    , 0.7882, 0.2876], dtype=float32)
        """
        with progress_callback(progress, "embedding") as count:
            job = self._embedding_job(
                [texts] if isinstance(texts, str) else texts,
                (prompt_name, prompt),
                count,
                pooling=pooling,
                normalize=normalize,
                dimensions=dimensions,
                truncate=truncate,
                precision=precision,
                batch_rows=batch_rows,
                priority=priority,
            )
            job.work()
        return job.result[0] if isinstance(texts, str) else job.result

    async def embed_async(
        self,
        texts: str | Sequence[str] | Sequence[Sequence[SupportsIndex]],
        *,
        prompt_name: str | None = None,
        prompt: str | None = None,
        pooling: str | None = None,
        normalize: bool | None = None,
        dimensions: int | None = None,
        truncate: bool | str = False,
        batch_rows: int | None = None,
        precision: str = "float32",
        priority: int = 0,
        progress: bool | Callable[[int, int], None] = False,
    ) -> Any:
        """Await the vectors of texts; arguments, result and errors are those of `embed`."""
        with progress_callback(progress, "embedding") as count:
            job = self._embedding_job(
                [texts] if isinstance(texts, str) else texts,
                (prompt_name, prompt),
                count,
                pooling=pooling,
                normalize=normalize,
                dimensions=dimensions,
                truncate=truncate,
                precision=precision,
                batch_rows=batch_rows,
                priority=priority,
            )
            await job.work_async(self._done)
        return job.result[0] if isinstance(texts, str) else job.result

    @property
    def ranking(self) -> RankingFacts | None:
        """How `rank` ranks where its caller does not say; None of a model that does not rank."""
        return self._ranking

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        *,
        normalize: bool | None = None,
        instruction: str | None = None,
        truncate: bool = False,
        priority: int = 0,
        progress: bool | Callable[[int, int], None] = False,
    ) -> list[Ranked]:
        """Return the documents by how well they answer the query, the best first.

        For cross-encoders, which read the query and a document together. `top_k`: only this many of
        them. `normalize`: whether scores are between 0 and 1 or as the model computes them; None
        takes what the model says (see `ranking`). `instruction`: what the search is for; of
        Qwen3-Reranker only. `truncate`: cuts a document that is too long next to the query; without
        it that is an error. `progress` and `priority`: as for `embed`. A score does not depend on
        the other documents.

        Raises UnsupportedModelError for a model that does not rank, ArgumentError for arguments
        that make no sense and ContextOverflowError for what is too long; errors name the document:
        "documents[2]: ...".

        >>> import akunu
        >>> with akunu.load("bge-reranker-v2-m3.gguf") as model:  # doctest: +SKIP
        ...     best = model.rank("what is a panda?", ["hi", "The giant panda is a bear."])[0]
        >>> best.document  # doctest: +SKIP
        'The giant panda is a bear.'
        """
        with progress_callback(progress, "ranking") as count:
            job = self._rank_job(
                query,
                documents,
                top_k=top_k,
                normalize=normalize,
                instruction=instruction,
                truncate=truncate,
                priority=priority,
                progress=count,
            )
            job.work()
        return job.result

    async def rank_async(
        self,
        query: str,
        documents: Sequence[str],
        top_k: int | None = None,
        *,
        normalize: bool | None = None,
        instruction: str | None = None,
        truncate: bool = False,
        priority: int = 0,
        progress: bool | Callable[[int, int], None] = False,
    ) -> list[Ranked]:
        """Await the documents, best first; arguments, result and errors are those of `rank`."""
        with progress_callback(progress, "ranking") as count:
            job = self._rank_job(
                query,
                documents,
                top_k=top_k,
                normalize=normalize,
                instruction=instruction,
                truncate=truncate,
                priority=priority,
                progress=count,
            )
            await job.work_async(self._done)
        return job.result

    async def _done(self, pending: _core.PendingLogits) -> None:
        """Wait until the pending result can be taken."""
        await done(self._pipeline.wakers, pending)

    def _embedding_job(
        self,
        texts: object,
        prompt: tuple[str | None, str | None],
        progress: Callable[[int, int], None] | None,
        name: Callable[[int], str] = "texts[{}]".format,
        **options: Any,
    ) -> EmbeddingJob:
        if self._embedding is None:
            ranks = self._pipeline.open().embedding is not None
            raise no_embedding(self._config.architecture, ranks=ranks)
        return EmbeddingJob(
            self._pipeline.open(),
            self._pipeline.tokenizer,
            checked_texts(texts),
            embedding_options(self._embedding, **options),
            prompt=self._embedding.prompt(*prompt),
            facts=self._embedding,
            vocab_size=self._config.vocab_size,
            progress=progress,
            name=name,
        )

    def _rank_job(self, query: str, documents: Sequence[str], **options: Any) -> RankJob:
        native = self._pipeline.open()
        if self._ranking is None:
            found = native.embedding
            n_labels = found["dim"] if found is not None and found["classifies"] else None
            raise no_ranking(self._config.architecture, n_labels)
        return RankJob(
            native,
            self._pipeline.tokenizer,
            self._ranking,
            query,
            checked_documents(documents),
            **options,
        )
