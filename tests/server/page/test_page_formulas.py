"""Formulas on the chat page: found where models write them, set by KaTeX, harmless."""

from __future__ import annotations

from typing import Any

import httpx
from page_support import answer_with, ask, events, reply

FORMULAS = r"""The roots are \(x_1\) and $x_2$, costs are $5 and $10, and `$y$` is code.

\[
x = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}
\]

$$
\sum_{n=1}^\infty \frac{1}{n^2} = \frac{\pi^2}{6}
$$

Unknown: $\nothing{x}$, and \(\href{javascript:alert(1)}{link}\).
"""


def test_formulas_are_set_and_money_is_not(opened: Any, client: httpx.Client) -> None:
    page = opened()
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url))
    answer_with(page, events({"content": FORMULAS[:200]}, {"content": FORMULAS[200:]}))
    ask(page, "Solve it.")
    text = reply(page)
    page.wait_for_selector(".formula.displayed .katex")
    prose = page.locator(".message.assistant .prose")
    assert prose.locator(".formula.displayed .katex").count() == 2
    shown = prose.locator("annotation").all_text_contents()  # the sources, for who copies them
    assert shown[:2] == ["x_1", "x_2"]
    assert r"\sum_{n=1}^\infty \frac{1}{n^2} = \frac{\pi^2}{6}" in shown
    assert "costs are $5 and $10" in text
    assert prose.locator("code:not(.formula)").inner_text() == "$y$"
    assert prose.locator("code.formula").inner_text() == r"\nothing{x}"
    assert prose.locator("a").count() == 0
    assert page.evaluate("document.fonts.check('16px KaTeX_Math')")
    assert {httpx.URL(each).host for each in asked} == {httpx.URL(str(client.base_url)).host}
    assert any(each.endswith(".woff2") for each in asked)
    styles = [each for each in asked if each.endswith("katex.min.css")]
    assert len(styles) == 1


def test_a_long_formula_scrolls_by_itself(opened: Any) -> None:
    page = opened(width=360)
    terms = " + ".join(f"x_{{{n}}}" for n in range(60))
    answer_with(page, events({"content": f"$${terms}$$"}))
    ask(page, "Add.")
    page.wait_for_selector(".formula.displayed .katex")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    widths = page.locator(".formula.displayed").evaluate(
        "each => [each.scrollWidth, each.clientWidth]"
    )
    assert widths[0] > widths[1]
