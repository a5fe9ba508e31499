// Images of the message that is being written: chosen, dropped or pasted, shown small, and taken out again.

import { checkImage, ServerError } from "./api.js";
import { newId } from "./conversation.js";
import { h, iconButton, notify, say } from "./dom.js";
import { urlOf } from "./pictures.js";
import { kept } from "./store.js";

/** @typedef {import("./pictures.js").Picture} Picture */

const MOST_BYTES = 32 << 20; // of one image, as the server has it: more is not sent to be refused
const ACCEPTED = "image/png,image/jpeg,image/webp,image/gif,image/bmp";

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
    /** @type {Picture[]} */
    this.images = [];
    this.n_checked = 0;
    this.input = h("input", {
      type: "file", accept: ACCEPTED, multiple: true, hidden: true, "aria-label": "Images to attach",
      onchange: () => {
        this.add([...this.input.files]);
        this.input.value = "";
      },
    });
    this.button = iconButton("image", "Attach images", () => this.input.click(), { class: "icon-button attach", hidden: true });
    this.element = h("div", { class: "attached", hidden: true });
  }

  /** Whether the server still looks at some. */
  get isChecking() {
    return this.n_checked > 0;
  }

  /** Show the images of a draft. @param {string} draftName */
  turnTo(draftName) {
    this.draftName = draftName;
    this.images = kept.get(`${draftName}.images`) ?? [];
    this.draw();
  }

  /** Hand over the images, to be sent. */
  take() {
    const { images } = this;
    this.set([]);
    return images;
  }

  /** @param {Picture[]} images */
  set(images) {
    this.images = images;
    kept.set(`${this.draftName}.images`, images.length ? images : null);
    this.draw();
    this.actions.changed();
  }

  /** Show the button where the chosen model reads images. */
  update() {
    this.button.hidden = !this.actions.readsImages();
  }

  draw() {
    this.update();
    this.element.hidden = !this.images.length;
    this.element.replaceChildren(pictureList(this.pictures, this.images, "Attached images", (image) => this.remove(image)));
  }

  /** @param {Picture} image */
  remove(image) {
    const at = this.images.indexOf(image);
    this.set(this.images.filter((each) => each !== image));
    this.actions.dropImages([image.id]);
    say(`${image.name} removed`);
    const buttons = this.element.querySelectorAll("button");
    /** @type {HTMLElement | null} */ (buttons[Math.min(at, buttons.length - 1)] ?? document.getElementById("prompt"))?.focus();
  }

  /** Attach files; those that are refused are named, with the reason. @param {File[]} files */
  async add(files) {
    if (!files.length) return;
    const { draftName } = this;
    /** @type {string[]} */
    const said = [];
    this.n_checked += 1;
    this.actions.changed();
    for (const given of files) {
      const name = given.name || "Image";
      try {
        this.checkPlainly(given);
        // A copy: the file that was chosen may change, or go away, before it is sent again.
        const file = new Blob([await given.arrayBuffer()], { type: given.type });
        await this.askServer(file);
        const warning = await this.keep(draftName, file, name);
        if (warning) said.push(warning);
      } catch (error) {
        said.push(`${name}: ${/** @type {Error} */ (error).message}`);
      }
    }
    this.n_checked -= 1;
    this.actions.changed();
    if (said.length) notify(said.join("\n"));
  }

  /** Throws an error for an image that is refused before it is read. @param {File} file */
  checkPlainly(file) {
    if (this.actions.readsImages() === false) throw new Error(`${this.actions.model() ?? "the model"} does not read images`);
    if (file.type && !file.type.startsWith("image/")) throw new Error("this is not an image in a supported format: PNG, JPEG, WebP, GIF and BMP");
    if (file.size > MOST_BYTES) throw new Error(`the image has more than ${MOST_BYTES >> 20} MiB`);
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
    if (this.draftName === draftName) this.set([...this.images, image]);
    else kept.set(`${draftName}.images`, [...(kept.get(`${draftName}.images`) ?? []), image]);
    say(`${name} attached`);
    return warning;
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

  /** Take a copied image. @param {ClipboardEvent} event */
  pasted(event) {
    const files = [...(event.clipboardData?.files ?? [])];
    // A table that is copied comes as a text and as a picture of it: the text is meant.
    if (!files.length || event.clipboardData?.getData("text/plain")) return;
    event.preventDefault();
    this.add(files);
  }
}

/**
 * Show images in a row.
 * @param {import("./pictures.js").Pictures} pictures
 * @param {Picture[]} images
 * @param {string} label
 * @param {(image: Picture) => void} [remove] called by a button on each
 */
export function pictureList(pictures, images, label, remove) {
  return h("ul", { class: "pictures", "aria-label": label }, images.map((image) => h("li", {}, thumbnail(pictures, image),
    remove && iconButton("close", `Remove ${image.name}`, () => remove(image)))));
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
