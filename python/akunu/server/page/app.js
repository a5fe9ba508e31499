// The page: which conversation is shown, and what happens when one does something.

import { archiveOf, download, readArchive } from "./archive.js";
import { Composer } from "./composer.js";
import * as tree from "./conversation.js";
import { askForKey, showData, showHelp } from "./dialogs.js";
import { h, icon, iconButton, notify, say } from "./dom.js";
import { listenToKeys } from "./keyboard.js";
import { Downloads } from "./downloads.js";
import { Library } from "./library.js";
import { Models } from "./models.js";
import { showModels } from "./models_dialog.js";
import { Pictures } from "./pictures.js";
import { Replies, onceFree } from "./replies.js";
import { countSettings } from "./settings.js";
import { showSettings } from "./settings_dialog.js";
import { Sidebar } from "./sidebar.js";
import { kept } from "./store.js";
import { Thread } from "./thread.js";

/**
 * @typedef {import("./conversation.js").Conversation} Conversation
 * @typedef {import("./conversation.js").Message} Message
 */

const SAVED_EVERY_MS = 1000; // while a reply is written
const THEMES = ["system", "light", "dark"];
const NARROW = matchMedia("(max-width: 899px)");

class App {
  /** @param {Library} library @param {Pictures} pictures */
  constructor(library, pictures) {
    this.library = library;
    this.pictures = pictures;
    this.conversations = library.all;
    /** @type {Conversation} */
    this.current = this.fresh();
    this.frame = 0;
    this.replies = new Replies(pictures, (...each) => this.replyGrew(...each), (...each) => this.replyEnded(...each), () => this.models.refresh());
    this.models = new Models({
      chosen: (id) => this.chooseModel(id),
      known: () => this.drawContext(),
      needsKey: async (said) => (await askForKey(said)) && this.models.refresh(),
    });
    this.downloads = new Downloads((ended) => {
      if (ended) notify(`${ended.name} is downloaded.`);
      if (ended) this.models.refresh();
    });
    this.thread = new Thread({
      pictures,
      retry: (message) => this.retry(message),
      continue: (message) => this.continue(message),
      edit: (message, text, attached) => this.edit(message, text, attached),
      step: (message, by) => this.step(message, by),
      answerCalls: (message, results) => this.answerCalls(message, results),
      askForKey: async (message) => (await askForKey(message.failure?.message ?? "")) && this.retry(message),
    });
    this.composer = new Composer(pictures, {
      send: (text, attached) => this.send(text, attached),
      stop: () => this.replies.stop(this.current.id),
      editLast: () => this.editLast(),
      model: () => this.models.facts?.id ?? null,
      readsImages: () => this.models.readsImages,
      dropImages: (ids) => this.dropImages(ids),
    });
    this.sidebar = new Sidebar({
      open: (id) => this.open(id),
      begin: () => this.open(null),
      rename: (id, title) => this.rename(id, title),
      remove: (id) => this.remove(id),
      theme: () => this.nextTheme(),
      data: () => this.showData(),
      help: showHelp,
      close: () => this.showSidebar(false),
    });
    this.listen();
  }

  get isRunning() {
    return this.replies.isRunning(this.current.id);
  }

  get isNew() {
    return !this.conversations.has(this.current.id);
  }

  fresh() {
    return tree.newConversation(kept.get("settings") ?? {}, kept.get("model"));
  }

  /** Put the parts onto the page. @param {HTMLElement} place */
  mount(place) {
    this.title = h("h1", {}, "New chat");
    this.settingsButton = h("button", { type: "button", class: "settings-button", title: "Settings of this chat", onclick: () => this.showSettings() },
      icon("settings"), h("span", { class: "label" }, "Settings"), h("span", { class: "badge", hidden: true }));
    this.menuButton = iconButton("menu", "Conversations", () => this.showSidebar(), { "aria-controls": "sidebar" });
    this.veil = h("div", { class: "veil", onclick: () => this.showSidebar(false) });
    place.append(
      this.sidebar.element, this.veil,
      h("main", {},
        h("header", { class: "top" }, this.menuButton, this.models.picker,
          iconButton("models", "Models", () => showModels(this.models, this.downloads)), this.title,
          iconButton("add", "New chat", () => this.open(null)), this.settingsButton),
        this.models.gone, this.thread.element, this.composer.element));
    this.showSidebar(!NARROW.matches && kept.get("sidebar") !== "closed");
    this.showTheme();
    this.open(location.hash.slice(1) || null);
    if (!this.library.store.isKept) notify("This browser stores nothing for this page: conversations are lost when the tab is closed.");
    this.models.refresh();
  }

  listen() {
    document.querySelector(".skip")?.addEventListener("click", (event) => {
      event.preventDefault(); // the address says which conversation is shown
      this.composer.field.focus();
    });
    addEventListener("hashchange", () => this.open(location.hash.slice(1) || null));
    addEventListener("pagehide", () => {
      for (const id of this.replies.running.keys()) this.library.flush(id);
    });
    NARROW.addEventListener("change", () => this.showSidebar(!NARROW.matches));
    this.library.follow((id) => this.replies.written(id), (removed) => this.drawOthers(removed));
    listenToKeys({
      stop: () => this.stopOrClose(),
      retry: () => this.retryLast(),
      continue: () => this.continueLast(),
      search: () => {
        this.showSidebar(true);
        this.sidebar.search.focus();
      },
      begin: () => this.open(null),
      settings: () => this.showSettings(),
      sidebar: () => this.showSidebar(),
      help: showHelp,
    });
  }

  // What is shown

  /** Show a conversation. @param {string | null} id null, or one that is not there: a new one */
  open(id) {
    const found = id ? this.conversations.get(id) : undefined;
    if (NARROW.matches) this.showSidebar(false);
    if (found && found === this.current) return;
    this.current = found ?? this.fresh();
    const wanted = found ? `#${found.id}` : "";
    if (location.hash !== wanted) history.pushState(null, "", wanted || location.pathname + location.search);
    this.models.turnTo(this.current.model);
    this.composer.turnTo(found?.id ?? "new");
    this.draw();
    if (!matchMedia("(pointer: coarse)").matches) this.composer.field.focus();
  }

  draw() {
    const { current } = this;
    const title = current.title || "New chat";
    this.title.textContent = title;
    document.title = `${title} · akunu`;
    this.composer.update(this.isRunning);
    this.thread.show(current, { isRunning: this.isRunning, waitsFor: this.waitsFor });
    this.drawList();
    this.drawContext();
    const n = countSettings(current.settings);
    const badge = this.settingsButton.querySelector(".badge");
    badge.hidden = n === 0;
    badge.textContent = String(n);
    this.settingsButton.setAttribute("aria-label", n ? `Settings of this chat, ${n} changed` : "Settings of this chat");
  }

  drawList() {
    this.sidebar.show([...this.conversations.values()], this.isNew ? null : this.current.id, (id) => this.replies.isRunning(id));
  }

  drawContext() {
    this.composer.showContext(tree.tokensUsed(this.current), this.models.facts?.max_model_len);
  }

  get waitsFor() {
    const { facts } = this.models;
    return facts && facts.loaded === false ? "The model is being loaded…" : "Reading…";
  }

  /** @param {boolean} [isOpen] left out: the other way */
  showSidebar(isOpen = document.body.dataset.sidebar !== "open") {
    document.body.dataset.sidebar = isOpen ? "open" : "closed";
    this.menuButton.setAttribute("aria-expanded", String(isOpen));
    if (!NARROW.matches) kept.set("sidebar", isOpen ? "open" : "closed");
    else if (!isOpen && this.sidebar.element.contains(document.activeElement)) this.menuButton.focus();
    else if (isOpen) this.sidebar.element.querySelector("button").focus(); // not the search: phones would show keys
  }

  /** Esc: stop the reply, or else close the list on a phone. */
  stopOrClose() {
    if (NARROW.matches && document.body.dataset.sidebar === "open") {
      this.showSidebar(false);
      return true;
    }
    if (!this.isRunning) return false;
    this.replies.stop(this.current.id);
    return true;
  }

  // What one does

  /** @param {string} text @param {import("./message_view.js").Attached} attached */
  send(text, attached) {
    const { current } = this;
    const messages = tree.path(current);
    tree.add(current, messages[messages.length - 1]?.id ?? null, { role: "user", content: text, ...tree.attachedFields(attached) });
    if (this.isNew) {
      this.conversations.set(current.id, current);
      history.pushState(null, "", `#${current.id}`);
      kept.set("draft.new", null);
      this.composer.turnTo(current.id);
    }
    this.answer();
    this.thread.toEnd();
  }

  /** Have the model answer what is shown. */
  answer() {
    const { current } = this;
    const messages = tree.path(current);
    const last = messages[messages.length - 1];
    if (!last) return;
    current.model ??= this.models.facts?.id ?? null;
    const reply = tree.add(current, last.id, { role: "assistant", model: current.model ?? undefined });
    say("The model is answering");
    this.replies.write(current, reply);
    this.save(current);
    this.draw();
  }

  /** @param {Message} message a reply */
  retry(message) {
    if (this.isRunning || message.role !== "assistant") return;
    const { current } = this;
    current.model = this.models.current ?? current.model;
    // A reply that failed before its first word is not kept as a version.
    const isEmpty = message.failure && !message.content && !message.reasoning && !message.toolCalls?.length;
    const reply = isEmpty ? message : tree.add(current, message.parent, { role: "assistant", model: current.model ?? undefined });
    say("The model is answering again");
    this.replies.write(current, reply);
    this.draw();
  }

  /** Have the model write on where a reply was cut. @param {Message} message */
  continue(message) {
    if (this.isRunning || !tree.canContinue(message)) return;
    this.current.model = this.models.current ?? this.current.model;
    say("The model continues");
    this.replies.write(this.current, message);
    this.draw();
  }

  continueLast() {
    const messages = tree.path(this.current);
    const last = messages[messages.length - 1];
    if (last) this.continue(last);
  }

  retryLast() {
    const messages = tree.path(this.current);
    const last = messages[messages.length - 1];
    if (last) this.retry(last);
  }

  editLast() {
    const mine = tree.path(this.current).filter((each) => each.role === "user");
    const last = mine[mine.length - 1];
    if (last && !this.isRunning) this.thread.views.get(last.id)?.beginEdit();
  }

  /** @param {Message} message @param {string} text @param {import("./message_view.js").Attached} attached */
  edit(message, text, attached) {
    if (this.isRunning) return;
    const { role, parent, model } = message;
    if (role === "user") {
      tree.add(this.current, parent, { role, content: text, ...tree.attachedFields(attached) });
      this.answer();
    } else {
      tree.add(this.current, parent, { role, content: text, model, finish: "edited" });
      this.save(this.current);
      this.draw();
    }
  }

  /** @param {Message} message @param {number} by */
  step(message, by) {
    const all = tree.versions(this.current, message.parent);
    const next = all[all.indexOf(message) + by];
    if (!next || this.isRunning) return;
    tree.choose(this.current, next);
    this.save(this.current);
    this.draw();
    const label = by < 0 ? "Earlier version" : "Later version";
    const footer = this.thread.views.get(next.id)?.footer;
    (footer?.querySelector(`[aria-label="${label}"]:enabled`) ?? footer?.querySelector(".versions button:enabled"))?.focus();
    say(`Version ${all.indexOf(next) + 1} of ${all.length}`);
  }

  /** @param {Message} message @param {string[]} results one for each call */
  answerCalls(message, results) {
    let parent = message.id;
    message.toolCalls?.forEach((call, index) => {
      parent = tree.add(this.current, parent, { role: "tool", content: results[index], toolCallId: call.id }).id;
    });
    this.answer();
  }

  /** @param {string} id */
  chooseModel(id) {
    this.current.model = id;
    kept.set("model", id);
    if (!this.isNew) this.save(this.current);
    this.drawContext();
  }

  showSettings() {
    const { current } = this;
    showSettings(current.settings, {
      changed: () => {
        if (this.conversations.has(current.id)) this.save(current);
        this.draw();
      },
      keepForNew: () => kept.set("settings", current.settings),
    });
  }

  // Replies

  /** @param {Conversation} conversation @param {Message} message */
  replyGrew(conversation, message) {
    if (Date.now() - this.library.savedAt > SAVED_EVERY_MS) this.library.save(conversation, message.id);
    if (conversation !== this.current || this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (this.isRunning) this.thread.grow(message);
    });
  }

  /** @param {Conversation} conversation @param {Message} message */
  async replyEnded(conversation, message) {
    const saved = this.library.save(conversation, message.id);
    this.showEnd(conversation, message);
    await saved;
  }

  /** @param {Conversation} conversation @param {Message} message */
  showEnd(conversation, message) {
    if (conversation === this.current) this.draw();
    else this.drawList();
    const { failure, finish } = message;
    if (failure) {
      if (failure.kind === "gone") this.models.refresh();
      if (failure.kind === "key") this.thread.actions.askForKey(message);
      return;
    }
    say(finish === "stopped" ? "Stopped" : `Reply complete. ${message.content.slice(0, 500)}`);
    this.models.refresh(); // now it is known how much room the model has
  }

  // Conversations

  /** @param {Conversation} conversation */
  save(conversation) {
    return this.library.save(conversation, this.replies.written(conversation.id));
  }

  /** Another tab changed something. @param {string | null} removed a conversation that it deleted */
  drawOthers(removed) {
    if (removed === this.current.id && this.isNew) this.open(null);
    else if (removed) this.drawList();
    else this.draw();
  }

  /** Replies that were under way when their page was closed: the rest comes from the server's journal, or is missing. */
  async finishReplies() {
    for (const conversation of this.conversations.values()) {
      for (const { id, role, finish, failure } of Object.values(conversation.messages)) {
        if (role === "assistant" && !finish && !failure) onceFree(id, () => this.finishReply(conversation, id));
      }
    }
  }

  /** @param {Conversation} conversation @param {string} id the message's */
  async finishReply(conversation, id) {
    await this.library.read(conversation.id, this.replies.written(conversation.id)); // the tab that wrote it may have ended it
    const message = conversation.messages[id];
    if (!message || message.finish || message.failure) return;
    if (message.sent?.event && !this.replies.isRunning(conversation.id)) this.replies.resume(conversation, message);
    else {
      message.finish = "interrupted";
      delete message.sent;
      this.library.save(conversation, id);
    }
    if (conversation === this.current) this.draw();
  }

  /** @param {string} id @param {string} title */
  rename(id, title) {
    const conversation = this.conversations.get(id);
    if (!conversation) return;
    conversation.title = title;
    this.save(conversation);
    this.draw();
  }

  /** @param {string} id */
  async remove(id) {
    const conversation = this.conversations.get(id);
    if (!conversation) return;
    this.replies.stop(id);
    this.conversations.delete(id);
    if (conversation === this.current) this.open(null);
    this.drawList();
    await this.library.remove([id]);
    /** @type {[string, Blob | undefined][]} */
    const files = [];
    for (const each of imagesOf([conversation])) files.push([each, await this.pictures.get(each)]);
    await this.dropImages(files.map(([each]) => each));
    notify(`“${conversation.title}” is deleted.`, {
      label: "Undo",
      run: async () => {
        this.conversations.set(id, conversation);
        const warning = await this.keepImages(files);
        this.save(conversation);
        this.open(id);
        if (warning) notify(warning);
      },
    });
  }

  showData() {
    const all = [...this.conversations.values()];
    const { current } = this;
    const day = new Date().toISOString().slice(0, 10);
    showData({
      count: all.length,
      exportAll: () => this.export(all, `akunu-${day}.json`),
      exportThis: this.isNew ? null : () => this.export([current], `akunu-${day}-${current.id.slice(0, 6)}.json`),
      importFile: async (file) => this.import(readArchive(await file.text())),
      removeAll: async () => {
        for (const each of all) {
          this.replies.stop(each.id);
          kept.set(`draft.${each.id}`, null);
          kept.set(`draft.${each.id}.attached`, null);
        }
        await this.library.remove(all.map((each) => each.id));
        await this.dropImages(imagesOf(all));
        this.open(null);
        this.drawList();
      },
    });
  }

  /** @param {Conversation[]} conversations @param {string} name of the file */
  async export(conversations, name) {
    try {
      download(archiveOf(conversations, await this.pictures.urls(imagesOf(conversations))), name);
    } catch (error) { // more images than a text can hold, or one that the browser cannot read any more
      const one = conversations.length > 1 ? " Export chats one by one." : "";
      notify(`Not exported: ${/** @type {Error} */ (error).message}.${one}`);
    }
  }

  /** @param {{conversations: Conversation[], images: Map<string, Blob>}} archive */
  async import({ conversations, images }) {
    let n = 0;
    let warning = "";
    for (const each of conversations) {
      /** @type {[string, Blob | undefined][]} */
      const missing = []; // also of conversations that are here: an image may have found no room before
      for (const id of imagesOf([each])) if (!(await this.pictures.get(id))) missing.push([id, images.get(id)]);
      warning ||= await this.keepImages(missing);
      const here = this.conversations.get(each.id);
      if (here && here.updated >= each.updated) continue;
      this.conversations.set(each.id, each);
      await this.save(each);
      if (here === this.current) this.current = each;
      n += 1;
    }
    this.draw();
    const known = conversations.length - n;
    return `${n} imported${known ? `, ${known} were here already` : ""}.${warning && ` ${warning}`}`;
  }

  /**
   * Keep images; returns what is to be said where the browser has no room for some.
   * @param {[string, Blob | undefined][]} files by their ids
   */
  async keepImages(files) {
    let warning = "";
    for (const [id, file] of files) {
      try {
        if (file) await this.pictures.put(file, id);
      } catch (error) {
        warning = `The browser could not store the images (${/** @type {Error} */ (error).message}): they are lost when this page is closed.`;
      }
    }
    return warning;
  }

  /** Remove images, but those that a conversation or a draft still has, perhaps of another tab. @param {Iterable<string>} ids */
  async dropImages(ids) {
    const used = usedImages([...this.conversations.values()]);
    await this.pictures.remove([...ids].filter((each) => !used.has(each)));
  }

  // The theme

  nextTheme() {
    const now = document.documentElement.dataset.theme ?? "system";
    const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("akunu.theme", next);
    } catch {
      // It lasts as long as the page.
    }
    this.showTheme();
    say(`Theme: ${next}`);
  }

  showTheme() {
    const label = `Theme: ${document.documentElement.dataset.theme ?? "system"}`;
    this.sidebar.themeButton.setAttribute("aria-label", label);
    this.sidebar.themeButton.title = label;
  }
}

/** The ids of all images of conversations. @param {Conversation[]} conversations */
function imagesOf(conversations) {
  return tree.imagesOf(conversations.flatMap((each) => Object.values(each.messages)));
}

/** Images that a message or a draft has. @param {Conversation[]} conversations */
function usedImages(conversations) {
  const drafts = ["new", ...conversations.map((each) => each.id)].flatMap((id) => kept.get(`draft.${id}.attached`) ?? []);
  return new Set([...imagesOf(conversations), ...drafts.map((each) => each.id)]);
}

const library = await Library.open();
const pictures = await Pictures.open();
const app = new App(library, pictures);
app.mount(/** @type {HTMLElement} */ (document.getElementById("app")));
app.finishReplies();
// Without the conversations it is unknown what they have. What fails is done the next time.
if (library.store.isKept) pictures.sweep(usedImages([...library.all.values()])).catch(() => {});
