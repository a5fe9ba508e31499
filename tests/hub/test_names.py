"""What a name means by its form, and which file of a repository is chosen."""

from __future__ import annotations

import pytest

from akunu import ArgumentError
from akunu.hub.choice import PREFERENCE, Candidate, File, candidates, choose, label_of
from akunu.hub.find import meaning
from akunu.hub.names import Address, OllamaName, RepoName
from lines import each_line

# Names of files as they are in large repositories of the hub.
UNSLOTH = [
    "BF16/big-BF16-00001-of-00002.gguf",
    "BF16/big-BF16-00002-of-00002.gguf",
    "big-IQ4_XS.gguf",
    "big-Q2_K.gguf",
    "big-Q4_0.gguf",
    "big-Q4_K_M.gguf",
    "big-Q8_0.gguf",
    "big-UD-Q4_K_XL.gguf",
    "imatrix_unsloth.gguf",
    "mmproj-F16.gguf",
    "README.md",
]


def models(*names: str) -> list[Candidate]:
    return candidates([File(name, 1000) for name in names])


@each_line(
    ("name", "expected"),
    [
        ("org/repo", RepoName("org/repo")),
        ("org/repo:Q4_K_M", RepoName("org/repo", wanted="Q4_K_M")),
        ("org/repo:sub/m.gguf", RepoName("org/repo", wanted="sub/m.gguf")),
        ("org/repo@v1.0:Q8_0", RepoName("org/repo", "v1.0", "Q8_0")),
        ("org/repo@refs/pr/3", RepoName("org/repo", "refs/pr/3")),
        ("hf.co/org/repo:Q8_0", RepoName("org/repo", wanted="Q8_0")),
        ("hf.co/org/repo/m.gguf", RepoName("org/repo", wanted="m.gguf")),
        ("https://huggingface.co/org/repo", RepoName("org/repo")),
        ("https://hf.co/org/repo/tree/v2", RepoName("org/repo", "v2")),
        (
            "https://huggingface.co/org/repo/resolve/main/a/m.gguf?download=true",
            RepoName("org/repo", wanted="a/m.gguf"),
        ),
        (
            "https://huggingface.co/org/repo/blob/refs%2Fpr%2F1/m.gguf",
            RepoName("org/repo", "refs/pr/1", "m.gguf"),
        ),
        ("https://example.org/m.gguf", Address("https://example.org/m.gguf")),
        ("http://127.0.0.1:8000/m.gguf", Address("http://127.0.0.1:8000/m.gguf")),
        (
            "https://huggingface.co/datasets/a/b/resolve/main/m.gguf",
            Address("https://huggingface.co/datasets/a/b/resolve/main/m.gguf"),
        ),
        ("llama3.2:1b", OllamaName("registry.ollama.ai/library/llama3.2", "1b", False)),
        ("ollama:me/own", OllamaName("registry.ollama.ai/me/own", "latest", True)),
        ("models/m.gguf", None),
        ("./org/repo", None),
        ("~/m.gguf", None),
        ("a/b/c.gguf", None),
        ("", None),
    ],
)
def test_a_name_means_what_its_form_says(name: str, expected: object) -> None:
    assert meaning(name) == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("http://example.org/m.gguf", "not encrypted.*use its https address"),
        ("https://", "not an address"),
        ("https://host:port/m.gguf", "not an address"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(name: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        meaning(name)


@each_line(
    ("name", "label"),
    [
        ("Qwen3-0.6B-Q8_0.gguf", "Q8_0"),
        ("Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "Q4_K_M"),
        ("qwen2.5-0.5b-instruct-q4_k_m.gguf", "Q4_K_M"),
        ("Llama-3.2-3B-Instruct-f16.gguf", "F16"),
        ("tinyllama-1.1b-chat-v1.0.Q4_0.gguf", "Q4_0"),
        ("Qwen3-4B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("Qwen3-4B-IQ4_XS.gguf", "IQ4_XS"),
        ("Q8_0/big-Q8_0-00002-of-00003.gguf", "Q8_0"),
        ("bf16.gguf", "BF16"),
        ("model.gguf", ""),
        ("Q4_K_M/model.gguf", ""),
    ],
)
def test_the_format_is_read_from_the_name_of_a_file(name: str, label: str) -> None:
    assert label_of(name) == label


def test_pictures_statistics_and_parts_are_no_models_of_their_own() -> None:
    found = {model.label: len(model.files) for model in models(*UNSLOTH)}
    assert found == {
        "BF16": 2,
        "IQ4_XS": 1,
        "Q2_K": 1,
        "Q4_0": 1,
        "Q4_K_M": 1,
        "Q8_0": 1,
        "UD-Q4_K_XL": 1,
    }
    assert models("m-Q8_0-00001-of-00002.gguf") == []  # the other part is missing


def test_without_a_wish_the_first_preference_that_is_there_is_taken() -> None:
    there = models(*UNSLOTH)
    assert choose(there, "", "org/big").candidate.name == "big-Q4_K_M.gguf"
    for label in ("Q4_0", "Q8_0", "BF16"):
        there = [
            model for model in there if model.label not in PREFERENCE[: PREFERENCE.index(label)]
        ]
        assert choose(there, "", "org/big").candidate.label == label
    assert choose(models("a-IQ2_M.gguf"), "", "org/a").reason == "the only model in it"


@each_line(
    ("wanted", "name"),
    [
        ("Q4_K_M", "big-Q4_K_M.gguf"),
        ("q8_0", "big-Q8_0.gguf"),
        ("Q4_K_XL", "big-UD-Q4_K_XL.gguf"),
        ("bf16", "BF16/big-BF16-00001-of-00002.gguf"),
        ("big-Q2_K.gguf", "big-Q2_K.gguf"),
        ("big-q2_k", "big-Q2_K.gguf"),
        ("BF16/big-BF16-00002-of-00002.gguf", "BF16/big-BF16-00001-of-00002.gguf"),
    ],
)
def test_a_wish_is_a_format_or_a_file(wanted: str, name: str) -> None:
    assert choose(models(*UNSLOTH), wanted, "org/big").candidate.name == name


def test_what_is_not_there_or_not_clear_lists_what_is() -> None:
    with pytest.raises(ArgumentError, match=r"no 'Q4KM'; did you mean org/big:Q4_K_M\? There is "):
        choose(models(*UNSLOTH), "Q4KM", "org/big")
    with pytest.raises(ArgumentError, match=r"no 'zzz'; there is .*Q8_0"):
        choose(models(*UNSLOTH), "zzz", "org/big")
    two = models("chat-Q4_K_M.gguf", "code-Q4_K_M.gguf")
    with pytest.raises(ArgumentError, match=r"several models in Q4_K_M: name one.*code-Q4_K_M"):
        choose(two, "", "org/two")
    with pytest.raises(ArgumentError, match=r"'q4_k_m' may mean; name one of its files: chat-"):
        choose(two, "q4_k_m", "org/two")
    with pytest.raises(ArgumentError, match=r"no model in a format .* name one of IQ1_S, TQ1_0"):
        choose(models("a-IQ1_S.gguf", "a-TQ1_0.gguf"), "", "org/a")
