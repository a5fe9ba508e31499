// The models of the server: which are loaded; load, unload, download and delete them.

import { canPull, deleteModel, loadModel, unloadModel } from "./api.js";
import { openDialog } from "./dialogs.js";
import { h, say } from "./dom.js";

/** @typedef {import("./api.js").ModelFacts} ModelFacts */

const LOOK_MS = 1000;

/**
 * @param {import("./models.js").Models} models
 * @param {import("./downloads.js").Downloads} downloads
 */
export async function showModels(models, downloads) {
  const list = h("ul", { class: "model-list", "aria-label": "Models" });
  const arriving = h("ul", { class: "model-list", "aria-label": "Downloads" });
  const name = h("input", { id: "pull-name", placeholder: "org/repo or org/repo:Q4_K_M", autocomplete: "off", spellcheck: "false", required: true });
  const form = h("form", {
    hidden: true,
    onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      downloads.begin(name.value.trim());
      name.value = "";
    },
  },
    h("label", { for: "pull-name" }, "Download from the Hugging Face hub"), name,
    h("div", { class: "buttons" }, h("button", { type: "submit", class: "plain" }, "Download")));
  const refused = h("p", { class: "help", hidden: true }, "This server does not download or delete models: start it with ", h("code", {}, "--allow-pull"), ".");
  const dialog = openDialog("Models", "models-sheet", list, arriving, form, refused);

  let mayChange = false;
  let drawn = "";
  /** What is under way or went wrong with a model, by its name. @type {Map<string, {busy?: string, error?: string, asks?: boolean}>} */
  const notes = new Map();

  /** @param {string} id @param {string} busy @param {() => Promise<any>} run @param {string} done */
  async function act(id, busy, run, done) {
    notes.set(id, { busy });
    draw();
    try {
      await run();
      notes.delete(id);
      say(`${id}: ${done}`);
    } catch (error) {
      notes.set(id, { error: `${/** @type {Error} */ (error).message}` });
    }
    await models.refresh();
    draw();
  }

  function draw() {
    const state = JSON.stringify([models.everything, [...notes], [...downloads.all], mayChange]);
    if (state === drawn) return;
    drawn = state;
    const focused = dialog.contains(document.activeElement) ? document.activeElement?.getAttribute("data-focus") : null;
    list.replaceChildren(...models.everything.filter((each) => !each.parent).map(row));
    arriving.replaceChildren(...[...downloads.all.values()].map((each) => downloadRow(each, downloads)));
    arriving.hidden = !downloads.all.size;
    if (focused) /** @type {HTMLElement | null} */ (dialog.querySelector(`[data-focus="${CSS.escape(focused)}"]`))?.focus();
  }

  /** @param {ModelFacts} model */
  function row(model) {
    const { id } = model;
    const note = notes.get(id) ?? {};
    const value = note.busy ?? stateOf(model);
    const button = (/** @type {string} */ label, /** @type {() => void} */ onclick) =>
      h("button", { type: "button", class: "plain", "aria-label": `${label} ${id}`, "data-focus": `${label} ${id}`, onclick, disabled: Boolean(note.busy) || value === "loading" }, label);
    const isLoaded = stateOf(model) === "loaded";
    return h("li", {},
      h("div", {}, h("span", { class: "name" }, id), h("p", { class: "help" }, [value, ...factsOf(model)].join(" · "))),
      h("div", { class: "buttons" },
        isLoaded
          ? button("Unload", () => act(id, "unloading", () => unloadModel(id), "unloaded"))
          : button("Load", () => act(id, "loading", () => loadModel(id), "loaded")),
        // Only models of the hub, whose names have a slash, are in a cache from which the server deletes.
        mayChange && id.includes("/") && button("Delete…", () => (notes.set(id, { asks: true }), draw(), list.querySelector("[data-sure]")?.focus()))),
      note.error && h("p", { class: "mistake", role: "alert" }, note.error),
      note.asks && h("div", { class: "failure" }, h("p", {}, `${id} will be deleted from the disk of the server.`),
        h("div", { class: "buttons" },
          h("button", { type: "button", class: "plain", "data-sure": "", onclick: () => act(id, "deleting", () => deleteModel(id), "deleted") }, "Delete it"),
          h("button", { type: "button", class: "plain", onclick: () => (notes.delete(id), draw()) }, "Keep it"))));
  }

  const before = downloads.onChange;
  downloads.onChange = (ended) => {
    before(ended);
    draw();
  };
  const timer = setInterval(() => models.refresh().then(draw), LOOK_MS); // other clients load models too
  dialog.addEventListener("close", () => {
    clearInterval(timer);
    downloads.onChange = before;
  });
  draw();
  await models.refresh();
  draw();
  mayChange = await canPull();
  form.hidden = !mayChange;
  refused.hidden = mayChange;
  draw();
}

/** @param {import("./downloads.js").Download} download @param {import("./downloads.js").Downloads} downloads */
function downloadRow(download, downloads) {
  const { name, file, completed, total, error } = download;
  if (error) {
    return h("li", {}, h("span", { class: "name" }, name), h("p", { class: "mistake", role: "alert" }, `Not downloaded: ${error}`),
      h("div", { class: "buttons" },
        h("button", { type: "button", class: "plain", "data-focus": `again ${name}`, onclick: () => downloads.begin(name) }, "Try again"),
        h("button", { type: "button", class: "plain", "data-focus": `forget ${name}`, onclick: () => downloads.forget(name) }, "Remove from the list")));
  }
  const how = total ? `${file}: ${bytes(completed)} of ${bytes(total)}` : "asking the hub";
  return h("li", {}, h("span", { class: "name" }, name), h("p", { class: "help" }, how),
    h("progress", { class: "meter", max: total || 1, "aria-label": `Download of ${name}`, ...(total ? { value: completed } : {}) }));
}

/** @param {ModelFacts} model */
export const stateOf = (model) => model.status?.value ?? (model.loaded ? "loaded" : "unloaded");

/** @param {ModelFacts} model */
function factsOf({ max_model_len: context, meta, capabilities }) {
  return [
    meta?.architecture,
    meta?.n_params && `${(meta.n_params / 1e6).toLocaleString("en", { maximumFractionDigits: meta.n_params < 1e8 ? 1 : 0 })} million parameters`,
    meta?.size && bytes(meta.size),
    context && `context ${context.toLocaleString("en")}`,
    capabilities?.filter((each) => each !== "completion").join(", "),
  ].filter(Boolean);
}

/** @param {number} n */
function bytes(n) {
  return n < 1e9 ? `${(n / 1e6).toFixed(1)} MB` : `${(n / 1e9).toFixed(2)} GB`;
}
