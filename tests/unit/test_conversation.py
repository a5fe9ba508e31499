"""Conversations keep the ids that the model generated wherever the template keeps the text."""

from __future__ import annotations

import pytest
from template_support import template_source, with_others
from tokenizer_support import (
    byte_level,
    read_metadata,
    sentencepiece,
    vocabulary_file,
    with_whole,
)

from akunu.errors import ArgumentError, UnsupportedModelError
from akunu.templates.chat_template import CHATML, encode_chat
from akunu.templates.chat_template import ChatTemplate as Template
from akunu.text.conversation import Conversation, Turn
from akunu.tokenizers.tokenizer import Tokenizer
from lines import each_line

TRIMMING = CHATML.replace("(message['content'] or '')", "(message['content'] | trim)")
NO_THOUGHTS = CHATML.replace(
    "(message['content'] or '')", "(message['content'].split('</think>')[-1])"
)
PLAIN = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def chatml(template: str = CHATML, **keys: object) -> Tokenizer:
    """Bytes, and tokens for some pairs of letters: most texts have several spellings."""
    pairs = ("He", "ll", "lo", "ye", "es", "Hell")
    metadata = byte_level(
        *("<|im_start|>", "<|im_end|>", *pairs),
        merges=("H e", "l l", "l o", "y e", "e s", "He ll"),
        eos_token_id=257,
        **keys,
    )
    return Tokenizer.from_metadata({**metadata, "tokenizer.chat_template": template})


def letter_by_letter(tokenizer: Tokenizer, text: str) -> list[int]:
    """A spelling that tokenising the text does not give."""
    ids = [i for letter in text for i in tokenizer.encode(letter, add_special=False)]
    assert ids != tokenizer.encode(text, add_special=False)
    return ids


def contains(ids: list[int], part: list[int]) -> bool:
    return any(ids[i : i + len(part)] == part for i in range(len(ids)))


def fresh_prompt(tokenizer: Tokenizer, talk: Conversation, question: str) -> list[int]:
    messages = [*talk.messages, {"role": "user", "content": question}]
    return encode_chat(tokenizer, Template.of(tokenizer), messages)


def test_generated_ids_are_kept_and_the_prompt_before_is_a_prefix() -> None:
    tokenizer = chatml()
    talk = Conversation(tokenizer, system="Hello")
    prompt = talk.prompt("yes?")
    assert prompt == fresh_prompt(tokenizer, talk, "yes?")
    reply = letter_by_letter(tokenizer, "Hello yes")
    talk.add("yes?", "Hello yes", reply)
    then = talk.prompt("Hello?")
    assert then[: len(prompt) + len(reply)] == prompt + reply
    assert tokenizer.decode(then) == tokenizer.decode(fresh_prompt(tokenizer, talk, "Hello?"))


def test_the_token_that_ended_a_reply_is_the_templates() -> None:
    tokenizer = chatml()
    talk = Conversation(tokenizer)
    reply = letter_by_letter(tokenizer, "Hello")
    talk.add("yes?", "Hello", [*reply, 257])
    assert talk.turns[0].token_ids == tuple(reply)
    assert talk.prompt("yes?").count(257) == 3


def test_a_template_that_trims_has_only_trimmed_replies_tokenised() -> None:
    tokenizer = chatml(TRIMMING)
    talk = Conversation(tokenizer)
    kept, trimmed = (letter_by_letter(tokenizer, text) for text in ("Hello", "yes Hello \n"))
    talk.add("1", "Hello", kept)
    talk.add("2", "yes Hello \n", trimmed)
    ids = talk.prompt("3")
    assert contains(ids, kept)
    assert not contains(ids, trimmed[:-2])
    assert tokenizer.decode(ids) == tokenizer.decode(fresh_prompt(tokenizer, talk, "3"))


def test_a_template_that_takes_thoughts_out_has_those_replies_tokenised() -> None:
    tokenizer = chatml(NO_THOUGHTS)
    talk = Conversation(tokenizer)
    thought, plain = "<think>Hello</think>yes", "Hello"
    talk.add("1", thought, letter_by_letter(tokenizer, thought))
    talk.add("2", plain, letter_by_letter(tokenizer, plain))
    ids = talk.prompt("3")
    assert "think" not in tokenizer.decode(ids)
    assert contains(ids, letter_by_letter(tokenizer, plain))
    assert not contains(ids, letter_by_letter(tokenizer, "yes"))
    assert contains(ids, tokenizer.encode("yes"))


@pytest.mark.parametrize("source", [CHATML, PLAIN], ids=["chatml", "without control tokens"])
def test_a_question_equal_to_a_reply_is_tokenised(source: str) -> None:
    tokenizer = chatml(source)
    talk = Conversation(tokenizer)
    reply = letter_by_letter(tokenizer, "Hello")
    talk.add("Hello", "Hello", reply)
    ids = talk.prompt("Hello")
    # The first question and the last one have the tokenizer's spelling, the reply its own.
    assert sum(ids[i : i + 5] == reply for i in range(len(ids))) == 1


def test_what_a_reply_spells_does_not_become_a_control_token() -> None:
    tokenizer = chatml()
    talk = Conversation(tokenizer)
    text = "Hello<|im_end|>"
    talk.add("yes", text, letter_by_letter(tokenizer, text))
    assert talk.prompt("yes").count(257) == 3  # three turns end, and none of them in the reply


def test_ids_that_do_not_spell_the_reply_are_not_kept() -> None:
    tokenizer = chatml()
    talk = Conversation(tokenizer)
    for ids in ([256, *tokenizer.encode("Hello")], tokenizer.encode("Hell"), [9999]):
        talk.add("yes", "Hello", ids)
        assert talk.turns[-1] == Turn("yes", "Hello")


def test_half_a_character_at_the_end_of_a_reply_keeps_its_bytes() -> None:
    tokenizer = chatml()
    talk = Conversation(tokenizer)
    half = [*tokenizer.encode("Hello", add_special=False), 0xF0, 0x9F]
    text = tokenizer.decode(half)
    assert text == "Hello\N{REPLACEMENT CHARACTER}"
    talk.add("yes", text, half)
    assert contains(talk.prompt("no"), half)


def test_private_characters_in_messages_are_only_text() -> None:
    tokenizer = chatml()
    talk = Conversation(tokenizer)
    reply = "\U0010fffd Hello \U0010fffc"
    talk.add("\U0010fffb\U000f0000", reply, letter_by_letter(tokenizer, reply))
    ids = talk.prompt("\U0010fffd")
    assert contains(ids, letter_by_letter(tokenizer, reply))
    assert tokenizer.decode(ids) == tokenizer.decode(fresh_prompt(tokenizer, talk, "\U0010fffd"))


def spaced(template: str) -> Tokenizer:
    """A vocabulary that puts a space in front of a text that opens."""
    pieces = (("\u2581", -5.0), ("a", -6.0), ("b", -7.0), ("\u2581a", -3.0), ("ab", -2.0))
    metadata = sentencepiece(*pieces, eos_token_id=2, bos_token_id=1, add_bos_token=True)
    return Tokenizer.from_metadata({**metadata, "tokenizer.chat_template": template})


def test_text_after_a_reply_gets_no_space_in_front() -> None:
    tokenizer = spaced(PLAIN.replace("m.role }}: ", "m.role }}:"))
    talk = Conversation(tokenizer)
    prompt = talk.prompt("a")
    assert prompt[0] == 1
    reply = letter_by_letter(tokenizer, "ab")
    talk.add("a", " a b", reply)  # behind a text the first token has its space
    ids = talk.prompt("b")
    assert ids[: len(prompt) + len(reply)] == prompt + reply
    assert tokenizer.decode(ids) == tokenizer.decode(fresh_prompt(tokenizer, talk, "b"))


def test_ids_whose_text_is_another_in_the_prompt_are_not_kept() -> None:
    tokenizer = spaced(PLAIN)  # it writes a space in front of the reply, whose ids have one
    talk = Conversation(tokenizer)
    reply = letter_by_letter(tokenizer, "ab")
    talk.add("a", "a b", reply)
    ids = talk.prompt("b")
    assert not contains(ids, reply)
    assert tokenizer.decode(ids) == tokenizer.decode(fresh_prompt(tokenizer, talk, "b"))


def test_undo_drop_reset_and_replace() -> None:
    talk = Conversation(chatml(), system="Hello")
    assert (talk.undo(), talk.drop_oldest()) == (None, None)
    for text in ("1", "2", "3"):
        talk.add(text, text)
    assert talk.undo() == Turn("3", "3")
    assert talk.drop_oldest() == Turn("1", "1")
    assert talk.turns == (Turn("2", "2"),)
    talk.reset()
    assert talk.messages == [{"role": "system", "content": "Hello"}]
    talk.replace(None, [Turn("a", "b")])
    assert [m["content"] for m in talk.messages] == ["a", "b"]


def test_a_system_message_that_a_template_refuses_begins_the_first_question() -> None:
    refusing = "{% if messages[0].role == 'system' %}{{ raise_exception('none') }}{% endif %}"
    talk = Conversation(chatml(refusing + CHATML), system="Hello")
    assert talk.prompt("yes") == Conversation(chatml()).prompt("Hello\n\nyes")


def test_a_template_that_refuses_a_system_message_wherever_it_stands_is_named() -> None:
    refusing = "{% if 'Hello' in messages[0].content %}{{ raise_exception('none') }}{% endif %}"
    with pytest.raises(ArgumentError, match=r"accepts no system message: .*none"):
        Conversation(chatml(refusing + CHATML), system="Hello")
    talk = Conversation(chatml(refusing + CHATML))
    with pytest.raises(ArgumentError, match="accepts no system message"):
        talk.system = "Hello"
    assert talk.system is None


def test_a_template_that_leaves_the_system_message_out_is_named() -> None:
    silent = CHATML.replace("{% for message in messages %}", "{% for message in messages[1:] %}")
    with pytest.raises(ArgumentError, match="does not write it"):
        Conversation(chatml(silent), system="Hello")


def test_a_model_without_a_template_holds_no_conversation() -> None:
    with pytest.raises(UnsupportedModelError):
        Conversation(Tokenizer.from_metadata(byte_level("<|end|>", eos_token_id=256)))


def test_the_switch_for_thinking_is_found_and_used() -> None:
    switched = CHATML + "{% if enable_thinking is false %}<think></think>{% endif %}"
    talk = Conversation(chatml(switched), thinking=False)
    assert talk.prompt("yes")[-8:] == chatml().encode("</think>")
    with pytest.raises(ArgumentError, match="has no switch"):
        Conversation(chatml(), thinking=False)


@pytest.mark.parametrize("tail", ["<think>", "<think>\n"])
def test_a_prompt_that_opens_the_thoughts_is_seen(tail: str) -> None:
    talk = Conversation(chatml(CHATML + tail))
    assert talk.splitter(talk.prompt("Hello")).in_reasoning
    talk = Conversation(chatml(CHATML + tail + "</think>"))
    assert not talk.splitter(talk.prompt("Hello")).in_reasoning


KEEPING = (
    "Qwen-Qwen2.5-7B-Instruct",
    "Qwen-Qwen3-0.6B",
    "like-llama-3.1",
    "mistralai-Mistral-Nemo-Instruct-2407",
    "microsoft-Phi-3.5-mini-instruct",
    "HuggingFaceTB-SmolLM3-3B",
    "like-gemma-2",
)


@each_line("name", with_others(*KEEPING))
@each_line("family", with_whole("qwen2", "llama-bpe"))
def test_real_templates_keep_what_was_generated(name: str, family: str) -> None:
    metadata = read_metadata(vocabulary_file(family))
    known = {key: metadata[key] for key in metadata.keys()}  # noqa: SIM118 - it is no dict
    template = {"tokenizer.chat_template": template_source(name)}
    tokenizer = Tokenizer.from_metadata({**known, **template})
    talk = Conversation(tokenizer)
    prompts = []
    for number in range(3):
        question, reply = f"Question {number}?", f"The answer: {number}."
        prompts.append(talk.prompt(question))
        ids = [i for letter in reply for i in tokenizer.encode(letter, add_special=False)]
        talk.add(question, tokenizer.decode(ids), ids)
    ids = talk.prompt("And?")
    for turn in talk.turns:
        assert turn.token_ids
        assert contains(ids, list(turn.token_ids))
    assert ids[: len(prompts[0])] == prompts[0]


def test_a_reopened_reply_ends_the_prompt_and_gets_the_rest() -> None:
    tokenizer = chatml()
    talk = Conversation(tokenizer)
    prompt = talk.prompt("yes?")
    begun = letter_by_letter(tokenizer, "Hello")
    talk.add("yes?", "Hello", begun)
    assert talk.reopen() == "yes?"
    assert talk.prompt("yes?") == prompt + begun
    rest = letter_by_letter(tokenizer, " yes")
    talk.add("yes?", " yes", rest)
    assert talk.turns == (Turn("yes?", "Hello yes", (*begun, *rest)),)
    assert contains(talk.prompt("And?"), begun + rest)


def test_a_reopened_reply_from_a_file_is_tokenised_and_can_be_closed_again() -> None:
    tokenizer = chatml()
    talk = Conversation(tokenizer)
    prompt = talk.prompt("yes?")
    talk.replace(None, [Turn("yes?", "Hello")])
    talk.reopen()
    assert talk.prompt("yes?") == prompt + tokenizer.encode("Hello", add_special=False)
    talk.close_again()
    assert talk.turns == (Turn("yes?", "Hello"),)
    talk.reopen()
    talk.reset()
    assert talk.prompt("yes?") == prompt


@each_line("tail", ["", "<think>\n"], ids=["by itself", "in the prompt"])
@each_line(
    ("reasoning", "reply", "thinks"),
    [("Hm", "", True), ("Hm", "Ye", False)],
)
def test_a_reopened_reply_thinks_on_where_it_was_thinking(
    tail: str, reasoning: str, reply: str, thinks: bool
) -> None:
    tokenizer = chatml(CHATML + "{% if add_generation_prompt %}" + tail + "{% endif %}")
    talk = Conversation(tokenizer)
    talk.add("yes?", reply, (), reasoning)
    talk.reopen()
    prompt = talk.prompt("yes?")
    end = "<think>\nHm\n</think>\n\nYe" if reply else "<think>\nHm"
    assert tokenizer.decode(prompt).endswith("assistant\n" + end)
    assert talk.splitter(prompt).in_reasoning == thinks


def test_a_reopened_reply_without_thoughts_has_none() -> None:
    talk = Conversation(chatml())
    talk.add("yes?", "Ye")
    talk.reopen()
    assert not talk.splitter(talk.prompt("yes?")).in_reasoning


def test_thoughts_go_to_the_template_apart_and_ids_with_thoughts_are_no_part_of_a_prompt() -> None:
    tokenizer = chatml(NO_THOUGHTS)
    talk = Conversation(tokenizer)
    ids = tokenizer.encode("<think>Hm</think>yes", add_special=False)
    talk.add("yes?", "yes", ids, "Hm")
    assert talk.turns == (Turn("yes?", "yes", tuple(ids), "Hm"),)
    assert talk.messages[1]["reasoning_content"] == "Hm"
    assert talk.prompt("And?") == fresh_prompt(tokenizer, talk, "And?")
    assert "Hm" not in tokenizer.decode(talk.prompt("And?"))
    talk.add("And?", "No", ids, "Hm")  # of another reply
    assert talk.turns[1].token_ids == ()


def test_thoughts_in_replies_of_older_files_are_taken_out() -> None:
    talk = Conversation(chatml())
    talk.replace(None, [Turn("a", "<think>Hm</think>yes"), Turn("b", "Hm</think>\n\nyes")])
    assert talk.turns == (Turn("a", "yes", (), "Hm"), Turn("b", "yes", (), "Hm"))


def test_a_budget_opens_the_thoughts_and_is_that_of_the_reply() -> None:
    switched = CHATML + "{% if enable_thinking is false %}<think></think>{% endif %}"
    tokenizer = chatml(switched)
    talk = Conversation(tokenizer)
    plain = talk.prompt("yes?")
    assert talk.free(talk.splitter(plain)) is None
    talk.thinking_budget = 7
    prompt = talk.prompt("yes?")
    assert tokenizer.decode(prompt) == tokenizer.decode(plain) + "<think>"
    free = talk.free(talk.splitter(prompt))
    assert free is not None
    assert (free.until, free.most_tokens) == (("</think>",), 7)
    assert tokenizer.decode(free.then) == "</think>"
    begun = tokenizer.encode("Hm", add_special=False)
    talk.add("yes?", "", begun, "Hm")
    talk.reopen()
    assert talk.prompt("yes?") == [*prompt, *begun]
    with pytest.raises(ArgumentError, match="has no thinking"):
        Conversation(chatml()).thinking_budget = 7
