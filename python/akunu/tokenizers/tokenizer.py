"""Text to token ids and back, exactly as the model was trained, from a file's own vocabulary.

>>> import akunu
>>> tokenizer = akunu.Tokenizer.from_gguf("ember")  # or a file's path
>>> tokenizer.decode(tokenizer.encode("Hello", add_special=False))
'Hello'

Text that contains the name of a control token, such as `<|im_end|>`, is text unless
`parse_special=True` asks otherwise. A tokenizer is immutable: threads may share it, and a copy is
the tokenizer itself. It can be pickled.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from akunu import _core
from akunu.common.checks import flag
from akunu.common.json_files import read_config
from akunu.common.metadata import Metadata
from akunu.errors import ArgumentError, ModelFormatError, UnsupportedModelError
from akunu.tokenizers import text_models
from akunu.tokenizers.arguments import checked_text, ordered
from akunu.tokenizers.directory_vocabulary import read_directory_vocabulary, said_of_directory
from akunu.tokenizers.spelling import TokenSpelling, TokenStream
from akunu.tokenizers.text_models import Encode
from akunu.tokenizers.token_bound import TokenBound
from akunu.tokenizers.token_matcher import TokenMatcher, spaces_begin, spaces_end
from akunu.tokenizers.vocabulary import (
    CHAT_TEMPLATE,
    CONTROL,
    UNKNOWN,
    USER_DEFINED,
    Vocabulary,
    read_vocabulary,
)

# Memory of the library's tables for a token or a merge. The library does not report it: 34 MiB
# were measured for 151,936 tokens and 151,399 merges.
_LIBRARY_BYTES = 120


class Tokenizer:
    """The tokenizer of one model; make it with `from_gguf` or `from_metadata`.

    Attributes of interest: `vocab_size`, `bos_id`, `eos_id`, `eot_id`, `pad_id`, `unk_id` (None
    where the model has none), `stop_ids`, `control_ids`, `add_bos`, `add_eos`, `chat_template`.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Make the tokenizer of a vocabulary; its encoder is built for the first text."""
        text_models.check(vocabulary)
        self._vocabulary = vocabulary
        # Encoders of ordinary text, without and with the control tokens found in normalised text.
        self._encoders: list[Encode | None] = [None, None]
        self._library_bytes = 0
        self._packed_merges = b""  # once the library has its own copy
        self._skipped: dict[tuple[str, ...], frozenset[int]] = {}  # by what is kept
        self._spelling = TokenSpelling(replace(vocabulary, merges=[]))  # which it does not need

    @classmethod
    def from_gguf(cls, path_or_name: str | os.PathLike[str]) -> Tokenizer:
        """Read the tokenizer of a GGUF file, with or without weights in it.

        `path_or_name`: what `akunu.load` takes, "ember" for example. Raises ArgumentError where
        there is no such file, or it cannot be opened; ModelFormatError where it contradicts itself,
        and UnsupportedModelError for a tokenizer that akunu does not have.
        """
        # Names of models are the business of a layer above; a path alone needs none of it.
        from akunu.loading import find_model

        return cls._of_file(_core.GgufFile(os.fspath(find_model(path_or_name))))

    @classmethod
    def from_directory(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Read the tokenizer of a Hugging Face or MLX directory: its `tokenizer.json`.

        A directory with a SentencePiece `tokenizer.model` only will do too. Raises ArgumentError
        where a file cannot be opened, ModelFormatError where files are missing or contradict
        themselves, and UnsupportedModelError for a kind of tokenizer that akunu does not have.

        >>> akunu.Tokenizer.from_directory("SmolLM2-135M-Instruct")  # doctest: +SKIP
        <akunu.Tokenizer gpt2, 49152 tokens>
        """
        directory = Path(path)
        return cls._of_directory(directory, read_config(directory))

    @classmethod
    def _of_directory(cls, directory: Path, config: Mapping[str, Any]) -> Tokenizer:
        """Read the tokenizer of a directory, whose path is in every error."""
        try:
            return cls(read_directory_vocabulary(directory, config))
        except (ModelFormatError, UnsupportedModelError) as error:
            raise type(error)(f"{directory}: {said_of_directory(str(error))}") from None

    @classmethod
    def _of_file(cls, file: _core.GgufFile) -> Tokenizer:
        """Read the tokenizer of an open file, whose path is in every error."""
        try:
            return cls.from_metadata(file)
        except (ModelFormatError, UnsupportedModelError) as error:
            raise type(error)(f"{file.path}: {error}") from None

    def _with_chat_template(self, source: str) -> Tokenizer:
        """Return a tokenizer of the same tokens with another chat template."""
        kept = [note for note in self.notes if CHAT_TEMPLATE not in note]
        return type(self)(
            replace(
                self._vocabulary, chat_template=source, chat_template_fault="", notes=tuple(kept)
            )
        )

    @classmethod
    def from_metadata(cls, metadata: Metadata) -> Tokenizer:
        """Build a tokenizer from the keys `tokenizer.*` of a GGUF file.

        `metadata` needs `key in metadata` and `metadata[key]` only; arrays of numbers may be NumPy
        arrays. Raises ModelFormatError or UnsupportedModelError like `from_gguf`.
        """
        kind = type(metadata)
        if isinstance(metadata, (str, bytes, bytearray, Sequence)) or not (
            hasattr(kind, "__contains__") and hasattr(kind, "__getitem__")
        ):
            raise ArgumentError(
                f"metadata must be a mapping of keys to values, got {kind.__name__}"
            )
        return cls(read_vocabulary(metadata))

    @property
    def vocab_size(self) -> int:
        """Number of tokens; ids go from 0 to one less. The model's logits may have more rows."""
        return len(self._vocabulary.tokens)

    @property
    def memory_bytes(self) -> int:
        """About how many bytes it takes; more once it was passed text and has built what merges."""
        vocabulary = self._vocabulary
        lists: list[list[str]] = [
            vocabulary.tokens,
            vocabulary.merges,
        ]
        return (
            sum(sum(map(sys.getsizeof, texts)) + sys.getsizeof(texts) for texts in lists)
            + sys.getsizeof(vocabulary.ids)
            + sum(map(sys.getsizeof, vocabulary.ids.values()))
            + self._spelling.memory_bytes
            + vocabulary.types.nbytes
            + (0 if vocabulary.scores is None else vocabulary.scores.nbytes)
            + self._library_bytes
            + len(self._packed_merges)
        )

    @property
    def bos_id(self) -> int | None:
        """The token that opens a text."""
        return self._vocabulary.bos_id

    @property
    def eos_id(self) -> int | None:
        """The token that ends a text."""
        return self._vocabulary.eos_id

    @property
    def eot_id(self) -> int | None:
        """The token that ends a turn of a conversation."""
        return self._vocabulary.eot_id

    @property
    def pad_id(self) -> int | None:
        """The token that fills up batches."""
        return self._vocabulary.pad_id

    @property
    def unk_id(self) -> int | None:
        """The token for text without another one."""
        return self._vocabulary.unk_id

    @property
    def stop_ids(self) -> frozenset[int]:
        """Every token after which a generation is over: ends of text, of turn, of message."""
        return self._vocabulary.stop_ids

    @property
    def add_bos(self) -> bool:
        """Whether `encode(..., add_special=True)` begins with BOS (for bert: with [CLS])."""
        return self._vocabulary.add_bos

    @property
    def add_eos(self) -> bool:
        """Whether `encode(..., add_special=True)` ends with EOS."""
        return self._vocabulary.add_eos

    @property
    def chat_template(self) -> str | None:
        """The Jinja source of the model's chat template, None where it has none that is usable."""
        return self._vocabulary.chat_template

    @property
    def chat_template_fault(self) -> str:
        """Why the file's chat template cannot be used, "" where nothing is wrong with it."""
        return self._vocabulary.chat_template_fault

    @property
    def notes(self) -> tuple[str, ...]:
        """What the file says about its tokens and was ignored, a line each.

        An example: "tokenizer.ggml.padding_token_id is -1, but tokenizer.ggml.tokens has ids 0 to
        32000: ignored".
        """
        return self._vocabulary.notes

    @property
    def _is_built(self) -> bool:
        """Whether what merges is built; the first text waits for it, up to a second."""
        return self._encoders[0] is not None

    @cached_property
    def control_ids(self) -> frozenset[int]:
        """The tokens that a user's text never becomes: turn markers, BOS, EOS and their like."""
        types = self._vocabulary.types
        return frozenset(np.flatnonzero((types == CONTROL) | (types == UNKNOWN)).tolist())

    def control_tokens(self) -> dict[str, int]:
        """Return the control tokens by name, without those whose name is not text."""
        tokens = {self._vocabulary.tokens[index]: index for index in self.control_ids}
        tokens.pop("", None)
        return tokens

    def __repr__(self) -> str:
        """Name the kind and the size."""
        return f"<akunu.Tokenizer {self._vocabulary.model}, {self.vocab_size} tokens>"

    def __copy__(self) -> Tokenizer:
        """Return the tokenizer itself: it does not change."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tokenizer:
        """Return the tokenizer itself: it does not change."""
        return self

    def __reduce__(self) -> tuple[type[Tokenizer], tuple[Vocabulary]]:
        """Pickle what it was made of; what merges text is built anew for the first text."""
        return type(self), (replace(self._vocabulary, merges=self.merges()),)

    @property
    def vocabulary(self) -> Vocabulary:
        """All that the file says about tokens, but for the merges."""
        return self._vocabulary

    def merges(self) -> list[str]:
        """Return the merges of byte-pair encoding, "left right" each, the best first."""
        vocabulary = self._vocabulary
        if self._packed_merges and not vocabulary.merges:
            merges: list[str] = marshal.loads(self._packed_merges)
            return merges
        return vocabulary.merges

    def encode(self, text: str, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """Return the ids of `text`.

        `add_special` adds what the model expects around a prompt (BOS, rarely EOS; [CLS] and [SEP]
        for bert). `parse_special` makes control tokens out of their names in the text; leave it off
        for text that you did not write. Where such a text begins with BOS, or ends with EOS, no
        second one is added. Raises ArgumentError for text with lone surrogates or, in the rare
        vocabulary without all bytes, with characters that it cannot spell.
        """
        flag("add_special", add_special)
        flag("parse_special", parse_special)
        pieces = self._split(checked_text(text), parse_special)
        ids = self._encode_parts(pieces, True, parse_special)[0]
        vocabulary = self._vocabulary
        is_bert = vocabulary.model == "bert"
        first = vocabulary.bos_id if add_special and vocabulary.add_bos else None
        last = vocabulary.eos_id if add_special and vocabulary.add_eos else None
        if is_bert and add_special:
            first, last = vocabulary.bos_id, vocabulary.sep_id
        # What the text itself begins and ends with, if that is its own token.
        finds_later = parse_special and self._has_normalized_control
        begins, ends = (ids[:1], ids[-1:]) if finds_later else (pieces[:1], pieces[-1:])
        if first is not None and begins != [first]:
            ids.insert(0, first)
        if last is not None and ends != [last]:
            ids.append(last)
        return ids

    def encode_pair(
        self, first: str, second: str, *, most_of_second: int | None = None
    ) -> EncodedPair:
        """Return two texts as the model reads them together.

        `most_of_second`: this many tokens of the second text at most, its first ones. Raises
        UnsupportedModelError where the file does not say how texts are joined.

        >>> tokenizer.encode_pair("a cat", "dogs")  # doctest: +SKIP
        EncodedPair(ids=[101, 1037, 4937, 102, 6077, 102], second_begins=4)
        """
        between = self._vocabulary.pair_between
        if not between:
            raise UnsupportedModelError("the model's tokenizer has no rule for joining two texts")
        tail = self.encode(second, add_special=False)[:most_of_second]
        whole = self.encode("")  # what stands around a text
        is_opened = bool(whole) and whole[0] != between[0]
        before, behind = (whole[:1], whole[1:]) if is_opened else ([], whole)
        ids = [*before, *self.encode(first, add_special=False), *between]
        begins = len(ids) if self._vocabulary.pair_has_types else None
        return EncodedPair([*ids, *tail, *behind], begins)

    def encode_pieces(self, pieces: Iterable[str | int]) -> list[int]:
        """Return the ids of a prompt given as pieces: a str is text, an int is a token itself.

        Nothing is added, and no text becomes a control token. White space that belongs to a token
        next to it is left out.
        """
        ids: list[int] = []
        opens = True  # at the start and after a special token
        for piece in self.without_taken_spaces(pieces):
            if not isinstance(piece, str):
                ids.append(piece)
                opens = self._spelling.opens_anew
                continue
            more, opens = self._encode_parts(self._split(piece, parse_special=False), opens)
            ids += more
        return ids

    def without_taken_spaces(self, pieces: Iterable[str | int]) -> list[str | int]:
        """Return pieces (see `encode_pieces`) without the white space that a token next to it
        takes.

        Tokens of some models take it; those of Phi-3 take the white space after them. Other tokens
        in that space stay, as in the `tokenizers` library.
        """
        if type(pieces) is not list:
            pieces = ordered("pieces", pieces, "a sequence of str and int")
        given: list[str | int] = []
        for piece in pieces:
            if isinstance(piece, str):
                given.append(piece if piece.isascii() else checked_text(piece))
            else:
                given.append(self._spelling.checked_id(piece))
        added = self._vocabulary.added
        if not any(each.lstrip or each.rstrip for each in added.values()):
            return given
        given = [piece for piece in given if piece != ""]
        kept: list[str | int] = []
        is_taken = False  # whether white space here belongs to the token before
        for at, piece in enumerate(given):
            if not isinstance(piece, str):
                is_taken = piece in added and added[piece].rstrip
                kept.append(piece)
                continue
            behind = given[at + 1] if at + 1 < len(given) else None
            if is_taken:
                end = spaces_end(piece, 0)
                first = self._split(piece, parse_special=False)[0]
                piece = piece[min(end, len(first)) if isinstance(first, str) else 0 :]
                is_taken = not piece
            if piece and isinstance(behind, int) and behind in added and added[behind].lstrip:
                last = self._split(piece, parse_special=False)[-1]
                least = len(piece) - len(last) if isinstance(last, str) else len(piece)
                piece = piece[: spaces_begin(piece, len(piece), least)]
            if piece:
                kept.append(piece)
        return kept

    def _encode_parts(
        self, parts: Iterable[str | int], opens: bool, parse_special: bool = False
    ) -> tuple[list[int], bool]:
        """Return ids of text and tokens, and whether text after them opens anew."""
        ids: list[int] = []
        for part in parts:
            if isinstance(part, int):
                ids.append(part)
                opens = self._spelling.opens_anew
            else:
                ids += self._encode_text(part, opens, parse_special)
                opens = False
        return ids, opens

    def fewest_tokens(self, pieces: Iterable[str | int]) -> int:
        """Return how many tokens pieces (see `encode_pieces`) have at least, in little time.

        Where a token may stand for any number of letters, only the tokens among the pieces count.
        """
        pieces = list(ordered("pieces", pieces, "a sequence of str and int"))
        texts = [checked_text(piece) for piece in pieces if isinstance(piece, str)]
        return len(pieces) - len(texts) + sum(map(self._bound.fewest_tokens, texts))

    @cached_property
    def _bound(self) -> TokenBound:
        return TokenBound(self._vocabulary)

    def decode(self, ids: Sequence[SupportsIndex], skip_special: bool = False) -> str:
        """Return the text of `ids`; bytes that are not UTF-8 become U+FFFD.

        `skip_special` leaves control tokens out. For byte-level BPE `decode(encode(text,
        add_special=False)) == text` always, but for white space that belongs to a token next to it;
        for SentencePiece unless the text contains U+2581; WordPiece keeps neither case nor spacing.
        Raises ArgumentError for an id out of range.
        """
        stream = self.stream(skip_special=skip_special)
        return "".join([stream.push(token) for token in _ids(ids)]) + stream.finish()

    def decode_bytes(self, ids: Sequence[SupportsIndex], skip_special: bool = False) -> bytes:
        """Return the bytes of the text of `ids`, also where they are not UTF-8."""
        stream = self.stream(skip_special=skip_special)
        return b"".join([stream.push_bytes(token) for token in _ids(ids)])

    def token_bytes(self, token: SupportsIndex) -> bytes:
        """Return the bytes that one token adds to a text (a control token: its name)."""
        return self._spelling.token_bytes(token)

    def token_text(self, token: SupportsIndex) -> str:
        """Return the token as the vocabulary spells it, for example `Ġhello` or `<0x0A>`.

        Bytes of it that are not UTF-8 are written `\\xff`.
        """
        index = self._spelling.checked_id(token)
        raw = self._vocabulary.raw.get(index)
        return (
            self._vocabulary.tokens[index] if raw is None else raw.decode(errors="backslashreplace")
        )

    def token_id(self, text: str) -> int | None:
        """Return the id of the token that the vocabulary spells `text`, None if there is none."""
        return self._vocabulary.ids.get(checked_text(text))

    def stream(
        self,
        *,
        skip_special: bool = False,
        keep: Sequence[str] = (),
        prompt: Sequence[SupportsIndex] = (),
    ) -> TokenStream:
        """Return a detokenizer for ids that arrive one by one.

        `keep`: texts; a control token that is one of them, or a part of one, is not skipped.

        `prompt`: the ids before the first one pushed, where the text continues from them; it
        decides whether a leading space belongs to the text.
        """
        skipped: Set[int] = self.control_ids if skip_special else frozenset()
        if skipped and keep:
            skipped = self._skipped_beside(tuple(keep))
        return TokenStream(self._spelling, skipped=skipped, prompt=prompt)

    def _skipped_beside(self, keep: tuple[str, ...]) -> frozenset[int]:
        """Return the control tokens that are not part of these texts."""
        found = self._skipped.get(keep)
        if found is None:
            names = self.control_tokens()
            kept = {i for name, i in names.items() if any(name in text for text in keep)}
            found = self.control_ids - kept
            # Requests with other tools have other texts: what is remembered stays small.
            self._skipped = {**dict(list(self._skipped.items())[-7:]), keep: found}
        return found

    def _encode_text(self, text: str, opens: bool, parse_special: bool) -> list[int]:
        # Read before the encoder is looked at: another thread that builds it lets go of the merges
        # afterwards. Where both build, they build the same.
        vocabulary = self._vocabulary
        which = int(parse_special and self._has_normalized_control)
        encode = self._encoders[which]
        if encode is None:
            if not vocabulary.merges:
                vocabulary = replace(vocabulary, merges=self.merges())
            encode = text_models.build(vocabulary, with_control=which == 1)
            self._encoders[which] = encode
            self._library_bytes += _LIBRARY_BYTES * (len(vocabulary.ids) + len(vocabulary.merges))
            # The library has its own copy of the merges by now. A list of them would be most of the
            # memory; pickling needs the merges, so they are kept in a form a fifth as large.
            self._packed_merges = marshal.dumps(vocabulary.merges)
            self._vocabulary = replace(vocabulary, merges=[])
        return encode(text, opens)

    @property
    def opens_with_space(self) -> bool:
        """Whether a word's bytes begin with a space, which the first of a text is shown without.

        So it is where tokens are words (WordLevel, WordPiece).
        """
        return self._spelling.opens_with_space

    def _split(self, text: str, parse_special: bool) -> list[str | int]:
        if not text:
            return []
        matcher = self._all_tokens if parse_special else self._user_defined_tokens
        return matcher.split(text) if matcher else [text]

    @cached_property
    def _user_defined_tokens(self) -> TokenMatcher | None:
        return self._matcher(self._user_defined_ids)

    @cached_property
    def _all_tokens(self) -> TokenMatcher | None:
        return self._matcher(self._user_defined_ids | self.control_ids)

    @cached_property
    def _user_defined_ids(self) -> frozenset[int]:
        defined = np.flatnonzero(self._vocabulary.types == USER_DEFINED).tolist()
        return frozenset(defined).union(self._vocabulary.added) - self.control_ids

    @cached_property
    def _has_normalized_control(self) -> bool:
        added = self._vocabulary.added
        return any(index in self.control_ids and added[index].normalized for index in added)

    def _matcher(self, ids: Set[int]) -> TokenMatcher | None:
        """Return what finds tokens in text as it is; the others are found by what merges."""
        added = self._vocabulary.added
        tokens = {
            self._vocabulary.tokens[index]: index
            for index in sorted(ids)
            if index not in added or not added[index].normalized
        }
        tokens.pop("", None)
        return TokenMatcher(tokens, added) if tokens else None


@dataclass(frozen=True, slots=True)
class EncodedPair:
    """Two texts, joined."""

    ids: list[int]
    second_begins: int | None
    """The first token of the second text, from which on BERT's tokens are of type 1.

    None for models that do not tell texts apart so.
    """


def _ids(ids: Iterable[SupportsIndex]) -> Iterable[SupportsIndex]:
    return ordered("ids", ids, "a sequence of token ids (int)")
