// The client with the real memhost program (AGENTS_TEST_PROGRAM), in a conversation.
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { Memory, type Scope, withContext } from "../src/index.ts";

const program = process.env.AGENTS_TEST_PROGRAM ?? "memhost";
const running = new Set<ChildProcess>();
afterEach(() => running.forEach((child) => child.kill()));

/** memhost run on a data folder; it can be stopped and started again at its address. */
class RunningSlot {
  readonly folder = mkdtempSync(join(tmpdir(), "memhost-ts-"));
  server = "127.0.0.1:0";
  #child: ChildProcess | undefined;

  async start(): Promise<this> {
    const config = join(this.folder, "memhost.yaml");
    writeFileSync(config, "memory: {condition: full_history}\n");
    const child = spawn(program, ["run", "--json", "--config", config, "--data", join(this.folder, "data"), "--listen", this.server], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    running.add(child);
    this.#child = child;
    let said = "";
    for await (const part of child.stdout!) {
      said += String(part);
      if (said.endsWith("\n}\n")) break;
    }
    this.server = (JSON.parse(said) as { url: string }).url.replace("http://", "");
    return this;
  }

  async stop(): Promise<void> {
    const ended = once(this.#child!, "exit");
    this.#child!.kill();
    await ended;
  }

  /** What users said, as full_history has it. */
  said(scope: Scope): string[] {
    const text = execFileSync(program, ["--server", this.server, "retrieve", "x", "--run", scope.runId, "--user", scope.userId], {
      encoding: "utf8", stdio: ["ignore", "pipe", "ignore"],
    });
    return text.split("\n").filter((line) => line.includes("] user: ")).map((line) => line.split("] user: ")[1]!);
  }
}

const ann: Scope = { runId: "study", userId: "ann" };
const bob: Scope = { runId: "study", userId: "bob" };

/** 24 turns of two people with an outage; it gives what each said. */
async function converse(memory: Memory, slot: RunningSlot, scoped = true): Promise<{ ann: string[]; bob: string[] }> {
  const want = { ann: [] as string[], bob: [] as string[] };
  for (let n = 0; n < 24; n++) {
    const user = n % 2 ? "bob" : "ann";
    if (n === 8) await slot.stop();
    if (n === 12) await slot.start();
    const text = `fact ${n} of ${user}`;
    const shown = withContext(text, await memory.context(text, scoped ? { runId: "study", userId: user } : ann, "s"));
    assert.ok(!shown.includes(` of ${n % 2 ? "ann" : "bob"}`), "one person's words are in another's prompt");
    for (let again = 0; again < 2; again++) {
      await memory.record(`turn ${n}`, { runId: "study", userId: user }, "s", [{ role: "user", content: text }, { role: "assistant", content: "ok" }], new Date(1e12 + n * 1000));
    }
    want[user].push(text);
  }
  return want;
}

test("24 turns with an outage: none is lost, doubled or crossed", async () => {
  const slot = await new RunningSlot().start();
  const memory = new Memory({ queue: join(slot.folder, "queue"), server: slot.server, timeout: 20_000, fresh: 10_000, log: () => {} });
  const want = await converse(memory, slot);
  assert.equal(await memory.close(), 0);
  assert.deepEqual({ ann: slot.said(ann), bob: slot.said(bob) }, want);
  assert.match(await memory.context("fact?", ann), /^<memory-context backend="full_history"/);
  await assert.rejects(converse(memory, slot, false), /one person's words are in another's prompt/, "without scopes the crossing is found");
});

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

test("nothing is recorded of a turn in which nobody spoke, and a full queue keeps the oldest", async () => {
  const folder = mkdtempSync(join(tmpdir(), "memhost-ts-"));
  const lines: string[] = [];
  const memory = new Memory({ queue: join(folder, "queue"), server: "127.0.0.1:1", maxEvents: 1, log: (line) => lines.push(line) });
  await memory.record("t0", ann, "s", [{ role: "assistant", content: "Hello." }]);
  await memory.record("t1", ann, "s", [{ role: "user", content: "one" }]);
  await memory.record("t2", ann, "s", [{ role: "user", content: "two" }]);
  assert.equal(await memory.close(), 1);
  assert.ok(lines.some((line) => line.includes("the turn t2 is not recorded: Error: 1 turns wait")));
});
