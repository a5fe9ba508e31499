// Keys that work anywhere on the page; `SHORTCUTS` in dialogs.js lists them for people.

/**
 * @param {{stop: () => boolean, retry: () => void, continue: () => void, search: () => void, begin: () => void,
 *   settings: () => void, sidebar: () => void, help: () => void}} actions
 */
export function listenToKeys(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      if (actions.stop()) event.preventDefault();
      return;
    }
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
    /** @type {Record<string, () => void>} */
    const wanted = event.shiftKey
      ? { o: actions.begin, enter: actions.retry, ".": actions.continue, ">": actions.continue, ":": actions.continue }
      : { k: actions.search, ".": actions.settings, b: actions.sidebar, "/": actions.help };
    const act = wanted[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
