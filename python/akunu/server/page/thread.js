// The messages of the conversation that is shown, one below the other.

import { versions } from "./conversation.js";
import * as tree from "./conversation.js";
import { h, iconButton } from "./dom.js";
import { MessageView } from "./message_view.js";

/**
 * @typedef {import("./conversation.js").Conversation} Conversation
 * @typedef {import("./conversation.js").Message} Message
 */

const NEAR_THE_END = 80; // pixels: a view this close to the end follows the reply

export class Thread {
  /** @param {import("./message_view.js").Actions} actions */
  constructor(actions) {
    this.actions = actions;
    /** @type {Map<string, MessageView>} */
    this.views = new Map();
    this.list = h("div", { class: "thread" });
    this.welcome = h("div", { class: "welcome" },
      h("h2", {}, "What is on your mind?"),
      h("p", {}, "The model runs on the machine that serves this page. Your conversations stay in this browser."));
    this.jump = iconButton("down", "Go to the end", () => this.toEnd(), { class: "icon-button jump", hidden: true });
    this.scroller = h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Messages" }, this.welcome, this.list);
    this.element = h("div", { class: "thread-frame" }, this.scroller, this.jump);
    this.scroller.addEventListener("scroll", () => (this.jump.hidden = this.isAtEnd()), { passive: true });
    /** @type {string | null} */
    this.shownId = null;
  }

  /**
   * @param {Conversation} conversation
   * @param {{isRunning: boolean, waitsFor: string}} state
   */
  show(conversation, { isRunning, waitsFor }) {
    const isOther = this.shownId !== conversation.id;
    const follow = isOther || this.isAtEnd();
    if (isOther) {
      this.views.clear();
      this.list.replaceChildren();
      this.shownId = conversation.id;
    }
    const all = tree.path(conversation);
    const shown = all.filter((each) => each.role !== "tool"); // results stand in the card of their call
    this.welcome.hidden = shown.length > 0;
    const last = all[all.length - 1];
    const elements = shown.map((message) => {
      const view = this.views.get(message.id) ?? new MessageView(message, this.actions);
      this.views.set(message.id, view);
      view.message = message;
      const siblings = versions(conversation, message.parent);
      const results = (message.toolCalls ?? []).map(
        (call) => all.find((each) => each.role === "tool" && each.toolCallId === call.id)?.content);
      view.update({
        isWriting: isRunning && message === last,
        isLast: message === last,
        isBusy: isRunning,
        version: siblings.indexOf(message) + 1,
        versions: siblings.length,
        results,
        waitsFor,
      });
      return view.element;
    });
    this.place(elements);
    if (follow) this.toEnd();
    else this.jump.hidden = this.isAtEnd();
  }

  /** Put elements in their places without touching those that are there: focus and selection stay. */
  place(/** @type {HTMLElement[]} */ elements) {
    const wanted = new Set(elements);
    for (const each of [...this.list.children]) if (!wanted.has(/** @type {HTMLElement} */ (each))) each.remove();
    elements.forEach((each, index) => {
      if (this.list.children[index] !== each) this.list.insertBefore(each, this.list.children[index] ?? null);
    });
  }

  /** Show what a piece of a reply brought. */
  grow(/** @type {Message} */ message) {
    const follow = this.isAtEnd();
    const view = this.views.get(message.id);
    if (!view) return;
    view.drawText();
    view.drawCalls();
    if (follow) this.toEnd();
    else this.jump.hidden = false;
  }

  isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight < NEAR_THE_END;
  }

  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.jump.hidden = true;
  }
}
