// The TypeScript of README.md and docs/agents.md as it stands, in a program that has installed the package.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { pathToFileURL } from "node:url";
import { root } from "./conversation.ts";
import { endAll, RunningSlot } from "./slot.ts";
import { lastUser, Stub, tools } from "./talker.ts";

afterEach(endAll);

const app = mkdtempSync(join(tmpdir(), "memhost-app-"));
mkdirSync(join(app, "node_modules"));
symlinkSync(join(import.meta.dirname, ".."), join(app, "node_modules/memhost-client"));
symlinkSync(join(import.meta.dirname, "../node_modules/ai"), join(app, "node_modules/ai"));
writeFileSync(join(app, "package.json"), '{"type": "module"}');

/** Runs the one ```ts block of a page; names has what the page leaves to the reader. */
async function walk(page: string, names: Record<string, unknown>): Promise<void> {
  const blocks = [...readFileSync(join(root, page), "utf8").matchAll(/^ *```ts\n([^]*?)^ *```$/gm)].map((match) => match[1]!);
  assert.equal(blocks.length, 1, page);
  const lines = blocks[0]!.split("\n").map((line) => line.trimStart());
  const imports = lines.filter((line) => line.startsWith("import "));
  const rest = lines.filter((line) => !line.startsWith("import "));
  const file = join(app, `${page.replaceAll("/", "-")}.ts`);
  writeFileSync(file, `${imports.join("\n")}\nexport default async ({ ${Object.keys(names).join(", ")} }: any) => {\n${rest.join("\n")}\n};\n`);
  const program = (await import(pathToFileURL(file).href)) as { default: (names: Record<string, unknown>) => Promise<void> };
  await program.default(names);
}

test("README.md, and the AI SDK in docs/agents.md", async () => {
  const slot = await new RunningSlot().start();
  process.chdir(app);
  process.env.MEMHOST_SERVER = slot.server;
  await walk("integrations/typescript/README.md", { message: "I like oolong.", session: "monday", turnId: "1", answer: "Noted." });
  const { model, prompts } = new Stub();
  await walk("docs/agents.md", { model, tools, chatId: "tuesday", messages: [{ role: "user", content: "Which tea do I like?" }] });
  assert.match(lastUser(prompts[0]!), /^Which tea do I like\?\n\n<memory-context[^]*I like oolong\./);
  assert.deepEqual(slot.said({ runId: "home", userId: "ann" }), ["I like oolong.", "Which tea do I like?"]);
});
