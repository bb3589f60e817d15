// `make editor`: bundles the editor into one file of the site, its licences beside it. The first line of the bundle
// names the SHA-256 of what it was made from and of what was made: a test compares both.

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const SOURCES = ["build.js", "editor.js", "package-lock.json", "package.json", "theme.js"];
const SITE = "../static/grading/";

const sha256 = (...texts) => texts.reduce((hash, text) => hash.update(text), createHash("sha256")).digest("hex");

const made = await build({
  entryPoints: ["editor.js"],
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2020"],
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  write: false,
});
const body = made.outputFiles[0].text;
const told = `sources ${sha256(...SOURCES.map((name) => readFileSync(name)))} body ${sha256(body)}`;
writeFileSync(`${SITE}editor.js`, `/*! Marlow's editor; licences: editor.licences.txt; ${told} */\n${body}`);

// The package of each file that went in, with the text of its licence.
const packages = new Set();
for (const path of Object.keys(made.metafile.inputs)) {
  const found = path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(found[1]);
}
const licences = [...packages].sort().map((name) => {
  const folder = `node_modules/${name}`;
  const file = readdirSync(folder).find((one) => /^licen[sc]e/i.test(one));
  if (!file) throw new Error(`${name} has no licence beside it: it can't be bundled.`);
  const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`));
  return `${name} ${version} (${license})\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
});
writeFileSync(`${SITE}editor.licences.txt`, licences.join(`\n${"-".repeat(80)}\n\n`));
