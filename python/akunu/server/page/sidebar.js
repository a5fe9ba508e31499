// The conversations: find, open, rename, delete.

import { h, iconButton } from "./dom.js";

/** @typedef {import("./conversation.js").Conversation} Conversation */

const DAY = 86400000;

export class Sidebar {
  /**
   * @param {{open: (id: string) => void, begin: () => void, rename: (id: string, title: string) => void,
   *   remove: (id: string) => void, theme: () => void, data: () => void, help: () => void, close: () => void}} actions
   */
  constructor(actions) {
    this.actions = actions;
    this.search = h("input", { type: "search", "aria-label": "Search conversations", placeholder: "Search", oninput: () => this.draw() });
    this.list = h("div", { class: "conversations" });
    this.themeButton = iconButton("theme", "Theme", actions.theme);
    this.element = h("nav", { class: "sidebar", "aria-label": "Conversations", id: "sidebar" },
      h("div", { class: "sidebar-head" },
        h("span", { class: "brand" }, "akunu"),
        iconButton("close", "Close the list", actions.close, { class: "icon-button narrow-only" })),
      h("button", { type: "button", class: "new", onclick: actions.begin }, "New chat"),
      h("div", { class: "search" }, this.search),
      this.list,
      h("div", { class: "sidebar-foot" },
        this.themeButton,
        iconButton("files", "Export and import", actions.data),
        iconButton("help", "Keyboard and help", actions.help)));
    /** @type {Conversation[]} */
    this.conversations = [];
    /** @type {string | null} */
    this.current = null;
    /** @type {(id: string) => boolean} */
    this.isRunning = () => false;
    this.renaming = "";
  }

  /**
   * @param {Conversation[]} conversations
   * @param {string | null} current
   * @param {(id: string) => boolean} isRunning
   */
  show(conversations, current, isRunning) {
    this.conversations = [...conversations].sort((a, b) => b.updated - a.updated);
    this.current = current;
    this.isRunning = isRunning;
    if (!this.renaming) this.draw();
  }

  draw() {
    const wanted = this.search.value.trim().toLowerCase();
    const found = this.conversations
      .map((each) => ({ conversation: each, match: matchOf(each, wanted) }))
      .filter((each) => each.match !== null);
    const focused = this.list.contains(document.activeElement) ? document.activeElement?.getAttribute("data-focus") : null;
    /** @type {Node[]} */
    const shown = [];
    let group = "";
    let list = h("ul");
    for (const { conversation, match } of found) {
      const of = wanted ? "Found" : dayOf(conversation.updated);
      if (of !== group) {
        group = of;
        list = h("ul", { "aria-label": group });
        shown.push(h("h2", {}, group), list);
      }
      list.append(this.item(conversation, match ?? ""));
    }
    if (!shown.length) shown.push(h("p", { class: "none" }, wanted ? "Nothing found." : "No conversations yet."));
    this.list.replaceChildren(...shown);
    if (focused) /** @type {HTMLElement | null} */ (this.list.querySelector(`[data-focus="${focused}"]`))?.focus();
  }

  /** @param {Conversation} conversation @param {string} match */
  item(conversation, match) {
    const { id, title } = conversation;
    if (this.renaming === id) return h("li", {}, this.renameField(conversation));
    const isCurrent = id === this.current;
    const open = h("button", {
      type: "button", class: "open", "aria-current": isCurrent ? "page" : null, "data-focus": `open-${id}`,
      title, onclick: () => this.actions.open(id),
    }, h("span", { class: "title" }, title || "Untitled"), match && h("span", { class: "match" }, match),
      this.isRunning(id) && h("span", { class: "busy" }, h("span", { class: "visually-hidden" }, "is being answered")));
    return h("li", { class: isCurrent ? "current" : "" }, open,
      iconButton("edit", `Rename “${title}”`, () => this.beginRename(id), { "data-focus": `rename-${id}` }),
      iconButton("trash", `Delete “${title}”`, () => this.actions.remove(id), { "data-focus": `delete-${id}` }));
  }

  /** @param {string} id */
  beginRename(id) {
    this.renaming = id;
    this.draw();
    const field = this.list.querySelector("input");
    field?.focus();
    field?.select();
  }

  /** @param {Conversation} conversation */
  renameField(conversation) {
    const field = h("input", { class: "rename", "aria-label": "New name", value: conversation.title });
    const end = (/** @type {boolean} */ isKept) => {
      if (!this.renaming) return;
      this.renaming = "";
      if (isKept && field.value.trim()) this.actions.rename(conversation.id, field.value.trim());
      this.draw();
      /** @type {HTMLElement | null} */ (this.list.querySelector(`[data-focus="open-${conversation.id}"]`))?.focus();
    };
    field.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
      event.preventDefault();
      event.stopPropagation();
      end(event.key === "Enter");
    });
    field.addEventListener("blur", () => end(true));
    return field;
  }
}

/**
 * Where a conversation has the words that are looked for: "" in its title, null nowhere.
 * @param {Conversation} conversation
 * @param {string} wanted in lower case
 */
function matchOf(conversation, wanted) {
  if (!wanted || conversation.title.toLowerCase().includes(wanted)) return "";
  for (const content of Object.values(conversation.messages).flatMap(textsOf)) {
    const at = content.toLowerCase().indexOf(wanted);
    if (at >= 0) {
      const from = Math.max(0, at - 20);
      return `${from ? "…" : ""}${content.slice(from, at + 60).replace(/\s+/g, " ")}`;
    }
  }
  return null;
}

/** @param {import("./conversation.js").Message} message */
const textsOf = (message) => [message.content, ...(message.files ?? []).flatMap((each) => [each.name, each.text])];

/** @param {number} time */
function dayOf(time) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  if (time >= midnight) return "Today";
  if (time >= midnight - DAY) return "Yesterday";
  if (time >= midnight - 7 * DAY) return "Last 7 days";
  return new Date(time).toLocaleDateString("en", { month: "long", year: "numeric" });
}
