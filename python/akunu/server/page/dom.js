// Elements without markup in strings: text stays text.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Make an element. `props`: attributes; `class`; `onclick` and other listeners; a boolean sets or
 * leaves out an attribute; null and undefined are left out.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Child | Child[])} children
 * @returns {any} the element
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") /** @type {any} */ (element).value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((each) => each || each === 0).map(asNode));
  return element;
}

/** @param {any} child */
const asNode = (child) => (child instanceof Node ? child : String(child));

const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  send: "M12 19V5M5.5 11.5 12 5l6.5 6.5",
  stop: "M7 7h10v10H7z",
  add: "M12 5v14M5 12h14",
  menu: "M4 7h16M4 12h16M4 17h16",
  settings: "M4 7h9m5 0h2M4 17h2m5 0h9M13 4.500v5h5v-5zM6 14.500v5h5v-5z",
  copy: "M9 9h10v11H9zM5 15V4h10",
  check: "m5 12.5 4.5 4.500L19 7.5",
  edit: "m5 19 1-4L16 5l3 3L9 18zM14 7l3 3",
  retry: "M19 12a7 7 0 1 1-2.2-5.100M19 4v4h-4",
  trash: "M5 7h14M10 7V4h4v3m-7 0 1 13h8l1-13",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zm5-1.500L20 20",
  close: "m6 6 12 12M18 6 6 18",
  left: "m14.5 6-6 6 6 6",
  right: "m9.5 6 6 6-6 6",
  down: "M12 5v14m6.5-6.500L12 19l-6.5-6.5",
  theme: "M12 20a8 8 0 1 0 0-16zm0 0a8 8 0 1 1 0-16",
  files: "M4 7v12h16V7zM4 7l2-3h12l2 3m-8 3v6m-3-2.5 3 2.5 3-2.5",
  clip: "M19.5 11.500l-7.8 7.800a4.600 4.600 0 0 1-6.500-6.500l8-8a3 3 0 0 1 4.300 4.300l-7.900 7.900a1.500 1.500 0 0 1-2.100-2.100l7.300-7.300",
  text: "M6 3.500h8l4 4v13H6zM14 3.500v4h4M9 12h6M9 16h6",
  models: "M12 3l8 4.5v9L12 21l-8-4.500v-9zM4 7.500l8 4.500 8-4.500M12 12v9",
  help: "M9 9.500a3 3 0 1 1 4.5 2.600c-1 .6-1.5 1.2-1.5 2.400m0 3.500v.01",
};

/**
 * Make an icon, which screen readers pass over.
 * @param {keyof typeof ICONS} name
 */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 24 24", "aria-hidden": "true", class: "icon" }))
    svg.setAttribute(key, value);
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/**
 * Make a button that is an icon; its label is read aloud and shown as a tip.
 * @param {keyof typeof ICONS} name
 * @param {string} label
 * @param {(event: MouseEvent) => void} onclick
 * @param {Record<string, any>} [props]
 */
export function iconButton(name, label, onclick, props = {}) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...props }, icon(name));
}

/**
 * Make a button that copies a text and shows that it did.
 * @param {() => string} text
 * @param {string} label
 */
export function copyButton(text, label) {
  const button = iconButton("copy", label, async () => {
    const done = await copy(text());
    button.replaceChildren(icon(done ? "check" : "close"));
    say(done ? "Copied" : "The browser did not allow copying");
    setTimeout(() => button.replaceChildren(icon("copy")), 1500);
  });
  return button;
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers have no clipboard for pages over http from another machine: the older way.
    const field = h("textarea", { class: "visually-hidden", value: text, "aria-hidden": "true" });
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    (before?.closest("dialog") ?? document.body).append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    before?.focus();
    return done;
  }
}

/**
 * Tell users of screen readers, politely.
 * @param {string} text
 */
export function say(text) {
  const status = document.getElementById("status");
  if (status) status.textContent = text;
}

/**
 * Show a short notice, with at most one thing to do about it.
 * @param {string} text
 * @param {{label: string, run: () => void}} [action]
 */
export function notify(text, action) {
  document.querySelector(".notice")?.remove();
  const notice = h("div", { class: "notice", role: "status" }, h("span", {}, text));
  const end = () => notice.remove();
  if (action) {
    notice.append(h("button", { type: "button", class: "plain", onclick: () => (end(), action.run()) }, action.label));
  }
  notice.append(iconButton("close", "Close the notice", end));
  document.body.append(notice);
  setTimeout(end, Math.max(action ? 10000 : 5000, text.length * 60)); // as long as one reads it
}
