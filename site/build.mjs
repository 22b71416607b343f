// Bundles the page into src/embark/site/static: one classic script, one style sheet, and the licenses of what is in them.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const out = "../src/embark/site/static";
mkdirSync(out, { recursive: true });
const { metafile } = await build({
  entryPoints: { app: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome111", "firefox113", "safari16.4"],
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  outdir: out,
});
for (const name of ["index.html", "icon.svg"]) copyFileSync(name, `${out}/${name}`);

const packages = new Set(
  Object.keys(metafile.inputs)
    .filter((path) => path.startsWith("node_modules/"))
    .map((path) => path.split("/").slice(1, path.includes("/@") ? 3 : 2).join("/")),
);
const licenses = [...packages].sort().map((name) => {
  const { version, license } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  return `${name} ${version} (${license})\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`;
});
writeFileSync(`${out}/LICENSES.txt`, `The page contains these libraries.\n\n${licenses.join("\n")}`);
