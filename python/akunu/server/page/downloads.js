// Downloads of models: the server fetches them, this page shows how far each one is.

import { pullModel } from "./api.js";

/** @typedef {{name: string, file: string, completed: number, total: number, error: string}} Download */

export class Downloads {
  /** @param {(ended: Download | null) => void} onChange gets a download that is complete */
  constructor(onChange) {
    this.onChange = onChange;
    /** @type {Map<string, Download>} */
    this.all = new Map();
  }

  /** Begin a download, or join the one of this name that the server has. @param {string} name */
  async begin(name) {
    const there = this.all.get(name);
    if (there && !there.error) return;
    /** @type {Download} */
    const download = { name, file: "", completed: 0, total: 0, error: "" };
    this.all.set(name, download);
    this.onChange(null);
    try {
      for await (const { status, error, digest, completed, total } of pullModel(name)) {
        if (error) throw new Error(error);
        if (status !== "success") Object.assign(download, { file: digest ?? "", completed: completed ?? 0, total: total ?? 0 });
        this.onChange(null);
      }
      this.all.delete(name);
      this.onChange(download);
    } catch (error) {
      download.error = /** @type {Error} */ (error).message;
      this.onChange(null);
    }
  }

  /** @param {string} name one that failed */
  forget(name) {
    this.all.delete(name);
    this.onChange(null);
  }
}
