// What one may ask of a reply: the fields of a request, what they mean, and how they are read.

/**
 * @typedef {{name: string, label: string, kind: "number" | "integer" | "text" | "lines" | "choice" | "json",
 *   help: string, unset: string, min?: number, max?: number, step?: number, choices?: [string, string][]}} Field
 */

/** @type {{title: string, isOpen: boolean, fields: Field[]}[]} */
export const GROUPS = [
  {
    title: "How it writes",
    isOpen: true,
    fields: [
      {
        name: "temperature", label: "Temperature", kind: "number", min: 0, max: 5, step: 0.1, unset: "as the model recommends",
        help: "How daring the choice of words is. 0 always takes the likeliest word; 0.7 is lively; above 1 it begins to wander.",
      },
      {
        name: "max_tokens", label: "Longest reply", kind: "integer", min: 1, step: 1, unset: "until the context is full",
        help: "In tokens, pieces of words: 100 tokens are about 75 English words. A longer reply is cut off there.",
      },
      {
        name: "enable_thinking", label: "Thinking", kind: "choice", unset: "as the model does",
        choices: [["true", "Think first"], ["false", "Answer at once"]],
        help: "Whether a model that can think writes its thoughts before the answer. Models without a switch for it refuse.",
      },
      {
        name: "stop", label: "Stop at", kind: "lines", unset: "nothing",
        help: "The reply ends before the first of these texts. One a line.",
      },
    ],
  },
  {
    title: "Which words may be chosen",
    isOpen: false,
    fields: [
      {
        name: "top_p", label: "Top p", kind: "number", min: 0, max: 1, step: 0.05, unset: "as the model recommends",
        help: "Only the likeliest words that together reach this share. 0.9 leaves out the odd tenth; 1 leaves out none.",
      },
      {
        name: "top_k", label: "Top k", kind: "integer", min: 0, step: 1, unset: "as the model recommends",
        help: "Only this many of the likeliest words. 40 is usual; 0 is all of them.",
      },
      {
        name: "min_p", label: "Min p", kind: "number", min: 0, max: 1, step: 0.01, unset: "as the model recommends",
        help: "Leaves out words less likely than this share of the likeliest one. 0.05 lets you raise the temperature without nonsense.",
      },
      {
        name: "seed", label: "Seed", kind: "integer", step: 1, unset: "another one each time",
        help: "The same seed, settings and messages give the same reply, word for word.",
      },
    ],
  },
  {
    title: "Against repetition",
    isOpen: false,
    fields: [
      {
        name: "repetition_penalty", label: "Repetition penalty", kind: "number", min: 0, step: 0.05, unset: "as the model recommends",
        help: "Above 1, words that were said lately become less likely. 1.1 is gentle; 1 is off.",
      },
      {
        name: "frequency_penalty", label: "Frequency penalty", kind: "number", min: -2, max: 2, step: 0.1, unset: "0, off",
        help: "The more often a word was said, the less likely it becomes.",
      },
      {
        name: "presence_penalty", label: "Presence penalty", kind: "number", min: -2, max: 2, step: 0.1, unset: "0, off",
        help: "A word that was said becomes less likely, however often it was: it changes the subject.",
      },
    ],
  },
  {
    title: "Tools and more",
    isOpen: false,
    fields: [
      {
        name: "tools", label: "Tools", kind: "json", unset: "none",
        help: "A JSON list of functions as OpenAI describes them. When the model calls one, you see the call and write its result.",
      },
      {
        name: "more", label: "Other fields", kind: "json", unset: "none",
        help: "A JSON object of whatever else the server understands, as {\"dry_multiplier\": 0.8}. The server's answer says what it does not know.",
      },
    ],
  },
];

const FIELDS = new Map(GROUPS.flatMap((group) => group.fields).map((each) => [each.name, each]));

/**
 * Read what was typed for a setting; "" is unset, undefined. Throws an Error that says what is wrong.
 * @param {Field} field
 * @param {string} text
 * @returns {any}
 */
export function readSetting(field, text) {
  if (!text.trim()) return undefined;
  if (field.kind === "choice") return text;
  if (field.kind === "lines") return text.split("\n").filter((line) => line !== "");
  if (field.kind === "json") return readJson(field, text);
  const value = Number(text);
  if (!Number.isFinite(value)) throw new Error("This must be a number.");
  if (field.kind === "integer" && !Number.isSafeInteger(value)) throw new Error("This must be a whole number.");
  if (field.min !== undefined && value < field.min) throw new Error(`This must be ${field.min} or more.`);
  if (field.max !== undefined && value > field.max) throw new Error(`This must be ${field.max} or less.`);
  return value;
}

/** @param {Field} field @param {string} text */
function readJson(field, text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`This is no JSON: ${/** @type {Error} */ (error).message}`);
  }
  if (field.name === "tools" && !Array.isArray(value)) throw new Error("This must be a list: [ … ].");
  if (field.name === "more" && (value === null || typeof value !== "object" || Array.isArray(value)))
    throw new Error("This must be an object: { … }.");
  return value;
}

/**
 * How a setting is written in its field.
 * @param {Field} field
 * @param {any} value
 */
export function writeSetting(field, value) {
  if (value === undefined || value === null) return "";
  if (field.kind === "lines") return value.join("\n");
  if (field.kind === "json") return JSON.stringify(value, null, 2);
  return String(value);
}

/**
 * The fields of a request that settings stand for.
 * @param {Record<string, any>} settings
 */
export function requestFields(settings) {
  /** @type {Record<string, any>} */
  const found = {};
  for (const [name, value] of Object.entries(settings)) {
    if (!FIELDS.has(name) || name === "more" || value === undefined) continue;
    found[name] = name === "enable_thinking" ? value === "true" : value;
  }
  return { ...found, ...settings.more };
}

/** How many settings differ from those of a fresh chat. @param {Record<string, any>} settings */
export function countSettings(settings) {
  return Object.values(settings).filter((each) => each !== undefined && each !== "").length;
}
