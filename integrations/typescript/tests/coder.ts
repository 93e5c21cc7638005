// pi's own loop around its own stub model. A text that begins with TOOL makes the model read a file first.
import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Context, fauxAssistantMessage, fauxText, fauxToolCall, registerFauxProvider } from "@mariozechner/pi-ai";
import { type AgentSession, AuthStorage, createAgentSession, DefaultResourceLoader, type ExtensionFactory, ModelRegistry, SessionManager, SettingsManager } from "@mariozechner/pi-coding-agent";
import type { Memory, Scope } from "../src/index.ts";
import { memoryExtension } from "../src/pi.ts";
import type { Say } from "./conversation.ts";

/** What a request to the model has, as text; and the last user message of it. */
export interface Request {
  all: string;
  last: string;
}

/** A folder with pi in it. */
export class Coder {
  readonly folder = mkdtempSync(join(tmpdir(), "memhost-pi-"));
  readonly requests: Request[] = [];
  /** The model fails so many times. */
  fails = 0;
  readonly #model = registerFauxProvider();

  constructor() {
    writeFileSync(join(this.folder, "file.txt"), "TOOLRESULT");
  }

  /** A session of pi with extensions; extensionPaths are files or packages. kept is whether pi stores it. */
  async open(extensions: ExtensionFactory[], { extensionPaths = [] as string[], kept = true } = {}): Promise<AgentSession> {
    const settingsManager = SettingsManager.inMemory({ retry: { enabled: true, maxRetries: 1, baseDelayMs: 1 }, compaction: { enabled: false } });
    const resourceLoader = new DefaultResourceLoader({
      cwd: this.folder, agentDir: this.folder, settingsManager, extensionFactories: extensions, additionalExtensionPaths: extensionPaths,
    });
    await resourceLoader.reload();
    const authStorage = AuthStorage.inMemory();
    const model = this.#model.getModel();
    authStorage.setRuntimeApiKey(model.provider, "none");
    const { session, extensionsResult } = await createAgentSession({
      cwd: this.folder, agentDir: this.folder, settingsManager, resourceLoader, authStorage, modelRegistry: ModelRegistry.inMemory(authStorage), model,
      sessionManager: kept ? SessionManager.create(this.folder, join(this.folder, "sessions")) : SessionManager.inMemory(this.folder),
    });
    assert.deepEqual(extensionsResult.errors, []);
    await session.bindExtensions({});
    return session;
  }

  /** Says something, and gives the requests that the model got. */
  async say(session: AgentSession, text: string): Promise<Request[]> {
    this.requests.length = 0;
    this.#model.setResponses(Array.from({ length: 9 }, () => (context: Context) => this.#answer(context)));
    await session.prompt(text);
    return [...this.requests];
  }

  #answer({ messages }: Context) {
    const user = messages.findLast((message) => message.role === "user")!;
    const last = typeof user.content === "string" ? user.content : user.content.map((part) => (part.type === "text" ? part.text : "")).join("");
    this.requests.push({ all: JSON.stringify(messages), last });
    if (this.fails-- > 0) return fauxAssistantMessage([], { stopReason: "error", errorMessage: "overloaded_error" });
    const said = last.split("\n\n<memory-context")[0]!;
    if (said.startsWith("TOOL") && messages.at(-1)!.role !== "toolResult") {
      return fauxAssistantMessage([fauxText("Let me look."), fauxToolCall("read", { path: "file.txt" })], { stopReason: "toolUse" });
    }
    return fauxAssistantMessage(`ANSWER[${said}]`);
  }
}

/** Gives a function that gives a promise for the end of the next record: pi's prompt ends before that. */
export function watch(memory: Memory): () => Promise<void> {
  const record = memory.record.bind(memory);
  let next = Promise.withResolvers<void>();
  memory.record = async (...turn) => {
    const { resolve } = next;
    next = Promise.withResolvers();
    await record(...turn).finally(resolve);
  };
  return () => next.promise;
}

/** The talker of the conversation: a session of pi for each person and session, since pi is one person's. */
export function coderTalker(memory: Memory): Say {
  const coder = new Coder();
  const sessions = new Map<string, AgentSession>();
  const recorded = watch(memory);
  return async ({ text, session: name, user }, scope: Scope) => {
    const key = `${user} in ${name}`;
    const session = sessions.get(key) ?? (await coder.open([memoryExtension(memory, scope)]));
    sessions.set(key, session);
    const ended = recorded();
    const requests = await coder.say(session, text);
    await ended;
    assert.ok(!JSON.stringify(session.messages).includes("memory-context"), "what pi stores stays clean");
    assert.equal(requests.length, text.startsWith("TOOL") ? 2 : 1);
    return requests.map(({ all, last }) => {
      const context = last.slice(text.length);
      assert.equal(all.split("<memory-context").length - 1, context ? 1 : 0);
      return context;
    });
  };
}
