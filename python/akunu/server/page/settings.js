// What one may ask of a reply: the fields of a request, what they mean, and how they are read.

/**
 * @typedef {{name: string, label: string, kind: "number" | "integer" | "text" | "lines" | "choice" | "json",
 *   help: string, unset: string, min?: number, max?: number, step?: number, choices?: [string, string][]}} Field
 */

/** @type {{title: string, isOpen: boolean, fields: Field[]}[]} */
export const GROUPS = [
  {
    title: "Reply",
    isOpen: true,
    fields: [
      {
        name: "temperature", label: "Temperature", kind: "number", min: 0, max: 5, step: 0.1, unset: "the model's setting",
        help: "Randomness of the reply. 0 always takes the most likely token; 0.7 gives varied text; far above 1, the text makes no sense.",
      },
      {
        name: "max_tokens", label: "Longest reply", kind: "integer", min: 1, step: 1, unset: "until the context is full",
        help: "The most tokens of a reply; a longer one is cut off. 100 tokens are about 75 English words.",
      },
      {
        name: "enable_thinking", label: "Thinking", kind: "choice", unset: "the model's default",
        choices: [["true", "Think first"], ["false", "Answer at once"]],
        help: "Whether a reasoning model thinks before it answers. A model without such a switch refuses the request.",
      },
      {
        name: "stop", label: "Stop at", kind: "lines", unset: "nothing",
        help: "The reply ends before the first of these texts. Write one text on each line.",
      },
    ],
  },
  {
    title: "Sampling",
    isOpen: false,
    fields: [
      {
        name: "top_p", label: "Top p", kind: "number", min: 0, max: 1, step: 0.05, unset: "the model's setting",
        help: "Sample from the most likely tokens whose probabilities add up to this. 0.9 drops the least likely tenth; 1 drops none.",
      },
      {
        name: "top_k", label: "Top k", kind: "integer", min: 0, step: 1, unset: "the model's setting",
        help: "Sample from this many of the most likely tokens. 40 is usual; 0: from all.",
      },
      {
        name: "min_p", label: "Min p", kind: "number", min: 0, max: 1, step: 0.01, unset: "the model's setting",
        help: "Drop tokens whose probability is below this share of the highest one. With 0.05, text still makes sense at a higher temperature.",
      },
      {
        name: "seed", label: "Seed", kind: "integer", step: 1, unset: "random",
        help: "The same seed, settings and messages give the same reply.",
      },
    ],
  },
  {
    title: "Repetition",
    isOpen: false,
    fields: [
      {
        name: "repetition_penalty", label: "Repetition penalty", kind: "number", min: 0, step: 0.05, unset: "the model's setting",
        help: "Above 1, recent tokens become less likely. 1.1 is a small penalty; 1: no penalty.",
      },
      {
        name: "frequency_penalty", label: "Frequency penalty", kind: "number", min: -2, max: 2, step: 0.1, unset: "0",
        help: "A token becomes less likely each time it occurs. 0: no penalty.",
      },
      {
        name: "presence_penalty", label: "Presence penalty", kind: "number", min: -2, max: 2, step: 0.1, unset: "0",
        help: "A token that has occurred becomes less likely, however often it did. 0: no penalty.",
      },
    ],
  },
  {
    title: "Tools and other fields",
    isOpen: false,
    fields: [
      {
        name: "tools", label: "Tools", kind: "json", unset: "none",
        help: "A JSON list of functions as OpenAI describes them. When the model calls one, you see the call and write its result.",
      },
      {
        name: "more", label: "Other fields", kind: "json", unset: "none",
        help: "A JSON object with other fields of the request, such as {\"dry_multiplier\": 0.8}. The reply names the fields that the server ignores.",
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
    throw new Error(`This is not JSON: ${/** @type {Error} */ (error).message}`);
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
