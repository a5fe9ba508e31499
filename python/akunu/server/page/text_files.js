// Text files of a message: read once, kept in the message, and sent as text before what was written.

/** @typedef {{id: string, name: string, text: string}} TextFile a file as a message has it */

const MOST_BYTES = 512 << 10; // about 130,000 tokens: few models read more
const PICTURES = "images (PNG, JPEG, WebP, GIF, BMP)";

/**
 * What can be attached, for who tried something else.
 * @param {boolean} withImages whether the model reads images
 */
export const attachable = (withImages) => `Text files in UTF-8 (.txt, .md, .csv, .json, code)${withImages ? ` and ${PICTURES}` : ""} can be attached.`;

/**
 * The text of a file; null if it has none. Throws an error for a text that is empty or too long.
 * @param {File} file
 * @returns {Promise<string | null>}
 */
export async function readText(file) {
  const bytes = await file.slice(0, MOST_BYTES).arrayBuffer().catch(() => {
    throw new Error("the browser cannot read it: it is a folder, or is gone");
  });
  const isWhole = file.size <= MOST_BYTES;
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !isWhole }); // the end may be a part of a character
  } catch {
    return null;
  }
  // Both may consist of characters of UTF-8, and are not texts that a model could read.
  if (text.includes("\0") || text.startsWith("%PDF-")) return null;
  if (!isWhole) throw new Error(`the text has more than ${MOST_BYTES >> 10} KiB`);
  if (!text.trim()) throw new Error("the file is empty");
  return text;
}

/**
 * Texts with their names, each in a fence that no line of it can end.
 * @param {TextFile[]} files
 * @param {string} message what was written
 */
export function withFiles(files, message) {
  return [...files.map(fenced), ...(message ? [message] : [])].join("\n\n");
}

/** @param {TextFile} file */
function fenced({ name, text }) {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((each) => each.length));
  const fence = "`".repeat(longest + 1);
  const [, ending = ""] = /\.(\w{1,12})$/.exec(name) ?? [];
  return `${name.replace(/\s+/g, " ")}:\n${fence}${ending}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}`;
}

/** @param {TextFile} file */
export function sizeOf({ text }) {
  const n = new Blob([text]).size;
  return n < 1000 ? `${n} B` : n < 1e6 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1e6).toFixed(2)} MB`;
}
