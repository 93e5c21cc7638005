// OpenCode as a plugin sees it: the hooks and events of a turn, with the forms that opencode-ai 1.18.33 was seen to give (internal/test/testenv/agents runs the real one).
import assert from "node:assert/strict";
import type { Hooks } from "@opencode-ai/plugin";
import type { Memory, Scope } from "../src/index.ts";
import { memoryHooks } from "../src/opencode.ts";
import type { Say } from "./conversation.ts";

interface Part {
  id: string;
  messageID: string;
  sessionID: string;
  type: string;
  text?: string;
  synthetic?: boolean;
  time?: { start: number; end?: number };
}

interface Stored {
  info: Record<string, unknown> & { id: string; role: string };
  parts: Part[];
}

/** How an answer of the model ends; finish is "stop" where nothing is given. */
export interface Ending {
  finish?: string;
  error?: object;
  summary?: boolean;
}

export class OpenCode {
  readonly hooks: Hooks;
  /** What the model was asked: the text of the last user message of each request. */
  readonly requests: string[] = [];
  /** The sessions that another one has begun, by their ids. */
  readonly parents = new Map<string, string>();
  readonly #sessions = new Map<string, Stored[]>();
  #n = 0;

  constructor(memory: Memory, scope: Scope, records = true) {
    this.hooks = memoryHooks(memory, scope, async (id) => this.parents.get(id), records);
  }

  stored(session: string): Stored[] {
    const messages = this.#sessions.get(session) ?? [];
    this.#sessions.set(session, messages);
    return messages;
  }

  /** A message of a person; synthetic is what OpenCode adds to it. It gives the message's id. */
  async write(session: string, text: string, synthetic?: string): Promise<string> {
    const message = this.#message(session, "user", text);
    if (synthetic) message.parts.push({ ...this.#part(session, message.info.id, synthetic), synthetic: true });
    await this.hooks["chat.message"]!({ sessionID: session }, { message: message.info, parts: message.parts } as never);
    this.stored(session).push(message);
    return message.info.id;
  }

  /** A message of OpenCode's own. */
  add(session: string, text: string): string {
    const message = this.#message(session, "user", text);
    message.parts[0]!.synthetic = true;
    this.stored(session).push(message);
    return message.info.id;
  }

  /** A request to the model and its answer to the message parentID. */
  async answer(session: string, parentID: string, text: string, { finish = "stop", ...more }: Ending = {}): Promise<void> {
    const messages = structuredClone(this.stored(session));
    await this.hooks["experimental.chat.messages.transform"]!({}, { messages } as never);
    const last = messages.findLast(({ info }) => info.role === "user")!;
    this.requests.push(last.parts.map((part) => part.text).join("\n"));
    await this.end(session, parentID, text, { finish, ...more });
  }

  /** The events of an answer. */
  async end(session: string, parentID: string, text: string, { finish, ...more }: Ending): Promise<void> {
    const message = this.#message(session, "assistant", text);
    const part = message.parts[0]!;
    await this.event("message.updated", { sessionID: session, info: message.info });
    await this.event("message.part.updated", { sessionID: session, part: { ...part, text: "", time: { start: 1 } } });
    await this.event("message.part.updated", { sessionID: session, part: { ...part, time: { start: 1, end: 2 } } });
    Object.assign(message.info, { parentID, ...(finish ? { finish } : {}), ...more });
    await this.event("message.updated", { sessionID: session, info: message.info });
    Object.assign(message.info, { time: { created: 1, completed: 2 } });
    for (let again = 0; again < 2; again++) await this.event("message.updated", { sessionID: session, info: message.info });
    this.stored(session).push(message);
  }

  async event(type: string, properties: object): Promise<void> {
    await this.hooks.event!({ event: { type, properties: structuredClone(properties) } as never });
  }

  /** A turn; a text that begins with TOOL makes the model call a tool first. It gives the requests. */
  async say(session: string, text: string): Promise<string[]> {
    const before = this.requests.length;
    const id = await this.write(session, text);
    if (text.startsWith("TOOL")) await this.answer(session, id, "Let me look.", { finish: "tool-calls" });
    await this.answer(session, id, "Noted.");
    assert.ok(!JSON.stringify(this.stored(session)).includes("memory-context"), "what OpenCode stores stays clean");
    return this.requests.slice(before);
  }

  #message(session: string, role: string, text: string): Stored {
    const id = `msg_${String(++this.#n).padStart(6, "0")}`;
    return { info: { id, sessionID: session, role, time: { created: 1 } }, parts: [this.#part(session, id, text)] };
  }

  #part(sessionID: string, messageID: string, text: string): Part {
    return { id: `prt_${++this.#n}`, messageID, sessionID, type: "text", text };
  }
}

/** The talker of the conversation: an OpenCode for each person. */
export function openCodeTalker(memory: Memory): Say {
  const people = new Map<string, OpenCode>();
  return async ({ text, session, user }, scope: Scope) => {
    const code = people.get(user) ?? new OpenCode(memory, scope);
    people.set(user, code);
    const requests = await code.say(`${user} in ${session}`, text);
    assert.equal(requests.length, text.startsWith("TOOL") ? 2 : 1);
    return requests.map((request) => request.slice(text.length));
  };
}
