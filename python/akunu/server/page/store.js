// Conversations stay in this browser (IndexedDB): the server keeps nothing.

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** Wait until it is on the disk: a full disk shows only after the request. @param {IDBRequest} request @returns {Promise<void>} */
const written = (request) =>
  new Promise((resolve, reject) => {
    const transaction = /** @type {IDBTransaction} */ (request.transaction);
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? request.error);
  });

/**
 * Records with an id, in their own database.
 * @template {{id: string}} T
 */
export class Store {
  /** @param {IDBDatabase | null} database null: nothing is kept @param {string} name of the records */
  constructor(database, name) {
    this.database = database;
    this.name = name;
  }

  /**
   * Open it; where the browser forbids that, as some private windows do, nothing is kept.
   * @param {string} database
   * @param {string} name of the records
   */
  static async open(database, name) {
    try {
      const request = indexedDB.open(database, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(name, { keyPath: "id" });
      return new Store(await done(request), name);
    } catch {
      return new Store(null, name);
    }
  }

  get isKept() {
    return this.database !== null;
  }

  /** @param {IDBTransactionMode} mode */
  #store(mode) {
    return this.database?.transaction(this.name, mode).objectStore(this.name);
  }

  /** @returns {Promise<T[]>} */
  async all() {
    const store = this.#store("readonly");
    return store ? done(store.getAll()) : [];
  }

  /** @param {string} id @returns {Promise<T | undefined>} */
  async get(id) {
    const store = this.#store("readonly");
    return store && done(store.get(id));
  }

  /**
   * @param {T} record
   * @param {(stored: T) => T} [merge] gets what is there; no other tab writes in between
   */
  async put(record, merge) {
    const store = this.#store("readwrite");
    if (!store) return;
    const stored = merge && (await done(store.get(record.id)));
    await written(store.put(stored ? merge(stored) : record));
  }

  /** @param {string} id */
  async remove(id) {
    const store = this.#store("readwrite");
    if (store) await written(store.delete(id));
  }
}

/** What the browser does not keep lasts as long as the page. @type {Map<string, any>} */
const unkept = new Map();

/** Small things that must survive a reload at once: drafts, the theme, settings of new chats. */
export const kept = {
  /** @param {string} name @returns {any} */
  get(name) {
    if (unkept.has(name)) return unkept.get(name);
    try {
      return JSON.parse(localStorage.getItem(`akunu.${name}`) ?? "null");
    } catch {
      return null;
    }
  },
  /** @param {string} name @param {any} value null and "" remove it */
  set(name, value) {
    unkept.delete(name);
    try {
      if (value === null || value === "") localStorage.removeItem(`akunu.${name}`);
      else localStorage.setItem(`akunu.${name}`, JSON.stringify(value));
    } catch {
      unkept.set(name, value); // forbidden or full
    }
  },
};
