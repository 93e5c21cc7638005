// A memhost slot as the memory of an agent of the Vercel AI SDK: a middleware of its language model.
//
//   const model = wrapLanguageModel({ model: openai("gpt-5"), middleware: withMemory(memory, { runId: "home", userId: "ann" }, chatId) });
//   const { text } = await generateText({ model, messages, tools, stopWhen: isStepCount(20) });
//
// The context is at the end of the person's message in each request to the model, and in nothing that the SDK gives back. When the model has answered
// without a call of a tool of yours, the person's words since the last answer and the answer are recorded; tool calls, their results and reasoning are not.

import { randomUUID } from "node:crypto";
import type { LanguageModelMiddleware } from "ai";
import { type Memory, withContext } from "./memory.ts";
import type { Message, Scope } from "./slot.ts";

/** The version of the package "ai" that this was made for and is tested with. */
export const CHECKED = "7.0.173";

type Call = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];
type Asked = Call["prompt"][number];
type Part = { type: string; providerExecuted?: boolean | undefined };

/** A call of the model that answers a person: what was said since the answer before it, and the place and words of the last message. */
interface Turn {
  said: Message[];
  key: string;
}

// Contexts are kept until the model has answered; those of turns that never end go when so many newer ones have begun.
const KEEP_TURNS = 500;

/**
 * The middleware for one person's conversation; make one for each. The scope is whose memory it is, session names the conversation. A model that also writes
 * titles or summaries, or is a sub-agent's, is another model: do not wrap it.
 */
export function withMemory(memory: Memory, scope: Scope, session: string): LanguageModelMiddleware {
  const contexts = new Map<string, Promise<string>>();
  const turns = new WeakMap<Call, Turn>();
  let told = false;

  /** Runs work that must not disturb the agent: an AI SDK of another version may have other forms. */
  async function carefully<T>(work: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await work();
    } catch (e) {
      if (!told) memory.log(`no memory with this version of the AI SDK; ai ${CHECKED} was checked: ${String(e)}`);
      told = true;
      return otherwise;
    }
  }

  function contextOf(turn: Turn, query: string): Promise<string> {
    let context = contexts.get(turn.key);
    if (context === undefined) {
      context = memory.context(query, scope, session);
      contexts.set(turn.key, context);
      for (const key of contexts.keys()) {
        if (contexts.size > KEEP_TURNS) contexts.delete(key);
      }
    }
    return context;
  }

  /** Records a turn that has ended with an answer. reason is the model's for ending. */
  async function ended(turn: Turn, answer: string, reason: string, parts: Part[]): Promise<void> {
    if (typeof reason !== "string") throw new TypeError("a finish reason is not as it was");
    if (reason === "tool-calls" || parts.some(waits)) return; // the answer comes later
    contexts.delete(turn.key);
    if (reason === "error" || reason === "interrupted") return; // no answer
    await memory.record(randomUUID(), scope, session, [...turn.said, { role: "assistant", content: answer }]);
  }

  return {
    transformParams: ({ params }) =>
      carefully(async () => {
        const at = params.prompt.findLastIndex((message) => message.role === "user");
        const begin = params.prompt.findLastIndex(isAnswer) + 1;
        if (at < begin) return params; // no person waits for an answer
        const query = textOf(params.prompt[at]!);
        const said = params.prompt.slice(begin, at + 1).filter((message) => message.role === "user");
        const turn: Turn = { said: said.map((message) => ({ role: "user", content: textOf(message) })), key: `${at} ${query}` };
        const prompt = shown(params.prompt, at, await contextOf(turn, query));
        const changed = { ...params, prompt };
        turns.set(changed, turn);
        return changed;
      }, params),

    wrapGenerate: async ({ doGenerate, params }) => {
      const result = await doGenerate();
      const turn = turns.get(params);
      if (turn) {
        await carefully(async () => {
          const answer = result.structuredOutputText ?? result.content.map((part) => (part.type === "text" ? part.text : "")).join("");
          await ended(turn, answer, result.finishReason.unified, result.content);
        }, undefined);
      }
      return result;
    },

    wrapStream: async ({ doStream, params }) => {
      const result = await doStream();
      const turn = turns.get(params);
      if (!turn) return result;
      let answer = "";
      const calls: Part[] = [];
      type Streamed = typeof result.stream extends ReadableStream<infer P> ? P : never;
      const listen = new TransformStream<Streamed, Streamed>({
        async transform(part, controller) {
          if (part.type === "text-delta") answer += part.delta;
          if (part.type === "tool-call") calls.push(part);
          if (part.type === "finish") await carefully(() => ended(turn, answer, part.finishReason.unified, calls), undefined);
          controller.enqueue(part);
        },
      });
      return { ...result, stream: result.stream.pipeThrough(listen) };
    },
  };
}

/** Whether a message is the end of a turn: the assistant's, without a call that a tool of the program has to answer. */
function isAnswer(message: Asked): boolean {
  return message.role === "assistant" && !message.content.some(waits);
}

function waits(part: Part): boolean {
  return part.type === "tool-call" && !part.providerExecuted;
}

function textOf(message: Asked): string {
  if (message.role !== "user") return "";
  return message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}

/** The prompt with the context at the end of a person's message, in its last text. */
function shown(prompt: Call["prompt"], at: number, context: string): Call["prompt"] {
  const message = prompt[at]!;
  if (!context || message.role !== "user") return prompt;
  const content = [...message.content];
  const last = content.findLastIndex((part) => part.type === "text");
  const part = content[last];
  if (part?.type !== "text") return prompt;
  content[last] = { ...part, text: withContext(part.text, context) };
  return prompt.with(at, { ...message, content });
}
