// Formulas in Markdown: $…$, $$…$$, \(…\) and \[…\], as models write them; KaTeX sets them.

import { h } from "./dom.js";

const BLOCK = /^ {0,3}(?:\$\$([\s\S]+?)\$\$|\\\[([\s\S]+?)\\\])[ \t]*(?:\n+|$)/;
// A dollar begins a formula where no space follows it, and ends one where none precedes and no letter or digit
// follows: prices are prices.
const INLINE = /^(?:\$\$([^$]+?)\$\$|\\\[([\s\S]+?)\\\]|\\\(([\s\S]+?)\\\)|\$(?![\s$])((?:\\.|[^\\$`\n])*?[^\s\\$`])\$(?!\w))/;

/** @param {string} text */
const escaped = (text) => text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);

/** @param {any} token */
const renderer = ({ text, isDisplayed }) => `<code class="formula${isDisplayed ? " displayed" : ""}">${escaped(text)}</code>`;

/** For Marked: formulas are found before Markdown sees underscores and backslashes in them. */
export const FORMULAS = [
  {
    name: "formulaBlock",
    level: /** @type {const} */ ("block"),
    start: (/** @type {string} */ source) => source.match(/^ {0,3}(?:\$\$|\\\[)/m)?.index,
    tokenizer(/** @type {string} */ source) {
      const found = BLOCK.exec(source);
      if (found) return { type: "formulaBlock", raw: found[0], text: (found[1] ?? found[2]).trim(), isDisplayed: true };
    },
    renderer: (/** @type {any} */ token) => `<p>${renderer(token)}</p>`,
  },
  {
    name: "formula",
    level: /** @type {const} */ ("inline"),
    start: (/** @type {string} */ source) => source.match(/\$|\\[([]/)?.index,
    tokenizer(/** @type {string} */ source) {
      const found = INLINE.exec(source);
      if (!found) return;
      const displayed = found[1] ?? found[2];
      const text = (displayed ?? found[3] ?? found[4]).trim();
      return { type: "formula", raw: found[0], text, isDisplayed: displayed !== undefined };
    },
    renderer,
  },
];

/** @type {any} */
let katex = null;
/** @type {Promise<void> | null} */
let loading = null; // 270 KB, which a chat without formulas never asks for

/**
 * Set the formulas of a sanitised text; until KaTeX is here, and where it fails, they stay as they were written.
 * @param {DocumentFragment} fragment
 */
export function setFormulas(fragment) {
  for (const code of /** @type {NodeListOf<HTMLElement>} */ (fragment.querySelectorAll("code.formula"))) {
    if (katex) set(code);
    else (loading ??= load()).then(() => set(code), () => {});
  }
}

async function load() {
  const style = h("link", { rel: "stylesheet", href: "page/vendor/katex.min.css" });
  document.head.append(style);
  await import("./vendor/katex.min.js");
  katex = /** @type {any} */ (globalThis).katex;
}

/** @param {HTMLElement} code */
function set(code) {
  const isDisplayed = code.classList.contains("displayed");
  const shown = isDisplayed
    ? h("span", { class: "formula displayed", tabindex: "0", role: "group", "aria-label": "Formula" })
    : h("span", { class: "formula" });
  try {
    // Nothing is trusted: no links, pictures or classes, and no macro expands without end.
    katex.render(code.textContent ?? "", shown, { displayMode: isDisplayed, trust: false, strict: "ignore", errorColor: "var(--warn)", maxSize: 20, maxExpand: 200 });
  } catch {
    return;
  }
  code.replaceWith(shown);
}
