// The slot's HTTP API. The session key is kept in this module's memory only: no cookie, no storage.
import type { Line, Settings } from "./wire";

let key = "";

// base is what precedes /page/ in this page's address: the path under which a proxy has the slot, or nothing.
export const base = new URL("..", location.href).pathname.replace(/\/$/, "");

// at is a path of the slot as the browser asks for it. A path without a slash is a file of the page.
export const at = (path: string) => (path.startsWith("/") ? base + path : path);

// Problem is an answer of the slot that is not a success.
export class Problem extends Error {
  code?: string;
  hint?: string;
  reason?: string;
  constructor(body: Record<string, string>, readonly status: number) {
    super(body.detail || body.message || `the slot answered ${status}`);
    Object.assign(this, { code: body.code, hint: body.hint, reason: body.reason });
  }
}

const headers = (more: Record<string, string> = {}) => ({ "Memhost-Origin": "page",
  ...(key ? { Authorization: `Bearer ${key}` } : {}), ...more });

// call sends a request and returns the answer's JSON. It throws a Problem, or a TypeError while the slot is away.
export const call = <A>(method: string, path: string, body?: unknown) =>
  request<A>(method, path, body === undefined ? undefined : JSON.stringify(body), "application/json");

// send sends a file.
export const send = <A>(path: string, file: Blob, type: string) => request<A>("POST", path, file, type);

async function request<A>(method: string, path: string, body: string | Blob | undefined, type: string): Promise<A> {
  const response = await fetch(at(path), { method, credentials: "omit", cache: "no-store", redirect: "error",
    headers: headers(body === undefined ? {} : { "Content-Type": type }), body });
  let answer = {};
  try {
    answer = await response.json();
  } catch (e) {
    if (response.ok) throw new Problem({ message: "the slot's answer is not JSON" }, response.status);
  }
  if (!response.ok) throw new Problem(answer, response.status);
  return answer as A;
}

export const get = <A>(path: string) => call<A>("GET", path);
export const post = <A>(path: string, body: unknown) => call<A>("POST", path, body);

// enter exchanges the code of the link for a session key, once. It returns the page's settings.
export async function enter(): Promise<Settings> {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    history.replaceState(null, "", location.pathname); // the code is used up, and no business of the history
    key = (await post<{ key: string }>("session", { code })).key;
  }
  return get("settings");
}

// useToken takes the slot's token in place of a link.
export const useToken = (token: string) => { key = token; };

// follow reads the stream of operations for as long as the page is open. It calls each with every line and up with
// whether the slot is there, and connects again after 1 s to 10 s. Lines of before the stream was opened go to before.
export async function follow(before: (line: Line) => void, each: (line: Line) => void, up: (there: boolean, e?: unknown) => void) {
  for (let pause = 1000; ; pause = Math.min(2 * pause, 10000)) {
    try {
      const response = await fetch(at("/v1/operations?past=true"), { headers: headers(), credentials: "omit", cache: "no-store" });
      if (!response.ok || !response.body) {
        throw new Problem(await response.json().catch(() => ({})), response.status);
      }
      pause = 1000;
      up(true);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      let now = false; // whether the past has been told
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop() ?? "";
        for (const text of lines.filter(Boolean)) {
          const line: Line = JSON.parse(text);
          now ||= line.kind !== "operation";
          (now ? each : before)(line);
        }
      }
      up(false);
    } catch (e) {
      up(false, e);
      if (e instanceof Problem && (e.status === 401 || e.status === 501)) return;
    }
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
