// The server's API: models, and replies as they arrive.

const BASE = new URL("v1/", document.baseURI); // also behind a proxy that serves akunu in a folder
const KEY = "akunu.key";

/**
 * @typedef {{id: string, loaded?: boolean, status?: {value: string}, parent?: string, capabilities?: string[], max_model_len?: number, meta?: Record<string, any>}} ModelFacts
 */

/** What went wrong, as one may decide by: its kind. */
export class ServerError extends Error {
  /**
   * @param {"gone" | "broken" | "key" | "full" | "busy" | "other"} kind
   * @param {string} message
   * @param {{status?: number, code?: string, facts?: any, retryAfter?: number}} [more]
   */
  constructor(kind, message, more = {}) {
    super(message);
    this.kind = kind;
    this.status = more.status ?? 0;
    this.code = more.code ?? "";
    this.facts = more.facts ?? {};
    this.retryAfter = more.retryAfter ?? 0;
  }
}

// The key lives as long as the tab: a page that is open tomorrow asks for it again.
export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  /** @param {string} value */
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

/**
 * @param {string} path
 * @param {RequestInit} [options]
 */
async function request(path, options = {}) {
  /** @type {Record<string, string>} */
  const headers = { "content-type": "application/json", .../** @type {Record<string, string>} */ (options.headers) };
  if (key.get()) headers.authorization = `Bearer ${key.get()}`;
  let answer;
  try {
    answer = await fetch(new URL(path, BASE), { ...options, headers });
  } catch (error) {
    if (/** @type {Error} */ (error).name === "AbortError") throw error;
    throw new ServerError("gone", "The server does not answer. Is akunu serve still running?");
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

/** @param {Response} answer */
async function refusal(answer) {
  const body = await answer.json().catch(() => ({}));
  const error = typeof body.error === "string" ? { message: body.error } : body.error ?? {}; // Ollama's routes have a text
  return asError(error, answer.status, Number(answer.headers.get("retry-after")) || 0);
}

/**
 * @param {any} error
 * @param {number} status
 * @param {number} [retryAfter]
 */
function asError(error, status, retryAfter = 0) {
  const said = typeof error.message === "string" ? error.message : `The server answered with ${status}.`;
  const more = { status, code: error.code ?? "", facts: error, retryAfter };
  if (status === 401) return new ServerError("key", said, more);
  if (error.code === "context_length_exceeded") return new ServerError("full", said, more);
  if (status === 429 || status === 503 || error.code === "server_stopping") return new ServerError("busy", said, more);
  return new ServerError("other", said, more);
}

/** @returns {Promise<ModelFacts[]>} */
export async function listModels() {
  const answer = await request("models");
  /** @type {{data: ModelFacts[]}} */
  const { data } = await answer.json();
  return data;
}

const posted = (/** @type {any} */ body, method = "POST") => ({ method, body: JSON.stringify(body) });

/** @param {string} model */
export const loadModel = (model) => request("models/load", posted({ model }));

/** @param {string} model */
export const unloadModel = (model) => request("models/unload", posted({ model }));

/** @param {string} model */
export const deleteModel = (model) => request("../api/delete", posted({ model }, "DELETE"));

/** Whether the server downloads and deletes models: only such a one minds that the name is missing. */
export async function canPull() {
  try {
    await request("../api/pull", posted({}));
    return true;
  } catch (error) {
    return /** @type {ServerError} */ (error).status === 400;
  }
}

/**
 * Have the server download a model; yields the lines of Ollama's API.
 * @param {string} model
 * @returns {AsyncGenerator<{status?: string, error?: string, digest?: string, completed?: number, total?: number}>}
 */
export async function* pullModel(model) {
  const answer = await request("../api/pull", posted({ model }));
  const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let last = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const lines = (rest + decoder.decode(value, { stream: !done })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line) yield JSON.parse((last = line));
      if (done) break;
    }
  } catch {
    throw new ServerError("broken", "The connection broke off. The server may still be downloading; try again to see how far it is.");
  }
  if (!last.includes('"success"') && !last.includes('"error"')) throw new ServerError("broken", "The server ended before the download was complete.");
}

/**
 * Have the server read an image, without a reply; throws what it says against it.
 * @param {string | null} model null: the server's first
 * @param {string} url a data: URL
 */
export async function checkImage(model, url) {
  const messages = [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }];
  await request("chat/completions/input_tokens", { method: "POST", body: JSON.stringify({ ...(model ? { model } : {}), messages }) });
}

/**
 * Ask for a reply; yields the chunks of OpenAI's API as they arrive.
 * @param {Record<string, any>} body
 * @param {AbortSignal} signal
 * @param {{key: string, event: number}} sent the key by which a server with a journal knows the request, and the last event that is here
 * @param {(names: string[]) => void} onIgnored gets the names of the fields that the server ignored
 * @returns {AsyncGenerator<{chunk: any, event: number}>} `event` is 0 without a journal
 */
export async function* streamChat(body, signal, sent, onIgnored) {
  /** @type {Record<string, string>} */
  const headers = { "idempotency-key": sent.key };
  if (sent.event) headers["last-event-id"] = String(sent.event);
  const answer = await request("chat/completions", { method: "POST", body: JSON.stringify(body), signal, headers });
  const ignored = answer.headers.get("x-akunu-ignored")?.split(", ").map(decodeURIComponent).filter((each) => !(each in headers));
  if (ignored?.length) onIgnored(ignored);
  let isComplete = false;
  try {
    for await (const { data, id } of events(answer.body)) {
      if (data === "[DONE]") {
        isComplete = true;
        continue;
      }
      const chunk = JSON.parse(data);
      if (chunk.error) throw asError(chunk.error, Number(chunk.error.status) || 500);
      yield { chunk, event: Number(id) || 0 };
    }
  } catch (error) {
    if (error instanceof ServerError || /** @type {Error} */ (error).name === "AbortError") throw error;
    throw new ServerError("broken", "The connection broke off before the reply was complete.");
  }
  if (!isComplete) throw new ServerError("broken", "The connection broke off before the reply was complete.");
}

/**
 * Server-sent events: the data and the id of each.
 * @param {ReadableStream<Uint8Array> | null} body
 * @returns {AsyncGenerator<{data: string, id: string}>}
 */
async function* events(body) {
  if (!body) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += decoder.decode(value, { stream: !done });
      const parts = rest.split(/\r?\n\r?\n/);
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const lines = part.split(/\r?\n/);
        const of = (/** @type {string} */ name) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trimStart());
        if (of("data").length) yield { data: of("data").join("\n"), id: of("id")[0] ?? "" };
      }
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {}); // tells the server, if the reply is not complete
  }
}
