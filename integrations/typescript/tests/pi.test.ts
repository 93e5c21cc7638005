// pi's extension with the real memhost, in the real pi.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { promisify } from "node:util";
import { Memory, type Scope } from "../src/index.ts";
import { CHECKED, memoryExtension } from "../src/pi.ts";
import { Coder, watch } from "./coder.ts";
import { root } from "./conversation.ts";
import { endAll, RunningSlot } from "./slot.ts";

afterEach(endAll);

const ann: Scope = { runId: "study", userId: "ann" };

async function started() {
  const slot = await new RunningSlot().start();
  const lines: string[] = [];
  const memory = new Memory({ queue: join(slot.folder, "queue"), server: slot.server, timeout: 30_000, fresh: 10_000, log: (line) => lines.push(line) });
  /** What was recorded, the answers with > before them. */
  const recorded = async (): Promise<string[]> => {
    assert.equal(await memory.close(), 0);
    const events = slot.command("archive", "export").split("\n").filter(Boolean).map((line) => JSON.parse(line) as { messages: { role: string; content: string }[] });
    return events.flatMap(({ messages }) => messages.map(({ role, content }) => (role === "user" ? content : `> ${content}`)));
  };
  return { slot, memory, lines, recorded, coder: new Coder() };
}

test("what is said in one session is known in another, in each request of a turn; the steps are not recorded", async () => {
  const { memory, recorded, coder } = await started();
  const next = watch(memory);
  let ended = next();
  await coder.say(await coder.open([memoryExtension(memory, ann)]), "My cat is called Zorvex.");
  await ended;
  await memory.close();
  ended = next();
  const requests = await coder.say(await coder.open([memoryExtension(memory, ann)]), "TOOL What is my cat called?");
  await ended;
  assert.equal(requests.length, 2);
  for (const { last } of requests) assert.match(last, /^TOOL What is my cat called\?\n\n<memory-context backend="full_history"[^]*Zorvex[^]*<\/memory-context>$/);
  assert.deepEqual(await recorded(), ["My cat is called Zorvex.", "> ANSWER[My cat is called Zorvex.]", "TOOL What is my cat called?", "> ANSWER[TOOL What is my cat called?]"]);
});

test("what is said while the agent is busy has its own context and record; words that got no answer go with the next", async () => {
  const { memory, recorded, coder } = await started();
  const next = watch(memory);
  const session = await coder.open([memoryExtension(memory, ann), (pi) => pi.on("tool_call", async () => session.steer("And this?"))]);
  let ended = next();
  const requests = await coder.say(session, "TOOL Look.");
  await ended;
  assert.deepEqual(requests.map(({ last }) => last.split("\n")[0]), ["TOOL Look.", "And this?"]);
  coder.fails = 9;
  await coder.say(session, "Hello?");
  coder.fails = 0;
  ended = next();
  await coder.say(session, "Hello again.");
  await ended;
  assert.deepEqual(await recorded(), ["TOOL Look.", "And this?", "> ANSWER[And this?]", "Hello?", "Hello again.", "> ANSWER[Hello again.]"]);
});

test("what another extension says, and a session that pi does not keep, are not recorded", async () => {
  const { memory, lines, recorded, coder } = await started();
  let api: { sendUserMessage(text: string): void } | undefined;
  const session = await coder.open([memoryExtension(memory, ann), (pi) => void (api = pi)]);
  await coder.say(session, ""); // the answers of the model
  const ended = Promise.withResolvers<void>();
  session.subscribe((event) => event.type === "agent_end" && ended.resolve());
  api!.sendUserMessage("Do the job.");
  await ended.promise;
  const brief = await coder.open([memoryExtension(memory, ann)], { kept: false });
  await coder.say(brief, "a sub-agent's work");
  const last = watch(memory)();
  await coder.say(session, "I like oolong.");
  await last;
  assert.deepEqual(await recorded(), ["I like oolong.", "> ANSWER[I like oolong.]"]);
  assert.deepEqual(lines, []);
});

test("a pi of another form is named once, and goes on", async () => {
  const { memory, lines } = await started();
  const handlers: Record<string, (event: object, ctx: object) => Promise<unknown>> = {};
  memoryExtension(memory, ann)({ on: (name: string, handler: never) => (handlers[name] = handler) } as never);
  for (let n = 0; n < 2; n++) await handlers.agent_end!({ messages: [{ role: "assistant", content: "" }] }, {});
  assert.equal(lines.length, 1);
  assert.match(lines[0]!, new RegExp(`^no memory with this version of pi; ${CHECKED} was checked: TypeError`));
  await memory.close();
});

test("docs/agents.md: pi with the package, at the command line", async () => {
  const { slot } = await started();
  const asked: string[] = [];
  const model = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += String(part);
    asked.push(body);
    const chunk = { id: "x", object: "chat.completion.chunk", model: "stub", choices: [{ index: 0, delta: { role: "assistant", content: "Noted." }, finish_reason: "stop" }] };
    response.writeHead(200, { "Content-Type": "text/event-stream" }).end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
  }).listen(0, "127.0.0.1");
  await once(model, "listening");
  const home = mkdtempSync(join(tmpdir(), "memhost-pi-home-"));
  mkdirSync(join(home, ".pi/agent"), { recursive: true });
  const provider = { baseUrl: `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`, apiKey: "none", api: "openai-completions", models: [{ id: "stub" }] };
  writeFileSync(join(home, ".pi/agent/models.json"), JSON.stringify({ providers: { stub: provider } }));
  const cli = join(import.meta.dirname, "../node_modules/@mariozechner/pi-coding-agent/dist/cli.js");
  const env = { PATH: process.env.PATH, HOME: home, MEMHOST_SERVER: slot.server, MEMHOST_USER: "ann", PI_OFFLINE: "1" };
  const pi = async (args: string[], more = {}) => {
    const child = promisify(execFile)(process.execPath, [cli, ...args], { cwd: home, env: { ...env, ...more }, timeout: 120_000 });
    child.child.stdin!.end();
    return (await child).stdout;
  };
  const lines = [...readFileSync(join(root, "docs/agents.md"), "utf8").matchAll(/^ *\$ pi (.*)$/gm)].map((match) => match[1]!);
  assert.equal(lines.length, 1);
  await pi(lines[0]!.replace("./integrations/typescript", join(import.meta.dirname, "..")).split(" "));
  assert.match(await pi(["-p", "--model", "stub/stub", "I like oolong."]), /Noted\./);
  assert.deepEqual(slot.said({ runId: "pi", userId: "ann" }), ["I like oolong."], "the end of pi delivers");
  for (const [mode, sees] of [["", true], ["read", true], ["off", false], ["OFF", false]] as const) {
    await pi(["-p", "--model", "stub/stub", `Which tea? ${mode}`], { MEMHOST_HOOK: mode });
    assert.equal(asked.at(-1)!.includes("I like oolong."), sees, mode);
  }
  assert.deepEqual(slot.said({ runId: "pi", userId: "ann" }), ["I like oolong.", "Which tea? "]);
  model.close();
});
