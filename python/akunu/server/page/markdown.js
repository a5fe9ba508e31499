// Markdown as it streams in: blocks that are complete stay as they are, the last one is drawn anew.

import { Marked } from "./vendor/marked.esm.js";
import "./vendor/purify.min.js";
import { copyButton, h } from "./dom.js";
import { FORMULAS, setFormulas } from "./maths.js";

const purify = /** @type {any} */ (globalThis).DOMPurify;
const HARMLESS = /^<\/?(br|sub|sup|kbd|b|i|u|em|strong|mark|s|del)\s*\/?>$/i;
const LONGEST_HIGHLIGHTED = 50000; // characters: more takes longer than one wants to wait

const marked = new Marked({
  gfm: true,
  breaks: false,
  extensions: FORMULAS,
  renderer: {
    // Markup that a model writes is mostly an example that it forgot to fence: shown, not obeyed.
    html: (/** @type {{text: string}} */ { text }) => (HARMLESS.test(text.trim()) ? text : escaped(text)),
    // A picture from elsewhere would tell its server what was said here: a link, which one may click.
    image(/** @type {{href: string, text: string}} */ { href, text }) {
      return `<a href="${escaped(href)}">${escaped(text || href)}</a>`;
    },
  },
});

/** @param {string} text */
const escaped = (text) =>
  text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);

const ALLOWED = {
  ALLOWED_TAGS: ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code",
    "em", "strong", "del", "s", "b", "i", "u", "mark", "sub", "sup", "kbd", "a", "input",
    "table", "thead", "tbody", "tr", "th", "td"],
  ALLOWED_ATTR: ["href", "class", "start", "align", "type", "checked", "disabled"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ADD_URI_SAFE_ATTR: ["start", "align", "type", "checked", "disabled"], // they are not addresses
  RETURN_DOM_FRAGMENT: true,
};

/** @type {Promise<any> | null} */
let highlighter = null; // 126 KB, which a chat without code never loads

/** An element that shows a text of Markdown, which may grow. */
export class MarkdownView {
  constructor() {
    this.element = h("div", { class: "prose" });
    /** @type {{raw: string, nodes: Node[]}[]} */
    this.blocks = [];
    this.text = "";
  }

  /** @param {string} text */
  show(text) {
    if (text === this.text) return; // a long conversation is drawn again at the end of each reply
    this.text = text;
    const tokens = marked.lexer(text).filter((each) => each.type !== "space");
    let same = 0;
    // A definition of a link at the end may change what stands above: then all is drawn.
    const isFree = tokens.every((each) => each.type !== "def");
    while (isFree && same < this.blocks.length && this.blocks[same].raw === tokens[same]?.raw) same += 1;
    for (const block of this.blocks.splice(same)) block.nodes.forEach((each) => each.parentNode?.removeChild(each));
    for (const token of tokens.slice(same)) {
      const fragment = purify.sanitize(marked.parser([token]), ALLOWED);
      finish(fragment);
      const nodes = [...fragment.childNodes];
      this.element.append(fragment);
      this.blocks.push({ raw: token.raw, nodes });
    }
  }
}

/** What sanitised blocks get besides. @param {DocumentFragment} fragment */
function finish(fragment) {
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
  }
  for (const box of fragment.querySelectorAll("input")) {
    if (box.type !== "checkbox") box.remove();
    else box.setAttribute("aria-label", box.checked ? "done" : "to do");
  }
  for (const table of fragment.querySelectorAll("table")) {
    const frame = h("div", { class: "table-frame", tabindex: "0", role: "group", "aria-label": "Table" });
    table.replaceWith(frame);
    frame.append(table);
  }
  // The page has headings of ranks 1 and 2: those of a text come below.
  for (const heading of [...fragment.querySelectorAll("h1, h2, h3, h4, h5, h6")]) {
    const rank = Number(heading.tagName[1]);
    const lower = h(`h${Math.min(6, rank + 2)}`, { class: `rank-${rank}` });
    lower.append(...heading.childNodes);
    heading.replaceWith(lower);
  }
  setFormulas(fragment);
  for (const code of fragment.querySelectorAll("pre > code")) frameCode(/** @type {HTMLElement} */ (code));
}

/** @param {HTMLElement} code */
function frameCode(code) {
  const language = [...code.classList].find((each) => each.startsWith("language-"))?.slice(9) ?? "";
  const pre = /** @type {HTMLElement} */ (code.parentElement);
  const text = code.textContent ?? "";
  const name = language || "text";
  const frame = h("figure", { class: "code" },
    h("figcaption", {}, h("span", {}, name), copyButton(() => text.replace(/\n$/, ""), `Copy the code (${name})`)));
  pre.replaceWith(frame);
  pre.tabIndex = 0; // it scrolls, also by keyboard
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", `Code (${name})`);
  frame.append(pre);
  if (language && text.length <= LONGEST_HIGHLIGHTED) highlight(code, text, language);
}

/** The highlighter once it is here: then code is coloured at once, and does not flicker. @type {any} */
let loaded = null;

/**
 * @param {HTMLElement} code
 * @param {string} text
 * @param {string} language
 */
function highlight(code, text, language) {
  if (loaded) {
    colour(code, text, language);
    return;
  }
  highlighter ??= import("./vendor/highlight.min.js").then((module) => (loaded = module.default));
  highlighter.then(() => colour(code, text, language), () => {}); // without it, code is plain
}

/**
 * @param {HTMLElement} code
 * @param {string} text
 * @param {string} language
 */
function colour(code, text, language) {
  if (!loaded.getLanguage(language)) return;
  const markup = loaded.highlight(text, { language, ignoreIllegals: true }).value;
  const coloured = purify.sanitize(markup, { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], RETURN_DOM_FRAGMENT: true });
  code.replaceChildren(coloured);
}
