"""What the calls of a model share: prompts become tokens, rules become constraints, texts begin.

`generate`, `chat` and `embed` (model.py) take these steps one after the other; their twins for
coroutines (async_calls.py) take the same ones, the long ones in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.common.checks import integer, priority_of
from akunu.errors import AkunuError, ArgumentError
from akunu.grammar.structure import ruled
from akunu.options.text_options import SamplingOptions, TextOptions
from akunu.text.batches import Prepared, prepared_all
from akunu.text.context_overflow import refuse_too_long, room
from akunu.text.submit import begin_text
from akunu.text.text_stream import TextStream
from akunu.tokenizers.token_ids import token_ids

if TYPE_CHECKING:
    from akunu.embedding.embed import EmbeddingFacts, EmbeddingJob
    from akunu.embedding.reranking import RankingFacts, RankJob
    from akunu.grammar import FreeText, Grammar
    from akunu.images.reader import ImageReader
    from akunu.model_facts import ModelConfig
    from akunu.templates.chat_template import ChatTemplate
    from akunu.text.context_overflow import Shorten
    from akunu.text.render import ChatRequest
    from akunu.text.reply_decoder import ReplyDecoder
    from akunu.text.reply_splitter import ReplySplitter
    from akunu.tokenizers.tokenizer import Tokenizer


class CallSteps:
    """The steps of a call, for `Model`, which has what they need."""

    _native: _core.NativeModel | None
    _tokenizer: Tokenizer
    _config: ModelConfig
    _context: int
    _path: Path
    _embedding: EmbeddingFacts | None
    _ranking: RankingFacts | None
    _max_waiting: int
    _is_building: Lock  # held while the grammar vocabulary is built

    def _open(self) -> _core.NativeModel:
        native = self._native
        if native is None:
            raise AkunuError("the model is closed; load it again to go on")
        return native

    @cached_property
    def _image_reader(self) -> ImageReader | None:
        """What reads the images of messages; None of a model that reads none."""
        native = self._open()
        if native.images is None:
            return None
        from akunu.images.reader import ImageReader

        return ImageReader(native, self._path, self._tokenizer)

    @cached_property
    def _chat_template(self) -> ChatTemplate:
        from akunu.templates.chat_template import ChatTemplate

        if self._embedding is not None:
            from akunu.embedding.embed import no_chat

            raise no_chat(self._config.architecture)
        return ChatTemplate.of(self._tokenizer)

    def _rows(
        self, tokens: Sequence[SupportsIndex], last: int | None
    ) -> tuple[NDArray[np.uint32], int]:
        """Return the ids and the first of those whose logits are wanted."""
        ids = self._token_ids(tokens, "tokens")
        wanted = len(ids) if last is None else integer("last", last, 1, None, "or None")
        return ids, max(0, len(ids) - wanted)

    def _embedding_job(
        self,
        texts: object,
        prompt: tuple[str | None, str | None],
        progress: Callable[[int, int], None] | None,
        name: Callable[[int], str] = "texts[{}]".format,
        **options: Any,
    ) -> EmbeddingJob:
        from akunu.embedding.embed import (
            EmbeddingJob,
            checked_texts,
            embedding_options,
            no_embedding,
        )

        if self._embedding is None:
            ranks = self._open().embedding is not None
            raise no_embedding(self._config.architecture, ranks=ranks)
        return EmbeddingJob(
            self._open(),
            self._tokenizer,
            checked_texts(texts),
            embedding_options(self._embedding, **options),
            prompt=self._embedding.prompt(*prompt),
            facts=self._embedding,
            vocab_size=self._config.vocab_size,
            progress=progress,
            name=name,
        )

    def _rank_job(self, query: str, documents: Sequence[str], **options: Any) -> RankJob:
        from akunu.embedding.reranking import RankJob, checked_documents, no_ranking

        native = self._open()
        if self._ranking is None:
            found = native.embedding
            n_labels = found["dim"] if found is not None and found["classifies"] else None
            raise no_ranking(self._config.architecture, n_labels)
        return RankJob(
            native,
            self._tokenizer,
            self._ranking,
            query,
            checked_documents(documents),
            **options,
        )

    def _token_ids(
        self, tokens: Sequence[SupportsIndex], argument: str, *wanted: str
    ) -> NDArray[np.uint32]:
        return token_ids(tokens, self._config.vocab_size, argument, *wanted)

    def _room(self, options: TextOptions | SamplingOptions) -> int | None:
        return room(options.context_overflow, self._context)

    def _prepare_text(self, prompt: Any, context: int | None) -> Prepared:
        if isinstance(prompt, str):
            refuse_too_long(self._tokenizer, [prompt], context)
        ids = self._tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
        tokens = self._token_ids(ids, "prompt", "a text (str) or token ids")
        if not tokens.size:
            if self._tokenizer.bos_id is None:
                raise ArgumentError(
                    "the prompt is empty, and this model has no BOS token to start from; "
                    "give it at least one token"
                )
            tokens = np.array([self._tokenizer.bos_id], dtype=np.uint32)
        return Prepared(tokens, text=prompt if isinstance(prompt, str) else None)

    def _prepare_chat(self, request: ChatRequest, context: int | None) -> Prepared:
        from akunu.text.context_overflow import newest_turns
        from akunu.text.render import prepared

        def rendered(messages: Sequence[Any]) -> list[int]:
            shorter = replace(request, messages=messages)
            return prepared(shorter, self._tokenizer, self._chat_template).tokens

        reader, name = self._image_reader, self._path.name
        chat = prepared(request, self._tokenizer, self._chat_template, context, reader, name)
        tokens = self._token_ids(chat.tokens, "messages")
        return Prepared(
            tokens,
            chat.splitter,
            chat.grammar,
            chat.functions,
            chat.thoughts,
            chat.holds_form,
            holds_calls=chat.holds_calls,
            shorten=newest_turns(request.messages, rendered),
            images=[(first, reader.read(each)) for first, each in chat.images] if reader else [],
        )

    def _prepare_all(
        self, name: str, given: Sequence[Any], options: SamplingOptions
    ) -> list[Prepared]:
        """Prepare several prompts or requests, called by this name."""
        context = self._room(options)
        prepare = self._prepare_text if name == "prompt" else self._prepare_chat
        return prepared_all(name, given, partial(prepare, context=context), context)

    def _reply(
        self,
        prompt: Sequence[int],
        splitter: ReplySplitter,
        options: SamplingOptions,
        thoughts: FreeText | None = None,
        shorten: Shorten | None = None,
    ) -> TextStream:
        """Return the reply to a conversation whose prompt is there already.

        `thoughts`: what it begins with; they may have a budget. `shorten`: how the prompt gets
        shorter where the context is full.
        """
        from akunu.grammar import Grammar

        has_budget = thoughts is not None and thoughts.most_tokens is not None
        prepared = Prepared(
            self._token_ids(prompt, "prompt"),
            splitter,
            Grammar(after=thoughts) if has_budget else None,
            thoughts=thoughts,
            shorten=shorten,
        )
        native = self._open()
        return TextStream(native, self._begin(native, options, prepared))

    def _constraint(self, grammar: Grammar | None) -> _core.Constraint | None:
        if grammar is None:
            return None
        from akunu.grammar.separate_process import compiling_here
        from akunu.grammar.vocabulary import constraint_of, needs_vocabulary, ruling_words

        if self._tokenizer.opens_with_space:
            grammar = ruling_words(grammar)
        if grammar.after is not None:
            for each in (*grammar.after.until, grammar.after.then):
                if not isinstance(each, str):
                    self._token_ids(each, "a FreeText's tokens")
        vocabulary = self._grammar_vocabulary if needs_vocabulary(grammar) else None
        with compiling_here():
            return constraint_of(vocabulary, grammar)

    @property
    def _grammar_vocabulary(self) -> _core.GrammarVocabulary:
        with self._is_building:  # coroutines get here in several threads at once
            return self._built_vocabulary

    @cached_property
    def _built_vocabulary(self) -> _core.GrammarVocabulary:
        from akunu.grammar.vocabulary import grammar_vocabulary

        return grammar_vocabulary(self._tokenizer, self._config.vocab_size)

    def _begin(
        self,
        native: _core.NativeModel,
        options: SamplingOptions,
        prepared: Prepared,
        shares_with: _core.Generation | None = None,
        *,
        priority: int = 0,
        constraint: _core.Constraint | None = None,
    ) -> ReplyDecoder:
        """Have the engine begin a text; whoever drives the decoder takes what comes.

        `constraint`: what `_constraint_of` has returned, for who made it somewhere else.
        """
        return begin_text(
            native,
            self._tokenizer,
            prepared,
            options,
            priority=priority_of(priority),
            constraint=constraint or self._constraint_of(options, prepared),
            structure=options.structure if isinstance(options, TextOptions) else None,
            shares_with=shares_with,
        )

    def _constraint_of(
        self, options: SamplingOptions, prepared: Prepared
    ) -> _core.Constraint | None:
        """Return what rules one text. It may take long, and any thread may do it."""
        structure = options.structure if isinstance(options, TextOptions) else None
        return self._constraint(ruled(structure, prepared))
