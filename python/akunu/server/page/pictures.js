// Images of conversations stay in this browser (IndexedDB), each in its own record. A conversation
// only names its images, and stays small enough to be written every second.

import { newId } from "./conversation.js";
import { Store } from "./store.js";

/**
 * @typedef {{id: string, name: string}} Picture an image as a message has it
 * @typedef {{id: string, created: number, file: Blob}} Kept
 */

const MOST_OF_ROOM = 0.9; // the rest is for what is said
const UNUSED_MS = 24 * 60 * 60 * 1000; // by then a message that another tab was about to send has been kept

export class Pictures {
  /** @param {Store<Kept>} store where nothing is kept, they last as long as the page */
  constructor(store) {
    this.store = store;
    /** @type {Map<string, Blob>} */
    this.files = new Map();
    /** @type {Map<string, string>} */
    this.addresses = new Map();
  }

  static async open() {
    return new Pictures(await Store.open("akunu.images", "images")); // not the conversations' database: other tabs have that one open
  }

  /**
   * Keep an image; throws where the browser has no room for it, and then it lasts as long as the page.
   * @param {Blob} file
   * @param {string} [id] left out: a new one
   */
  async put(file, id = newId()) {
    this.files.set(id, file);
    const { usage = 0, quota = Infinity } = (await navigator.storage?.estimate()) ?? {}; // missing over http from another machine
    if (usage + file.size > quota * MOST_OF_ROOM) throw new Error("it has no room left for images");
    await this.store.put({ id, created: Date.now(), file });
  }

  /** @param {string} id @returns {Promise<Blob | undefined>} undefined: it is not here */
  async get(id) {
    const here = this.files.get(id);
    if (here) return here;
    const found = await this.store.get(id);
    if (found) this.files.set(id, found.file);
    return found?.file;
  }

  /** @param {Iterable<string>} ids */
  async remove(ids) {
    for (const id of ids) {
      this.files.delete(id);
      const address = this.addresses.get(id);
      if (address) URL.revokeObjectURL(address);
      this.addresses.delete(id);
      await this.store.remove(id);
    }
  }

  /** Remove what no conversation and no draft has had for a day. @param {Set<string>} used ids */
  async sweep(used) {
    const all = await this.store.all();
    const before = Date.now() - UNUSED_MS;
    await this.remove(all.filter((each) => each.created < before && !used.has(each.id)).map((each) => each.id));
  }

  /** What an <img> shows. @param {string} id @returns {Promise<string>} "" where it is not here */
  async address(id) {
    const file = await this.get(id);
    if (!file) return "";
    const address = this.addresses.get(id) ?? URL.createObjectURL(file);
    this.addresses.set(id, address);
    return address;
  }

  /**
   * Images as they are sent and exported. Those that are not here are left out.
   * @param {Iterable<string>} ids
   * @returns {Promise<Map<string, string>>} data: URLs by their ids
   */
  async urls(ids) {
    /** @type {Map<string, string>} */
    const found = new Map();
    for (const id of ids) {
      const file = await this.get(id);
      if (file) found.set(id, await urlOf(file));
    }
    return found;
  }
}

/** @param {Blob} file @returns {Promise<string>} a data: URL */
export function urlOf(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(/** @type {string} */ (reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** The image of a data: URL; throws an error for any other URL. @param {string} url @returns {Blob} */
export function fileOf(url) {
  const [, type, data] = /^data:(image\/(?:png|jpeg|webp|gif|bmp)|);base64,([A-Za-z0-9+/=]*)$/.exec(url) ?? [];
  if (data === undefined) throw new Error("it is not a data: URL of an image");
  return new Blob([Uint8Array.from(atob(data), (each) => each.charCodeAt(0))], { type });
}
