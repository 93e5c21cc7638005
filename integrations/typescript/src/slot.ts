// The slot's HTTP door, as far as an agent needs it (docs/http.md).

/** Whose memory it is: of one user, in one run. Nothing that is said in a conversation should choose it. */
export interface Scope {
  runId: string;
  userId: string;
}

/** What people and the agent said. */
export interface Message {
  role: "user" | "assistant";
  content: string;
}

/** A turn as the slot takes it; it knows a turn that comes again by its event_id. */
export interface MemoryEvent {
  event_id: string;
  run_id: string;
  user_id: string;
  session_id: string;
  turn_id: string;
  /** RFC 3339 with zone. */
  timestamp: string;
  messages: Message[];
}

/** The answer to an event: a status of docs/http.md. */
export interface Receipt {
  status: string;
  duplicate?: boolean;
  warnings?: string[];
  /** After how many milliseconds recording an uncertain event again can settle it; absent: no retry can. */
  retry_after_ms?: number;
}

/** The statuses of docs/http.md. Another server may answer {"status": "ok"} to anything. */
const STATUSES = ["committed", "queued", "pending", "partial", "uncertain", "not_retained", "skipped_read_only"];

/** A call that failed. code is the slot's (docs/http.md), or "unreachable" where no slot answered, or "slow" when the time was over. */
export class SlotError extends Error {
  readonly code: string;
  readonly retryable: boolean;
  /** Milliseconds that the slot asks to wait; 0: it does not say. */
  readonly retryAfter: number;

  constructor(code: string, message: string, retryable: boolean, retryAfter = 0) {
    super(`${code}: ${message}`);
    this.name = "SlotError";
    this.code = code;
    this.retryable = retryable;
    this.retryAfter = retryAfter;
  }
}

/** A slot at an address: HOST:PORT or a URL. */
export class Slot {
  readonly url: string;
  readonly #token: string;

  constructor(server: string, token = "") {
    this.url = (server.includes("://") ? server : `http://${server}`).replace(/\/+$/, "");
    this.#token = token;
  }

  /** The formatted context, "" for none. maxTokens 0: no limit. Errors: SlotError. */
  async retrieve(query: string, scope: Scope, sessionId: string, maxTokens: number, ms: number): Promise<string> {
    const answer = await this.#post("/v1/retrieve", {
      query,
      scope: { run_id: scope.runId, persona_id: scope.userId },
      session_id: sessionId,
      budget: maxTokens > 0 ? { max_tokens: maxTokens } : {},
    }, ms);
    if (typeof answer.formatted_context !== "string") throw this.#foreign();
    return answer.formatted_context;
  }

  /** Records an event, until end is aborted. Sending one again is safe. Errors: SlotError. */
  async record(event: MemoryEvent, ms: number, end?: AbortSignal): Promise<Receipt> {
    const answer = await this.#post("/v1/events", event, ms, end);
    if (!STATUSES.includes(String(answer.status)) || answer.event_id !== event.event_id) throw this.#foreign();
    return answer as unknown as Receipt;
  }

  async #post(path: string, body: unknown, ms: number, end?: AbortSignal): Promise<Record<string, unknown>> {
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (this.#token) headers.Authorization = `Bearer ${this.#token}`;
    const time = AbortSignal.timeout(ms);
    const signal = end ? AbortSignal.any([time, end]) : time;
    let response: Response, answer: Record<string, unknown> | null;
    try {
      response = await fetch(this.url + path, { method: "POST", headers, body: JSON.stringify(body), signal, redirect: "error" });
      const text = await response.text();
      try {
        answer = JSON.parse(text) as Record<string, unknown> | null;
      } catch {
        answer = null;
      }
    } catch (e) {
      if (end?.aborted) throw new SlotError("slow", `no answer of ${this.url} before the program ended`, true);
      if (e instanceof Error && e.name === "TimeoutError") throw new SlotError("slow", `no answer of ${this.url} within ${ms} ms`, true);
      const cause = e instanceof Error && e.cause instanceof Error ? e.cause.message : String(e);
      throw new SlotError("unreachable", `${this.url}: ${cause}`, true);
    }
    if (response.status === 200 && answer !== null && typeof answer === "object") return answer;
    if (typeof answer?.code !== "string") throw this.#foreign();
    const hint = answer.hint ? ` (${String(answer.hint)})` : "";
    const after = typeof answer.retry_after_ms === "number" ? answer.retry_after_ms : 0;
    throw new SlotError(answer.code, String(answer.message) + hint, answer.retryable === true, after);
  }

  #foreign(): SlotError {
    return new SlotError("unreachable", `${this.url} answers, but not as a memhost slot does`, true);
  }
}
