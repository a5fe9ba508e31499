"""Grammars in GBNF accept what llama.cpp accepts with them, and only that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.judge_grammar.acceptance import accepts_bytes
from tools.judge_grammar.gbnf import texts
from tools.judge_grammar.llama_cpp import LlamaCpp

from akunu.grammar import from_rules
from akunu.grammar.errors import GrammarError

pytestmark = pytest.mark.oracle
ROOT = Path(__file__).parents[2]

HARD_FOR_LEXEMES = {
    "a class that goes on": 'root ::= [a-z]+ "a" | [0-9]+ [0-9]',
    "a text within another": 'root ::= ("a" | "ab") ("bc" | "c") "d"?',
    "repeated rules": 'root ::= x{2,4} y*\nx ::= "ab" | "a"\ny ::= "b" x | "c"',
    "recursion": 'root ::= "(" root ")" | "x" | ',
    "classes that overlap": 'root ::= a b\na ::= [ab]* \nb ::= [b-c]+ "b" a?',
    "many bytes a character": 'root ::= . . "x" | [^a-y]+ "é"? "😀"',
    "empty parts": 'root ::= ("a"? "b"?){3} r\nr ::= "(" r r ")" | "ab"',
    "bounded repetitions": 'root ::= [a-c]{2,5} "cc" ( [c-d]{0,2} "d" | "" )',
    "more openings than ends": 'root ::= s\ns ::= "a" s "b" | "a" s | "c"',
    "keywords and names": ('root ::= "if" ws id | "iff" | id ws id\nid ::= [a-z]+\nws ::= " "*'),
    "numbers": 'root ::= e\ne ::= t ("+" t)*\nt ::= n | "(" e ")"\nn ::= [0-9]+ ("." [0-9]+)?',
}


PARSES = """
import sys
from tools.judge_grammar.llama_cpp import LlamaCpp
print("it can" if LlamaCpp().parses(sys.argv[1]) else "it refuses", flush=True)
"""


@pytest.fixture(scope="module")
def llama_cpp() -> LlamaCpp:
    return LlamaCpp()


def grammars() -> dict[str, str]:
    folder = Path(os.environ.get("AKUNU_TEST_GBNF", ROOT.parent / "shared" / "gbnf"))
    published = {file.stem: file.read_text(encoding="utf-8") for file in folder.glob("*.gbnf")}
    return {**dict(sorted(published.items())), **HARD_FOR_LEXEMES}


@pytest.mark.parametrize("name", grammars())
def test_a_grammar_accepts_what_llama_cpp_accepts(name: str, llama_cpp: LlamaCpp) -> None:
    rules = grammars()[name]
    grammar = from_rules(rules)
    judged = {text: llama_cpp.accepts(rules, text) for text in texts(rules, n=240, seed=1)}
    assert len(set(judged.values())) == 2
    wrong = [text for text, fits in judged.items() if accepts_bytes(grammar, text) != fits]
    assert wrong == []


@pytest.mark.parametrize(
    "rules",
    [
        *('root ::= "a', "root ::= foo", "root ::= [a-", 'a ::= "x"', 'root ::= * "a"'),
        *('root ::= ""*', 'root ::= "\\q"', 'root ::= ("a"', 'root ::= "a" )', 'root ::= "a"{3'),
        *('root ::= "a"\n| "b"', 'root ::= "a"{2001}', 'root = "a"'),
    ],
)
def test_what_llama_cpp_cannot_read_is_refused(rules: str) -> None:
    # In a process of its own: what it cannot read, it sometimes crashes at.
    done = subprocess.run([sys.executable, "-c", PARSES, rules], cwd=ROOT, capture_output=True)
    assert b"it can" not in done.stdout
    assert done.returncode < 0 or b"it refuses" in done.stdout, done.stderr
    with pytest.raises(GrammarError):
        from_rules(rules)
