// Conversations as a file, and back.

import { fileOf } from "./pictures.js";

/** @typedef {import("./conversation.js").Conversation} Conversation */

const FORMAT = "akunu-conversations";

/**
 * @param {Conversation[]} conversations
 * @param {Map<string, string>} urls data: URLs of their images
 */
export function archiveOf(conversations, urls) {
  const images = urls.size ? { images: Object.fromEntries(urls) } : {};
  return JSON.stringify({ format: FORMAT, version: 1, exported: new Date().toISOString(), conversations, ...images }, null, 1);
}

/**
 * Read a file; throws an Error that says what is wrong with it.
 * @param {string} text
 * @returns {{conversations: Conversation[], images: Map<string, Blob>}}
 */
export function readArchive(text) {
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error("the file is not JSON");
  }
  if (file?.format !== FORMAT) throw new Error(`the file is not an export of this page: it has no "format": "${FORMAT}"`);
  if (file.version !== 1) throw new Error(`the file has version ${file.version}; this page reads version 1`);
  if (!Array.isArray(file.conversations)) throw new Error("the file has no list of conversations");
  file.conversations.forEach(check);
  return { conversations: file.conversations.map(clean), images: readImages(file.images ?? {}) };
}

const isObject = (/** @type {any} */ value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isId = (/** @type {any} */ value) => typeof value === "string" && /^[\w-]{1,64}$/.test(value);

/** @param {any} urls @returns {Map<string, Blob>} */
function readImages(urls) {
  if (!isObject(urls)) throw new Error("images is not an object");
  const found = new Map();
  for (const [id, url] of Object.entries(urls)) {
    try {
      found.set(id, fileOf(url));
    } catch (error) {
      throw new Error(`image ${id}: ${/** @type {Error} */ (error).message}`);
    }
  }
  return found;
}

/** @param {any} each @param {number} index */
function check(each, index) {
  const where = `conversation ${index + 1}`;
  if (!isObject(each)) throw new Error(`${where} is not an object`);
  if (!isId(each.id)) throw new Error(`${where} has no id`);
  if (typeof each.title !== "string") throw new Error(`${where} has no title`);
  if (!Number.isFinite(each.created) || !Number.isFinite(each.updated)) throw new Error(`${where} has no times`);
  if (!isObject(each.messages) || !isObject(each.chosen) || !isObject(each.settings)) throw new Error(`${where} lacks messages, chosen or settings`);
  for (const [id, message] of Object.entries(each.messages)) {
    const which = `${where}, message ${id}`;
    if (!isObject(message) || message.id !== id || !isId(id)) throw new Error(`${which}: its id is wrong`);
    if (!["user", "assistant", "tool"].includes(message.role)) throw new Error(`${which} has no role`);
    if (typeof message.content !== "string") throw new Error(`${which} has no content`);
    if (!Number.isFinite(message.created)) throw new Error(`${which} has no time`);
    if (message.parent !== null && !(message.parent in each.messages)) throw new Error(`${which}: the message before it is missing`);
    if (message.toolCalls !== undefined && !(Array.isArray(message.toolCalls) && message.toolCalls.every(
      (/** @type {any} */ call) => isObject(call) && [call.id, call.name, call.arguments].every((part) => typeof part === "string"))))
      throw new Error(`${which}: its tool calls are not valid`);
    if (message.images !== undefined && !(Array.isArray(message.images) && message.images.every(
      (/** @type {any} */ image) => isObject(image) && isId(image.id) && typeof image.name === "string")))
      throw new Error(`${which}: its images are not valid`);
    if (message.files !== undefined && !(Array.isArray(message.files) && message.files.every(
      (/** @type {any} */ file) => isObject(file) && isId(file.id) && typeof file.name === "string" && typeof file.text === "string")))
      throw new Error(`${which}: its files are not valid`);
  }
  for (const id of Object.keys(each.messages)) checkEnds(each.messages, id, where);
}

/** A message that follows itself would never end. @param {any} messages @param {string} id @param {string} where */
function checkEnds(messages, id, where) {
  let steps = 0;
  for (let at = id; at !== null; at = messages[at].parent) {
    steps += 1;
    if (steps > Object.keys(messages).length) throw new Error(`${where}, message ${id} follows itself`);
  }
}

/** @param {any} each @returns {Conversation} */
function clean({ id, title, created, updated, model, settings, messages, chosen }) {
  return { id, title, created, updated, model: typeof model === "string" ? model : null, settings, messages, chosen };
}

/**
 * Offer a text as a file to keep.
 * @param {string} text
 * @param {string} name
 */
export function download(text, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
