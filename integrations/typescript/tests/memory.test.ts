// The client's queue, with the real memhost.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { Memory, type Scope } from "../src/index.ts";
import { endAll, RunningSlot } from "./slot.ts";

afterEach(endAll);

const ann: Scope = { runId: "study", userId: "ann" };

test("what waits when the program ends is delivered by the next one", async () => {
  const slot = new RunningSlot();
  const lines: string[] = [];
  const options = { queue: join(slot.folder, "queue"), log: (line: string) => lines.push(line) };
  const first = new Memory({ ...options, server: "127.0.0.1:1" });
  await first.record("t1", ann, "s", [{ role: "user", content: "hello" }, { role: "assistant", content: "Hello." }]);
  assert.equal(await first.context("hello", ann), "");
  assert.equal(await first.close(), 1);
  assert.ok(lines.some((line) => line.startsWith("no memory context in this turn: SlotError: unreachable")));
  await slot.start();
  const second = new Memory({ ...options, server: slot.server });
  assert.equal(await second.close(), 0);
  assert.deepEqual(slot.said(ann), ["hello"]);
});

test("an event that no slot takes is kept beside, and holds back no other", async () => {
  const slot = await new RunningSlot().start();
  const lines: string[] = [];
  const memory = new Memory({ queue: join(slot.folder, "queue"), server: slot.server, log: (line) => lines.push(line) });
  await memory.record("t1", ann, "s", [{ role: "user", content: "one" }]);
  await memory.close();
  await memory.record("t1", ann, "s", [{ role: "user", content: "another" }]);
  await memory.record("t2", ann, "s", [{ role: "user", content: "two" }]);
  assert.equal(await memory.close(), 0);
  assert.deepEqual(slot.said(ann), ["one", "two"]);
  assert.ok(lines.some((line) => line.includes("is kept in") && line.includes("conflict")));
});

test("nothing is recorded of a turn in which nobody spoke, and a full queue keeps the oldest, and says so", async () => {
  const folder = mkdtempSync(join(tmpdir(), "memhost-ts-"));
  const lines: string[] = [];
  const memory = new Memory({ queue: join(folder, "queue"), server: "127.0.0.1:1", maxEvents: 1, log: (line) => lines.push(line) });
  await memory.record("t0", ann, "s", [{ role: "assistant", content: "Hello." }]);
  await memory.record("t1", ann, "s", [{ role: "user", content: "one" }]);
  await memory.record("t2", ann, "s", [{ role: "user", content: "two" }]);
  assert.equal(await memory.close(), 1);
  assert.ok(lines.some((line) => line.includes("the turn t2 is not recorded: Error: 1 turns wait")));
});

test("processes that share a queue lose and double nothing", async () => {
  const slot = await new RunningSlot().start();
  const lines: string[] = [];
  const options = { queue: join(slot.folder, "queue"), server: slot.server, log: (line: string) => lines.push(line) };
  const memories = [new Memory(options), new Memory(options)];
  await Promise.all(memories.map(async (memory, m) => {
    for (let turn = 0; turn < 10; turn++) await memory.record(`${m} ${turn}`, ann, "s", [{ role: "user", content: `process ${m}, turn ${turn}` }]);
  }));
  for (const memory of memories) assert.equal(await memory.close(), 0);
  assert.equal(slot.said(ann).length, 20);
  assert.equal(new Set(slot.said(ann)).size, 20);
  assert.deepEqual(lines, []);
});
