// An agent of the Vercel AI SDK: its own loop around its own stub model. A text that begins with TOOL makes the model call a tool first.
import assert from "node:assert/strict";
import { generateText, isStepCount, jsonSchema, type ModelMessage, simulateReadableStream, streamText, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { withMemory } from "../src/ai-sdk.ts";
import type { Memory, Scope } from "../src/index.ts";
import type { Say } from "./conversation.ts";

type Asked = Parameters<MockLanguageModelV4["doGenerate"]>[0]["prompt"];
type Answer = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>;
type Stream = Awaited<ReturnType<MockLanguageModelV4["doStream"]>>["stream"];
type Chunk = Stream extends ReadableStream<infer C> ? C : never;

const usage: Answer["usage"] = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

/** The words of the last user message of a prompt. */
export function lastUser(prompt: Asked): string {
  const message = prompt.findLast((m) => m.role === "user");
  assert.ok(message?.role === "user");
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** A model that answers ANSWER[text], and keeps its prompts. fail, when it is set, is thrown once. */
export class Stub {
  readonly prompts: Asked[] = [];
  fail: Error | undefined;

  readonly model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const { content, finishReason } = this.#answer(prompt);
      return { content, finishReason, usage, warnings: [] };
    },
    doStream: async ({ prompt }) => {
      const { content, finishReason } = this.#answer(prompt);
      const chunks: Chunk[] = content.flatMap((part, n): Chunk[] => {
        const id = String(n);
        if (part.type === "tool-call") return [part];
        const text = part.type === "text" ? part.text : "";
        return [
          { type: "text-start", id },
          { type: "text-delta", id, delta: text.slice(0, 3) },
          { type: "text-delta", id, delta: text.slice(3) },
          { type: "text-end", id },
        ];
      });
      chunks.push({ type: "finish", finishReason, usage });
      return { stream: simulateReadableStream({ chunks, initialDelayInMs: null, chunkDelayInMs: null }) };
    },
  });

  #answer(prompt: Asked): Pick<Answer, "content" | "finishReason"> {
    this.prompts.push(structuredClone(prompt));
    const fail = this.fail;
    this.fail = undefined;
    if (fail) throw fail;
    const said = lastUser(prompt).split("\n\n<memory-context")[0]!;
    if (said.startsWith("TOOL") && prompt.at(-1)!.role !== "tool") {
      const call = { type: "tool-call" as const, toolCallId: `call-${this.prompts.length}`, toolName: "look", input: "{}" };
      return { content: [{ type: "text", text: "Let me look." }, call], finishReason: { unified: "tool-calls", raw: undefined } };
    }
    return { content: [{ type: "text", text: `ANSWER[${said}]` }], finishReason: { unified: "stop", raw: undefined } };
  }
}

export const tools = {
  look: tool({ description: "Looks.", inputSchema: jsonSchema<object>({ type: "object", properties: {} }), execute: async () => "TOOLRESULT" }),
};

/** The conversation of a session, whose messages the program keeps, as programs with the AI SDK do. */
export class Chat {
  readonly stub = new Stub();
  readonly messages: ModelMessage[] = [];

  /** A turn; it gives the answer. */
  async say(memory: Memory, scope: Scope, session: string, text: string, streams = false): Promise<string> {
    const model = wrapLanguageModel({ model: this.stub.model, middleware: withMemory(memory, scope, session) });
    this.messages.push({ role: "user", content: text });
    const options = { model, tools, messages: this.messages, stopWhen: isStepCount(5), maxRetries: 0 };
    if (streams) {
      const result = streamText({ ...options, onError: () => {} });
      const answer = await result.text;
      this.messages.push(...(await result.responseMessages));
      return answer;
    }
    const result = await generateText(options);
    this.messages.push(...result.responseMessages);
    return result.text;
  }
}

/** The talker of the conversation: every other turn is streamed. */
export function talker(memory: Memory): Say {
  const chats = new Map<string, Chat>();
  let n = 0;
  return async ({ text, session }, scope) => {
    const chat = chats.get(session) ?? new Chat();
    chats.set(session, chat);
    chat.stub.prompts.length = 0;
    assert.equal(await chat.say(memory, scope, session, text, n++ % 2 === 1), `ANSWER[${text}]`);
    assert.ok(!JSON.stringify(chat.messages).includes("memory-context"), "the program's messages stay clean");
    assert.equal(chat.stub.prompts.length, text.startsWith("TOOL") ? 2 : 1);
    return chat.stub.prompts.map((prompt) => {
      const context = lastUser(prompt).slice(text.length);
      assert.equal(JSON.stringify(prompt).split("<memory-context").length - 1, context ? 1 : 0);
      return context;
    });
  };
}
