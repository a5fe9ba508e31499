// Which models there are, and whether the server is.

import { listModels, ServerError } from "./api.js";
import { h } from "./dom.js";
import { stateOf } from "./models_dialog.js";

const AGAIN_MS = 3000;

export class Models {
  /**
   * @param {{chosen: (id: string) => void, known: () => void, needsKey: (said: string) => void}} actions
   */
  constructor(actions) {
    this.actions = actions;
    /** @type {import("./api.js").ModelFacts[]} */
    this.everything = [];
    /** Those that write texts. @type {import("./api.js").ModelFacts[]} */
    this.all = [];
    /** @type {string | null} */
    this.current = null;
    this.picker = h("select", {
      class: "model", "aria-label": "Model",
      onchange: () => {
        this.current = this.picker.value;
        actions.chosen(this.picker.value);
      },
    });
    this.gone = h("div", { class: "gone", role: "alert", hidden: true });
    this.timer = 0;
  }

  /** Ask the server for its models; while it does not answer, again and again. */
  async refresh() {
    clearTimeout(this.timer);
    try {
      this.everything = await listModels();
      this.all = this.everything.filter(({ capabilities }) => !capabilities || capabilities.includes("completion"));
      this.gone.hidden = true;
      this.draw();
      this.actions.known();
    } catch (error) {
      if (error instanceof ServerError && error.kind === "key") {
        this.actions.needsKey(error.message);
        return;
      }
      this.gone.textContent = `${/** @type {Error} */ (error).message} This page tries again automatically.`;
      this.gone.hidden = false;
      this.timer = setTimeout(() => this.refresh(), AGAIN_MS);
    }
  }

  /** Show which model a conversation has. @param {string | null} id null: the first */
  turnTo(id) {
    this.current = id;
    this.draw();
  }

  draw() {
    const id = this.current ?? this.all[0]?.id;
    const isKnown = this.all.some((each) => each.id === id);
    const options = this.all.map((each) => h("option", { value: each.id, selected: each.id === id }, labelOf(each)));
    // A conversation's model that is served no more is named, and not replaced in silence.
    if (id && !isKnown && this.all.length) options.unshift(h("option", { value: id, selected: true }, `${id} (not served)`));
    const labels = (/** @type {any[]} */ all) => all.map((each) => [each.value, each.textContent, each.selected]).join();
    if (labels(options) !== labels([...this.picker.options])) this.picker.replaceChildren(...options); // one that is open stays as it is
    this.picker.disabled = options.length === 0;
  }

  /** Whether the chosen model reads images; undefined: it is not loaded. */
  get readsImages() {
    const facts = this.facts?.parent ? this.all.find((each) => each.id === this.facts?.parent) : this.facts; // an adapter's
    return facts?.capabilities?.includes("vision");
  }

  /** The facts of the model that is chosen. */
  get facts() {
    const id = this.current ?? this.all[0]?.id;
    return this.all.find((each) => each.id === id);
  }
}

/** @param {import("./api.js").ModelFacts} model */
function labelOf(model) {
  const state = stateOf(model);
  return state === "loaded" ? model.id : `${model.id} (${state === "unloaded" ? "not loaded" : state})`;
}
