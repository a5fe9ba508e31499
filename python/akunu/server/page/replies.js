// Replies under way: one per conversation, also of conversations that are not shown.

import { ServerError, streamChat } from "./api.js";
import { imagesOf, messagesFor, newId, partOf, upTo } from "./conversation.js";
import { requestFields } from "./settings.js";

/**
 * @typedef {import("./conversation.js").Conversation} Conversation
 * @typedef {import("./conversation.js").Message} Message
 */

const AGAIN_MS = 2000;
const MOST_TRIES = 150; // five minutes for a server that starts again
const AWAY = ["gone", "broken", "busy"];

export class Replies {
  /**
   * @param {import("./pictures.js").Pictures} pictures
   * @param {(conversation: Conversation, message: Message) => void} onChange after each piece
   * @param {(conversation: Conversation, message: Message) => void | Promise<void>} onEnd
   * @param {(conversation: Conversation) => void} onAway the server went away, and will have the rest
   */
  constructor(pictures, onChange, onEnd, onAway) {
    this.pictures = pictures;
    this.onChange = onChange;
    this.onEnd = onEnd;
    this.onAway = onAway;
    /** @type {Map<string, {controller: AbortController, message: Message}>} by conversations */
    this.running = new Map();
  }

  /** @param {string | undefined} id a conversation's */
  isRunning(id) {
    return id !== undefined && this.running.has(id);
  }

  /** @param {string} id a conversation's */
  stop(id) {
    this.running.get(id)?.controller.abort();
  }

  /** The message that is being written. @param {string} id a conversation's */
  written(id) {
    return this.running.get(id)?.message.id;
  }

  /**
   * Have a reply written into a message: from its beginning, or on from what it has.
   * @param {Conversation} conversation
   * @param {Message} message
   */
  async write(conversation, message) {
    const { content, reasoning, stats } = message;
    const before = content || reasoning ? { content: content.length, reasoning: reasoning?.length ?? 0, tokens: stats?.completionTokens ?? 0 } : null;
    message.sent = { key: newId(), event: 0, model: conversation.model, settings: structuredClone(conversation.settings), before };
    for (const name of /** @type {const} */ (["finish", "failure", "stats", "ignored"])) delete message[name];
    await this.resume(conversation, message);
  }

  /**
   * Read the reply to a request that was sent, also by a page that is closed: a server with a journal has it.
   * @param {Conversation} conversation
   * @param {Message} message
   */
  async resume(conversation, message) {
    const sent = /** @type {import("./conversation.js").Sent} */ (message.sent);
    const controller = new AbortController();
    this.running.set(conversation.id, { controller, message });
    const release = holdReply(message.id);
    const begun = performance.now();
    /** @type {any} */
    const stats = { firstTokenMs: null, totalMs: 0, tokensPerSecond: null, promptPerSecond: null, promptTokens: 0, cachedTokens: 0, completionTokens: 0 };
    this.onChange(conversation, message);
    let tries = 0;
    while (!controller.signal.aborted) {
      try {
        const body = await this.bodyFor(conversation, message);
        for await (const { chunk, event } of streamChat(body, controller.signal, sent, (names) => (message.ignored = names))) {
          if (takeChunk(message, stats, chunk)) stats.firstTokenMs ??= performance.now() - begun;
          if (event) sent.event = event;
          tries = 0;
          this.onChange(conversation, message);
        }
        break;
      } catch (error) {
        if (controller.signal.aborted) break;
        tries += 1;
        const isKept = sent.event > 0 && error instanceof ServerError && AWAY.includes(error.kind);
        if (!isKept || tries > MOST_TRIES) {
          message.failure = failureOf(error);
          break;
        }
        this.onAway(conversation);
        await pause(AGAIN_MS, controller.signal);
      }
    }
    if (controller.signal.aborted) message.finish = "stopped";
    stats.totalMs = performance.now() - begun;
    const n_before = sent.before?.tokens ?? 0; // the server counts them to the prompt
    stats.completionTokens += n_before;
    stats.promptTokens = Math.max(0, stats.promptTokens - n_before);
    message.stats = stats;
    delete message.sent;
    conversation.updated = Date.now();
    this.running.delete(conversation.id);
    await this.onEnd(conversation, message);
    release();
  }

  /** The request for a reply; again the same bytes. @param {Conversation} conversation @param {Message} message */
  async bodyFor(conversation, message) {
    const { model, settings, before } = /** @type {import("./conversation.js").Sent} */ (message.sent);
    const urls = await this.pictures.urls(imagesOf(upTo(conversation, message.parent)));
    const messages = messagesFor(conversation, message.parent, urls, settings);
    return {
      ...(model ? { model } : {}),
      messages: before ? [...messages, partOf(message, before)] : messages,
      ...(before ? { continue_final_message: true } : {}),
      stream: true,
      stream_options: { include_usage: true },
      timings_per_token: true, // a reply that is stopped has no usage
      ...requestFields(settings),
    };
  }
}

/** @param {string} id a message's */
const lockOf = (id) => `akunu.reply.${id}`;

/** Let other tabs see that this one writes a reply; returns what ends that. @param {string} id the message's */
function holdReply(id) {
  let release = () => {};
  /** @type {Promise<void>} */
  const end = new Promise((resolve) => (release = resolve));
  navigator.locks?.request(lockOf(id), () => end); // browsers have none over http from another machine
  return release;
}

/** Run something as soon as no tab writes a reply. @param {string} id the message's @param {() => Promise<void>} run */
export async function onceFree(id, run) {
  if (navigator.locks) await navigator.locks.request(lockOf(id), () => {});
  await run();
}

/** @param {number} ms @param {AbortSignal} signal ends it */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms, null);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve(null)), { once: true });
  });
}

/**
 * Put what a chunk brings into the message; return whether that is text, thought or call.
 * @param {Message} message
 * @param {any} stats
 * @param {any} chunk
 */
function takeChunk(message, stats, chunk) {
  message.model = chunk.model ?? message.model;
  if (chunk.usage) {
    stats.promptTokens = chunk.usage.prompt_tokens;
    stats.completionTokens = chunk.usage.completion_tokens;
    stats.cachedTokens = chunk.usage.prompt_tokens_details?.cached_tokens ?? 0;
  }
  if (chunk.timings) {
    const { predicted_per_second: speed, prompt_per_second: promptSpeed, predicted_n: n, prompt_n: computed, cache_n: cached } = chunk.timings;
    stats.tokensPerSecond = speed || null;
    stats.promptPerSecond = promptSpeed || stats.promptPerSecond;
    stats.completionTokens = n || stats.completionTokens;
    stats.promptTokens ||= (computed ?? 0) + (cached ?? 0);
    stats.cachedTokens ||= cached ?? 0;
  }
  const choice = chunk.choices?.[0];
  if (!choice) return false;
  if (choice.finish_reason) message.finish = choice.finish_reason;
  const { content, tool_calls: calls, reasoning_content: thought, reasoning } = choice.delta ?? {};
  if (content) message.content += content;
  if (thought || reasoning) message.reasoning = (message.reasoning ?? "") + (thought || reasoning);
  for (const each of calls ?? []) {
    message.toolCalls ??= [];
    const call = (message.toolCalls[each.index] ??= { id: "", name: "", arguments: "" });
    call.id ||= each.id ?? "";
    call.name += each.function?.name ?? "";
    call.arguments += each.function?.arguments ?? "";
  }
  return Boolean(content || thought || reasoning || calls?.length);
}

/** @param {unknown} error @returns {import("./conversation.js").Failure} */
function failureOf(error) {
  if (error instanceof ServerError) {
    const { message, kind, code, facts, retryAfter } = error;
    return { message, kind, code, facts, retryAfter };
  }
  return { message: String(error), kind: "other", code: "", facts: {}, retryAfter: 0 };
}
