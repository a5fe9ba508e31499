// The field in which one writes, and the line below it.

import { Attachments } from "./attachments.js";
import { h, icon } from "./dom.js";
import { count } from "./message_view.js";
import { kept } from "./store.js";

export class Composer {
  /**
   * @param {import("./pictures.js").Pictures} pictures
   * @param {{send: (text: string, attached: (import("./pictures.js").Picture | import("./text_files.js").TextFile)[]) => void, stop: () => void, editLast: () => void,
   *   model: () => string | null, readsImages: () => boolean | undefined, dropImages: (ids: string[]) => void}} actions
   */
  constructor(pictures, actions) {
    this.actions = actions;
    this.attachments = new Attachments(pictures, { ...actions, changed: () => this.update(this.isRunning) });
    this.draftName = "draft.new";
    this.isRunning = false;
    this.field = h("textarea", {
      id: "prompt", rows: 1, placeholder: "Write a message", "aria-label": "Message", autocomplete: "off", enterkeyhint: "send",
    });
    this.button = h("button", { type: "button", class: "send", onclick: () => this.act() });
    this.meter = h("progress", { class: "meter", max: 1, value: 0, "aria-label": "Context used", hidden: true });
    this.used = h("span", { class: "used" });
    this.element = h("form", { class: "composer", onsubmit: (/** @type {Event} */ event) => event.preventDefault() },
      this.attachments.element,
      h("div", { class: "field" }, this.attachments.button, this.attachments.input, this.field, this.button),
      h("div", { class: "below" }, this.used, this.meter));
    this.field.addEventListener("input", () => this.changed());
    this.field.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.pressed(event));
    this.field.addEventListener("paste", (/** @type {ClipboardEvent} */ event) => this.attachments.pasted(event));
    this.attachments.listenToDrops(this.element);
    this.update(false);
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    if (event.isComposing) return; // Enter belongs to the input method
    const isPlain = !event.shiftKey && !event.ctrlKey && !event.metaKey && !event.altKey;
    // On a phone, Enter makes a line: the button is near, and Shift is not.
    if (event.key === "Enter" && isPlain && !matchMedia("(pointer: coarse)").matches) {
      event.preventDefault();
      if (!this.isRunning) this.act();
    } else if (event.key === "ArrowUp" && isPlain && !this.field.value) {
      event.preventDefault();
      this.actions.editLast();
    }
  }

  act() {
    if (this.isRunning) {
      this.actions.stop();
      return;
    }
    const text = this.field.value.trim();
    if (!this.canSend) {
      this.field.focus();
      return;
    }
    this.field.value = "";
    this.changed();
    this.actions.send(text, this.attachments.take());
  }

  get canSend() {
    return !this.attachments.isChecking && Boolean(this.field.value.trim() || this.attachments.items.length);
  }

  changed() {
    kept.set(this.draftName, this.field.value);
    this.resize();
    if (!this.isRunning) this.button.disabled = !this.canSend;
  }

  resize() {
    this.field.style.height = "auto";
    this.field.style.height = `${Math.min(this.field.scrollHeight, Math.round(innerHeight * 0.4))}px`;
  }

  /** Show the draft of a conversation. @param {string} id its id, or "new" */
  turnTo(id) {
    this.draftName = `draft.${id}`;
    this.field.value = kept.get(this.draftName) ?? "";
    this.attachments.turnTo(this.draftName);
    this.resize();
    this.update(this.isRunning);
  }

  /** @param {boolean} isRunning */
  update(isRunning) {
    this.isRunning = isRunning;
    const label = isRunning ? "Stop the reply" : "Send";
    if (this.button.getAttribute("aria-label") !== label) {
      this.button.setAttribute("aria-label", label);
      this.button.title = isRunning ? "Stop (Esc)" : "Send (Enter)";
      this.button.replaceChildren(icon(isRunning ? "stop" : "send"));
    }
    this.button.disabled = !isRunning && !this.canSend;
  }

  /**
   * @param {number} used tokens
   * @param {number | undefined} context tokens
   */
  showContext(used, context) {
    this.meter.hidden = !used || !context;
    this.used.textContent = "";
    if (!used) {
      this.used.textContent = context ? `Room for ${count(context)} tokens` : "";
      return;
    }
    if (context) {
      this.meter.max = context;
      this.meter.value = Math.min(used, context);
      this.meter.classList.toggle("tight", used > context * 0.85);
    }
    this.used.textContent = context ? `${count(used)} of ${count(context)} tokens used` : `${count(used)} tokens used`;
  }
}
