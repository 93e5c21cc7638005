// The client's queue, with the real memhost.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { Memory, type Scope } from "../src/index.ts";
import { endAll, RunningSlot } from "./slot.ts";

afterEach(endAll);

const ann: Scope = { runId: "study", userId: "ann" };

/** A stand-in for a slot, and a memory with a queue before it. */
async function answering(answer: RequestListener): Promise<{ memory: Memory; queue: string; lines: string[] }> {
  const server = createServer(answer).listen(0, "127.0.0.1").unref();
  await once(server, "listening");
  const queue = join(mkdtempSync(join(tmpdir(), "memhost-ts-")), "queue"), lines: string[] = [];
  mkdirSync(queue);
  writeFileSync(join(queue, "0-damaged.json"), '{"event_id"');
  const { port } = server.address() as AddressInfo;
  return { memory: new Memory({ queue, server: `127.0.0.1:${port}`, log: (line) => lines.push(line) }), queue, lines };
}

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
  assert.ok(lines.some((line) => line.includes("is kept as") && line.includes("conflict")));
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

test("the end does not wait for a slot that hangs", async () => {
  const { memory } = await answering(() => {});
  await memory.record("t1", ann, "s", [{ role: "user", content: "hello" }]);
  const began = Date.now();
  assert.equal(await memory.close(200), 1);
  assert.ok(Date.now() - began < 30_000);
});

test("another server's answer is no receipt, and the turn stays in the queue", async () => {
  for (const answer of [{ ok: true }, {}, { status: "ok" }, { status: "committed" }, { event_id: "another", status: "committed" }]) {
    const { memory, lines } = await answering((request, response) => {
      request.resume().on("end", () => response.end(JSON.stringify(answer)));
    });
    await memory.record("t1", ann, "s", [{ role: "user", content: "hello" }]);
    assert.equal(await memory.close(500), 1, JSON.stringify(answer));
    assert.ok(lines.some((line) => line.includes("not as a memhost slot does")), lines.join());
  }
});

test("a scope that is refused, and a damaged file, hold back no other scope; what waits is said", async () => {
  const took: string[] = [];
  const { memory, queue, lines } = await answering((request, response) => {
    let text = "";
    request.on("data", (part) => (text += String(part))).on("end", () => {
      const { user_id: user, event_id } = JSON.parse(text) as { user_id: string; event_id: string };
      if (user === "ann") response.writeHead(403).end(JSON.stringify({ code: "denied", message: "user_id: this door serves the configured scope only" }));
      else response.end(JSON.stringify({ event_id, status: took.push(user) && "committed" }));
    });
  });
  await memory.record("t1", ann, "s", [{ role: "user", content: "hello" }]);
  await memory.record("t1", { ...ann, userId: "bob" }, "s", [{ role: "user", content: "hello" }]);
  assert.equal(await memory.close(), 1);
  assert.deepEqual(took, ["bob"]);
  assert.deepEqual(readdirSync(join(queue, "aside")), ["0-damaged.json"]);
  assert.equal(lines.filter((line) => line.startsWith("turns wait in") && line.includes("denied")).length, 1);
});

test("a queue that cannot be used costs the record alone", async () => {
  const lines: string[] = [];
  const memory = new Memory({ queue: join(process.execPath, "queue"), server: "127.0.0.1:1", log: (line) => lines.push(line) });
  await memory.record("t1", ann, "s", [{ role: "user", content: "hello" }]);
  assert.equal(await memory.close(), 0);
  assert.ok(lines.some((line) => line.startsWith("the turn t1 is not recorded")));
});
