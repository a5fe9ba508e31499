"""Patterns of JSON schemas: which texts they accept, compared with a JavaScript engine.

`node` says what ECMAScript does: `new RegExp(pattern, "u")`, as JSON Schema asks for, and without
"u" where that is refused. What it said of a fixed choice is kept in tests/judges/ecma.json, so that
a test needs no engine.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from typing import Any

from llguidance import LLMatcher, LLTokenizer

from akunu.grammar import from_schema
from akunu.grammar.errors import SchemaError
from akunu.grammar.limits import engine_limits

_ASK = """
const asked = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const made = p => { for (const f of ['u', '']) { try { return new RegExp(p, f); } catch {} } };
const isTwo = t => [...t].length < t.length;
console.log(JSON.stringify(asked.map(([p, texts]) => {
  const found = made(p);
  const one = t => !found.unicode && isTwo(t) ? '-' : found.test(t) ? '1' : '0';
  return found ? texts.map(one).join('') : null;
})));
"""

WRITTEN = [
    *(r"^[^[]*$", r"^[[:alpha:]]$", r"^[a&&b]$", r"^[a--b]$", r"^[a~~b]$", r"^[[a]b]$", r"^[]]$"),
    *(r"^[]$", r"^[^]$", r"^[\]]$", r"^[a-]$", r"^[-a]$", r"^[\w-.]$", r"^[\d\-x]$", r"^[\b]$"),
    *(r"^.$", r"^..$", r"^\s$", r"^\S$", r"^\w+$", r"^\W$", r"^\d$", r"^\D$", r"^[^\s]$"),
    *(r"^\cA$", r"^\c$", r"^\0$", r"^\x41$", r"^\x4$", r"^\u0041$", r"^\u{41}$", r"^\u{1F600}$"),
    *(r"^\uD83D\uDE00$", r"^\u00e9$", r"^\/$", r"^\-$", r"^\_$", r"^\@$", r"^\12$", r"^\8$"),
    *(r"^\p{L}$", r"^\P{L}$", r"^[\p{Lu}\d]$", r"^[^\p{L}]$", r"^\p{Script=Greek}$", r"^\pL$"),
    *(r"a{2}", r"^a{2,}$", r"^a{,2}$", r"^a{0}$", r"^{$", r"^}$", r"^{}$", r"^a{1$", r"^x{2,1}$"),
    *(r"^a|b$", r"^(a|^b)$", r"(^|,)a(,|$)", r"^(?:(?:^|,)a)+$", r"a$|^b", r"^$", r"", r"^", r"$"),
    *(r"a^", r"$a", r"a*^b", r"a$b*", r"(a|$)+b", r"^([a-c]+( |$))+$", r"^(a$|b)c?$"),
    *(r"^(?!ab$)[a-c]+$", r"^(?!ab)[a-c]*$", r"(?!a$)a", r"(?!^a$)^a", r"^a(?!b)", r"^a(?=b)"),
    *(r"^(?=.*b)(?=.*c)[abc]{3,}$", r"^((?!ab).)*$", r"^.*(?<!a)$", r"^.*(?<=ab)$", r"^(?=a)*b$"),
    *(r"^(?!.*--)[a-]+$", r"^(?!a|b)(?!c).$", r"^(?:(?!a)b|c)$", r"^(?!(ab|ac)$)a[bc]?$"),
    r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$",
    r"^(?!^[-+.]*$)[+-]?0*(?:\d{0,3}|(?=[\d.]{1,6}0*$)\d{0,3}\.\d{0,2}0*$)",
    r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d{0,2}0*$",
    *(r"^(?<n>a)b$", r"^(a)\1$", r"^(?<n>a)\k<n>$", r"^\k$", r"\bab\b", r"^a\B", r"^a*?b+?$"),
    *(r"a**", r"(", r")", r"[", r"\\", "a\\", r"(?<a", r"*", r"^*", r"(?a)", r"[b-a]", r"a|*"),
    *(r"^[A-Z]{2}\d{3}$", r"^[a-z0-9]+(?:-[a-z0-9]+)*$", r"^\S+@\S+\.\S+$", r"^#?[0-9a-f]{3}$"),
    *(r"^(\d{4})-(\d{2})$", r"^[\w.%+-]+@[\w.-]+\.[a-z]{2,}$", r"^\d+(\.\d+)?$", r"^\+?\d{1,3}$"),
]
TEXTS = [
    *(
        "",
        "a",
        "b",
        "c",
        "ab",
        "ba",
        "ac",
        "abc",
        "aa",
        "bb",
        "aab",
        "abb",
        "a,a",
        ",a",
        "a ",
        "a b",
    ),
    *("a]", "]", "[", "[]", "-", "&", "a-", "--", "a--a", "~", "|", "{", "}", "{}", "a{,2}", "a{1"),
    *(
        "A",
        "Z",
        "_",
        "0",
        "1",
        "12",
        "12.5",
        ".",
        "+",
        "-.5",
        "+1.500",
        "1234.5",
        "00.00",
        "x",
        "xx",
    ),
    *("\n", "\r", "\t", "\u000b", " ", "\u00a0", "\u2028", "\u2029", "\ufeff", "\u3000", "\u0085"),
    *("é", "ß", "α", "Ω", "中", "٣", "😀", "a😀", "\u0000", "\u0001", "\b", "\\", "\\c", "/", "@"),
    *(":]", "a:", "k", "8", "u", "A41", "AB123", "ab-12", "x@y.zz", "#0ff", "2024-01", "pL", "8a"),
]
_ATOMS = [
    *("a", "b", "c", "ab", ".", r"\d", r"\w", r"\s", r"\S", "[ab]", "[^a]", r"[^\d]", "[a-c]"),
    *(
        r"\.",
        r"\-",
        "-",
        r"[\w-]",
        "(?:a|b)",
        "(?:ab|c)",
        "[]",
        "[^]",
        r"\u{61}",
        r"\x62",
        "{",
        "]",
    ),
]


def random_patterns(n: int, seed: int) -> Iterator[str]:
    """Yield patterns of the letters that the texts have, with edges and looks around in them."""
    drawn = random.Random(seed)

    def pattern(depth: int) -> str:
        kind = drawn.random()
        if depth == 0 or kind < 0.4:
            return drawn.choice(_ATOMS)
        if kind < 0.55:
            return f"(?:{pattern(depth - 1)}|{pattern(depth - 1)})"
        if kind < 0.7:
            counts = ["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "*?"]
            return f"({pattern(depth - 1)}){drawn.choice(counts)}"
        if kind < 0.78:
            return drawn.choice(["^", "$", "(^|a)", "(b|$)"])
        if kind < 0.83:
            return f"(?{drawn.choice('=!')}{pattern(depth - 1)}{drawn.choice(['', '$'])})"
        return pattern(depth - 1) + pattern(depth - 1)

    for _ in range(n):
        begin = drawn.choice(["", "^", "^", f"^(?!{pattern(1)}$)", f"(?={pattern(1)})"])
        end = drawn.choice(["", "$", "$", "(?<!b)$"])
        yield begin + "".join(pattern(2) for _ in range(drawn.randint(1, 3))) + end


def random_texts(n: int, seed: int) -> list[str]:
    """Return short texts of a few letters."""
    drawn = random.Random(seed)
    return ["".join(drawn.choices("abc-.1 \n", k=drawn.randint(2, 6))) for _ in range(n)]


def engine_says(asked: list[tuple[str, list[str]]]) -> list[str | None]:
    """Return for each pattern a sign for each text, 1 where it matches; None: no pattern.

    "-": not asked, since without "u" a character beyond 0xFFFF is two, and here always one.
    """
    done = subprocess.run(
        ["node", "-e", _ASK], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    found: list[str | None] = json.loads(done.stdout)
    return found


def table(seed: int = 0, n: int = 300) -> dict[str, Any]:
    """Return what the engine says of patterns that people write, and of random ones."""
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    texts = [*TEXTS, *random_texts(40, seed)]
    patterns = list(dict.fromkeys([*WRITTEN, *random_patterns(n, seed)]))
    said = engine_says([(each, texts) for each in patterns])
    return {
        "source": f"node {version.stdout.strip()}; python -m tools.judge_grammar ecma",
        "texts": texts,
        "patterns": dict(zip(patterns, said, strict=True)),
    }


def compared(
    table: dict[str, Any],
) -> tuple[dict[str, str], dict[str, str], dict[str, list[str]]]:
    """Return the patterns that are refused, those that should be, and texts judged otherwise."""
    tokenizer = LLTokenizer("byte")
    texts = table["texts"]
    spelled = [
        tokenizer.tokenize_bytes(json.dumps(text, ensure_ascii=False).encode()) for text in texts
    ]
    refused: dict[str, str] = {}
    taken: dict[str, str] = {}
    wrong: dict[str, list[str]] = {}
    for pattern, said in table["patterns"].items():
        try:
            grammar = from_schema({"type": "string", "pattern": pattern})
        except SchemaError as error:
            if said is not None and "1" in said:
                refused[pattern] = error.reason
            continue
        if said is None:
            taken[pattern] = grammar.llguidance
            continue
        matcher = LLMatcher(tokenizer, grammar.llguidance, limits=engine_limits())
        for text, tokens, is_match in zip(texts, spelled, said, strict=True):
            matcher.reset()
            fits = matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()
            if is_match != "-" and fits != (is_match == "1"):
                wrong.setdefault(pattern, []).append(text)
    return refused, taken, wrong
