// A memhost slot as the memory of OpenCode: a plugin.
//
// The context is at the end of the last message of a person in each request to the model, and in nothing that OpenCode stores. When the model has answered, the
// person's words since the last answer and the answer are recorded; tool calls, their results, and what OpenCode adds to a message are not. Sub-agents get no
// context and are not recorded.

import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import type { Hooks, Plugin } from "@opencode-ai/plugin";
import { Memory, withContext } from "./memory.ts";
import type { Message, Scope } from "./slot.ts";

/** The version of OpenCode that this was made for and is tested with. */
export const CHECKED = "1.18.33";

/** The options of the plugin in opencode.json, and what they are where they are not given. The token is MEMHOST_TOKEN of OpenCode's environment. */
interface Options {
  /** MEMHOST_SERVER, or 127.0.0.1:7077. */
  server?: string;
  /** MEMHOST_QUEUE, or "memhost" in OpenCode's data folder. */
  queue?: string;
  /** MEMHOST_RUN, or "opencode". */
  run?: string;
  /** MEMHOST_USER, or the name of the user on this computer. */
  user?: string;
  maxTokens?: number;
  timeout?: number;
}

// OpenCode's forms, as far as they are used here.
interface Part {
  id: string;
  messageID: string;
  sessionID: string;
  type: string;
  text?: string;
  /** OpenCode has written it, as the content of a file that the person named. */
  synthetic?: boolean;
  ignored?: boolean;
  time?: { start: number; end?: number };
}

interface Info {
  id: string;
  sessionID: string;
  role: string;
  parentID?: string;
  finish?: string;
  error?: unknown;
  summary?: unknown;
  time: { created: number; completed?: number };
}

interface Stored {
  info: Info;
  parts: Part[];
}

/** What is known of a conversation with a person. */
interface Session {
  /** The person's words that have no answer yet, by the id of their message, in order. */
  unanswered: Map<string, string>;
  /** The person's last words and the context for them, which a request asks for first. */
  query: string;
  context: Promise<string> | undefined;
  /** The texts of answers that have not ended, by the id of the message and of the part. */
  texts: Map<string, Map<string, string>>;
  /** OpenCode asks for a summary of the conversation next. */
  compacting: boolean;
}

// How long the end of OpenCode waits for the slot: milliseconds.
const DELIVER = 5000;

/** The hooks for one person's memory. parentOf gives the id of the session that has begun a session, or undefined for one that a person has begun. */
export function memoryHooks(memory: Memory, scope: Scope, parentOf: (sessionID: string) => Promise<string | undefined>, records = true): Hooks {
  const sessions = new Map<string, Session>();
  const commands = new Map<string, string>();
  let writing: Promise<void> = Promise.resolve();
  let told = false;

  /** A hook that never disturbs OpenCode, where an error would end the turn. */
  function careful<A extends unknown[]>(hook: (...args: A) => Promise<void>): (...args: A) => Promise<void> {
    return async (...args) => {
      try {
        await hook(...args);
      } catch (e) {
        if (!told) memory.log(`no memory with this version of OpenCode; ${CHECKED} was checked: ${String(e)}`);
        told = true;
      }
    };
  }

  /** Records words that have an answer now, or never get one. The name of the turn is that of the last message of it. */
  function record(sessionID: string, words: [id: string, text: string][], answer?: { id: string; text: string }): void {
    const last = answer?.id ?? words.at(-1)?.[0];
    if (!records || words.length === 0 || !last) return;
    const said: Message[] = words.map(([, content]) => ({ role: "user", content }));
    if (answer) said.push({ role: "assistant", content: answer.text });
    writing = writing.then(() => memory.record(last, scope, sessionID, said));
  }

  /** Records an answer that has ended, with the words up to the message that it answers. What was said later waits for its own. */
  function answered(session: Session, info: Info): void {
    if (info.time.completed === undefined || info.error || info.summary) return;
    if (typeof info.finish !== "string" || ["tool-calls", "unknown"].includes(info.finish)) return;
    const text = [...(session.texts.get(info.id)?.values() ?? [])].join("");
    session.texts.delete(info.id);
    if (!text.trim()) return;
    const all = [...session.unanswered];
    const at = all.findIndex(([id]) => id === info.parentID);
    const words = at < 0 ? all : all.slice(0, at + 1); // a message of OpenCode's own, after a summary, stands for the person's
    for (const [id] of words) session.unanswered.delete(id);
    record(info.sessionID, words, { id: info.id, text });
  }

  function ended(sessionID: string, session: Session): void {
    record(sessionID, [...session.unanswered]);
    sessions.delete(sessionID);
  }

  return {
    // The text of a command is a template's; the person has written its name and arguments.
    "command.execute.before": careful(async ({ command, sessionID, arguments: rest }) => {
      commands.set(sessionID, `/${command} ${rest}`.trim());
    }),

    "chat.message": careful(async ({ sessionID }, { message, parts }) => {
      const command = commands.get(sessionID);
      commands.delete(sessionID);
      const words = command ?? wordsOf(parts as Part[]);
      if (!words.trim() || (await parentOf(sessionID))) return;
      const session = sessions.get(sessionID) ?? { unanswered: new Map(), query: "", context: undefined, texts: new Map(), compacting: false };
      sessions.set(sessionID, session);
      session.unanswered.set(message.id, words);
      Object.assign(session, { query: words, context: undefined, compacting: false });
    }),

    "experimental.session.compacting": careful(async ({ sessionID }) => {
      const session = sessions.get(sessionID);
      if (session) session.compacting = true;
    }),

    "experimental.chat.messages.transform": careful(async (_input, output) => {
      const messages = output.messages as Stored[];
      const at = messages.findLastIndex(({ info }) => info.role === "user");
      const session = at < 0 ? undefined : sessions.get(messages[at]!.info.sessionID);
      if (!session) return;
      if (session.compacting) {
        session.compacting = false; // the summary is of what was said
        return;
      }
      await writing; // of an answer just before
      session.context ??= memory.context(session.query, scope, messages[at]!.info.sessionID);
      const context = await session.context;
      if (context) messages[at] = shown(messages[at]!, context);
    }),

    // OpenCode does not wait for this one.
    event: careful(async ({ event: { type, properties } }) => {
      const { info, part, sessionID } = properties as { info?: Info; part?: Part; sessionID?: string };
      const session = sessions.get(sessionID ?? info?.sessionID ?? part?.sessionID ?? "");
      if (!session) return;
      if (type === "message.part.updated" && part?.type === "text" && part.time?.end !== undefined && !part.synthetic) {
        const texts = session.texts.get(part.messageID) ?? new Map<string, string>();
        session.texts.set(part.messageID, texts.set(part.id, part.text ?? ""));
      }
      if (type === "message.updated" && info?.role === "assistant") answered(session, info);
      if (type === "session.compacted") session.compacting = false;
      if (type === "session.deleted") ended(sessionID ?? info!.id, session);
      await writing;
    }),

    dispose: careful(async () => {
      for (const [id, session] of sessions) ended(id, session);
      await writing;
      await memory.sent(DELIVER);
    }),
  };
}

const server: Plugin = async ({ client }, given = {}) => {
  const { MEMHOST_HOOK: mode, MEMHOST_RUN, MEMHOST_USER, MEMHOST_QUEUE, XDG_DATA_HOME } = process.env;
  if (mode === "off") return {};
  const { run, user, queue, ...rest } = given as Options;
  const log = (message: string): void => {
    // OpenCode's log, and a line on the screen. Neither throws: the client gives errors as values.
    void client.app.log({ body: { service: "memhost", level: "warn", message: `memhost: ${message}` } });
    void client.tui.showToast({ body: { title: "memhost", message, variant: "warning" } });
  };
  if (mode && mode !== "read") {
    log(`no memory: MEMHOST_HOOK is ${mode}, want read or off`);
    return {};
  }
  const memory = new Memory({
    ...rest,
    queue: queue || MEMHOST_QUEUE || join(XDG_DATA_HOME || join(homedir(), ".local", "share"), "opencode", "memhost"),
    log,
  });
  const parentOf = async (id: string): Promise<string | undefined> => {
    const { data, error } = await client.session.get({ path: { id } });
    if (!data) throw new TypeError(`OpenCode does not know its session ${id}: ${JSON.stringify(error)}`);
    return data.parentID;
  };
  return memoryHooks(memory, { runId: run || MEMHOST_RUN || "opencode", userId: user || MEMHOST_USER || userInfo().username }, parentOf, mode !== "read");
};

export default { id: "memhost", server };

/** What the person has written of a message. */
function wordsOf(parts: Part[]): string {
  return parts.flatMap((part) => (part.type === "text" && part.text && !part.synthetic && !part.ignored ? [part.text] : [])).join("\n");
}

/** A message with the context at its end: in its last text, or as a text of its own. */
function shown({ info, parts }: Stored, context: string): Stored {
  const at = parts.findLastIndex((part) => part.type === "text" && !part.ignored);
  const part = parts[at];
  if (!part) return { info, parts: [...parts, { id: `${info.id}-memhost`, messageID: info.id, sessionID: info.sessionID, type: "text", text: context }] };
  return { info, parts: parts.with(at, { ...part, text: withContext(part.text ?? "", context) }) };
}
