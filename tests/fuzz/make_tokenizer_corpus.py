"""Writes the small vocabularies of tests/fuzz/corpus/tokenizer, with the `gguf` package.

    python tests/fuzz/make_tokenizer_corpus.py [FOLDER]

One file for each tokenizer model, followed by a text, as fuzz_tokenizer.cpp wants them. The files
are committed, so that fuzzing needs no Python.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gguf

from akunu.tokenizers.text_models import byte_alphabet

FOLDER = Path(__file__).parent / "corpus" / "tokenizer"
TEXT = " Ünïté 12345\n\n\t<|im_end|> 中文字 it's  a\u0301 \U0001f600<0x0A>\r\n"
NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6


def vocabulary(
    path: Path, model: str, tokens: dict[str, int], merges: list[str], pre: str = "qwen2"
) -> None:
    """Write one file: tokens with their types, and the text behind it."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(list(tokens))
    writer.add_token_types(list(tokens.values()))
    if merges:
        writer.add_token_merges(merges)
    else:
        writer.add_token_scores([-float(index) for index in range(len(tokens))])
    writer.add_unk_token_id(0)
    if model == "bert":
        writer.add_uint32("tokenizer.ggml.cls_token_id", 1)
        writer.add_sep_token_id(2)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with path.open("ab") as file:
        file.write(TEXT.encode())


def main() -> None:
    """Write all of them."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    alphabet = {letter: NORMAL for letter in byte_alphabet()}
    special = {"<unk>": UNKNOWN, "<|im_end|>": CONTROL, "<tag>": USER}
    merges = ["i t", "Ġ Ġ", "1 2", "it '", "Ċ Ċ"]
    merged = {merge.replace(" ", ""): NORMAL for merge in merges}
    for pre in ("qwen2", "llama-bpe", "tekken", "deepseek-llm"):
        tokens = {**special, **alphabet, **merged}
        vocabulary(folder / f"byte_level_{pre}.gguf", "gpt2", tokens, merges, pre)
    pieces = {"\u2581": NORMAL, "i": NORMAL, "t": NORMAL, "it": NORMAL, "\u2581it": NORMAL}
    names = {f"<0x{byte:02X}>": BYTE for byte in range(256)}
    vocabulary(folder / "sentencepiece.gguf", "llama", {**special, **pieces, **names}, [])
    few = {**special, **pieces, "<0x0A>": BYTE}
    vocabulary(folder / "sentencepiece_few.gguf", "llama", few, [])
    vocabulary(
        folder / "ranked.gguf", "llama", {**special, **pieces, **names}, ["i t", "\u2581 it"]
    )
    vocabulary(folder / "gemma4.gguf", "gemma4", {**special, **pieces, **names}, ["i t"])
    words = {"[UNK]": UNKNOWN, "[CLS]": CONTROL, "[SEP]": CONTROL, "\u2581it": NORMAL, "a": NORMAL}
    vocabulary(folder / "wordpiece.gguf", "bert", {**words, "\u2581u": NORMAL, "nite": NORMAL}, [])


if __name__ == "__main__":
    main()
