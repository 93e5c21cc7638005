// OpenClaw's gateway as a plugin sees it: the hooks of a run, with the forms that openclaw 2026.9.6 was seen to give (internal/test/testenv/agents runs the real one).
import { randomUUID } from "node:crypto";
import type { Memory, Scope } from "../src/index.ts";
import plugin, { type Context } from "../src/openclaw.ts";
import type { Say } from "./conversation.ts";

type Handler = (event: never, ctx: Context) => Promise<unknown>;

/** Who writes on a channel, and where. */
export interface Writer {
  sessionKey: string;
  senderId?: string;
  channel?: string;
}

export class Gateway {
  readonly lines: string[] = [];
  readonly #hooks = new Map<string, Handler>();
  readonly #sessions: Map<string, object[]>;

  /** sessions are the histories as they are stored. */
  constructor(pluginConfig: object, stateDir = "", sessions = new Map<string, object[]>()) {
    this.#sessions = sessions;
    plugin.register({
      pluginConfig,
      logger: { warn: (line) => this.lines.push(line) },
      runtime: { version: "2026.9.7", state: { resolveStateDir: () => stateDir } },
      on: (hook, handler) => this.#hooks.set(hook, handler),
    });
  }

  async emit(hook: string, event: object, ctx: Context = {}): Promise<{ appendContext?: string } | undefined> {
    return (await this.#hooks.get(hook)!(event as never, ctx)) as { appendContext?: string } | undefined;
  }

  /** A run for a text. more comes after the text in the session: answers, tool calls, and what others write meanwhile. It gives the context. */
  async run(text: string, { channel = "telegram", ...writer }: Writer, more: object[] = [answer("Noted.")], success = true, other: Context = {}): Promise<string> {
    const ctx = { trigger: "user", runId: randomUUID(), channel, ...writer, ...other };
    const before = this.#sessions.get(writer.sessionKey) ?? [];
    const result = await this.emit("before_prompt_build", { prompt: text, messages: before }, ctx);
    const user = { role: "user", content: [{ type: "text", text }], timestamp: 1795430742001 };
    const steered = more.map((message) => ("steered" in message ? { ...message, __openclaw: { ...(message.steered as object), steerTargetRunId: ctx.runId } } : message));
    await this.emit("agent_end", { success, messages: [...before, user, ...steered] }, ctx);
    this.#sessions.set(writer.sessionKey, [...before, { ...user, content: text, __openclaw: { senderId: writer.senderId } }, ...steered]);
    return result?.appendContext ?? "";
  }
}

export function answer(text: string): object {
  return { role: "assistant", content: [{ type: "text", text }], stopReason: "stop" };
}

/** What somebody writes while a run is at work. */
export function steered(senderId: string, text: string): object {
  return { role: "user", content: text, steered: { senderId } };
}

/** What a run does before it answers. */
export const toolCall = [
  { role: "assistant", content: [{ type: "text", text: "Let me look." }, { type: "toolCall", id: "c1", name: "ls" }], stopReason: "toolUse" },
  { role: "toolResult", toolCallId: "c1", content: [{ type: "text", text: "TOOLRESULT" }] },
];

/** The talker of the conversation. */
export function gatewayTalker(memory: Memory): Say {
  const sessions = new Map<string, object[]>();
  return async ({ text, session, user }, scope: Scope) => {
    const queue = `of the conversation, for ${scope.userId}`;
    const config = { run: scope.runId, people: { [`telegram-${user}`]: scope.userId }, queue };
    (globalThis as Record<symbol, Map<string, Memory> | undefined>)[Symbol.for("memhost-client/openclaw")]!.set(JSON.stringify({ queue }), memory);
    const gateway = new Gateway(config, "", sessions);
    const more = [...(text.startsWith("TOOL") ? toolCall : []), answer("Noted.")];
    return [await gateway.run(text, { sessionKey: `agent:main:telegram:${session}`, senderId: user }, more)];
  };
}
