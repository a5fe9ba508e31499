"""Gemma 3 270M, a base model with windows in five of six layers, beside llama.cpp (xllamacpp)."""

from __future__ import annotations

import sys
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pytest
from beside_llama_cpp import difference_of_costs, tokens_of_llama_cpp
from numpy.typing import NDArray
from tools.compare.engine_process import EngineProcess
from tools.compare.texts import read_text
from windows import LICENSE

import akunu
from akunu.templates.chat_template import ChatTemplate, encode_chat

pytestmark = pytest.mark.real

TEMPLATE = Path(__file__).parents[1] / "data" / "templates" / "like-gemma-2.jinja"


@pytest.fixture(scope="module")
def prose(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long English text that every Python has: what `help` says about the language."""
    path = tmp_path_factory.mktemp("text") / "topics.txt"
    path.write_text("\n\n".join(topics[name] for name in sorted(topics)))
    return path


def costs(worker: str, model: Path, chunks: list[list[int]]) -> NDArray[np.float64]:
    """Nats of each token in the second halves, as llama.cpp's `perplexity` counts them."""
    context = len(chunks[0])
    with EngineProcess(sys.executable, worker, model, context=context, threads=2) as engine:
        return np.concatenate(engine.ask({"chunks": chunks, "kv_type": "f16"})["costs"])


@pytest.mark.parametrize(("length", "n_chunks"), [(512, 12), (1024, 2)])
def test_perplexity_is_that_of_llama_cpp(
    gemma3_file: Path, prose: Path, length: int, n_chunks: int
) -> None:
    """In chunks of 512 tokens no window ends; in those of 1024, all do before what is counted."""
    tokenizer = akunu.Tokenizer.from_gguf(gemma3_file)
    chunks = read_text(tokenizer, str(prose), length=length, n_chunks=n_chunks).chunks
    ours = costs("akunu_logits", gemma3_file, chunks)
    theirs = costs("llama_cpp_logits", gemma3_file, chunks)
    mean, standard_error = difference_of_costs(ours, theirs)
    assert abs(mean) <= max(0.003, 3 * standard_error)
    # The comparison has something to say: a mistake in one layer costs more than that.
    assert standard_error <= 0.005


def test_tokens_are_those_of_llama_cpp(gemma3_file: Path) -> None:
    tokenizer = akunu.Tokenizer.from_gguf(gemma3_file)
    assert tokenizer.vocab_size == 262144
    texts = [
        LICENSE.read_text(),
        "  12 345,67  \n\n\n\t\t tab",
        "日本語 não ó 🙂‍↔️ ﷽",
        "it's I'LL<b>x</b>",
        "<start_of_turn>user\nHi<end_of_turn>\n",
        "\n\n\n\n",
        " ",
        "▁a ▁▁b",
    ]
    theirs = tokens_of_llama_cpp(gemma3_file, texts)
    assert [tokenizer.encode(text, add_special=False) for text in texts] == theirs
    for text in texts[:-1]:
        assert tokenizer.decode(tokenizer.encode(text, add_special=False)) == text


def test_a_text_begins_with_bos_and_a_turn_ends_it(gemma3_file: Path) -> None:
    tokenizer = akunu.Tokenizer.from_gguf(gemma3_file)
    assert tokenizer.encode("a")[0] == tokenizer.bos_id == 2
    end_of_turn = tokenizer.encode("<end_of_turn>", add_special=False, parse_special=True)
    assert len(end_of_turn) == 1
    assert {tokenizer.eos_id, *end_of_turn} <= set(tokenizer.stop_ids)


def test_turns_are_control_tokens_and_what_people_write_is_not(gemma3_file: Path) -> None:
    """In the way of Gemma's instruct models, which have this vocabulary and a template."""
    tokenizer = akunu.Tokenizer.from_gguf(gemma3_file)
    template = ChatTemplate(TEMPLATE.read_text(), bos_token="<bos>")
    start, end = tokenizer.encode(
        "<start_of_turn><end_of_turn>", add_special=False, parse_special=True
    )
    asked = "What ends a turn? <end_of_turn>"
    prompt = encode_chat(tokenizer, template, [{"role": "user", "content": asked}])
    assert prompt[:2] == [tokenizer.bos_id, start]
    assert [prompt.count(token) for token in (tokenizer.bos_id, start, end)] == [1, 2, 1]
    between = prompt[2 : prompt.index(end)]
    assert tokenizer.decode(between) == f"user\n{asked}"
