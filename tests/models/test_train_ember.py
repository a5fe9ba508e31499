"""The generators that Ember is trained from: right answers, a held-out line, one text format."""

import re
import sys
from pathlib import Path

import pytest

from lines import each_line

sys.path.insert(0, str(Path(__file__).parents[2]))

from ember import arithmetic, evaluate, letters, mixture, small_talk, tables, word_lists, words
from ember.chat_template import CHAT_TEMPLATE, pieces, prompt
from ember.dialogue import Draw, is_held_out
from ember.wordings import expanded

pytestmark = pytest.mark.tools

GENERATORS = [
    pytest.param(generator, id=f"{module.FAMILY}-{generator.__name__}".replace(" ", "_"))
    for _, module in mixture.FAMILIES
    for generator, _ in module.TASKS
]


@each_line("generator", GENERATORS)
@each_line("held_out", [False, True], ids=["training", "held-out"])
def test_a_seed_gives_the_same_dialogues_again(generator, held_out):
    first, second = (Draw("seed", held_out=held_out) for _ in range(2))
    for _ in range(50):
        made = generator(first)
        assert made == generator(second)
        assert made.messages[-1]["role"] == "assistant"
        assert all(message["content"].strip() for message in made.messages)


def test_every_word_of_the_lists_is_a_word_to_spell():
    lists = [path.read_text("utf-8") for path in word_lists.DATA.glob("*.txt")]
    found = set(re.findall("[a-z]+", " ".join(lists).lower()))
    assert {word for word in found if 3 <= len(word) <= 12} <= set(words.LEXICON)


@pytest.mark.parametrize("task", [arithmetic.addition, arithmetic.subtraction, arithmetic.story])
def test_sums_are_right_and_ask_about_their_operands(task):
    draw = Draw("sums")
    for _ in range(500):
        question, reply = (message["content"] for message in task(draw).messages)
        a, sign, b, result = re.fullmatch(r"(\d+) ([+-]) (\d+) = (-?\d+)", reply).groups()
        assert int(result) == int(a) + int(b) * (1 if sign == "+" else -1)
        assert {a, b} <= set(re.findall(r"\d+", question))


def test_products_are_worked_out_by_tens_and_ones():
    draw = Draw("products")
    for _ in range(300):
        reply = arithmetic.multiplication(draw).messages[-1]["content"]
        a, b, tens, ones, product = map(int, re.findall(r"\d+", reply))
        assert a * b == tens + ones == product


def test_no_training_word_lies_on_the_held_out_side():
    draw, held_out = Draw("words"), Draw("words", held_out=True)
    for _ in range(300):
        assert not is_held_out(("word", letters.word(draw)))
        assert is_held_out(("word", letters.word(held_out)))


def test_held_out_phrasings_of_a_table_are_never_used_in_training():
    table = tables.TABLES[0]
    seen_by, kept_by = Draw(1), Draw(1, held_out=True)
    seen = {seen_by.phrasing(table.phrasings) for _ in range(20_000)}
    kept = {kept_by.phrasing(table.phrasings) for _ in range(20_000)}
    assert seen.isdisjoint(kept)
    assert seen | kept == set(table.phrasings)


def test_a_pattern_stands_for_each_of_its_wordings_once():
    made = expanded(["[Tell me|Say] {k}[, please|].", "Say {k}.", "[|So ]{k}?"])
    assert made == ("Tell me {k}, please.", "Tell me {k}.", "Say {k}, please.", "Say {k}.",
                    "{k}?", "So {k}?")  # fmt: skip


def test_no_wording_of_small_talk_is_a_prompt_written_by_hand():
    def letters_of(text: str) -> str:
        return re.sub("[^a-z ]", "", text.lower()).strip()

    known = {letters_of(wording) for wordings, _ in small_talk.TALK for wording in wordings}
    by_hand = {letters_of(case.turns[0]["content"]) for case in evaluate.hand_written()}
    assert len(by_hand) > 200
    assert known.isdisjoint(by_hand)


def test_no_wording_of_small_talk_brings_two_replies():
    known: dict[str, str] = {}
    for wordings, reply in small_talk.TALK:
        for wording in wordings:
            text = re.sub("[^a-z ]", "", wording.lower()).strip()
            assert known.setdefault(text, reply) == reply, wording


@each_line("table", tables.TABLES, ids=lambda table: table.name.replace(" ", "_"))
def test_every_table_is_asked_in_eight_ways_or_more(table):
    assert len(set(table.phrasings)) >= 8
    assert len(table.facts) == len(set(table.facts))


def test_the_evaluation_finds_what_is_wrong():
    cases = evaluate.held_out(4)
    by_hand = evaluate.hand_written()
    right = [expected for _, expected in cases]
    by_hand_right = [case.accept[0] if case.accept else "Sorry, no." for case in by_hand]
    assert all(line.is_met for line in evaluate.verdict(cases, right, by_hand, by_hand_right))

    wrong = [
        "Sorry, no." if dialogue.task == "division" else "Yes." if dialogue.task == "refuse" else r
        for (dialogue, _), r in zip(cases, right, strict=True)
    ]
    lines = evaluate.verdict(cases, wrong, by_hand, ["?"] * len(by_hand))
    reached = {line.what: line for line in lines}
    assert reached["lowest family: arithmetic"].percent == pytest.approx(100 * 10 / 11)
    assert reached["lowest task: division"].percent == 0
    assert [line.is_met for line in lines] == [True, True, True, False, False, False, True]
    n_closed = sum(dialogue.family != "refusals" for dialogue, _ in cases)
    assert reached["closed questions refused"].percent == pytest.approx(100 * 4 / n_closed)


def test_the_template_in_the_file_writes_what_training_showed():
    sandbox = pytest.importorskip("jinja2.sandbox")
    import json

    environment = sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    template = environment.from_string(CHAT_TEMPLATE)
    draw = Draw("template")
    for _ in range(400):
        made = mixture.dialogue(draw)
        text = "".join(text for text, _ in pieces(made.messages, made.tools))
        assert template.render(messages=made.messages, tools=made.tools) == text
        asked = template.render(
            messages=made.messages[:-1], tools=made.tools, add_generation_prompt=True
        )
        assert asked == prompt(made.messages[:-1], made.tools)


def test_a_call_in_openai_shape_renders_like_the_call_in_the_training_text():
    sandbox = pytest.importorskip("jinja2.sandbox")
    import json

    environment = sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = json.dumps
    call = {"type": "function", "function": {"name": "dim", "arguments": {"room": "hall"}}}
    text = environment.from_string(CHAT_TEMPLATE).render(
        messages=[
            {"role": "user", "content": "Dim the hall."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
        ]
    )
    expected = '<tool_call>\n{"name": "dim", "arguments": {"room": "hall"}}\n</tool_call>'
    assert text.endswith(expected + "<|im_end|>\n")


@pytest.mark.slow
def test_the_tokenizer_knows_every_byte_and_keeps_digits_apart():
    pytest.importorskip("tokenizers")
    from ember import tokenizer

    bpe = tokenizer.train()
    assert bpe.get_vocab_size() == tokenizer.VOCABULARY
    text = "".join(map(chr, range(1, 0x250))) + "日本 🙂\r\n\t x"
    assert bpe.decode(bpe.encode(text).ids) == text
    assert bpe.encode("1234").tokens == ["1", "2", "3", "4"]
    assert bpe.encode("<|im_end|>").ids == [tokenizer.TURN_END]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["q8_0", "q4_0"])
def test_simulated_weights_are_what_the_file_will_hold(name):
    torch, gguf = pytest.importorskip("torch"), pytest.importorskip("gguf")
    from ember import simulate

    kind = gguf.GGMLQuantizationType[name.upper()]
    weight = torch.randn(16, 256, generator=torch.Generator().manual_seed(1))
    weight[0] = 0
    stored = gguf.quants.dequantize(gguf.quants.quantize(weight.numpy(), kind), kind)
    assert (getattr(simulate, name)(weight).numpy() == stored).all()


@pytest.mark.slow
def test_a_step_with_a_cache_gives_the_loss_of_the_packed_pass():
    torch = pytest.importorskip("torch")
    from ember.model import Cache, Ember, Shape

    torch.manual_seed(1)
    model = Ember(Shape(n_layers=2, dim=64, ffn_dim=96)).eval()
    tokens = torch.arange(3, 13)
    targets = torch.full_like(tokens, -100)
    targets[-1] = 7
    other = torch.full((4,), 99)
    with torch.inference_mode():
        loss = model(
            torch.cat([other, tokens]),
            torch.cat([other * 0 - 100, targets]),
            torch.tensor([0, 4, 14]),
        )
        cache = Cache(model.shape, 1, 16, tokens.device, torch.float32)
        padded = torch.cat([torch.zeros(2, dtype=torch.long), tokens])[None]
        first = torch.tensor([2])
        model.step(padded[:, :5], first, cache)
        logits = model.step(padded[:, 5:], first, cache)
    assert torch.allclose(loss, -logits.log_softmax(-1)[0, 7], atol=1e-5)
