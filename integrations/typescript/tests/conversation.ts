// The conversation that each integration holds: integrations/testdata/conversation.json, whose README says what its fields are.
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Memory, type Scope } from "../src/index.ts";
import { RunningSlot } from "./slot.ts";

/** The checkout. */
export const root = process.env.AGENTS_TEST_ROOT ?? join(import.meta.dirname, "../../..");

export interface Turn {
  provider?: string;
  slot?: "stop" | "start";
  user: string;
  session: string;
  text: string;
  knows?: number[];
}

/** An agent with its integration. It gives the contexts that the model was shown in a turn. */
export type Say = (turn: Turn, scope: Scope) => Promise<string[]>;

/** What is switched off. */
export type Without = "" | "recording" | "queue" | "scope";

export const conversation = JSON.parse(readFileSync(join(root, "integrations/testdata/conversation.json"), "utf8")) as { run: string; turns: Turn[] };

/** Holds the conversation with the real memhost, and gives what is wrong with what was shown and recorded, one line each. */
export async function hold(open: (memory: Memory) => Say, without: Without): Promise<string[]> {
  const found: string[] = [];
  const slot = await new RunningSlot().start();
  const queue = join(slot.folder, "queue");
  const memory = new Memory({ queue, server: slot.server, timeout: 30_000, fresh: 10_000, log: () => {} });
  if (without === "recording") memory.record = async () => {};
  const say = open(memory);
  for (const [n, turn] of conversation.turns.entries()) {
    if (turn.slot === "stop") await slot.stop();
    if (turn.slot === "start") await slot.start();
    if (turn.provider) {
      await memory.close(); // what is on its way is this provider's
      slot.command("swap", turn.provider);
    }
    const scope = { runId: conversation.run, userId: without === "scope" ? "ann" : turn.user };
    for (const context of await say(turn, scope)) found.push(...wrongWith(n, turn, context));
    if (without === "queue") for (const name of await memory.waiting()) rmSync(join(queue, name), { force: true });
  }
  const waiting = await memory.close();
  if (waiting > 0) found.push(`lost: ${waiting} turns wait`);
  found.push(...wrongInArchive(slot.command("archive", "export")));
  await slot.stop();
  return found;
}

/** What a context lacks, and what of others is in it. */
function wrongWith(n: number, turn: Turn, context: string): string[] {
  const others = new Set(conversation.turns.map(({ user }) => user).filter((user) => user !== turn.user));
  const found = [...others].filter((user) => context.includes(` of ${user}`)).map((user) => `crossed: turn ${n} of ${turn.user} is shown what ${user} said`);
  const missing = (turn.knows ?? []).filter((known) => !context.includes(conversation.turns[known]!.text));
  return [...found, ...missing.map((known) => `unknown: turn ${n} is not shown turn ${known}`)];
}

/** Compares what each person said with an export of the archive. */
function wrongInArchive(text: string): string[] {
  const found: string[] = [];
  const said: Record<string, string[]> = {};
  for (const line of text.split("\n").filter(Boolean)) {
    if (line.includes("memory-context") || line.includes("TOOLRESULT")) found.push(`recorded: what no person said: ${line}`);
    const event = JSON.parse(line) as { user_id: string; messages: { role: string; content: string }[] };
    (said[event.user_id] ??= []).push(...event.messages.filter(({ role }) => role === "user").map(({ content }) => content));
  }
  for (const user of new Set(conversation.turns.map((turn) => turn.user))) {
    const want = conversation.turns.filter((turn) => turn.user === user).map((turn) => turn.text);
    const got = said[user] ?? [];
    for (const line of want) {
      const times = got.filter((other) => other === line).length;
      if (times === 0) found.push(`lost: ${line}`);
      if (times > 1) found.push(`doubled: ${line}`);
    }
    if (found.length === 0 && JSON.stringify(got) !== JSON.stringify(want)) found.push(`order: ${user} said ${JSON.stringify(got)}`);
  }
  return found;
}
