// Builds the page into internal/doors/page/assets: unminified, and the same bytes every time. What is in web/static is
// copied. With an argument it builds into that folder.
import { build } from "esbuild";
import { cpSync, mkdirSync, readFileSync, rmSync } from "node:fs";

const to = process.argv[2] ?? "../internal/doors/page/assets";
rmSync(to, { recursive: true, force: true });
mkdirSync(to, { recursive: true });
cpSync("static", to, { recursive: true });
cpSync("node_modules/preact/LICENSE", `${to}/preact.LICENSE.txt`);

const preact = JSON.parse(readFileSync("node_modules/preact/package.json", "utf8")).version;
const common = { bundle: true, format: "esm", target: "es2023", charset: "utf8", legalComments: "none", logLevel: "warning" };

// Preact is a file of its own, so that the page's own code can be read, and searched, without it.
await build({ ...common, entryPoints: ["src/vendor/preact.ts"], outfile: `${to}/preact.js`,
  banner: { js: `// Preact ${preact}, under the MIT licence: preact.LICENSE.txt` } });
await build({ ...common, entryPoints: ["src/main.tsx"], outfile: `${to}/page.js`, jsx: "automatic",
  jsxImportSource: "preact",
  banner: { js: "// Built from web/src by web/build.mjs: change that, and run tools/page." },
  plugins: [{ name: "preact", setup: (b) => b.onResolve({ filter: /^preact(\/|$)/ },
    () => ({ path: "./preact.js", external: true })) }] });
