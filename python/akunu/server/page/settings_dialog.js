// The settings of a chat: the system prompt and the fields that are sent with every request.

import { openDialog } from "./dialogs.js";
import { h, notify, say } from "./dom.js";
import { GROUPS, readSetting, writeSetting } from "./settings.js";

/** @typedef {import("./settings.js").Field} Field */

/**
 * @param {Record<string, any>} settings changed as one types
 * @param {{changed: () => void, keepForNew: () => void}} actions
 */
export function showSettings(settings, actions) {
  const system = h("textarea", {
    id: "set-system", rows: 4, value: settings.system ?? "", "aria-describedby": "help-system",
    placeholder: "You are a patient teacher. Answer in short sentences.",
    oninput: () => {
      if (system.value) settings.system = system.value;
      else delete settings.system;
      actions.changed();
    },
  });
  const groups = GROUPS.map((group) =>
    h("details", { class: "group", open: group.isOpen || group.fields.some((each) => settings[each.name] !== undefined) },
      h("summary", {}, group.title), ...group.fields.map((field) => settingRow(field, settings, actions.changed))));
  const dialog = openDialog("Settings of this chat", "settings",
    h("div", { class: "setting" },
      h("label", { for: "set-system" }, "System prompt"), system,
      h("p", { class: "help", id: "help-system" }, "Instructions for the conversation. Empty: the default of the model's chat template.")),
    ...groups,
    h("div", { class: "buttons" },
      h("button", {
        type: "button", class: "plain",
        onclick: () => {
          for (const name of Object.keys(settings)) delete settings[name];
          actions.changed();
          dialog.close();
          showSettings(settings, actions);
          say("All settings are reset");
        },
      }, "Reset"),
      h("button", {
        type: "button", class: "plain",
        onclick: () => {
          actions.keepForNew();
          notify("New chats begin with these settings.");
        },
      }, "Use for new chats")));
}

/**
 * @param {Field} field
 * @param {Record<string, any>} settings
 * @param {() => void} changed
 */
function settingRow(field, settings, changed) {
  const id = `set-${field.name}`;
  const mistake = h("p", { class: "mistake", id: `mistake-${field.name}`, hidden: true });
  const read = () => {
    try {
      const value = readSetting(field, input.value);
      if (value === undefined) delete settings[field.name];
      else settings[field.name] = value;
      mistake.hidden = true;
      input.removeAttribute("aria-invalid");
      changed();
    } catch (error) {
      mistake.textContent = `${/** @type {Error} */ (error).message} The setting is unchanged.`;
      mistake.hidden = false;
      input.setAttribute("aria-invalid", "true");
    }
  };
  const common = { id, "aria-describedby": `help-${field.name} mistake-${field.name}`, onchange: read };
  const input = inputFor(field, common, writeSetting(field, settings[field.name]));
  return h("div", { class: `setting ${field.kind}` },
    h("label", { for: id }, field.label), input,
    h("p", { class: "help", id: `help-${field.name}` }, field.help), mistake);
}

/** @param {Field} field @param {Record<string, any>} common @param {string} value */
function inputFor(field, common, value) {
  if (field.kind === "choice") {
    const options = [["", field.unset], ...(field.choices ?? [])];
    return h("select", common, ...options.map(([each, label]) => h("option", { value: each, selected: each === value }, label)));
  }
  if (field.kind === "lines" || field.kind === "json") {
    return h("textarea", { ...common, rows: field.kind === "json" ? 4 : 2, placeholder: field.unset, value, spellcheck: "false" });
  }
  // Type text, not number: a number field says nothing about an invalid value, and the wheel changes it.
  return h("input", { ...common, type: "text", inputmode: field.kind === "integer" ? "numeric" : "decimal", placeholder: field.unset, value, autocomplete: "off" });
}
