"""Grammars in GBNF and Lark, regular expressions and choices."""

from __future__ import annotations

import pytest
from grammar_support import accepts, shared

import akunu
from akunu.grammar import from_choice, from_regex, from_rules
from akunu.grammar.errors import GrammarError
from akunu.grammar.rules import is_gbnf
from lines import each_line


@each_line(
    ("rules", "right", "wrong"),
    [
        ('root ::= [a-z]+ "a" | [0-9]+ [0-9]', ["ba", "aa", "12"], ["b", "1", ""]),
        ('root ::= ("a" | "ab") ("bc" | "c") "d"?', ["abc", "abbc", "ac", "abcd"], ["ab", "abcc"]),
        (
            'root ::= x{2,4} y*\nx ::= "ab" | "a"\ny ::= "b" x',
            ["aba", "aaba", "ababab"],
            ["a", "b"],
        ),
        ('root ::= "(" root ")" | "x" | ', ["", "x", "((x))", "()"], ["(", "xx"]),
        ('root ::= [ab]* [b-c]+ "b"', ["bb", "abcb", "aabbb"], ["ab", "b", "bcc"]),
        ('root ::= . [^a-y] "é" "\\x41\\u00e9\\U0001F600"', ["zzéAé😀", "\nzéAé😀"], ["zaéAé😀"]),
        (
            'root ::= "a"{3} [\\]\\[\\\\"^-] # end',
            ["aaa]", "aaa[", "aaa\\", "aaa-"],
            ["aa]", "aaaa]"],
        ),
        (
            'root ::=\n  ( # open\n "a" |\n\n "b"\n ) my-rule_2\nmy-rule_2 ::= "c"{0,1}',
            ["a", "bc"],
            ["c"],
        ),
        ('root ::= root "a" | "b"', ["b", "baa"], ["a", "ab"]),
        ('root ::= "a" | never\nnever ::= "b" never', ["a"], ["b", "bb"]),
        (
            'root ::= "if" ws id | id ws id\nid ::= [a-z]+\nws ::= " "*',
            ["ifx", "if if", "ab"],
            ["a", "a "],
        ),
        ('root ::= "" [b-a]? "x"', ["x"], ["ax"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_gbnf_means_characters_whatever_could_be_read_in_one_go(
    rules: str, right: list[str], wrong: list[str]
) -> None:
    grammar = from_rules(rules)
    assert [text for text in right if not accepts(grammar, text)] == []
    assert [text for text in wrong if accepts(grammar, text)] == []


@each_line(
    ("rules", "line", "column", "reason"),
    [
        ('root ::= "a', 1, 10, "no closing"),
        ('root ::= "a"\nb ::= foo', 2, 7, "there is no rule foo"),
        ("root ::= [a-", 1, 10, "no closing ]"),
        ('a ::= "x"', 1, 1, "no rule root"),
        ('root ::= * "a"', 1, 10, "nothing before"),
        ('root ::= ""*', 1, 12, "nothing before"),
        ('root ::= "\\q"', 1, 11, "no escape"),
        ('root ::= "\\x4"', 1, 11, "2 hexadecimal digits"),
        ('root ::= ("a"\n | "b"', 2, 7, r"expected \)"),
        ('root ::= "a" )', 1, 14, "end of the line"),
        ('root ::= "a"{3', 1, 15, "expected , or }"),
        ('root ::= "a"{3,2}', 1, 17, "the least number of repetitions, 3, is above the most, 2"),
        ('root ::= "a"\n| "b"', 2, 1, "name of a rule"),
        ("root ::= !<think>", 1, 10, "with its number"),
        ('root ::= "a" root', 1, 1, "no text ever fits"),
        ("start: foo\nfoo: bar", 2, 6, "unknown name"),
        ('start: "a" )', 1, 12, "expecting rule"),
        ("start: /a(/", 1, 8, "unclosed group"),
    ],
)
def test_rules_that_make_no_sense_are_refused_with_line_and_column(
    rules: str, line: int, column: int, reason: str
) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        from_rules(rules)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert isinstance(caught.value, akunu.ArgumentError)


def test_tokens_of_the_model_are_handed_on() -> None:
    assert "<think> L0 <[5]> <[^7]>" in from_rules('root ::= <think> "a" <[5]> !<[7]>').llguidance


@each_line(
    ("rules", "gbnf"),
    [
        ('# root: x\nroot ::= "a: b"', True),
        ('// x ::= y\nstart: "::="', False),
        ("start: /a::=b/", False),
        ("ws::=[ ]\nroot::=ws", True),
        ('start[lazy]: "a::=b"', False),
        ('%llguidance {}\n?start: "a"', False),
    ],
)
def test_the_first_rule_tells_gbnf_from_lark(rules: str, gbnf: bool) -> None:
    assert is_gbnf(rules) is gbnf


def test_every_published_grammar_is_read() -> None:
    files = sorted(shared("AKUNU_TEST_GBNF", "gbnf").glob("*.gbnf"))
    assert len(files) == 8
    grammars = {file.stem: from_rules(file.read_text(encoding="utf-8")) for file in files}
    assert accepts(grammars["json"], '{"a": [1, -2.5e3, "\\u00e9"], "b":{}}')
    assert not accepts(grammars["json"], '{"a": [1,]}')
    assert accepts(grammars["arithmetic"], "a +12 = (c -1)\n")
    assert accepts(grammars["chess"], "1. e4 e5\n2. Nf3 Nc6\n")
    assert accepts(grammars["c"], "int main(){return x+1;}")


def test_a_choice_is_exactly_its_texts() -> None:
    texts = ["a", "ab", "abc d", '"x"\\/\n\x07é😀', "", "/a/", "a"]
    grammar = from_choice(texts)
    assert all(accepts(grammar, text) for text in texts)
    assert not accepts(grammar, "abc")
    assert accepts(from_choice([""]), "")
    for nothing, reason in (
        ("yes", "not one text"),
        (5, "not 5"),
        ([], "at least one"),
        ([1], "1 is not a text"),
        (["a\ud800"], "'a.ud800' has a lone surrogate at character 1"),
    ):
        with pytest.raises(akunu.ArgumentError, match=reason):
            from_choice(nothing)  # type: ignore[arg-type]


def test_a_choice_may_have_thousands_of_texts() -> None:
    grammar = from_choice([f"item {number}" for number in range(5000)])
    assert accepts(grammar, "item 4999")
    assert accepts(grammar, "item 49")
    assert not accepts(grammar, "item 5000")


def test_rules_too_deep_and_texts_that_are_no_unicode_are_refused() -> None:
    with pytest.raises(GrammarError, match="groups are nested too deeply"):
        from_rules("root ::= " + "(" * 3000 + '"a"' + ")" * 3000)
    for make in (from_regex, from_rules):
        with pytest.raises(akunu.ArgumentError, match="lone surrogate at character 10"):
            make('root ::= "\ud800"')


def test_a_regular_expression_matches_the_whole_text() -> None:
    grammar = from_regex("a/b\\/[/]\\d{2,}|x\n?")
    assert accepts(grammar, "a/b//12")
    assert accepts(grammar, "x\n")
    assert not accepts(grammar, "ax")
    assert accepts(from_regex(""), "")
    assert not accepts(from_regex(""), "a")


@pytest.mark.parametrize(
    ("pattern", "column", "reason"),
    [
        ("a(?=b)", 2, "a lookahead"),
        ("a(?<!b)", 2, "a negative lookbehind"),
        ("(a)\\1", 4, "a backreference"),
        ("a(b", 2, "unclosed group"),
        ("x[z-a]", 3, "range"),
        ("ab\\b", 3, "a boundary"),
        ("a^b", 2, "a boundary"),
    ],
)
def test_an_expression_that_no_grammar_has_is_refused_with_its_position(
    pattern: str, column: int, reason: str
) -> None:
    with pytest.raises(GrammarError, match=reason) as caught:
        from_regex(pattern)
    assert caught.value.column == column
