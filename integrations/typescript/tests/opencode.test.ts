// OpenCode's plugin with the real memhost, and a stand-in for OpenCode.
import assert from "node:assert/strict";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { Memory, type Scope } from "../src/index.ts";
import plugin, { CHECKED } from "../src/opencode.ts";
import { OpenCode } from "./opencoder.ts";
import { endAll, RunningSlot } from "./slot.ts";

afterEach(endAll);

const ann: Scope = { runId: "study", userId: "ann" };

async function started(records = true) {
  const slot = await new RunningSlot().start();
  const lines: string[] = [];
  const memory = new Memory({ queue: join(slot.folder, "queue"), server: slot.server, timeout: 30_000, fresh: 10_000, log: (line) => lines.push(line) });
  const code = new OpenCode(memory, ann, records);
  /** What was recorded, an event each, the answers with > before them. */
  const recorded = async (): Promise<string[][]> => {
    await code.hooks.dispose!();
    assert.equal(await memory.close(), 0);
    const events = slot.command("archive", "export").split("\n").filter(Boolean).map((line) => JSON.parse(line) as { messages: { role: string; content: string }[] });
    return events.map(({ messages }) => messages.map(({ role, content }) => (role === "user" ? content : `> ${content}`)));
  };
  return { slot, memory, lines, recorded, code };
}

test("what is said in one session is known in another, in each request of a turn; the steps and what OpenCode adds are not recorded", async () => {
  const { memory, recorded, code } = await started();
  const id = await code.write("s1", "My cat is called Zorvex. See @file", "The content of the file");
  await code.answer("s1", id, "Noted.");
  await memory.close();
  const requests = await code.say("s2", "TOOL What is my cat called?");
  assert.equal(requests.length, 2);
  for (const request of requests) assert.match(request, /^TOOL What is my cat called\?\n\n<memory-context backend="full_history"[^]*Zorvex[^]*<\/memory-context>$/);
  assert.deepEqual(await recorded(), [["My cat is called Zorvex. See @file", "> Noted."], ["TOOL What is my cat called?", "> Noted."]]);
});

test("what is said while OpenCode is busy is recorded with the answer that came after it", async () => {
  const { recorded, code } = await started();
  const one = await code.write("s", "one");
  await code.answer("s", one, "Let me look.", { finish: "tool-calls" });
  const two = await code.write("s", "two");
  await code.answer("s", two, "To both.");
  const three = await code.write("s", "three");
  await code.write("s", "four"); // before the answer to three has ended
  await code.answer("s", three, "To three.");
  assert.deepEqual(await recorded(), [["one", "two", "> To both."], ["three", "> To three."], ["four"]]);
});

test("words that got no answer go with the next, and without one at the end", async () => {
  const { recorded, code } = await started();
  await code.answer("s", await code.write("s", "one"), "", { error: { name: "APIError" } });
  await code.answer("s", await code.write("s", "two"), "To two.");
  await code.answer("s", await code.write("s", "three"), "half of", { error: { name: "MessageAbortedError" } });
  await code.write("gone", "in a session that is deleted");
  await code.event("session.deleted", { info: { id: "gone" }, sessionID: "gone" });
  assert.deepEqual(await recorded(), [["one", "two", "> To two."], ["in a session that is deleted"], ["three"]]);
});

test("a compaction in the middle of a turn: the summary is made without the context, and the words are recorded once", async () => {
  const { memory, recorded, code } = await started();
  await code.say("before", "I like oolong.");
  await memory.close();
  const id = await code.write("s", "Go on.");
  await code.answer("s", id, "Let me look.", { finish: "tool-calls" });
  await code.hooks["experimental.session.compacting"]!({ sessionID: "s" }, { context: [] });
  await code.answer("s", id, "The summary.", { summary: true });
  await code.event("session.compacted", { sessionID: "s" });
  code.stored("s").splice(0, 2); // what is summarised is no longer sent
  await code.answer("s", code.add("s", "Continue if you have next steps."), "Done.");
  assert.deepEqual(code.requests.slice(1).map((request) => /oolong/.test(request)), [true, false, true]);
  assert.deepEqual(await recorded(), [["I like oolong.", "> Noted."], ["Go on.", "> Done."]]);
});

test("a sub-agent gets no context and is not recorded; of a command it is the name and the arguments", async () => {
  const { memory, recorded, code } = await started();
  await code.say("s", "I like oolong.");
  await memory.close();
  code.parents.set("sub", "s");
  assert.deepEqual(await code.say("sub", "The work of a sub-agent: oolong."), ["The work of a sub-agent: oolong."]);
  await code.hooks["command.execute.before"]!({ command: "review", sessionID: "s", arguments: "my file" }, { parts: [] });
  await code.answer("s", await code.write("s", "A long template with my file."), "Noted.");
  assert.deepEqual(await recorded(), [["I like oolong.", "> Noted."], ["/review my file", "> Noted."]]);
});

test("where nothing is recorded there is context", async () => {
  const { slot, recorded, code } = await started(false);
  const other = new Memory({ queue: join(slot.folder, "other"), server: slot.server });
  await other.record("t", ann, "s", [{ role: "user", content: "I like oolong." }]);
  await other.close();
  assert.match((await code.say("s", "Which tea?"))[0]!, /I like oolong/);
  assert.deepEqual(await recorded(), [["I like oolong."]]);
});

test("an OpenCode of another form is named once, and goes on", async () => {
  const { memory, lines, code } = await started();
  for (let n = 0; n < 2; n++) await code.hooks["chat.message"]!({ sessionID: "s" }, { message: {}, parts: undefined } as never);
  assert.equal(lines.length, 1);
  assert.match(lines[0]!, new RegExp(`^no memory with this version of OpenCode; ${CHECKED} was checked: TypeError`));
  await memory.close();
});

test("the plugin: its options are before the environment, it asks OpenCode who has begun a session, and tells people", async () => {
  const slot = new RunningSlot();
  const told: string[] = [];
  const client = {
    app: { log: async ({ body }: { body: { message: string } }) => told.push(body.message) },
    tui: { showToast: async ({ body }: { body: { message: string } }) => told.push(body.message) },
    session: { get: async ({ path }: { path: { id: string } }) => (path.id === "s" ? { data: { id: "s" } } : { error: { name: "NotFoundError" } }) },
  };
  process.env.MEMHOST_USER = "bob";
  const hooks = await plugin.server({ client } as never, { user: "ann", run: "home", queue: join(slot.folder, "queue"), server: "127.0.0.1:1" });
  await hooks["chat.message"]!({ sessionID: "s" }, { message: { id: "m1" }, parts: [{ type: "text", text: "hello" }] } as never);
  await hooks["chat.message"]!({ sessionID: "unknown" }, { message: { id: "m2" }, parts: [{ type: "text", text: "hello" }] } as never);
  assert.match(told[0]!, /^memhost: no memory with this version .*OpenCode does not know its session unknown/);
  assert.equal(told.length, 2, "in the log and on the screen");
  await hooks.dispose!();
  assert.match(told.at(-1)!, /^turns wait in .*unreachable/);
  await slot.start();
  const later = new Memory({ queue: join(slot.folder, "queue"), server: slot.server });
  assert.equal(await later.close(), 0);
  assert.deepEqual(slot.said({ runId: "home", userId: "ann" }), ["hello"]);
  process.env.MEMHOST_HOOK = "off";
  assert.deepEqual(await plugin.server({ client } as never), {});
  process.env.MEMHOST_HOOK = "OFF";
  assert.deepEqual(await plugin.server({ client } as never), {});
  assert.equal(told.at(-1), "no memory: MEMHOST_HOOK is OFF, want read or off");
});
