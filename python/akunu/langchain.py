"""Encoders for LangChain, which must be installed: `pip install langchain-core`.

>>> from akunu.langchain import AkunuEmbeddings  # doctest: +SKIP
>>> store = InMemoryVectorStore(AkunuEmbeddings("all-minilm.gguf"))  # doctest: +SKIP
"""

from __future__ import annotations

try:
    from langchain_core.embeddings import Embeddings
except ImportError as error:
    raise ImportError("akunu.langchain needs LangChain: pip install langchain-core") from error

from akunu.sentence_encoder import SentenceEncoder


class AkunuEmbeddings(SentenceEncoder, Embeddings):  # type: ignore[misc]  # LangChain may be absent
    """A SentenceEncoder that is one of LangChain's embeddings."""
