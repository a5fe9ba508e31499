// A conversation is a tree: an edit or another try is a sibling, and nothing that was said is lost.

import { withFiles } from "./text_files.js";

/**
 * @typedef {import("./pictures.js").Picture} Picture
 * @typedef {import("./text_files.js").TextFile} TextFile
 * @typedef {{id: string, name: string, arguments: string}} ToolCall
 * @typedef {{message: string, kind: string, code: string, facts: any, retryAfter: number}} Failure
 * @typedef {{firstTokenMs: number | null, totalMs: number, tokensPerSecond: number | null, promptPerSecond?: number | null,
 *   promptTokens: number, cachedTokens: number, completionTokens: number}} Stats
 * @typedef {{key: string, event: number, model: string | null, settings: Record<string, any>,
 *   before: {content: number, reasoning: number, tokens: number} | null}} Sent
 *   a request whose reply is not complete: enough to send the same bytes again. `before` has the lengths of what it continues.
 * @typedef {{id: string, parent: string | null, role: "user" | "assistant" | "tool", content: string,
 *   created: number, reasoning?: string, toolCalls?: ToolCall[], toolCallId?: string, model?: string,
 *   stats?: Stats, finish?: string, failure?: Failure, ignored?: string[], sent?: Sent,
 *   images?: Picture[], files?: TextFile[]}} Message
 * @typedef {{id: string, title: string, created: number, updated: number, model: string | null,
 *   settings: Record<string, any>, messages: Record<string, Message>,
 *   chosen: Record<string, string>}} Conversation
 */

const ROOT = "root"; // the key in `chosen` of the first message, which has no parent

/** @returns {string} */
export function newId() {
  // crypto.randomUUID is missing on pages over http from another machine.
  return [...crypto.getRandomValues(new Uint8Array(12))].map((each) => each.toString(16).padStart(2, "0")).join("");
}

/**
 * @param {Record<string, any>} settings
 * @param {string | null} model
 * @returns {Conversation}
 */
export function newConversation(settings, model) {
  const now = Date.now();
  return { id: newId(), title: "", created: now, updated: now, model, settings: { ...settings }, messages: {}, chosen: {} };
}

/**
 * The versions of the message after `parent`, oldest first.
 * @param {Conversation} conversation
 * @param {string | null} parent
 */
export function versions(conversation, parent) {
  return Object.values(conversation.messages)
    .filter((each) => each.parent === parent)
    .sort((a, b) => a.created - b.created);
}

/**
 * The messages that are shown, from the first to the last.
 * @param {Conversation} conversation
 * @returns {Message[]}
 */
export function path(conversation) {
  /** @type {Map<string | null, Message[]>} */
  const following = new Map(); // looked up once for all: a long conversation has hundreds of messages
  for (const each of Object.values(conversation.messages)) {
    const others = following.get(each.parent);
    if (others) others.push(each);
    else following.set(each.parent, [each]);
  }
  /** @type {Message[]} */
  const found = [];
  /** @type {string | null} */
  let parent = null;
  for (;;) {
    const all = following.get(parent)?.sort((a, b) => a.created - b.created);
    if (!all) return found;
    /** @type {string | undefined} */
    const chosen = conversation.chosen[parent ?? ROOT];
    /** @type {Message} */
    const next = all.find((each) => each.id === chosen) ?? all[all.length - 1];
    found.push(next);
    parent = next.id;
  }
}

/**
 * Add a message and show it.
 * @param {Conversation} conversation
 * @param {string | null} parent
 * @param {Partial<Message> & {role: Message["role"]}} fields
 * @returns {Message}
 */
export function add(conversation, parent, fields) {
  const latest = Math.max(0, ...versions(conversation, parent).map((each) => each.created));
  const message = { id: newId(), parent, content: "", created: Math.max(Date.now(), latest + 1), ...fields };
  conversation.messages[message.id] = message;
  choose(conversation, message);
  conversation.updated = Date.now();
  if (!conversation.title && message.role === "user") conversation.title = titleOf(message.content || attachedTo(message)[0]?.name || "");
  return message;
}

/**
 * Show this version of a message.
 * @param {Conversation} conversation
 * @param {Message} message
 */
export function choose(conversation, message) {
  conversation.chosen[message.parent ?? ROOT] = message.id;
}

/**
 * Take over what another tab stored. Its messages are the newer ones, but for the one that this tab writes.
 * @param {Conversation} mine
 * @param {Conversation} stored
 * @param {string} [written] the id of that message
 */
export function takeOver(mine, stored, written) {
  for (const [id, message] of Object.entries(stored.messages)) {
    const here = mine.messages[id];
    if (id === written) continue;
    if (!here) mine.messages[id] = message;
    else {
      // The same object: what shows it has it.
      for (const name of Object.keys(here)) if (!(name in message)) delete here[/** @type {keyof Message} */ (name)];
      Object.assign(here, message);
    }
  }
  mine.chosen = { ...stored.chosen, ...mine.chosen };
  return mine;
}

/** @param {string} text */
export function titleOf(text) {
  const line = text.trim().split("\n", 1)[0].replace(/^[#>\s]+/, "");
  if (line.length <= 60) return line || "Untitled";
  return `${line.slice(0, 60).replace(/\s+\S*$/, "")}…`;
}

/** The images and files of a message, in the order in which they are shown. @param {Message} message @returns {(Picture | TextFile)[]} */
export const attachedTo = (message) => [...(message.images ?? []), ...(message.files ?? [])];

/** The fields of a message for what is attached to it. @param {(Picture | TextFile)[]} attached */
export function attachedFields(attached) {
  const images = attached.filter((each) => !("text" in each));
  const files = attached.filter((each) => "text" in each);
  return { ...(images.length ? { images } : {}), ...(files.length ? { files } : {}) };
}

/** The ids of the images of messages. @param {Message[]} messages */
export function imagesOf(messages) {
  return new Set(messages.flatMap((each) => each.images ?? []).map((each) => each.id));
}

/**
 * The messages up to one, from the first.
 * @param {Conversation} conversation
 * @param {string | null} last its id
 */
export function upTo(conversation, last) {
  /** @type {Message[]} */
  const found = [];
  for (let id = last; id !== null; id = conversation.messages[id].parent) found.unshift(conversation.messages[id]);
  return found;
}

/**
 * What the server gets: the messages up to one, with the system prompt.
 * @param {Conversation} conversation
 * @param {string | null} last the id of the last message
 * @param {Map<string, string>} urls data: URLs of the images; those that are not there are not sent
 * @param {Record<string, any>} settings
 */
export function messagesFor(conversation, last, urls, settings) {
  /** @type {any[]} */
  const found = [];
  for (const each of upTo(conversation, last)) {
    const message = asSent(each, urls);
    if (!message) continue;
    const before = found[found.length - 1];
    // A failed reply is not sent: the messages before and after it are sent as one.
    if (message.role === "user" && before?.role === "user") before.content = joined(before.content, message.content);
    else found.push(message);
  }
  const system = settings.system?.trim();
  if (system) found.unshift({ role: "system", content: system });
  return found;
}

/** Two contents as one: texts, or lists of parts. @param {any} first @param {any} second */
function joined(first, second) {
  if (typeof first === "string" && typeof second === "string") return `${first}\n\n${second}`;
  const parts = (/** @type {any} */ content) => (typeof content === "string" ? [{ type: "text", text: content }] : content);
  return [...parts(first), ...parts(second)];
}

/** @param {Message} message @param {Map<string, string>} urls */
function asSent(message, urls) {
  if (message.role === "tool") return { role: "tool", tool_call_id: message.toolCallId, content: message.content };
  if (message.role === "user") return { role: "user", content: contentOf(message, urls) };
  const calls = message.toolCalls ?? [];
  if (!message.content && !calls.length) return null;
  /** @type {any} */
  const sent = { role: "assistant", content: message.content };
  if (message.reasoning) sent.reasoning_content = message.reasoning;
  if (calls.length) {
    sent.tool_calls = calls.map((each) => ({
      id: each.id,
      type: "function",
      function: { name: each.name, arguments: each.arguments },
    }));
  }
  return sent;
}

/** The reply that a request continues, as it was before. @param {Message} message @param {NonNullable<Sent["before"]>} before */
export function partOf(message, before) {
  const reasoning = message.reasoning?.slice(0, before.reasoning);
  return { role: "assistant", content: message.content.slice(0, before.content), ...(reasoning ? { reasoning_content: reasoning } : {}) };
}

/** Whether the model can write on at the end of a reply. @param {Message} message */
export function canContinue(message) {
  const isCut = message.failure ? !["full", "key"].includes(message.failure.kind) : ["length", "stopped", "interrupted", "edited"].includes(message.finish ?? "");
  return isCut && !message.toolCalls?.length && Boolean(message.content || message.reasoning);
}

/** A text with its files, or the images in front of one. @param {Message} message @param {Map<string, string>} urls */
function contentOf(message, urls) {
  const shown = (message.images ?? []).flatMap((each) => urls.get(each.id) ?? []);
  const text = withFiles(message.files ?? [], message.content);
  if (!shown.length) return text;
  const images = shown.map((url) => ({ type: "image_url", image_url: { url } }));
  return text ? [...images, { type: "text", text }] : images;
}

/**
 * Tokens of the context that the conversation takes, as the server counted them last.
 * @param {Conversation} conversation
 */
export function tokensUsed(conversation) {
  const counted = path(conversation).filter((each) => each.stats?.promptTokens);
  const stats = counted[counted.length - 1]?.stats;
  return stats ? stats.promptTokens + stats.completionTokens : 0;
}
