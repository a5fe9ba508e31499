// Replies under way: one per conversation, also of conversations that are not shown.

import { ServerError, streamChat } from "./api.js";
import { imagesOf, messagesFor, upTo } from "./conversation.js";
import { requestFields } from "./settings.js";

/**
 * @typedef {import("./conversation.js").Conversation} Conversation
 * @typedef {import("./conversation.js").Message} Message
 */

export class Replies {
  /**
   * @param {import("./pictures.js").Pictures} pictures
   * @param {(conversation: Conversation, message: Message) => void} onChange after each piece
   * @param {(conversation: Conversation, message: Message) => void} onEnd
   */
  constructor(pictures, onChange, onEnd) {
    this.pictures = pictures;
    this.onChange = onChange;
    this.onEnd = onEnd;
    /** @type {Map<string, AbortController>} */
    this.running = new Map();
  }

  /** @param {string | undefined} id a conversation's */
  isRunning(id) {
    return id !== undefined && this.running.has(id);
  }

  /** @param {string} id a conversation's */
  stop(id) {
    this.running.get(id)?.abort();
  }

  /**
   * Have a reply written into an empty message.
   * @param {Conversation} conversation
   * @param {Message} message
   */
  async write(conversation, message) {
    const controller = new AbortController();
    this.running.set(conversation.id, controller);
    const begun = performance.now();
    /** @type {any} */
    const stats = { firstTokenMs: null, totalMs: 0, tokensPerSecond: null, promptTokens: 0, cachedTokens: 0, completionTokens: 0 };
    this.onChange(conversation, message);
    try {
      const urls = await this.pictures.urls(imagesOf(upTo(conversation, message.parent)));
      const body = {
        ...(conversation.model ? { model: conversation.model } : {}),
        messages: messagesFor(conversation, message.parent, urls),
        stream: true,
        stream_options: { include_usage: true },
        timings_per_token: true, // a reply that is stopped has no usage
        ...requestFields(conversation.settings),
      };
      for await (const chunk of streamChat(body, controller.signal, (names) => (message.ignored = names))) {
        if (takeChunk(message, stats, chunk)) stats.firstTokenMs ??= performance.now() - begun;
        this.onChange(conversation, message);
      }
    } catch (error) {
      if (controller.signal.aborted) message.finish = "stopped";
      else message.failure = failureOf(error);
    }
    stats.totalMs = performance.now() - begun;
    message.stats = stats;
    conversation.updated = Date.now();
    this.running.delete(conversation.id);
    this.onEnd(conversation, message);
  }
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
    const { predicted_per_second: speed, predicted_n: n, prompt_n: computed, cache_n: cached } = chunk.timings;
    stats.tokensPerSecond = speed || null;
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
