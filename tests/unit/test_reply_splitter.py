"""A reply is split into reasoning and text, the same for every way to cut it into pieces."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from akunu.text.deltas import Delta, ReasoningDelta, TextDelta, joined
from akunu.text.reply_splitter import ReplySplitter
from akunu.text.stop_strings import StopFinder
from akunu.thinking.markers import ThinkingMarkers, markers_of
from lines import each_line

THINK = markers_of(None)
HARMONY = markers_of("<|channel|>analysis")
COMMAND = markers_of("<|START_THINKING|> <|START_RESPONSE|>")


def split(pieces: list[str], thinking: ThinkingMarkers, in_reasoning: bool = False) -> list[Delta]:
    splitter = ReplySplitter(thinking, in_reasoning=in_reasoning)
    deltas = [delta for piece in pieces for delta in splitter.push(piece)]
    return joined(deltas + splitter.finish())


def parts(text: str, thinking: ThinkingMarkers, in_reasoning: bool = False) -> list[str]:
    """Return the parts of a text that comes character by character, thoughts in parentheses."""
    deltas = split(list(text), thinking, in_reasoning)
    return [f"({d.text})" if isinstance(d, ReasoningDelta) else d.text for d in deltas]


@each_line(
    ("text", "expected"),
    [
        ("Hello \n", ["Hello \n"]),
        ("\n <thi nk> ", ["\n <thi nk> "]),
        ("<think>\nHm. Well.\n</think>\n\nYes.", ["(Hm. Well.)", "Yes."]),
        ("<think>\n\n</think>\n\nYes.", ["Yes."]),
        ("<think>a < b</think>c", ["(a < b)", "c"]),
        ("<think>a</think>b<think>c</think>", ["(a)", "b<think>c</think>"]),
        ("<think>without end </thi", ["(without end </thi)"]),
        ("<think>", []),
        ("", []),
    ],
)
def test_thoughts_are_what_a_reply_begins_with(text: str, expected: list[str]) -> None:
    assert parts(text, THINK) == expected


def test_thoughts_that_the_prompt_opened_go_on_up_to_their_end() -> None:
    assert parts("\nHm.</think>Yes.", THINK, in_reasoning=True) == ["(Hm.)", "Yes."]
    assert parts("<think>Hm.</think>Yes.", THINK, in_reasoning=True) == ["(Hm.)", "Yes."]


def test_gpt_oss_thinks_speaks_and_thinks_again() -> None:
    text = (
        "<|channel|>analysis<|message|>One.<|end|>"
        "<|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>Two.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Done, <|end|> and more.<|return|>"
    )
    assert parts(text, HARMONY) == ["(One.)", "I look.", "(Two.)", "Done, <|end|> and more."]


def test_what_opens_and_ends_an_answer_is_no_part_of_it() -> None:
    text = "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>"
    assert parts(text, COMMAND) == ["(Hm.)", "Yes."]
    assert parts("<|START_RESPONSE|>Yes.<|END_RESPONSE|>\n", COMMAND) == ["Yes."]


SNIPPETS = st.lists(
    st.sampled_from(
        [
            *("<think>", "</think>", "<think", ">", " ", "\n", "a", "<", "<|end|>", "<|channel|>"),
            *("<|start|>assistant", "<|channel|>analysis<|message|>"),
            *("<|channel|>final<|message|>", "<|START_THINKING|>", "<|END_THINKING|>"),
            *("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
        ]
    ),
    max_size=8,
).map("".join)


@given(
    text=SNIPPETS,
    cuts=st.sets(st.integers(0, 100)),
    thinking=st.sampled_from([THINK, HARMONY, COMMAND]),
    in_reasoning=st.booleans(),
)
def test_cuts_change_nothing(
    text: str, cuts: set[int], thinking: ThinkingMarkers, in_reasoning: bool
) -> None:
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    pieces = [text[a:b] for a, b in pairwise(places)]
    assert split(pieces, thinking, in_reasoning) == split([text], thinking, in_reasoning)


@given(text=st.text())
def test_a_text_without_markers_stays_as_it_is(text: str) -> None:
    assert split(list(text), THINK) == ([TextDelta(text)] if text else [])


def test_only_what_may_become_a_marker_is_held_back() -> None:
    splitter = ReplySplitter(THINK)
    assert splitter.push(" <th") == []
    assert splitter.push("at") == [TextDelta(" <that")]
    assert splitter.push(" <") == [TextDelta(" <")]  # too late for thoughts


def cut_parts(text: str, stops: list[str], size: int, in_reasoning: bool = False) -> list[str]:
    """The parts of a text in pieces of this size, thoughts in parentheses, up to a stop string."""
    splitter = ReplySplitter(THINK, in_reasoning=in_reasoning)
    splitter.end_answers_at(StopFinder(stops))
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    deltas = [delta for piece in pieces for delta in splitter.push(piece)]
    deltas = joined(deltas + splitter.finish())
    return [f"({d.text})" if isinstance(d, ReasoningDelta) else d.text for d in deltas]


@each_line("size", [1, 2, 3, 7, 100])
@each_line(
    "text, stops, expected",
    [
        (
            "<think>Sea animals.</think>Fish and animals.",
            ["animals"],
            ["(Sea animals.)", "Fish and "],
        ),
        ("<think>Hm.</think>\n\nYes.\nNo.", ["\n"], ["(Hm.)", "Yes."]),
        ("<think>Hm.</think>Yes.", ["</think>", "think"], ["(Hm.)", "Yes."]),
        ("<think>Hm, an</think>imals", ["animals"], ["(Hm, an)", "imals"]),
        ("<think>Hm.</think>Anim", ["animal", "Animal"], ["(Hm.)", "Anim"]),
        ("Yes, animals", ["animals"], ["Yes, "]),
        ("\n\nYes", ["\n\n"], []),
        ("  anim", ["animals"], ["  anim"]),
        ("<think>animals", ["animals"], ["(animals)"]),
    ],
)
def test_stop_strings_are_looked_for_in_the_answer_alone(
    text: str, stops: list[str], expected: list[str], size: int
) -> None:
    assert cut_parts(text, stops, size) == expected
    if text.startswith("<think>"):
        opened = text.removeprefix("<think>")
        assert cut_parts(opened, stops, size, in_reasoning=True) == expected
