// 24 turns, four providers, an outage and a group: nothing is lost, doubled or crossed. Where recording, the queue on disk or the scope is switched off, that is
// found.
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { type Memory, withContext } from "../src/index.ts";
import { hold, type Say, type Without } from "./conversation.ts";
import { coderTalker } from "./coder.ts";
import { gatewayTalker } from "./gateway.ts";
import { openCodeTalker } from "./opencoder.ts";
import { endAll } from "./slot.ts";
import { talker } from "./talker.ts";

afterEach(endAll);

/** A program that calls the client itself; it records each turn twice, as a program may that was not sure. */
function client(memory: Memory): Say {
  let n = 0;
  return async ({ text, session }, scope) => {
    const context = await memory.context(text, scope, session);
    assert.equal(withContext(text, context), context ? `${text}\n\n${context}` : text);
    const at = new Date(1e12 + n * 1000), name = `turn ${n++}`;
    for (let again = 0; again < 2; again++) {
      await memory.record(name, scope, session, [{ role: "user", content: text }, { role: "assistant", content: "Noted." }], at);
    }
    return [context];
  };
}

const wanted: Record<Without, string> = { "": "", recording: "lost", queue: "lost", scope: "crossed" };
for (const [name, open] of Object.entries({ client, "ai-sdk": talker, openclaw: gatewayTalker, opencode: openCodeTalker, pi: coderTalker })) {
  for (const [without, want] of Object.entries(wanted)) {
    test(`${name}${without && ` without ${without}`}`, async () => {
      const found = await hold(open, without as Without);
      if (want) assert.ok(found.some((line) => line.startsWith(want)), `${want} is not found: ${found.join("; ")}`);
      else assert.deepEqual(found, []);
    });
  }
}
