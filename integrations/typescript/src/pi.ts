// A memhost slot as the memory of pi, the coding agent: an extension.
//
// The context is at the end of the person's last message in each request to the model, and in nothing that pi stores. When the model has answered, the person's
// words since the last answer and the answer are recorded; tool calls, their results and what other extensions say are not.

import { randomUUID } from "node:crypto";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { Memory, withContext } from "./memory.ts";
import type { Message, Scope } from "./slot.ts";

/** The version of the package "@mariozechner/pi-coding-agent" that this was made for and is tested with. */
export const CHECKED = "0.73.1";

// pi's forms, as far as they are used here.
interface Said {
  role: string;
  content: string | { type: string; text?: string }[];
  stopReason?: string;
  timestamp?: number;
}

interface Context {
  sessionManager: { getSessionId(): string; getSessionFile(): string | undefined };
}

type On = (event: string, handler: (event: never, ctx: Context) => Promise<unknown>) => void;

// How long the end of pi waits for the slot: milliseconds.
const DELIVER = 5000;

/** The extension for one person's memory. A session that pi does not keep (--no-session, as sub-agents run) gets context and is not recorded. */
export function memoryExtension(memory: Memory, scope: Scope, records = true): (pi: ExtensionAPI) => void {
  return (pi) => {
    const contexts = new Map<string, Promise<string>>();
    const foreign = new Set<string>();
    let unanswered: Message[] = [];
    let writing: Promise<void> = Promise.resolve();
    let told = false;

    function on<E>(name: string, handler: (event: E, ctx: Context) => Promise<unknown>): void {
      (pi.on as unknown as On)(name, async (event: E, ctx) => {
        try {
          return await handler(event, ctx);
        } catch (e) {
          if (!told) memory.log(`no memory with this version of pi; ${CHECKED} was checked: ${String(e)}`);
          told = true;
          return undefined;
        }
      });
    }

    /** Records what was said since the last record. pi does not wait for the end of a handler of agent_end, but for that of session_shutdown. */
    function record(ctx: Context, answer?: Message): void {
      const said = unanswered;
      unanswered = [];
      if (!records || !ctx.sessionManager.getSessionFile() || said.length === 0) return;
      const session = ctx.sessionManager.getSessionId();
      writing = writing.then(() => memory.record(randomUUID(), scope, session, answer ? [...said, answer] : said));
    }

    on<{ text: string; source: string }>("input", async ({ text, source }) => {
      if (source === "extension") foreign.add(text);
    });

    on<{ messages: Said[] }>("context", async ({ messages }, ctx) => {
      const at = messages.findLastIndex((message) => message.role === "user");
      const query = at < 0 ? "" : textOf(messages[at]!);
      if (!query || foreign.has(query)) return undefined;
      const key = `${messages[at]!.timestamp} ${query}`;
      if (!contexts.has(key)) contexts.set(key, memory.context(query, scope, ctx.sessionManager.getSessionId()));
      const context = await contexts.get(key)!;
      return context ? { messages: messages.with(at, shown(messages[at]!, context)) } : undefined;
    });

    on<{ messages: Said[] }>("agent_end", async ({ messages }, ctx) => {
      contexts.clear();
      for (const message of messages) {
        const content = textOf(message);
        if (message.role === "user" && !foreign.has(content)) unanswered.push({ role: "user", content });
        if (isAnswer(message)) record(ctx, { role: "assistant", content });
      }
      foreign.clear();
      await writing;
    });

    on("session_shutdown", async (_event, ctx) => {
      record(ctx); // what the model never answered
      await writing;
      await memory.sent(DELIVER);
    });
  };
}

/** pi's package loads this: MEMHOST_RUN ("pi"), MEMHOST_USER (the name of the user on this computer); MEMHOST_HOOK=off is no memory, MEMHOST_HOOK=read no record. */
export default function (pi: ExtensionAPI): void {
  const { MEMHOST_HOOK: mode, MEMHOST_RUN: runId = "pi", MEMHOST_USER: userId = userInfo().username } = process.env;
  if (mode === "off") return;
  if (mode && mode !== "read") return console.warn(`memhost: no memory: MEMHOST_HOOK is ${mode}, want read or off`);
  const queue = process.env.MEMHOST_QUEUE ?? join(homedir(), ".pi", "agent", "memhost");
  memoryExtension(new Memory({ queue }), { runId, userId }, mode !== "read")(pi);
}

function isAnswer(message: Said): boolean {
  if (message.role === "assistant" && typeof message.stopReason !== "string") throw new TypeError("an answer has no stopReason");
  return message.role === "assistant" && !["toolUse", "error", "aborted"].includes(message.stopReason!);
}

function textOf({ content }: Said): string {
  if (typeof content === "string") return content;
  return content?.flatMap((part) => (part.type === "text" && part.text ? [part.text] : [])).join("\n") ?? "";
}

/** A message with the context at its end, in its last text. */
function shown(message: Said, context: string): Said {
  if (typeof message.content === "string") return { ...message, content: withContext(message.content, context) };
  const last = message.content.findLastIndex((part) => part.type === "text");
  const part = message.content[last]!;
  return { ...message, content: message.content.with(last, { ...part, text: withContext(part.text!, context) }) };
}
