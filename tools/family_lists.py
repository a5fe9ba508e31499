"""Writes the lists of families in two pages of docs/: python -m tools.family_lists

The families are those that the package was built with (src/models); what stands between the two
comments of a list is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from akunu import _core

ROOT: Final = Path(__file__).parents[1]

# Kinds in the order of the table in docs/models.md, with their names and a remark on all of a kind.
_KINDS: Final = (
    ("dense", "dense", ""),
    ("with_experts", "with experts", ""),
    (
        "recurrent",
        "with recurrent layers",
        "; [prediction heads](python.md#draft-tokens) of Qwen3.5 and Qwen3-Next propose tokens",
    ),
    (
        "encoder",
        "encoders",
        ": they [embed](embeddings-speech-images.md) and "
        "[rank](embeddings-speech-images.md#reranking) texts",
    ),
    (
        "images",
        "images",
        ", from directories, most of them from GGUF with `mmproj` too "
        "([images](embeddings-speech-images.md#images)); "
        "the text part of other models that read images",
    ),
    (
        "speech",
        "speech",
        ", from directories, GGUF and whisper.cpp's files "
        "([speech](embeddings-speech-images.md#speech))",
    ),
)


def kind_of(family: dict[str, Any]) -> str:
    """The first kind of a family's models, in the order of docs/models.md."""
    return next(kind for kind, *_ in _KINDS if kind in family["titles"])


def architectures() -> list[str]:
    """All of them, by kind, and sorted within."""
    kinds = [kind for kind, *_ in _KINDS]
    found = sorted(_core.families(), key=lambda each: kinds.index(kind_of(each)))
    return [family["architecture"] for family in found]


def titles_table() -> str:
    """What people call the models, a line for each kind."""
    lines = ["| kind | families |", "|---|---|"]
    for kind, name, of_all in _KINDS:
        titles = [each["titles"][kind] for each in _core.families() if kind in each["titles"]]
        lines.append(f"| {name} | {', '.join(titles)}{of_all} |")
    return "\n".join(lines)


def model_types_table() -> str:
    """The values of `model_type`, a line for each architecture."""
    lines = [
        "| models | `general.architecture` | `model_type` | the text of models that read images |",
        "|---|---|---|---|",
    ]
    for family in _core.families():
        titles = ", ".join(dict.fromkeys(family["titles"].values()))
        types, images = (
            ", ".join(f"`{name}`" for name in family[key]) for key in ("model_types", "with_images")
        )
        lines.append(f"| {titles} | `{family['architecture']}` | {types} | {images} |")
    return "\n".join(lines)


LISTS: Final[dict[str, Callable[[], str]]] = {
    "docs/models.md": titles_table,
    "docs/reference/model-files.md": model_types_table,
}


def with_list(text: str, table: str) -> str:
    """A page with its list as `table`."""
    begin, end = "<!-- written by tools/family_lists.py -->\n", "<!-- end of the list -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{table}\n\n{end}{after}"


def main() -> None:
    """Write the pages."""
    for name, table in LISTS.items():
        page = ROOT / name
        page.write_text(with_list(page.read_text(encoding="utf-8"), table()), encoding="utf-8")


if __name__ == "__main__":
    main()
