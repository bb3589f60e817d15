// Every `textarea[data-editor]` of a page gets an editor in front of it: `data-editor="python"` or `"sql"`.
//
// The textarea stays what the form sends, kept in step with each change; without JavaScript it is the field. The
// editor lives in a shadow root, whose style sheets are constructed: the policy of the site allows no <style> element.

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { PostgreSQL, sql } from "@codemirror/lang-sql";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { theme } from "./theme.js";

const LANGUAGES = { python: () => python(), sql: () => sql({ dialect: PostgreSQL }) };
const HINT = "Tab indents. To leave the field: Escape, then Tab.";

function spoken(textarea) {
  // What a screen reader says of the field: a shadow root can't point at a label outside of it.
  const told = (textarea.getAttribute("aria-describedby") || "").split(/\s+/).filter(Boolean);
  const help = told.map((id) => document.getElementById(id)?.textContent.trim()).filter(Boolean);
  const label = [...(textarea.labels || [])].map((one) => one.textContent.trim().replace(/:$/, "")).join(" ");
  const said = { "aria-label": label || textarea.getAttribute("aria-label") || "Program" };
  said["aria-description"] = [...help, HINT].join(" ");
  if (textarea.required) said["aria-required"] = "true";
  if (textarea.getAttribute("aria-invalid") === "true") said["aria-invalid"] = "true";
  return said;
}

function extensions(textarea) {
  const language = LANGUAGES[textarea.dataset.editor];
  const readOnly = textarea.readOnly || textarea.disabled;
  return [
    lineNumbers(),
    highlightActiveLineGutter(),
    highlightSpecialChars(),
    history(),
    indentUnit.of("    "),
    EditorState.tabSize.of(4),
    EditorState.readOnly.of(readOnly),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]),
    language ? language() : [],
    EditorView.domEventHandlers({ beforeinput: typeOver }),
    EditorView.contentAttributes.of(spoken(textarea)),
    EditorView.updateListener.of((update) => {
      if (update.docChanged && !readOnly) keepInStep(textarea, update.state);
    }),
    theme,
  ];
}

function typeOver(event, view) {
  // Text typed over a selection: left to itself the browser keeps the colour of what it replaces by an inline style,
  // which the policy blocks and complains about. What is being composed can't be taken over, and needn't be.
  const { from, to, empty } = view.state.selection.main;
  if (event.inputType !== "insertText" || event.isComposing || event.data === null || empty) return false;
  const how = { userEvent: "input.type", scrollIntoView: true };
  const insert = () => view.state.update(view.state.replaceSelection(event.data), how);
  event.preventDefault();
  const handlers = view.state.facet(EditorView.inputHandler);
  const taken = handlers.some((handler) => handler(view, from, to, event.data, insert));
  if (!taken) view.dispatch(insert());
  return true;
}

function keepInStep(textarea, state) {
  textarea.value = state.doc.toString();
  textarea.dispatchEvent(new Event("input", { bubbles: true }));
}

function follow(textarea, view) {
  // The label's click, the form's reset, and a field that came back with the page's history.
  const again = () => {
    if (textarea.value === view.state.doc.toString()) return;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: textarea.value } });
  };
  for (const label of textarea.labels || []) label.addEventListener("click", () => view.focus());
  textarea.form?.addEventListener("reset", () => setTimeout(again));
  window.addEventListener("pageshow", again);
}

function attach(textarea) {
  const host = document.createElement("div");
  host.className = "editor";
  const root = host.attachShadow({ mode: "open" });
  textarea.before(host);
  const state = EditorState.create({ doc: textarea.value, extensions: extensions(textarea) });
  const view = new EditorView({ state, parent: root, root });
  const hint = document.createElement("small");
  hint.textContent = HINT;
  hint.setAttribute("aria-hidden", "true"); // it is in the field's description
  hint.style.color = "var(--ink-2)";
  root.append(hint);
  textarea.required = false; // a hidden field can't be pointed at: the server says what is missing
  textarea.hidden = true;
  textarea.style.display = "none"; // where a style sheet has its own mind about textareas
  follow(textarea, view);
}

function attachAll() {
  for (const textarea of document.querySelectorAll("textarea[data-editor]:not([hidden])")) attach(textarea);
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", attachAll);
else attachAll();
