// The conversations of this browser, as this tab has them, and as other tabs change them.

import { takeOver } from "./conversation.js";
import { notify } from "./dom.js";
import { Store } from "./store.js";

/** @typedef {import("./conversation.js").Conversation} Conversation */

export class Library {
  /**
   * @param {Store<Conversation>} store
   * @param {Conversation[]} conversations
   */
  constructor(store, conversations) {
    this.store = store;
    this.all = new Map(conversations.map((each) => [each.id, each]));
    this.others = typeof BroadcastChannel === "function" ? new BroadcastChannel("akunu") : null;
    this.savedAt = 0;
    this.isFull = false;
  }

  static async open() {
    /** @type {Store<Conversation>} */
    const store = await Store.open("akunu", "conversations");
    return new Library(store, await store.all());
  }

  /**
   * Store a conversation, with what other tabs added to it.
   * @param {Conversation} conversation
   * @param {string} [written] the id of the message that this tab writes
   */
  async save(conversation, written) {
    if (!this.all.has(conversation.id)) return; // deleted meanwhile
    this.savedAt = Date.now();
    try {
      await this.store.put(conversation, (stored) => takeOver(conversation, stored, written));
      this.isFull = false;
      this.others?.postMessage({ changed: conversation.id });
    } catch (error) {
      if (!this.isFull) notify(`This chat could not be stored: ${/** @type {Error} */ (error).message}. Export it, or delete other chats.`);
      this.isFull = true; // said once, not with every piece of a reply
    }
  }

  /** Store at once, before the page is gone. @param {string} id */
  flush(id) {
    const conversation = this.all.get(id);
    if (conversation) this.store.put(conversation).catch(() => {});
  }

  /** @param {string[]} ids */
  async remove(ids) {
    for (const id of ids) this.all.delete(id);
    for (const id of ids) {
      await this.store.remove(id);
      this.others?.postMessage({ removed: id });
    }
  }

  /**
   * Follow other tabs.
   * @param {(id: string) => string | undefined} writtenIn the message that this tab writes in a conversation
   * @param {(removed: string | null) => void} then
   */
  follow(writtenIn, then) {
    if (!this.others) return;
    this.others.onmessage = async ({ data }) => {
      const { changed, removed } = data;
      if (removed && !writtenIn(removed)) this.all.delete(removed);
      else if (changed) await this.read(changed, writtenIn(changed));
      then(removed ?? null);
    };
  }

  /** @param {string} id @param {string} [written] */
  async read(id, written) {
    const stored = await this.store.get(id);
    const mine = this.all.get(id);
    if (!stored) return;
    if (!mine) this.all.set(id, stored);
    else {
      takeOver(mine, stored, written);
      const { title, settings, model, updated } = stored;
      Object.assign(mine, { title, settings, model, updated });
    }
  }
}
