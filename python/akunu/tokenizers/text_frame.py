"""What a tokenizer.json puts around a text, and between two that are read together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from akunu.errors import ModelFormatError, UnsupportedModelError


@dataclass(frozen=True, slots=True)
class TextFrame:
    """Token ids: at most one before a text and one after it."""

    before: int | None = None
    behind: int | None = None
    between: tuple[int, ...] = ()  # (): the file does not say
    pair_has_types: bool = False


def frame_of(processor: Mapping[str, Any]) -> TextFrame | None:
    """Return what one step of the post-processor adds; None for a step of another kind.

    Raises UnsupportedModelError for more tokens around a text than akunu has, and ModelFormatError
    for a template that contradicts itself.
    """
    kind = processor.get("type")
    if kind in ("BertProcessing", "RobertaProcessing"):
        opens, ends = (_id_of(processor.get(key)) for key in ("cls", "sep"))
        is_bert = kind == "BertProcessing"
        return TextFrame(opens, ends, (ends,) if is_bert else (ends, ends), is_bert)
    if kind != "TemplateProcessing":
        return None
    known = processor.get("special_tokens")
    given = processor.get("single") or []
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise ModelFormatError("tokenizer.json: post_processor.single is not a list of objects")
    single = _pieces(given, known)
    at = [index for index, (name, _, _) in enumerate(single) if name is not None]
    if len(at) != 1 or at[0] > 1 or len(single) - at[0] > 2:
        raise UnsupportedModelError(
            f"tokenizer.json: post_processor puts {len(single) - 1} tokens around a text; "
            "akunu supports one before and one after it"
        )
    before = [index for _, index, _ in single[: at[0]]]
    behind = [index for _, index, _ in single[at[0] + 1 :]]
    between, has_types = _between(_pieces(processor.get("pair"), known), before, behind)
    return TextFrame(
        before[0] if before else None, behind[0] if behind else None, between, has_types
    )


def _between(
    pair: list[tuple[str | None, int, int]], before: list[int], behind: list[int]
) -> tuple[tuple[int, ...], bool]:
    """Return what stands between two texts, where around them is what is around one."""
    at = [index for index, (name, _, _) in enumerate(pair) if name is not None]
    if len(at) != 2 or [pair[index][0] for index in at] != ["A", "B"]:
        return (), False
    first, second = at
    around = [index for _, index, _ in (*pair[:first], *pair[second + 1 :])]
    if around != [*before, *behind]:
        return (), False
    between = tuple(index for _, index, _ in pair[first + 1 : second])
    return between, pair[second][2] != pair[first][2]


def _pieces(template: object, known: object) -> list[tuple[str | None, int, int]]:
    """Return each piece's text ("A", "B"; None: it is a token), token and type."""
    pieces: list[tuple[str | None, int, int]] = []
    for piece in template if isinstance(template, list) else []:
        inner = next(iter(piece.values())) if isinstance(piece, dict) and piece else None
        if not isinstance(inner, dict):
            raise ModelFormatError(f"tokenizer.json: post_processor has the piece {piece!r}")
        kind = inner.get("type_id", 0)
        if "Sequence" in piece:
            pieces.append((str(inner.get("id")), -1, kind))
            continue
        token = known.get(inner.get("id")) if isinstance(known, dict) else None
        for index in token.get("ids", []) if isinstance(token, dict) else [None]:
            if not isinstance(index, int):
                raise ModelFormatError(
                    f"tokenizer.json: post_processor has no id for {inner.get('id')!r}"
                )
            pieces.append((None, index, kind))
    return pieces


def _id_of(token: object) -> int:
    if isinstance(token, list) and len(token) == 2 and isinstance(token[1], int):
        return token[1]
    raise ModelFormatError(f"tokenizer.json: post_processor has {token!r} for a token and its id")
