// Images and text files of the message that is being written: chosen, dropped or pasted, shown small, and taken out again.

import { checkImage, ServerError } from "./api.js";
import { newId } from "./conversation.js";
import { openDialog } from "./dialogs.js";
import { h, icon, iconButton, notify, say } from "./dom.js";
import { urlOf } from "./pictures.js";
import { kept } from "./store.js";
import { attachable, readText, sizeOf } from "./text_files.js";

/**
 * @typedef {import("./pictures.js").Picture} Picture
 * @typedef {import("./text_files.js").TextFile} TextFile
 */

const MOST_BYTES = 32 << 20; // of one image, as the server has it: more is not sent to be refused

/** Another kind of file would do. */
class WrongKind extends Error {}

export class Attachments {
  /**
   * @param {import("./pictures.js").Pictures} pictures
   * @param {{model: () => string | null, readsImages: () => boolean | undefined, changed: () => void,
   *   dropImages: (ids: string[]) => void}} actions
   */
  constructor(pictures, actions) {
    this.pictures = pictures;
    this.actions = actions;
    this.draftName = "";
    /** @type {(Picture | TextFile)[]} */
    this.items = [];
    this.n_checked = 0;
    // It accepts every file: no list has the endings of all texts. A file that is refused is named, with the reason.
    this.input = h("input", {
      type: "file", multiple: true, hidden: true, "aria-label": "Files to attach",
      onchange: () => {
        this.add([...this.input.files]);
        this.input.value = "";
      },
    });
    this.button = iconButton("clip", "Attach files", () => this.input.click(), { class: "icon-button attach" });
    this.element = h("div", { class: "attached", hidden: true });
  }

  /** Whether the server still looks at some. */
  get isChecking() {
    return this.n_checked > 0;
  }

  /** Show what is attached to a draft. @param {string} draftName */
  turnTo(draftName) {
    this.draftName = draftName;
    this.items = kept.get(`${draftName}.attached`) ?? [];
    this.draw();
  }

  /** Hand over what is attached, to be sent. */
  take() {
    const { items } = this;
    this.set([]);
    return items;
  }

  /** @param {(Picture | TextFile)[]} items */
  set(items) {
    this.items = items;
    kept.set(`${this.draftName}.attached`, items.length ? items : null);
    this.draw();
    this.actions.changed();
  }

  draw() {
    this.element.hidden = !this.items.length;
    this.element.replaceChildren(attachedList(this.pictures, this.items, "Attached files", (item) => this.remove(item)));
  }

  /** @param {Picture | TextFile} item */
  remove(item) {
    const at = this.items.indexOf(item);
    this.set(this.items.filter((each) => each !== item));
    if (!("text" in item)) this.actions.dropImages([item.id]);
    say(`${item.name} removed`);
    const buttons = this.element.querySelectorAll(".remove");
    /** @type {HTMLElement | null} */ (buttons[Math.min(at, buttons.length - 1)] ?? document.getElementById("prompt"))?.focus();
  }

  /** Attach files; those that are refused are named, with the reason. @param {File[]} files */
  async add(files) {
    if (!files.length) return;
    const { draftName } = this;
    /** @type {string[]} */
    const said = [];
    let isWrongKind = false;
    this.n_checked += 1;
    this.actions.changed();
    for (const given of files) {
      const name = given.name || "File";
      try {
        const isImage = given.type.startsWith("image/") && given.type !== "image/svg+xml"; // that one is text
        const text = isImage ? null : await readText(given);
        if (text) this.attach(draftName, { id: newId(), name, text });
        else {
          const warning = await this.addImage(draftName, given, name, isImage);
          if (warning) said.push(warning);
        }
      } catch (error) {
        said.push(`${name}: ${/** @type {Error} */ (error).message}`);
        isWrongKind ||= error instanceof WrongKind;
      }
    }
    this.n_checked -= 1;
    this.actions.changed();
    if (isWrongKind) said.push(attachable(this.actions.readsImages() !== false));
    if (said.length) notify(said.join("\n"));
  }

  /**
   * Attach an image; returns what is to be said where the browser could not keep it.
   * @param {string} draftName
   * @param {File} given
   * @param {string} name
   * @param {boolean} isImage whether the browser takes it for one
   */
  async addImage(draftName, given, name, isImage) {
    const readsImages = this.actions.readsImages() !== false;
    if (!isImage && (given.type || !readsImages)) throw new WrongKind("this is neither text nor an image");
    if (!readsImages) throw new WrongKind(`${this.actions.model() ?? "the model"} does not read images`);
    if (given.size > MOST_BYTES) throw new Error(`the image has more than ${MOST_BYTES >> 20} MiB`);
    // A copy: the file that was chosen may change, or go away, before it is sent again.
    const file = new Blob([await given.arrayBuffer()], { type: given.type });
    await this.askServer(file);
    return this.keep(draftName, file, name);
  }

  /** Throws the error with which the server refuses an image; nothing if the server cannot be reached. @param {Blob} file */
  async askServer(file) {
    const url = await urlOf(file);
    try {
      await checkImage(this.actions.model(), url);
    } catch (error) {
      const isRefused = error instanceof ServerError && ["full", "other"].includes(error.kind);
      if (isRefused) throw new Error(error.message.replace(/^messages\[0\]\.content\[0\](: )?/, ""));
      if (!(error instanceof ServerError)) throw error;
    }
  }

  /**
   * Attach an image; returns what is to be said where the browser could not keep it.
   * @param {string} draftName
   * @param {Blob} file
   * @param {string} name
   */
  async keep(draftName, file, name) {
    const image = { id: newId(), name };
    let warning = "";
    try {
      await this.pictures.put(file, image.id);
    } catch (error) {
      warning = `The browser could not store ${name} (${/** @type {Error} */ (error).message}): it is lost when this page is closed.`;
    }
    this.attach(draftName, image);
    return warning;
  }

  /** @param {string} draftName @param {Picture | TextFile} item */
  attach(draftName, item) {
    if (this.draftName === draftName) this.set([...this.items, item]);
    else kept.set(`${draftName}.attached`, [...(kept.get(`${draftName}.attached`) ?? []), item]);
    say(`${item.name} attached`);
  }

  /** Take files that are dropped anywhere on the page. @param {HTMLElement} shown marked while they are above it */
  listenToDrops(shown) {
    const hasFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files") && !document.querySelector("dialog[open]");
    const mark = (/** @type {boolean} */ isAbove) => shown.classList.toggle("drop", isAbove);
    addEventListener("dragover", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      mark(true);
    });
    addEventListener("dragleave", (event) => event.relatedTarget === null && mark(false));
    addEventListener("drop", (event) => {
      if (!hasFiles(event)) return;
      event.preventDefault(); // or the browser would show the file in place of the page
      mark(false);
      this.add([...(event.dataTransfer?.files ?? [])]);
    });
  }

  /** Take copied files. @param {ClipboardEvent} event */
  pasted(event) {
    const files = [...(event.clipboardData?.files ?? [])];
    // A table that is copied comes as a text and as a picture of it: the text is meant.
    const isPicture = files.every((each) => each.type.startsWith("image/"));
    if (!files.length || (isPicture && event.clipboardData?.getData("text/plain"))) return;
    event.preventDefault();
    this.add(files);
  }
}

/**
 * Show images and files in a row.
 * @param {import("./pictures.js").Pictures} pictures
 * @param {(Picture | TextFile)[]} items
 * @param {string} label
 * @param {(item: Picture | TextFile) => void} [remove] called by a button on each
 */
export function attachedList(pictures, items, label, remove) {
  return h("ul", { class: "attachments", "aria-label": label }, items.map((item) => h("li", { class: "text" in item ? "file" : "picture" },
    "text" in item ? chip(item) : thumbnail(pictures, item),
    remove && iconButton("close", `Remove ${item.name}`, () => remove(item), { class: "icon-button remove" }))));
}

/** @param {TextFile} file */
function chip(file) {
  const show = () => openDialog(file.name, "file-sheet", h("pre", { tabindex: "0", role: "group", "aria-label": file.name }, file.text));
  return h("button", { type: "button", class: "chip", title: `Show ${file.name}`, onclick: show },
    icon("text"), h("span", { class: "name" }, file.name), h("span", { class: "size" }, sizeOf(file)));
}

/** @param {import("./pictures.js").Pictures} pictures @param {Picture} image */
function thumbnail(pictures, image) {
  const shown = h("img", { alt: image.name, title: image.name });
  pictures.address(image.id).then((address) => {
    if (address) shown.src = address;
    else shown.replaceWith(h("span", { class: "lost" }, `${image.name}: this browser has it no longer, and the model does not see it.`));
  });
  return shown;
}
