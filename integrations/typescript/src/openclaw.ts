// A memhost slot as OpenClaw's memory: a plugin that owns its memory slot (plugins.slots.memory: "memhost").
//
// The context is at the end of the person's message in each request of a run, and in nothing that OpenClaw stores. When a run has ended well, the words of each
// person since the last answer are recorded in that person's scope, and the answer with the words it came after. Messages that arrive while the agent is busy are
// part of the run, and carry their own sender. Scheduled runs, heartbeats, sub-agents and messages between sessions are nobody's words: no context, no record.

import { join } from "node:path";
import { Memory } from "./memory.ts";
import type { Message, Scope } from "./slot.ts";

/** The version of the package "openclaw" that this was made for and is tested with. */
export const CHECKED = "2026.9.6";

/** plugins.entries.memhost.config. The token is MEMHOST_TOKEN of OpenClaw's environment. */
interface Config {
  server?: string;
  queue?: string;
  /** The run of the memory, "openclaw" where it is not given. */
  run?: string;
  /** Who speaks at the command line, in the Control UI and over HTTP, where OpenClaw names no sender. "owner" where it is not given. */
  owner?: string;
  /** Other names for people: {"telegram-101": "ann"}. CHANNEL-SENDER stays the name of those who are not here. */
  people?: Record<string, string>;
  maxTokens?: number;
  timeout?: number;
}

// OpenClaw's forms, as far as they are used here.
export interface Context {
  runId?: string;
  sessionKey?: string;
  channel?: string;
  senderId?: string;
  trigger?: string;
  inputProvenance?: { kind: string };
}

interface Said {
  role: string;
  content: string | { type: string; text?: string }[];
  stopReason?: string;
  /** Milliseconds since 1970. */
  timestamp?: number;
  __openclaw?: { senderId?: string; steerTargetRunId?: string };
}

interface PromptBuild {
  prompt: string;
  currentUserMessage?: string;
}

interface AgentEnd {
  success: boolean;
  messages: Said[];
}

interface Api {
  pluginConfig?: Config;
  logger: { warn(line: string): void };
  runtime: { version: string; state: { resolveStateDir(env: NodeJS.ProcessEnv): string } };
  on(hook: string, handler: (event: never, ctx: Context) => Promise<unknown>): void;
}

// The words of runs that never end go when so many newer ones have begun.
const KEEP_RUNS = 500;
// How long the end of a run waits for the slot, so that a command that runs one turn and ends has delivered it: milliseconds.
const DELIVER = 5000;
// OpenClaw's own chat, whose sender is the owner.
const OWN_CHAT = "webchat";
// What an agent answers who has nothing to say.
const SILENT = "NO_REPLY";

const memoriesKey = Symbol.for("memhost-client/openclaw");
// OpenClaw loads and registers a plugin more than once in a process, and a gateway's own hooks may be another instance's than those of its runs. They share a
// memory, by its options.
const shared = globalThis as { [memoriesKey]?: Map<string, Memory> };
const memories = (shared[memoriesKey] ??= new Map());

export default {
  id: "memhost",
  name: "memhost",
  description: "A memhost slot as the agent's memory",

  register(api: Api): void {
    const { run = "openclaw", owner = "owner", people = {}, queue, ...rest } = api.pluginConfig ?? {};
    const words = new Map<string, string>();
    let told = false;

    function open(): Memory {
      const options = { ...rest, queue: queue || join(api.runtime.state.resolveStateDir(process.env), "memhost") };
      const key = JSON.stringify(options);
      const memory = memories.get(key) ?? new Memory({ ...options, log: (line) => api.logger.warn(`memhost: ${line}`) });
      memories.set(key, memory);
      return memory;
    }

    function on<E>(hook: string, handler: (event: E, ctx: Context) => Promise<unknown>): void {
      api.on(hook, async (event: E, ctx) => {
        try {
          return await handler(event, ctx);
        } catch (e) {
          if (!told) api.logger.warn(`memhost: no memory with OpenClaw ${api.runtime.version}; ${CHECKED} was checked: ${String(e)}`);
          told = true;
          return undefined;
        }
      });
    }

    /** Whose memory it is. A channel that does not say who speaks has none. */
    function scopeOf(ctx: Context, senderId: string | undefined): Scope | undefined {
      const own = !ctx.channel || ctx.channel === OWN_CHAT;
      if (!own && !senderId) return undefined;
      const name = own ? owner : `${ctx.channel}-${senderId}`;
      return { runId: run, userId: people[name] ?? name };
    }

    on("gateway_start", async () => open()); // delivers what an earlier process left behind

    on<PromptBuild>("before_prompt_build", async (event, ctx) => {
      const scope = byAPerson(ctx) && scopeOf(ctx, ctx.senderId);
      if (!scope) return undefined;
      const asked = event.currentUserMessage ?? event.prompt;
      if (typeof asked !== "string" || !ctx.runId) throw new TypeError("before_prompt_build has no prompt, or no runId");
      words.set(ctx.runId, asked);
      for (const old of words.keys()) if (words.size > KEEP_RUNS) words.delete(old);
      const context = await open().context(asked, scope, ctx.sessionKey);
      return context ? { appendContext: context } : undefined;
    });

    on<AgentEnd>("agent_end", async ({ success, messages }, ctx) => {
      const asked = ctx.runId && words.get(ctx.runId);
      if (asked === undefined || !success) return; // of no person, or still to be answered: the run is tried again, or its words go with the next answer
      words.delete(ctx.runId!);
      let n = 0;
      for (const { senderId, at, said } of turnsOf(messages, asked, ctx.senderId)) {
        const scope = scopeOf(ctx, senderId);
        if (scope) await open().record(`${ctx.runId} ${n++}`, scope, ctx.sessionKey ?? "", said, at);
      }
      await open().sent(DELIVER);
    });

    on("gateway_stop", async () => open().close());
  },
};

/** Whether a run answers somebody who wrote. */
function byAPerson(ctx: Context): boolean {
  const kind = ctx.inputProvenance?.kind ?? "external_user";
  return ctx.trigger === "user" && kind === "external_user" && !/(^|:)(subagent|cron|heartbeat):/.test(ctx.sessionKey ?? "");
}

/** What one person said until an answer came, and the answer when it came after their words. */
interface Turn {
  senderId: string | undefined;
  at: Date | undefined;
  said: Message[];
}

/** The turns since the last answer before a run's own message, which has the text asked and is of senderId. */
function turnsOf(messages: Said[], asked: string, senderId: string | undefined): Turn[] {
  const start = messages.findLastIndex((m) => m.role === "user" && !m.__openclaw?.steerTargetRunId && textOf(m) === asked);
  if (start < 0) {
    const said: Message[] = [{ role: "user", content: asked }];
    const last = messages.findLast(isAnswer);
    if (last) said.push({ role: "assistant", content: textOf(last) });
    return [{ senderId, at: undefined, said }];
  }
  let begin = start;
  while (begin > 0 && isUnanswered(messages[begin - 1]!)) begin--;
  const turns: Turn[] = [];
  let open: Turn[] = [];
  for (const [n, message] of messages.entries()) {
    if (n < begin) continue;
    if (message.role === "user") {
      const sender = n === start ? senderId : message.__openclaw?.senderId;
      const at = message.timestamp === undefined ? undefined : new Date(message.timestamp);
      let turn = open.find((other) => other.senderId === sender);
      if (turn) open.push(...open.splice(open.indexOf(turn), 1)); // who spoke last is answered
      else open.push((turn = { senderId: sender, at, said: [] }));
      turn.said.push({ role: "user", content: textOf(message) });
    }
    if (isAnswer(message)) {
      const answer = textOf(message);
      if (answer !== SILENT) open.at(-1)?.said.push({ role: "assistant", content: answer });
      turns.push(...open);
      open = [];
    }
  }
  return [...turns, ...open];
}

function isAnswer(message: Said): boolean {
  return message.role === "assistant" && !["toolUse", "error", "aborted"].includes(message.stopReason ?? "");
}

/** Whether a message before a run's own is one of a person whom a failed run left without an answer, or what that run did. */
function isUnanswered(message: Said): boolean {
  if (message.role === "user") return message.__openclaw?.senderId !== undefined;
  return message.role === "toolResult" || (message.role === "assistant" && !isAnswer(message));
}

function textOf({ content }: Said): string {
  if (typeof content === "string") return content;
  return content.flatMap((part) => (part.type === "text" && part.text ? [part.text] : [])).join("\n");
}
