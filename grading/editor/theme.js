// How the editor looks: the colours of the site's theme, which reach into a shadow root by their names. Light and
// dark need nothing of their own here.

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const frame = EditorView.theme({
  "&": {
    backgroundColor: "var(--leaf-2)",
    color: "var(--ink)",
    border: "1px solid var(--rule-2)",
    borderRadius: "4px",
    fontSize: "0.875rem",
  },
  "&.cm-focused": { outline: "2px solid var(--green)", outlineOffset: "1px" },
  ".cm-scroller": {
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
    lineHeight: "1.5",
    minHeight: "12rem",
    maxHeight: "36rem",
    overflow: "auto",
  },
  ".cm-content": { caretColor: "var(--ink)", padding: "0.5rem 0" },
  ".cm-gutters": { backgroundColor: "var(--leaf-2)", color: "var(--ink-2)", borderRight: "1px solid var(--rule)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLineGutter": { color: "var(--ink)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--warn-bg)" },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--bad-bg)" },
});

const words = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--lane-1)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--lane-2)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--lane-3)" },
  { tag: [tags.definition(tags.variableName), tags.className, tags.typeName], color: "var(--lane-4)" },
  { tag: tags.function(tags.definition(tags.variableName)), color: "var(--lane-4)" },
  { tag: [tags.comment, tags.docString], color: "var(--ink-2)", fontStyle: "italic" },
]);

export const theme = [frame, syntaxHighlighting(words)];
