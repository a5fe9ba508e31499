// Dialogs: the key, the help sheet, export and import.

import { key } from "./api.js";
import { h, iconButton, notify } from "./dom.js";

const MOD = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";

/**
 * Show a dialog; it is gone once it is closed. Browsers keep the focus inside, and give it back.
 * @param {string} title
 * @param {string} kind a class
 * @param {...any} children
 * @returns {HTMLDialogElement}
 */
export function openDialog(title, kind, ...children) {
  const name = `title-${kind}`;
  const dialog = h("dialog", { class: `dialog ${kind}`, "aria-labelledby": name },
    h("header", {}, h("h2", { id: name }, title), iconButton("close", "Close", () => dialog.close())), ...children);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("mousedown", (/** @type {MouseEvent} */ event) => {
    if (event.target === dialog) dialog.close(); // outside of it
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * Ask for the key of the server; resolves to whether the user entered one.
 * @param {string} said what the server said
 * @returns {Promise<boolean>}
 */
export function askForKey(said) {
  if (document.querySelector(".ask-key")) return Promise.resolve(false);
  return new Promise((resolve) => {
    const field = h("input", { type: "password", id: "key", autocomplete: "off", required: true, spellcheck: "false" });
    const form = h("form", {
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        key.set(field.value.trim());
        resolve(true);
        dialog.close();
      },
    },
      h("p", {}, key.get() ? `The server refused the key: ${said}.` : "This server requires an API key."),
      h("label", { for: "key" }, "API key"), field,
      h("p", { class: "help" }, "It is kept until this tab is closed, and sent only to this server."),
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "primary" }, "Continue")));
    const dialog = openDialog("Key", "ask-key", form);
    dialog.addEventListener("close", () => resolve(false));
    field.focus();
  });
}

export const SHORTCUTS = [
  ["Enter", "Send"],
  ["Shift+Enter", "New line"],
  [`${MOD}+V`, "Attach copied files, or an image if the model reads images"],
  ["Esc", "Stop the reply, end an edit, close a dialog"],
  ["↑", "In an empty field: edit the last message"],
  [`${MOD}+Enter`, "While a message is edited: send it"],
  [`${MOD}+Shift+Enter`, "Generate the last reply again"],
  [`${MOD}+Shift+.`, "Continue a reply that was cut"],
  [`${MOD}+K`, "Search conversations"],
  [`${MOD}+Shift+O`, "New chat"],
  [`${MOD}+.`, "Settings of this chat"],
  [`${MOD}+B`, "Show or hide the list"],
  [`${MOD}+/`, "Show this help"],
];

export function showHelp() {
  openDialog("Keyboard", "help-sheet",
    h("dl", { class: "shortcuts" }, ...SHORTCUTS.flatMap(([keys, what]) => [
      h("dt", {}, ...keys.split("+").map((each) => h("kbd", {}, each))), h("dd", {}, what)])),
    h("p", { class: "help" }, "An edited message or a new reply is a new version; ‹ and › switch between versions. Conversations, images and drafts stay in this browser. A server with a journal keeps replies for a day, so that they survive a lost connection; other servers store nothing."));
}

/**
 * @param {{exportAll: () => void, exportThis: (() => void) | null, importFile: (file: File) => Promise<string>,
 *   removeAll: () => void, count: number}} actions
 */
export function showData(actions) {
  const close = (/** @type {() => void} */ run) => () => (dialog.close(), run());
  const error = h("p", { class: "mistake", role: "alert", hidden: true });
  const file = h("input", {
    type: "file", accept: ".json,application/json", class: "visually-hidden", tabindex: "-1", "aria-label": "File to import",
    onchange: async () => {
      try {
        const said = await actions.importFile(file.files[0]);
        dialog.close();
        notify(said);
      } catch (failure) {
        error.textContent = `Not imported: ${/** @type {Error} */ (failure).message}`;
        error.hidden = false;
      }
      file.value = "";
    },
  });
  const button = (/** @type {string} */ label, /** @type {() => void} */ run, more = {}) =>
    h("button", { type: "button", class: "plain", onclick: run, ...more }, label);
  const dialog = openDialog("Your conversations", "data-sheet",
    h("p", {}, "They are stored in this browser, on this device. An exported file is a copy that you can keep or import elsewhere."),
    h("div", { class: "stack" },
      button(`Export all (${actions.count})`, close(actions.exportAll), { disabled: !actions.count }),
      button("Export this chat", close(actions.exportThis ?? (() => {})), { disabled: !actions.exportThis }),
      button("Import a file…", () => file.click()),
      button("Delete all…", () => {
        confirmed.hidden = false;
        confirmed.querySelector("button")?.focus();
      }, { disabled: !actions.count })),
    file, error);
  const confirmed = h("div", { class: "failure", hidden: true }, h("p", {}, `All ${actions.count} conversations will be deleted for good.`),
    button("Delete them", close(actions.removeAll)));
  dialog.append(confirmed);
}
