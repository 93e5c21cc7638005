// The middleware in the AI SDK's own loops, with the real memhost.
import assert from "node:assert/strict";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { generateText, ToolLoopAgent, wrapLanguageModel } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { CHECKED, withMemory } from "../src/ai-sdk.ts";
import { Memory, type Scope } from "../src/index.ts";
import { endAll, RunningSlot } from "./slot.ts";
import { Chat, lastUser, Stub, tools } from "./talker.ts";

afterEach(endAll);

const ann: Scope = { runId: "study", userId: "ann" };

async function started(): Promise<{ slot: RunningSlot; memory: Memory; lines: string[] }> {
  const slot = await new RunningSlot().start();
  const lines: string[] = [];
  const memory = new Memory({ queue: join(slot.folder, "queue"), server: slot.server, timeout: 30_000, fresh: 10_000, log: (line) => lines.push(line) });
  return { slot, memory, lines };
}

test("what is said in one conversation is known in another, in each step of an agent's turn", async () => {
  const { slot, memory } = await started();
  await new Chat().say(memory, ann, "monday", "My cat is called Zorvex.");
  await memory.close();
  const stub = new Stub();
  const agent = new ToolLoopAgent({ model: wrapLanguageModel({ model: stub.model, middleware: withMemory(memory, ann, "tuesday") }), tools });
  assert.equal((await agent.generate({ prompt: "TOOL What is my cat called?" })).text, "ANSWER[TOOL What is my cat called?]");
  assert.equal(stub.prompts.length, 2);
  for (const prompt of stub.prompts) assert.match(lastUser(prompt), /^TOOL What is my cat called\?\n\n<memory-context backend="full_history"[^]*Zorvex[^]*<\/memory-context>$/);
  assert.equal(await memory.close(), 0);
  assert.deepEqual(slot.said(ann), ["My cat is called Zorvex.", "TOOL What is my cat called?"]);
  const archived = slot.command("archive", "export");
  assert.ok(!archived.includes("TOOLRESULT") && !archived.includes("Let me look."), "the answer, and nothing of the steps before it");
  assert.ok(archived.includes("ANSWER[TOOL What is my cat called?]"));
});

test("a model that fails records nothing, and the words are recorded with the answer to what was said next", async () => {
  const { slot, memory } = await started();
  const chat = new Chat();
  for (const streams of [false, true]) {
    chat.stub.fail = new Error("the model is down");
    await assert.rejects(chat.say(memory, ann, "s", streams ? "two" : "one", streams));
  }
  assert.equal(await memory.close(), 0);
  assert.deepEqual(slot.said(ann), []);
  assert.equal(await chat.say(memory, ann, "s", "three", true), "ANSWER[three]");
  assert.equal(await memory.close(), 0);
  assert.deepEqual(JSON.parse(slot.command("archive", "export")).messages.map((m: { content: string }) => m.content), ["one", "two", "three", "ANSWER[three]"]);
});

test("parts of a message that are no text stay, and a message without text gets no context", async () => {
  const { slot, memory } = await started();
  await new Chat().say(memory, ann, "s", "I like oolong.");
  await memory.close();
  const stub = new Stub();
  const model = wrapLanguageModel({ model: stub.model, middleware: withMemory(memory, ann, "t") });
  const image = { type: "file" as const, mediaType: "image/png", data: new Uint8Array([1]) };
  await generateText({ model, messages: [{ role: "user", content: [{ type: "text", text: "Which tea is this?" }, image] }] });
  await generateText({ model, messages: [{ role: "user", content: [image] }] });
  const [first, second] = stub.prompts.map((prompt) => prompt.findLast((m) => m.role === "user")!.content as { type: string; text?: string }[]);
  assert.deepEqual(first!.map((part) => part.type), ["text", "file"]);
  assert.match(first![0]!.text!, /^Which tea is this\?\n\n<memory-context/);
  assert.deepEqual(second!.map((part) => part.type), ["file"]);
  await memory.close();
  assert.deepEqual(slot.said(ann), ["I like oolong.", "Which tea is this?"], "a turn without words is not recorded");
});

test("two agents on one scope, each with a queue of its own: nothing is lost or doubled", async () => {
  const { slot, memory } = await started();
  const other = new Memory({ queue: join(slot.folder, "other"), server: slot.server, timeout: 30_000, fresh: 10_000 });
  const chats = [new Chat(), new Chat()];
  await Promise.all(chats.map(async (chat, n) => {
    for (let turn = 0; turn < 6; turn++) await chat.say([memory, other][n]!, ann, "the same session", `agent ${n}, turn ${turn}`, turn % 2 === 0);
  }));
  assert.deepEqual([await memory.close(), await other.close()], [0, 0]);
  const said = slot.said(ann);
  for (const n of [0, 1]) assert.deepEqual(said.filter((text) => text.startsWith(`agent ${n}`)), [0, 1, 2, 3, 4, 5].map((turn) => `agent ${n}, turn ${turn}`));
  assert.equal(said.length, 12);
});

test("an AI SDK of another form is named once, and the agent goes on", async () => {
  const { slot, memory, lines } = await started();
  const middleware = withMemory(memory, ann, "s");
  const model = new MockLanguageModelV4();
  const params = { prompt: "a text, not messages" } as never;
  assert.equal(await middleware.transformParams!({ type: "generate", params, model }), params);
  const { model: answers } = new Stub();
  const asked = await middleware.transformParams!({ type: "generate", model, params: { prompt: [{ role: "user", content: [{ type: "text", text: "hello" }] }] } });
  const result = { ...(await answers.doGenerate(asked)), finishReason: "stop" as never };
  const doGenerate = async () => result;
  assert.equal(await middleware.wrapGenerate!({ doGenerate, doStream: () => answers.doStream(asked), params: asked, model }), result);
  assert.equal(lines.length, 1);
  assert.match(lines[0]!, new RegExp(`^no memory with this version of the AI SDK; ai ${CHECKED} was checked: TypeError`));
  await memory.close();
  assert.deepEqual(slot.said(ann), []);
});
