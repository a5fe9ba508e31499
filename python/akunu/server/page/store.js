// Conversations stay in this browser (IndexedDB): the server keeps nothing.

/** @typedef {import("./conversation.js").Conversation} Conversation */

const NAME = "akunu";
const STORE = "conversations";

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

export class Store {
  /** @param {IDBDatabase | null} database null: nothing is kept */
  constructor(database) {
    this.database = database;
  }

  /** Open it; where the browser forbids that, as some private windows do, nothing is kept. */
  static async open() {
    try {
      const request = indexedDB.open(NAME, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
      return new Store(await done(request));
    } catch {
      return new Store(null);
    }
  }

  get isKept() {
    return this.database !== null;
  }

  /** @param {IDBTransactionMode} mode */
  #store(mode) {
    return this.database?.transaction(STORE, mode).objectStore(STORE);
  }

  /** @returns {Promise<Conversation[]>} */
  async all() {
    const store = this.#store("readonly");
    return store ? done(store.getAll()) : [];
  }

  /** @param {Conversation} conversation */
  async put(conversation) {
    const store = this.#store("readwrite");
    if (store) await done(store.put(conversation));
  }

  /** @param {string} id */
  async remove(id) {
    const store = this.#store("readwrite");
    if (store) await done(store.delete(id));
  }
}

/** Small things that must survive a reload at once: drafts, the theme, settings of new chats. */
export const kept = {
  /** @param {string} name @returns {any} */
  get(name) {
    try {
      return JSON.parse(localStorage.getItem(`akunu.${name}`) ?? "null");
    } catch {
      return null;
    }
  },
  /** @param {string} name @param {any} value null and "" remove it */
  set(name, value) {
    try {
      if (value === null || value === "") localStorage.removeItem(`akunu.${name}`);
      else localStorage.setItem(`akunu.${name}`, JSON.stringify(value));
    } catch {
      // Forbidden or full: it lasts as long as the page.
    }
  },
};
