"""Lists of families in pages are those of the package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from akunu import _core

sys.path.insert(0, str(Path(__file__).parents[2]))
from tools.family_lists import LISTS, ROOT, with_list


@pytest.mark.parametrize("page", LISTS)
def test_a_page_lists_the_families_of_the_package(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text == with_list(text, LISTS[page]()), "run: python -m tools.family_lists"


def test_the_readme_counts_the_families() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"[{len(_core.families())} model families]" in text


def test_families_have_names_of_their_own() -> None:
    families = _core.families()
    architectures = [family["architecture"] for family in families]
    assert len(architectures) == len(set(architectures))
    types = [name for family in families for name in family["model_types"]]
    assert len(types) == len(set(types))
    for family in families:
        assert family["titles"], family["architecture"]


def test_a_familys_file_is_called_as_its_architecture() -> None:
    files = {path.stem for path in (ROOT / "src" / "models").glob("*.cpp")}
    assert files == {each["architecture"].replace("-", "_") for each in _core.families()}


def test_a_name_of_a_pre_tokenizer_is_there_once() -> None:
    names = [name for each in _core.pre_tokenizers() for name in each["names"]]
    assert len(names) == len(set(names))
