// OpenClaw's plugin with the real memhost, and a stand-in for OpenClaw's gateway.
import assert from "node:assert/strict";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { CHECKED } from "../src/openclaw.ts";
import { answer, Gateway, steered, toolCall } from "./gateway.ts";
import { endAll, RunningSlot } from "./slot.ts";

afterEach(endAll);

const group = "agent:main:telegram:group:-500";

async function started(config: object = {}): Promise<{ slot: RunningSlot; gateway: Gateway; recorded: () => Promise<Record<string, string[]>> }> {
  const slot = await new RunningSlot().start();
  const gateway = new Gateway({ server: slot.server, timeout: 30_000, ...config }, slot.folder);
  /** What was said in each scope, the answers with > before them. */
  const recorded = async (): Promise<Record<string, string[]>> => {
    await gateway.emit("gateway_stop", {});
    const said: Record<string, string[]> = {};
    for (const line of slot.command("archive", "export").split("\n").filter(Boolean)) {
      const event = JSON.parse(line) as { run_id: string; user_id: string; messages: { role: string; content: string }[] };
      (said[`${event.run_id}/${event.user_id}`] ??= []).push(...event.messages.map(({ role, content }) => (role === "user" ? content : `> ${content}`)));
    }
    return said;
  };
  return { slot, gateway, recorded };
}

test("who speaks is the scope: the sender on a channel, a name for them, or the owner", async () => {
  const { gateway, recorded } = await started({ people: { "telegram-101": "ann" }, run: "home" });
  await gateway.run("I like oolong.", { sessionKey: "agent:main:telegram:direct:101", senderId: "101" });
  assert.match(await gateway.run("Which tea?", { sessionKey: group, senderId: "101" }, [...toolCall, answer("Oolong.")]), /I like oolong/);
  assert.equal(await gateway.run("And mine?", { sessionKey: group, senderId: "102" }), "");
  await gateway.run("in the Control UI", { sessionKey: "agent:main:main", channel: "webchat" });
  await gateway.run("from nobody known", { sessionKey: "agent:main:irc:x", channel: "irc" });
  assert.deepEqual(await recorded(), {
    "home/ann": ["I like oolong.", "> Noted.", "Which tea?", "> Oolong."],
    "home/telegram-102": ["And mine?", "> Noted."],
    "home/owner": ["in the Control UI", "> Noted."],
  });
  assert.deepEqual(gateway.lines, []);
});

test("what is written while the agent is busy is each writer's own, with the answer that came after it", async () => {
  const { gateway, recorded } = await started();
  await gateway.run("one", { sessionKey: group, senderId: "1" }, [
    ...toolCall, steered("2", "two"), steered("1", "three"), answer("To three."), steered("2", "four"), answer("NO_REPLY"), steered("3", "five"),
  ]);
  assert.deepEqual(await recorded(), {
    "openclaw/telegram-1": ["one", "three", "> To three."],
    "openclaw/telegram-2": ["two", "four"],
    "openclaw/telegram-3": ["five"],
  });
});

test("a run that fails records nothing, and its words go with the next answer; equal words are two turns", async () => {
  const { gateway, recorded } = await started();
  const writer = { sessionKey: group, senderId: "1" };
  await gateway.run("yes", writer);
  await gateway.run("failing", writer, [{ role: "assistant", content: [], stopReason: "error" }], false);
  await gateway.run("yes", writer);
  assert.deepEqual(await recorded(), { "openclaw/telegram-1": ["yes", "> Noted.", "failing", "yes", "> Noted."] });
});

test("what no person wrote gets no context and is not recorded", async () => {
  const { gateway, recorded } = await started();
  const writer = { sessionKey: "agent:main:main", channel: "webchat" };
  await gateway.run("I like oolong.", writer);
  for (const other of [
    { trigger: "cron" }, { trigger: "heartbeat" }, { inputProvenance: { kind: "inter_session" } }, { inputProvenance: { kind: "internal_system" } },
    { sessionKey: "agent:main:subagent:1" }, { sessionKey: "agent:main:cron:job" },
  ]) {
    assert.equal(await gateway.run("Do the job.", writer, undefined, true, other), "");
  }
  assert.deepEqual(await recorded(), { "openclaw/owner": ["I like oolong.", "> Noted."] });
});

test("an OpenClaw of another form is named once, and the agent goes on", async () => {
  const { gateway, slot, recorded } = await started();
  for (let n = 0; n < 2; n++) assert.equal(await gateway.emit("before_prompt_build", { messages: [] }, { trigger: "user", runId: "r" }), undefined);
  assert.deepEqual(gateway.lines.length, 1);
  assert.match(gateway.lines[0]!, new RegExp(`^memhost: no memory with OpenClaw 2026.9.7; ${CHECKED} was checked: TypeError`));
  await slot.stop();
  assert.equal(await gateway.run("while the slot is down", { sessionKey: group, senderId: "1" }), "");
  await slot.start();
  assert.deepEqual(await recorded(), { "openclaw/telegram-1": ["while the slot is down", "> Noted."] });
  assert.equal(gateway.lines.filter((line) => line.includes(join(slot.folder, "memhost"))).length, 1, "the queue is in OpenClaw's state folder");
});
