// One message as it is shown: text, thoughts, calls, what it cost, what went wrong, what one can do.

import { attachedList } from "./attachments.js";
import { attachedTo, canContinue } from "./conversation.js";
import { copyButton, h, iconButton } from "./dom.js";
import { MarkdownView } from "./markdown.js";

/**
 * @typedef {import("./conversation.js").Message} Message
 * @typedef {(import("./pictures.js").Picture | import("./text_files.js").TextFile)[]} Attached
 * @typedef {{retry: (message: Message) => void, continue: (message: Message) => void, edit: (message: Message, text: string, attached: Attached) => void,
 *   step: (message: Message, by: number) => void, answerCalls: (message: Message, results: string[]) => void,
 *   askForKey: (message: Message) => void, pictures: import("./pictures.js").Pictures}} Actions
 * @typedef {{isWriting: boolean, isLast: boolean, version: number, versions: number,
 *   results: (string | undefined)[], isBusy: boolean, waitsFor: string}} Situation
 */

const ENDS = {
  length: "The reply was cut off: it reached the limit of tokens, or the context is full.",
  stopped: "Stopped.",
  interrupted: "The page was closed before the reply was complete.",
};

export class MessageView {
  /**
   * @param {Message} message
   * @param {Actions} actions
   */
  constructor(message, actions) {
    this.message = message;
    this.actions = actions;
    this.isEditing = false;
    this.markdown = new MarkdownView();
    this.thoughts = new MarkdownView();
    this.thoughtsTitle = h("summary");
    this.thinking = h("details", { class: "thinking", hidden: true }, this.thoughtsTitle, this.thoughts.element);
    this.body = h("div", { class: "body" });
    this.calls = h("div", { class: "calls" });
    this.end = h("div", { class: "end" });
    this.footer = h("div", { class: "actions" });
    this.heading = h("h2", { class: "visually-hidden" });
    const attached = attachedTo(message);
    this.attached = h("div", { class: "files" }, attached.length > 0 && attachedList(actions.pictures, attached, "Attached files"));
    const said = message.role === "user" ? [] : [this.thinking, this.calls, this.end];
    this.element = h("article", { class: `message ${message.role}`, tabindex: "-1" },
      this.heading, said[0], attached.length > 0 && this.attached, this.body, said.slice(1), this.footer);
    /** @type {Situation} */
    this.situation = { isWriting: false, isLast: false, version: 1, versions: 1, results: [], isBusy: false, waitsFor: "" };
    this.drawnCalls = "";
    this.wasAnswerable = false;
  }

  /** @param {Situation} situation */
  update(situation) {
    this.situation = situation;
    if (this.isEditing) return;
    const { message } = this;
    this.heading.textContent = message.role === "user" ? "You" : `Reply${message.model ? ` of ${message.model}` : ""}`;
    this.element.classList.toggle("writing", situation.isWriting);
    this.element.classList.toggle("last", situation.isLast);
    this.drawText();
    this.drawCalls();
    if (situation.isWriting) {
      this.end.replaceChildren();
      this.footer.replaceChildren();
      return;
    }
    this.drawEnd();
    this.drawFooter();
  }

  /** What changes with every piece of a reply. */
  drawText() {
    const { message, situation } = this;
    if (message.role === "user") {
      this.body.replaceChildren(...(message.content ? [h("p", { class: "said" }, message.content)] : []));
      return;
    }
    this.thinking.hidden = !message.reasoning;
    if (message.reasoning) {
      const isThinking = situation.isWriting && !message.content;
      this.thoughtsTitle.textContent = isThinking ? "Thinking…" : `Thinking (${words(message.reasoning)})`;
      this.thoughts.show(message.reasoning);
    }
    if (this.markdown.element.parentNode !== this.body) this.body.replaceChildren(this.markdown.element);
    this.markdown.show(message.content);
    const isWaiting = situation.isWriting && !message.content && !message.reasoning && !message.toolCalls?.length;
    this.body.querySelector(".waiting")?.remove();
    if (isWaiting) this.body.append(h("p", { class: "waiting" }, situation.waitsFor));
  }

  drawCalls() {
    const calls = this.message.toolCalls ?? [];
    const { isLast, isWriting, isBusy, results } = this.situation;
    const canAnswer = calls.length > 0 && isLast && !isWriting && !isBusy;
    const drawn = JSON.stringify([calls, results, canAnswer]);
    if (drawn === this.drawnCalls) return;
    this.drawnCalls = drawn;
    // A call is folded once it has its result: what is to be done is seen, what was done can be looked up.
    const open = new Set([...this.calls.querySelectorAll("details[open]")].map((each) => each.getAttribute("data-id")));
    if (this.wasAnswerable) open.clear();
    this.wasAnswerable = canAnswer;
    /** @type {HTMLTextAreaElement[]} */
    const fields = [];
    this.calls.replaceChildren(...calls.map((call, index) => {
      const isOpen = results[index] === undefined ? canAnswer : open.has(call.id);
      const card = h("details", { class: "call", open: isOpen, "data-id": call.id },
        h("summary", {}, "Calls ", h("code", {}, call.name)), h("pre", { tabindex: "0", role: "group", "aria-label": "Arguments" }, pretty(call.arguments)));
      if (results[index] !== undefined) card.append(h("h4", {}, "Result"), h("pre", { tabindex: "0", role: "group", "aria-label": "Result" }, results[index]));
      else if (canAnswer) {
        const field = h("textarea", { rows: 2, "aria-label": `Result of ${call.name}`, placeholder: "What the function returns" });
        fields.push(field);
        card.append(field);
      }
      return card;
    }));
    if (fields.length) {
      const send = () => this.actions.answerCalls(this.message, fields.map((each) => each.value));
      this.calls.append(h("button", { type: "button", class: "primary", onclick: send }, fields.length > 1 ? "Send the results" : "Send the result"));
    }
  }

  drawEnd() {
    const { message } = this;
    const shown = [];
    const why = message.failure ? "" : ENDS[/** @type {keyof typeof ENDS} */ (message.finish)] ?? "";
    if (why) shown.push(h("p", { class: "why" }, why));
    if (message.ignored?.length) shown.push(h("p", { class: "why" }, `The server ignored these fields: ${message.ignored.join(", ")}.`));
    if (message.failure) shown.push(this.failureCard(message.failure));
    else if (this.canContinue) shown.push(this.continueButton());
    this.end.replaceChildren(...shown);
  }

  /** @param {import("./conversation.js").Failure} failure */
  failureCard(failure) {
    const title = { gone: "No answer", broken: "Connection lost", key: "API key needed", full: "The context is full", busy: "The server is busy", other: "The server refused" }[failure.kind] ?? "It failed";
    const card = h("div", { class: "failure", role: "alert" }, h("strong", {}, title));
    const { n_prompt_tokens: needed, n_ctx: there } = failure.facts ?? {};
    const isMeasured = failure.kind === "full" && needed && there;
    card.append(h("p", {}, isMeasured ? `The messages take ${count(needed)} tokens; the context of the model has ${count(there)}.` : failure.message));
    if (failure.kind === "full") {
      card.append(h("p", {}, "Start a new chat, edit an earlier message, or serve the model with a larger ", h("code", {}, "--context"), "."));
    }
    if (failure.code === "request_too_large") card.append(h("p", {}, "Images and files are sent with every message: remove some from an earlier message, or start a new chat."));
    if (failure.kind === "busy" && failure.retryAfter) card.append(h("p", {}, `It asks you to wait ${failure.retryAfter} s.`));
    const isKey = failure.kind === "key";
    const act = () => (isKey ? this.actions.askForKey(this.message) : this.actions.retry(this.message));
    card.append(h("div", { class: "buttons" }, h("button", { type: "button", class: "plain", onclick: act }, isKey ? "Enter the key" : "Try again"),
      this.canContinue && this.continueButton()));
    return card;
  }

  get canContinue() {
    return this.situation.isLast && !this.situation.isBusy && canContinue(this.message);
  }

  continueButton() {
    return h("button", { type: "button", class: "plain continue", onclick: () => this.actions.continue(this.message) }, "Continue");
  }

  drawFooter() {
    const { message, situation, actions } = this;
    const focused = this.footer.contains(document.activeElement) ? document.activeElement?.getAttribute("aria-label") : null;
    const shown = [];
    if (situation.versions > 1) {
      shown.push(h("span", { class: "versions", role: "group", "aria-label": "Versions" },
        iconButton("left", "Earlier version", () => actions.step(message, -1), { disabled: situation.version === 1 }),
        h("span", {}, `${situation.version}/${situation.versions}`),
        iconButton("right", "Later version", () => actions.step(message, 1), { disabled: situation.version === situation.versions })));
    }
    if (message.content) shown.push(copyButton(() => message.content, "Copy the text"));
    if (!situation.isBusy) {
      if (message.content || attachedTo(message).length) shown.push(iconButton("edit", "Edit", () => this.beginEdit()));
      if (message.role === "assistant" && !message.failure) shown.push(iconButton("retry", "Try again", () => actions.retry(message)));
    }
    const cost = costOf(message);
    if (cost) shown.push(h("span", { class: "cost" }, cost));
    this.footer.replaceChildren(...shown);
    if (focused) /** @type {HTMLElement | null} */ (this.footer.querySelector(`[aria-label="${focused}"]`))?.focus();
  }

  /** Let the text be changed: that makes another version of the message. */
  beginEdit() {
    this.isEditing = true;
    const isUser = this.message.role === "user";
    const field = h("textarea", { class: "edit", "aria-label": "Edit the message", value: this.message.content });
    const before = attachedTo(this.message);
    let attached = before;
    const drawAttached = () => {
      if (!before.length) return;
      this.attached.replaceChildren(attachedList(this.actions.pictures, attached, "Attached files", this.isEditing ? (item) => {
        attached = attached.filter((each) => each !== item);
        drawAttached();
        field.focus();
      } : undefined));
    };
    const end = () => {
      this.isEditing = false;
      attached = before;
      drawAttached();
      this.body.replaceChildren();
      this.update(this.situation);
      /** @type {HTMLElement | null} */ (this.footer.querySelector('[aria-label="Edit"]'))?.focus();
    };
    const save = () => {
      if (!field.value.trim() && !attached.length) return;
      const chosen = attached;
      end();
      if (field.value === this.message.content && chosen.length === before.length) return;
      this.actions.edit(this.message, field.value, chosen);
    };
    field.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.isComposing) return;
      if (event.key === "Escape") {
        event.stopPropagation();
        end();
      } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        event.stopPropagation();
        save();
      }
    });
    this.body.replaceChildren(field, h("div", { class: "edit-buttons" },
      h("button", { type: "button", class: "plain", onclick: end }, "Cancel"),
      h("button", { type: "button", class: "primary", onclick: save }, isUser ? "Send" : "Save")));
    this.footer.replaceChildren();
    drawAttached();
    field.rows = Math.min(16, Math.max(3, field.value.split("\n").length + 1));
    field.focus();
  }
}

/** @param {Message} message */
function costOf(message) {
  const { stats } = message;
  if (!stats) return "";
  const parts = [];
  if (stats.completionTokens) parts.push(`${count(stats.completionTokens)} tokens`);
  if (stats.tokensPerSecond) parts.push(`${round(stats.tokensPerSecond)} tokens/s`);
  if (stats.promptPerSecond) parts.push(`prompt ${round(stats.promptPerSecond)} tokens/s`);
  if (stats.firstTokenMs !== null) parts.push(`first token after ${round(stats.firstTokenMs / 1000)} s`);
  return parts.join(" · ");
}

/** @param {number} value */
const round = (value) => (value >= 100 ? String(Math.round(value)) : value.toFixed(value >= 10 ? 1 : 2));

/** @param {number} value */
export const count = (value) => Number(value).toLocaleString("en");

/** @param {string} text */
function words(text) {
  const n = text.trim().split(/\s+/).length;
  return n === 1 ? "1 word" : `${count(n)} words`;
}

/** @param {string} text */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
