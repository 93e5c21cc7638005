// Context before a turn, a record after it. Nothing here throws into the agent, and nothing takes longer than configured.

import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type MemoryEvent, type Message, type Receipt, type Scope, Slot, SlotError } from "./slot.ts";

export interface Options {
  /** The folder in which turns wait until the slot has them. Processes that share one may send a turn twice; the slot stores it once. */
  queue: string;
  /** HOST:PORT or a URL; MEMHOST_SERVER, and then 127.0.0.1:7077, where it is not given. */
  server?: string;
  /** MEMHOST_TOKEN where it is not given. */
  token?: string;
  /** The most tokens of a context, 0 for no limit. 2,000 where it is not given. */
  maxTokens?: number;
  /** How many milliseconds a turn waits for its context, 4,000; and how many of them for earlier turns to arrive, 1,000. */
  timeout?: number;
  fresh?: number;
  /** How many turns may wait, 10,000; the oldest are kept. */
  maxEvents?: number;
  /** Takes lines for people; console.warn where it is not given. */
  log?: (line: string) => void;
}

// Errors that lie in the event: no slot will take it as it is.
const REFUSED = new Set(["invalid_argument", "conflict", "too_large", "set_aside"]);
// Errors of which it is not known whose they are: an event that meets one so often (about an hour) is set aside, for those behind it.
const GIVE_UP = new Set(["internal", "backend", "isolation_breach", "unsupported", "not_found"]);
const GIVE_UP_AFTER = 60;
// How often an event is sent whose receipt says each time that it is uncertain, and not after what time to ask again.
const UNCERTAIN_MOST = 8;

/** The slot at an address as an agent's memory. */
export class Memory {
  readonly slot: Slot;
  readonly #o: Required<Omit<Options, "server" | "token">>;
  readonly #id = randomUUID().slice(0, 8);
  #last = "";
  #delivering: Promise<void> = Promise.resolve();
  #busy = false;
  #ending = new AbortController();
  #failures = 0;
  #outage = false; // it has been said that turns wait
  #tries = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(o: Options) {
    this.slot = new Slot(o.server || process.env.MEMHOST_SERVER || "127.0.0.1:7077", o.token ?? process.env.MEMHOST_TOKEN ?? "");
    this.#o = { maxTokens: 2000, timeout: 4000, fresh: 1000, maxEvents: 10_000, log: (line) => console.warn(`memhost: ${line}`), ...o };
    this.#wake(); // for what an earlier process left behind
  }

  /** The context for a message: one memory-context element, or "" where there is none or it did not come in time, which the log says. */
  async context(query: string, scope: Scope, sessionId = ""): Promise<string> {
    if (!query.trim()) return "";
    const until = Date.now() + this.#o.timeout;
    try {
      if (this.#busy) await Promise.race([this.#delivering, pause(Math.min(this.#o.fresh, this.#o.timeout / 2), undefined, { ref: false })]);
      return await this.slot.retrieve(query, scope, sessionId || "session", this.#o.maxTokens, Math.max(1, until - Date.now()));
    } catch (e) {
      this.log(`no memory context in this turn: ${String(e)}`);
      return "";
    }
  }

  /**
   * Queues a finished turn. It is on disk when the promise is kept, and is delivered beside. turn names the turn within its session and must be the same
   * whenever it is recorded: the slot stores it once, however often it comes.
   */
  async record(turn: string, scope: Scope, sessionId: string, messages: Message[], at = new Date()): Promise<void> {
    const said = messages.filter((m) => m.content.trim());
    if (!said.some((m) => m.role === "user")) return;
    const name = JSON.stringify([scope.runId, scope.userId, sessionId, turn]);
    const event: MemoryEvent = {
      event_id: `turn-${createHash("sha256").update(name).digest("hex").slice(0, 40)}`,
      run_id: scope.runId,
      user_id: scope.userId,
      session_id: sessionId || "session",
      turn_id: turn,
      timestamp: at.toISOString(),
      messages: said.map(({ role, content }) => ({ role, content })),
    };
    try {
      const waiting = await this.waiting();
      if (waiting.length >= this.#o.maxEvents) throw new Error(`${waiting.length} turns wait in ${this.#o.queue}`);
      await this.#write(event);
    } catch (e) {
      this.log(`the turn ${turn} is not recorded: ${String(e)}`);
    }
    this.#wake();
  }

  /** Tells people a line. */
  log(line: string): void {
    this.#o.log(line);
  }

  /** The files of the turns that wait, the oldest first. */
  async waiting(): Promise<string[]> {
    await mkdir(this.#o.queue, { recursive: true, mode: 0o700 });
    return (await readdir(this.#o.queue)).filter((name) => name.endsWith(".json")).sort();
  }

  /** Waits until what is queued was sent once, with or without success, for at most so many milliseconds. */
  async sent(ms: number): Promise<void> {
    await Promise.race([this.#delivering, pause(ms, undefined, { ref: false })]);
  }

  /** Delivers what it still can, for at most so many milliseconds, and gives how many turns wait on disk for the next start. */
  async close(ms = 5000): Promise<number> {
    clearTimeout(this.#timer);
    const over = setTimeout(() => this.#ending.abort(), ms);
    await this.#delivering;
    await this.#deliver();
    clearTimeout(over);
    clearTimeout(this.#timer);
    this.#ending = new AbortController();
    return (await this.waiting().catch(() => [])).length; // where the folder cannot be read, that has been said
  }

  /** Writes an event under a name that sorts by time and is this process's own. It survives a power loss when the promise is kept. */
  async #write(event: MemoryEvent): Promise<void> {
    let number = String(Date.now()).padStart(15, "0") + "-0000";
    if (number <= this.#last) number = this.#last.slice(0, 16) + String(Number(this.#last.slice(16)) + 1).padStart(4, "0");
    this.#last = number;
    const temporary = join(this.#o.queue, `${randomUUID()}.part`);
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(JSON.stringify(event));
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, join(this.#o.queue, `${number}-${this.#id}.json`));
  }

  #wake(): void {
    clearTimeout(this.#timer);
    this.#delivering = this.#delivering.then(() => this.#deliver());
  }

  /** Sends what waits, in order within a scope, once each. What fails for now is tried again later. */
  async #deliver(): Promise<void> {
    this.#busy = true;
    let again = 0;
    try {
      const held = new Set<string>();
      for (const name of await this.waiting()) {
        const path = join(this.#o.queue, name);
        const text = await readFile(path, "utf8").catch(gone);
        if (text === undefined) continue; // another process has delivered it
        const event = parsed(text);
        if (event === undefined) {
          await this.#setAside(name, "invalid_argument: the file holds no event");
          continue;
        }
        const scope = JSON.stringify([event.run_id, event.user_id]);
        if (held.has(scope)) continue;
        try {
          this.#settled(event, await this.slot.record(event, 120_000, this.#ending.signal));
          await rm(path, { force: true });
          this.#tries.delete(event.event_id);
          this.#failures = 0;
        } catch (e) {
          const error = e instanceof SlotError ? e : new SlotError("internal", String(e), true);
          if (REFUSED.has(error.code) || (GIVE_UP.has(error.code) && this.#tried(event) >= GIVE_UP_AFTER)) {
            await this.#setAside(name, error.message);
            continue;
          }
          held.add(scope);
          again = Math.max(error.retryAfter, Math.min(60_000, 500 * 2 ** this.#failures));
          if (!this.#outage) this.log(`turns wait in ${this.#o.queue} and are sent later: ${error.message}`);
          this.#outage = true;
          if (["unreachable", "slow", "unauthenticated"].includes(error.code)) break; // no slot, or one that lets nobody in, concerns every scope
        }
      }
      if (held.size === 0) this.#outage = false;
    } catch (e) {
      this.log(`the queue in ${this.#o.queue} cannot be read: ${String(e)}`);
      again = 60_000;
    } finally {
      this.#busy = false;
    }
    if (again > 0) {
      this.#failures++;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#wake(), again).unref();
    }
  }

  /** Counts an attempt that settled nothing, and gives how many there were. */
  #tried(event: MemoryEvent): number {
    const tries = (this.#tries.get(event.event_id) ?? 0) + 1;
    this.#tries.set(event.event_id, tries);
    return tries;
  }

  /** Keeps an event that no slot takes, out of the way of the others. */
  async #setAside(name: string, why: string): Promise<void> {
    const aside = join(this.#o.queue, "aside");
    await mkdir(aside, { recursive: true });
    await rename(join(this.#o.queue, name), join(aside, name)).catch(gone);
    this.log(`a turn is not recorded, and is kept as ${join(aside, name)}: ${why}`);
  }

  /** Throws where an event may not have arrived: when it comes again the slot asks its backend first, and sends only what is missing. */
  #settled(event: MemoryEvent, receipt: Receipt): void {
    if (receipt.status !== "uncertain" && receipt.status !== "partial") return;
    const tries = this.#tried(event);
    const why = receipt.warnings?.join("; ") || "the slot does not say why";
    if (receipt.retry_after_ms === undefined && tries >= UNCERTAIN_MOST) throw new SlotError("set_aside", `${receipt.status}: ${why}`, false);
    throw new SlotError(receipt.status, why, true, receipt.retry_after_ms ?? 0);
  }
}

/** The event in a file, undefined where there is none. */
function parsed(text: string): MemoryEvent | undefined {
  try {
    const event = JSON.parse(text) as MemoryEvent | null;
    return typeof event?.event_id === "string" ? event : undefined;
  } catch {
    return undefined;
  }
}

/** What catches the error of a file that is no longer there. */
function gone(e: NodeJS.ErrnoException): undefined {
  if (e.code !== "ENOENT") throw e;
}

/** A message as the model is shown it. */
export function withContext(text: string, context: string): string {
  return context ? `${text}\n\n${context}` : text;
}
