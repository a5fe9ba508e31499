"""Which texts a model's thoughts stand between, told from its chat template."""

from __future__ import annotations

from template_support import TEMPLATES, template_source, with_others

from akunu.thinking.markers import FAMILIES, ThinkingMarkers, markers_of
from lines import each_line

EXPECTED = {
    "openai-gpt-oss-120b": ("<|channel|>analysis<|message|>", "<|end|>"),
}


@each_line("name", with_others(*TEMPLATES))
def test_templates_of_well_known_models_have_the_markers_of_their_family(name: str) -> None:
    markers = markers_of(template_source(name))
    assert (markers.opening, markers.closing) == EXPECTED.get(name, ("<think>", "</think>"))


def test_a_family_is_recognised_by_its_own_signs() -> None:
    for family in FAMILIES:
        assert markers_of(" ".join(family.signs)) == family.markers


@each_line(
    ("prompt", "is_open"),
    [
        ("assistant\n<think>\n", True),
        ("assistant\n<think>", True),
        ("assistant\n<think>\n\n</think>\n\n", False),
        ("say <think>\nassistant\n", False),
        ("", False),
    ],
)
def test_a_prompt_is_open_where_it_ends_with_the_opening(prompt: str, is_open: bool) -> None:
    assert ThinkingMarkers("<think>", "</think>").is_open(prompt) is is_open
