// Built from web/src by web/build.mjs: change that, and run tools/page.

// src/main.tsx
import { render } from "./preact.js";

// src/Page.tsx
import { useEffect as useEffect11, useMemo as useMemo2, useRef as useRef11, useState as useState20 } from "./preact.js";

// src/api.ts
var key = "";
var base = new URL("..", location.href).pathname.replace(/\/$/, "");
var at = (path) => path.startsWith("/") ? base + path : path;
var Problem = class extends Error {
  constructor(body, status) {
    super(body.detail || body.message || `the slot answered ${status}`);
    this.status = status;
    Object.assign(this, { code: body.code, hint: body.hint, reason: body.reason });
  }
  status;
  code;
  hint;
  reason;
};
var headers = (more = {}) => ({
  "Memhost-Origin": "page",
  ...key ? { Authorization: `Bearer ${key}` } : {},
  ...more
});
var call = (method, path, body) => request(method, path, body === void 0 ? void 0 : JSON.stringify(body), "application/json");
var send = (path, file, type) => request("POST", path, file, type);
async function request(method, path, body, type) {
  const response = await fetch(at(path), {
    method,
    credentials: "omit",
    cache: "no-store",
    redirect: "error",
    headers: headers(body === void 0 ? {} : { "Content-Type": type }),
    body
  });
  let answer = {};
  try {
    answer = await response.json();
  } catch (e) {
    if (response.ok) throw new Problem({ message: "the slot's answer is not JSON" }, response.status);
  }
  if (!response.ok) throw new Problem(answer, response.status);
  return answer;
}
var get = (path) => call("GET", path);
var post = (path, body) => call("POST", path, body);
async function enter() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    history.replaceState(null, "", location.pathname);
    key = (await post("session", { code })).key;
  }
  return get("settings");
}
var useToken = (token) => {
  key = token;
};
async function follow(before, each, up) {
  for (let pause2 = 1e3; ; pause2 = Math.min(2 * pause2, 1e4)) {
    try {
      const response = await fetch(at("/v1/operations?past=true"), { headers: headers(), credentials: "omit", cache: "no-store" });
      if (!response.ok || !response.body) {
        throw new Problem(await response.json().catch(() => ({})), response.status);
      }
      pause2 = 1e3;
      up(true);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      let now = false;
      for (; ; ) {
        const { done, value } = await reader.read();
        if (done) break;
        const lines3 = (rest + value).split("\n");
        rest = lines3.pop() ?? "";
        for (const text of lines3.filter(Boolean)) {
          const line = JSON.parse(text);
          now ||= line.kind !== "operation";
          (now ? each : before)(line);
        }
      }
      up(false);
    } catch (e) {
      up(false, e);
      if (e instanceof Problem && (e.status === 401 || e.status === 501)) return;
    }
    await new Promise((resolve) => setTimeout(resolve, pause2));
  }
}

// src/parts/Confirm.tsx
import { useEffect, useRef, useState } from "./preact.js";
import { jsx, jsxs } from "./preact.js";
var open = () => void 0;
var confirm = (title, text, yes) => new Promise((answer) => {
  open({ title, text, yes, answer });
});
function Confirm() {
  const [question, ask] = useState(null);
  const dialog = useRef(null);
  const no = useRef(null);
  useEffect(() => {
    open = ask;
  }, []);
  useEffect(() => {
    if (!question) return;
    dialog.current?.showModal();
    no.current?.focus();
  }, [question]);
  const close = (agreed) => {
    dialog.current?.close();
    question?.answer(agreed);
    ask(null);
  };
  return /* @__PURE__ */ jsxs("dialog", { id: "confirm", ref: dialog, "aria-labelledby": "confirm-title", onCancel: () => close(false), children: [
    /* @__PURE__ */ jsx("h2", { id: "confirm-title", children: question?.title }),
    /* @__PURE__ */ jsx("p", { children: /* @__PURE__ */ jsx("bdi", { dir: "auto", children: question?.text }) }),
    /* @__PURE__ */ jsxs("p", { class: "buttons", children: [
      /* @__PURE__ */ jsx("button", { id: "confirm-no", type: "button", ref: no, onClick: () => close(false), children: "Leave it" }),
      /* @__PURE__ */ jsx("button", { id: "confirm-yes", type: "button", class: "act", onClick: () => close(true), children: question?.yes })
    ] })
  ] });
}

// src/search.ts
var inFront = /^[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{N}]/u;
var escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|\-/]/g, "\\$&");
var wordsOf = (typed2) => ({ words: typed2.trim().split(/\s+/u).filter(Boolean).map((word) => new RegExp(`${inFront.test(word) ? "(?<![\\p{L}\\p{N}\\p{M}])" : ""}${escaped(word)}`, "giu")) });
var partOf = (typed2) => ({ words: typed2.trim() === "" ? [] : [new RegExp(escaped(typed2.trim()), "giu")] });
var fits = ({ words }, text) => words.every((w) => text.search(w) >= 0);
function marked({ words }, text) {
  const found = words.flatMap((w) => [...text.matchAll(w)].map((m) => [m.index, m.index + m[0].length])).sort(([a], [b]) => a - b);
  const pieces = [];
  let at3 = 0;
  for (const [from, to] of found) {
    if (from < at3 || to === from) continue;
    pieces.push(text.slice(at3, from), text.slice(from, to));
    at3 = to;
  }
  return [...pieces, text.slice(at3)];
}

// src/parts/Words.tsx
import { jsx as jsx2 } from "./preact.js";
function Words({ children, search }) {
  const text = String(children ?? "");
  return /* @__PURE__ */ jsx2("bdi", { dir: "auto", class: "words", children: search && search.words.length > 0 ? marked(search, text).map((piece, i) => i % 2 === 1 ? /* @__PURE__ */ jsx2("mark", { class: "hit", children: piece }) : piece) : text });
}

// src/parts/Failure.tsx
import { jsx as jsx3, jsxs as jsxs2 } from "./preact.js";
function Failure({ of }) {
  const e = of;
  return /* @__PURE__ */ jsxs2("div", { role: "alert", class: "failure", children: [
    /* @__PURE__ */ jsx3("p", { children: /* @__PURE__ */ jsx3(Words, { children: e.message ?? of }) }),
    e.hint ? /* @__PURE__ */ jsx3("p", { children: /* @__PURE__ */ jsx3(Words, { children: e.hint }) }) : null,
    e.code ? /* @__PURE__ */ jsxs2("small", { children: [
      "code ",
      /* @__PURE__ */ jsx3(Words, { children: e.code })
    ] }) : null
  ] });
}

// src/parts/Time.tsx
import { jsx as jsx4 } from "./preact.js";
var format = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
var dayFormat = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });
var hourFormat = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
var zone = format.resolvedOptions().timeZone;
function Time({ at: at3, part }) {
  if (!at3) return null;
  const when = new Date(at3);
  const text = part === "day" ? dayFormat : part === "hour" ? hourFormat : format;
  return /* @__PURE__ */ jsx4("time", { dateTime: at3, title: at3, class: "time", children: Number.isNaN(when.getTime()) ? at3 : text.format(when) });
}
var dayOf = (at3) => at3 && !Number.isNaN(Date.parse(at3)) ? dayFormat.format(new Date(at3)) : "";
var relative = new Intl.RelativeTimeFormat("en-GB", { numeric: "auto", style: "short" });
var units = [["minute", 60], ["hour", 3600], ["day", 86400]];
function Ago({ at: at3 }) {
  if (!at3) return null;
  const seconds = (Date.now() - Date.parse(at3)) / 1e3;
  if (Number.isNaN(seconds) || seconds < 0 || seconds > 7 * 86400) return /* @__PURE__ */ jsx4(Time, { at: at3, part: "day" });
  const [unit, size] = units.toReversed().find(([, s]) => seconds >= s) ?? ["second", 1];
  return /* @__PURE__ */ jsx4("time", { dateTime: at3, title: format.format(new Date(at3)), class: "time", children: unit === "second" ? "just now" : relative.format(-Math.floor(seconds / size), unit) });
}

// src/kept.ts
var most = 5e3;
var lines = [];
function keep(line) {
  if (line.kind !== "operation" || line.at <= (lines.at(-1)?.at ?? "")) return;
  lines.push(line);
  if (lines.length > most + 500) lines = lines.slice(-most);
}
var kept = (since) => lines.filter((l) => Date.parse(l.at) >= since);

// src/route.ts
var about = [{}];
var listeners = /* @__PURE__ */ new Set();
function here() {
  const n = history.state?.about ?? 0;
  return { view: location.hash.slice(1), about: about[n] ?? {} };
}
function go(view, query = {}) {
  about.push(query);
  history.pushState({ about: about.length - 1 }, "", `#${view}`);
  for (const l of listeners) l();
}
function onRoute(listen) {
  const changed = () => {
    if (location.hash !== "#main") listen();
  };
  listeners.add(listen);
  addEventListener("popstate", changed);
  return () => {
    listeners.delete(listen);
    removeEventListener("popstate", changed);
  };
}

// src/slot.ts
import { createContext } from "./preact.js";
import { useContext, useEffect as useEffect2 } from "./preact.js";
var SlotContext = createContext({
  settings: { mode: "read", token: false, views: [] },
  again: () => void 0,
  onLine: () => () => void 0
});
var useSlot = () => useContext(SlotContext);
function useLines(listen) {
  const slot = useSlot();
  useEffect2(() => slot.onLine(listen));
}

// src/views/Ask.tsx
import { useRef as useRef4, useState as useState5 } from "./preact.js";

// src/ask.ts
var nameOf = (s) => [s.run_id, s.persona_id, s.agent_id].filter(Boolean).join(" / ");
var asked = (s) => ({
  run_id: s.run_id,
  persona_id: s.persona_id,
  ...s.agent_id ? { agent_id: s.agent_id } : {}
});
async function scopes(most2) {
  const list = [];
  let next = "";
  do {
    const page = await get(`/v1/scopes?limit=500${next ? `&after=${encodeURIComponent(next)}` : ""}`);
    list.push(...page.scopes);
    next = page.next ?? "";
  } while (next && list.length < most2);
  list.sort((a, b) => nameOf(a.scope).localeCompare(nameOf(b.scope)));
  return { list, more: next !== "" };
}
async function people(q) {
  const list = [];
  let next = "";
  for (let calls2 = 0; calls2 === 0 || next && list.length < 500 && calls2 < 50; calls2++) {
    const page = await post("/v1/scopes/list", { ...q, counts: true, limit: 500 - list.length, ...next ? { after: next } : {} });
    list.push(...page.scopes);
    next = page.next ?? "";
  }
  list.sort((a, b) => (b.last_at ?? "").localeCompare(a.last_at ?? "") || nameOf(a.scope).localeCompare(nameOf(b.scope)));
  return { list, more: next !== "" };
}
async function texts(scope, ids) {
  const found = /* @__PURE__ */ new Map();
  for (let after = 0; ; ) {
    const page = await post("/v1/archive/page", { scope, after, limit: 1e3, ...ids ? { event_ids: ids } : {} });
    for (const e of page.events) if (!found.has(e.event_id)) found.set(e.event_id, e);
    if (!page.more || ids && found.size >= ids.length) return found;
    after = page.last;
  }
}
var choices = () => scopes(500);
async function events(q, limit) {
  const page = await post("/v1/events/list", { ...q, limit });
  for (let calls2 = 1; page.next && page.events.length < limit && calls2 < 50; calls2++) {
    const more = await post("/v1/events/list", { ...q, after: page.next, limit: limit - page.events.length });
    page.events.push(...more.events);
    page.next = more.next;
  }
  return page;
}

// src/parts/Facts.tsx
import { jsx as jsx5 } from "./preact.js";
var empty = (v) => v === void 0 || v === null || v === "" || Array.isArray(v) && v.length === 0;
var Facts = ({ of }) => /* @__PURE__ */ jsx5("dl", { children: of.filter(([, value]) => !empty(value)).map(([name, value]) => [
  /* @__PURE__ */ jsx5("dt", { children: name }),
  /* @__PURE__ */ jsx5("dd", { children: value !== null && typeof value === "object" && !Array.isArray(value) ? value : /* @__PURE__ */ jsx5(Words, { children: Array.isArray(value) ? value.join(", ") : value }) })
]) });

// src/parts/Json.tsx
import { jsx as jsx6 } from "./preact.js";
var Json = ({ of }) => /* @__PURE__ */ jsx6("pre", { dir: "ltr", tabIndex: 0, class: "words", children: JSON.stringify(of, null, 2) });

// src/parts/Loaded.tsx
import { useLayoutEffect, useRef as useRef2, useState as useState2 } from "./preact.js";
import { Fragment, jsx as jsx7, jsxs as jsxs3 } from "./preact.js";
var open2 = 0;
function begin() {
  open2++;
  document.getElementById("main")?.setAttribute("aria-busy", "true");
}
function end() {
  open2--;
  setTimeout(() => {
    if (open2 > 0) return;
    document.getElementById("main")?.removeAttribute("aria-busy");
    performance.mark("shown");
  });
}
function useLoad(load, keys) {
  const [got, set] = useState2(void 0);
  const turn = useRef2(0);
  const ask = async () => {
    const mine = ++turn.current;
    begin();
    try {
      const data = await load();
      if (mine === turn.current) set({ data });
    } catch (error) {
      if (mine === turn.current) set({ error });
    } finally {
      end();
    }
  };
  useLayoutEffect(() => {
    void ask();
    return () => {
      turn.current++;
    };
  }, keys);
  return [got, ask];
}
function Loaded({ got, children }) {
  if (got === void 0) return /* @__PURE__ */ jsxs3("div", { class: "skeleton", "aria-hidden": "true", children: [
    /* @__PURE__ */ jsx7("i", {}),
    /* @__PURE__ */ jsx7("i", {}),
    /* @__PURE__ */ jsx7("i", {})
  ] });
  return /* @__PURE__ */ jsx7(Fragment, { children: "error" in got ? /* @__PURE__ */ jsx7(Failure, { of: got.error }) : children(got.data) });
}

// src/parts/Empty.tsx
import { jsx as jsx8 } from "./preact.js";
var Empty = ({ children }) => /* @__PURE__ */ jsx8("div", { class: "empty", children });

// src/parts/Nothing.tsx
import { jsx as jsx9, jsxs as jsxs4 } from "./preact.js";
var Nothing = () => /* @__PURE__ */ jsxs4(Empty, { children: [
  /* @__PURE__ */ jsx9("p", { children: /* @__PURE__ */ jsx9("strong", { children: "This slot has no scope yet: nothing was recorded." }) }),
  /* @__PURE__ */ jsxs4("p", { children: [
    "An agent records as it talks. ",
    /* @__PURE__ */ jsx9("a", { href: "#people", children: "People" }),
    " takes a conversation that you have as a file, and offers an example."
  ] })
] });

// src/parts/ScopeChoice.tsx
import { jsx as jsx10, jsxs as jsxs5 } from "./preact.js";
function ScopeChoice({ found, value, onChange }) {
  return /* @__PURE__ */ jsxs5("label", { class: "wide", children: [
    `Person (run / id${found.more ? ", the first 500" : ""})`,
    /* @__PURE__ */ jsx10("select", { class: "words", value, onChange: (e) => onChange(e.currentTarget.value), children: found.list.map((s) => /* @__PURE__ */ jsx10("option", { value: nameOf(s.scope), selected: nameOf(s.scope) === value, children: nameOf(s.scope) })) })
  ] });
}
var scopeOf = (found, name) => asked((found.list.find((s) => nameOf(s.scope) === name) ?? found.list[0]).scope);

// src/parts/State.tsx
import { jsx as jsx11 } from "./preact.js";
var classes = {
  ok: "good",
  ready: "good",
  committed: "good",
  pass: "good",
  applied: "good",
  good: "good",
  done: "good",
  serves: "good",
  lost: "bad",
  failed: "bad",
  fail: "bad",
  down: "bad",
  error: "bad",
  bad: "bad"
};
var State = ({ of, children }) => /* @__PURE__ */ jsx11("strong", { class: `state ${classes[of] ?? "wait"}`, children: children ?? of });

// src/parts/Doing.tsx
import { useRef as useRef3, useState as useState3 } from "./preact.js";
import { jsx as jsx12 } from "./preact.js";
function useDoing() {
  const [shown, show] = useState3(null);
  const place = useRef3(null);
  const turn = useRef3(0);
  const start = async (meanwhile, make) => {
    const mine = ++turn.current;
    show(/* @__PURE__ */ jsx12("p", { class: "quiet", children: meanwhile }));
    let came;
    try {
      came = await make();
    } catch (e) {
      came = /* @__PURE__ */ jsx12(Failure, { of: e });
    }
    if (mine !== turn.current) return;
    show(came);
    setTimeout(() => {
      if ((place.current?.getBoundingClientRect().top ?? 0) > 0.8 * innerHeight) place.current?.scrollIntoView();
    });
  };
  return [/* @__PURE__ */ jsx12("div", { role: "status", ref: place, children: shown }), start, () => {
    turn.current++;
    show(null);
  }];
}

// src/wire.ts
var declaredBy = (m) => m.manifest;
function calls(m) {
  const { config_schema: schema, origins } = declaredBy(m);
  return (origins ?? []).some(({ from }) => {
    const key2 = (from ?? "").split("/")[1] ?? "";
    return key2 === "" || schema?.required?.includes(key2) || schema?.properties?.[key2]?.default !== void 0;
  });
}
var alone = (m) => (declaredBy(m).config_schema?.required ?? []).length === 0 && !calls(m);

// src/views/Context.tsx
import { jsx as jsx13 } from "./preact.js";
function Context({ text, evidence }) {
  const bytes = new TextEncoder().encode(text);
  const part = (from, to) => new TextDecoder().decode(bytes.subarray(from, to));
  const ranges = evidence.map((e, i) => ({ start: e.shown?.start ?? 0, end: e.shown?.end ?? 0, i, rank: e.rank })).filter((s) => s.end > s.start).sort((a, b) => a.start - b.start);
  const parts = [];
  let at3 = 0;
  for (const s of ranges) {
    if (s.start < at3 || s.end > bytes.length) continue;
    parts.push(part(at3, s.start), /* @__PURE__ */ jsx13("mark", { class: `e${s.i % 6}`, title: `evidence ${s.rank}`, children: part(s.start, s.end) }));
    at3 = s.end;
  }
  parts.push(part(at3, bytes.length));
  return /* @__PURE__ */ jsx13("pre", { dir: "auto", tabIndex: 0, class: "words", children: parts });
}
var shownText = (context, e) => e.shown ? new TextDecoder().decode(new TextEncoder().encode(context).subarray(e.shown.start, e.shown.end)) : "";

// src/parts/Link.tsx
import { jsx as jsx14 } from "./preact.js";
var Link = ({ to, about: about2, children }) => /* @__PURE__ */ jsx14("a", { href: `#${to}`, onClick: (e) => {
  if (e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  go(to, about2);
}, children });

// src/views/Found.tsx
import { Fragment as Fragment2, jsx as jsx15, jsxs as jsxs6 } from "./preact.js";
var bytesOf = (e) => e.shown ? e.shown.end - e.shown.start : 0;
function Found({ result, scope }) {
  const { evidence, formatted_context: context, trace } = result;
  const all = new TextEncoder().encode(context).length || 1;
  const tokens = (e) => Math.round((trace?.token_count ?? 0) * bytesOf(e) / all);
  const most2 = Math.max(1, ...evidence.map(tokens));
  const [fits2, left2] = [evidence.filter((e) => bytesOf(e) > 0), evidence.filter((e) => bytesOf(e) === 0)];
  const item = (e) => {
    const i = evidence.indexOf(e);
    return /* @__PURE__ */ jsxs6("li", { class: "item", children: [
      /* @__PURE__ */ jsxs6("div", { class: "row", children: [
        /* @__PURE__ */ jsx15("mark", { class: `e${i % 6} rank`, children: String(e.rank) }),
        /* @__PURE__ */ jsx15("span", { class: "grow", children: /* @__PURE__ */ jsx15(Words, { children: e.text || shownText(context, e) || e.native_id }) })
      ] }),
      bytesOf(e) > 0 ? /* @__PURE__ */ jsx15("div", { class: "bar", role: "img", "aria-label": `about ${tokens(e)} tokens`, children: /* @__PURE__ */ jsx15("span", { class: `e${i % 6}`, style: { inlineSize: `${100 * tokens(e) / most2}%` } }) }) : null,
      /* @__PURE__ */ jsxs6("p", { class: "quiet", children: [
        bytesOf(e) > 0 ? `about ${tokens(e)} tokens` : "not in the context",
        e.score === void 0 ? "" : ` · score ${Number(e.score.toPrecision(4))}`,
        e.native_type ? /* @__PURE__ */ jsxs6(Fragment2, { children: [
          " · ",
          /* @__PURE__ */ jsx15(Words, { children: e.native_type })
        ] }) : null,
        e.valid_at || e.created_at ? /* @__PURE__ */ jsxs6(Fragment2, { children: [
          " · ",
          /* @__PURE__ */ jsx15(Time, { at: e.valid_at || e.created_at })
        ] }) : null,
        (e.source_event_ids ?? []).length > 0 ? " · from " : "",
        (e.source_event_ids ?? []).map((id) => [/* @__PURE__ */ jsx15(Link, { to: "people", about: { scope: nameOf(scope), event: id }, children: /* @__PURE__ */ jsx15(Words, { children: id }) }), " "])
      ] })
    ] });
  };
  return /* @__PURE__ */ jsxs6(Fragment2, { children: [
    /* @__PURE__ */ jsx15("ol", { class: "items", "aria-label": "Evidence", children: fits2.map(item) }),
    left2.length === 0 ? null : /* @__PURE__ */ jsxs6("details", { children: [
      /* @__PURE__ */ jsx15("summary", { children: `${left2.length} more were found and did not fit` }),
      /* @__PURE__ */ jsx15("ol", { class: "items", "aria-label": "What did not fit", children: left2.map(item) })
    ] })
  ] });
}

// src/views/Others.tsx
import { useState as useState4 } from "./preact.js";

// src/lines.ts
var lines2 = (context) => context.split("\n").map((l) => l.trim().replace(/^m\d+ (\[[^\]]*\] |[\d:.TZ-]+ )?/, "")).filter((l) => l !== "" && !/^<\/?memory-context/.test(l));

// src/views/Others.tsx
import { Fragment as Fragment3, jsx as jsx16, jsxs as jsxs7 } from "./preact.js";
var mostAsked = 8;
function Others({ result, query, maxTokens, scope, manifest, modules }) {
  const shadows = (manifest.followers ?? []).filter((f) => f.role === "shadow").map((f) => f.provider);
  const filled = !manifest.archive ? [] : modules.filter(alone).flatMap((m) => declaredBy(m).providers.map((p) => p.name)).filter((name) => name !== manifest.provider && name !== "no_memory" && !shadows.includes(name)).sort();
  const names = [...shadows, ...filled];
  const usual = filled.filter((name) => ["bm25", "full_history", "recall"].includes(name));
  const [chosen, choose] = useState4(new Set([...shadows, ...usual.length > 0 ? usual : filled.slice(0, 2)].slice(0, mostAsked)));
  const [said, start] = useDoing();
  const choice = (name) => /* @__PURE__ */ jsxs7("label", { class: "check", children: [
    /* @__PURE__ */ jsx16("input", { type: "checkbox", checked: chosen.has(name), onChange: (e) => {
      const next = new Set(chosen);
      if (e.currentTarget.checked) next.add(name);
      else next.delete(name);
      choose(next);
    } }),
    name
  ] });
  const ask = (e) => {
    e.preventDefault();
    void start("filling the other memories, and asking them", async () => {
      const c = await post("/v1/compare", {
        scope,
        query,
        max_tokens: maxTokens,
        providers: names.filter((name) => chosen.has(name))
      });
      return /* @__PURE__ */ jsx16(Compared, { of: c, result, serving: manifest.provider });
    });
  };
  return /* @__PURE__ */ jsxs7("section", { class: "card", children: [
    /* @__PURE__ */ jsx16("h3", { children: "What would another memory give?" }),
    names.length === 0 ? null : /* @__PURE__ */ jsxs7("form", { onSubmit: ask, class: "others", children: [
      shadows.length === 0 ? null : /* @__PURE__ */ jsxs7("fieldset", { class: "choices", children: [
        /* @__PURE__ */ jsx16("legend", { class: "quiet", children: "Shadows: they get every turn, and are asked with what they have." }),
        shadows.map(choice)
      ] }),
      filled.length === 0 ? null : /* @__PURE__ */ jsxs7("fieldset", { class: "choices", children: [
        /* @__PURE__ */ jsx16("legend", { class: "quiet", children: "Memories that need no server and no model. Each is filled from the archive, with at most 5,000 turns of this person, asked once, and removed." }),
        filled.map(choice)
      ] }),
      /* @__PURE__ */ jsx16("button", { class: "act", disabled: chosen.size === 0 || chosen.size > mostAsked, children: "Ask them, too" }),
      chosen.size > mostAsked ? /* @__PURE__ */ jsx16("small", { children: `at most ${mostAsked} at a time` }) : null
    ] }),
    manifest.archive ? null : /* @__PURE__ */ jsxs7("p", { class: "quiet", children: [
      "Other memories are filled from the archive, which this slot does not keep: start it with ",
      /* @__PURE__ */ jsx16("code", { children: "memhost run --set memory.archive=true" }),
      ", and what is recorded from then on can be compared."
    ] }),
    said
  ] });
}
function Compared({ of: c, result, serving }) {
  const columns = [
    {
      name: serving,
      role: "serves",
      context: result.formatted_context,
      tokens: result.trace?.token_count ?? 0,
      ms: result.trace?.latency_ms
    },
    ...c.answers.map((a) => ({
      name: a.provider,
      role: a.shadow ? "shadow" : "",
      context: a.formatted_context,
      tokens: a.tokens,
      ms: a.latency_ms,
      fill: a.fill_ms,
      error: a.error
    }))
  ];
  const most2 = Math.max(1, ...columns.map((o) => o.tokens));
  const served = new Set(lines2(result.formatted_context));
  const others = new Set(c.answers.flatMap((a) => lines2(a.formatted_context)));
  return /* @__PURE__ */ jsxs7(Fragment3, { children: [
    /* @__PURE__ */ jsx16("p", { class: "quiet", children: (c.answers.every((a) => a.shadow) ? "" : `Each was filled with ${c.events} turns` + (c.left_out > 0 ? `; ${c.left_out} were left out` : "") + ". ") + "Lines that only one side has are marked." }),
    /* @__PURE__ */ jsx16("div", { class: "columns compared", children: columns.map((o, i) => /* @__PURE__ */ jsxs7("section", { children: [
      /* @__PURE__ */ jsxs7("h4", { children: [
        /* @__PURE__ */ jsx16(Words, { children: o.name }),
        o.role ? /* @__PURE__ */ jsx16("span", { class: "badge", children: o.role }) : null
      ] }),
      o.error ? /* @__PURE__ */ jsx16(Failure, { of: o.error }) : /* @__PURE__ */ jsxs7(Fragment3, { children: [
        /* @__PURE__ */ jsx16("div", { class: "bar", role: "img", "aria-label": `${o.tokens} tokens`, children: /* @__PURE__ */ jsx16("span", { class: "e0", style: { inlineSize: `${100 * o.tokens / most2}%` } }) }),
        /* @__PURE__ */ jsx16("p", { class: "quiet", children: `${o.tokens} tokens · ${Number((o.ms ?? 0).toPrecision(3))} ms` + (o.fill === void 0 ? "" : ` · filled in ${Math.round(o.fill)} ms`) }),
        o.context === "" ? /* @__PURE__ */ jsx16("p", { children: "There is no memory for this question." }) : /* @__PURE__ */ jsx16(
          "pre",
          {
            dir: "auto",
            tabIndex: 0,
            class: "words",
            "aria-label": `Context of ${o.name}`,
            children: o.context.split("\n").map((line) => [lines2(line).some((l) => !(i === 0 ? others : served).has(l)) ? /* @__PURE__ */ jsx16("mark", { class: "e2", children: line }) : line, "\n"])
          }
        )
      ] })
    ] }, `${i} ${o.name}`)) })
  ] });
}

// src/parts/Table.tsx
import { jsx as jsx17, jsxs as jsxs8 } from "./preact.js";
function Table({ caption, heads: heads2, rows }) {
  return /* @__PURE__ */ jsx17("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": caption, children: /* @__PURE__ */ jsxs8("table", { children: [
    /* @__PURE__ */ jsx17("thead", { children: /* @__PURE__ */ jsx17("tr", { children: heads2.map((h) => h === "" ? /* @__PURE__ */ jsx17("td", {}) : /* @__PURE__ */ jsx17("th", { scope: "col", children: h })) }) }),
    /* @__PURE__ */ jsx17("tbody", { children: rows.map((row2) => /* @__PURE__ */ jsx17("tr", { children: row2.map((v) => /* @__PURE__ */ jsx17("td", { children: v !== null && typeof v === "object" ? v : /* @__PURE__ */ jsx17(Words, { children: v }) })) })) })
  ] }) });
}

// src/views/Waterfall.tsx
import { jsx as jsx18, jsxs as jsxs9 } from "./preact.js";
function Waterfall({ of }) {
  const total = of.latency_ms || 1;
  const ms = (n) => n === void 0 ? "" : `${n} ms`;
  const io = of.io ?? [];
  return /* @__PURE__ */ jsxs9("div", { children: [
    io.length === 0 ? /* @__PURE__ */ jsx18("p", { children: "The backend was not asked." }) : /* @__PURE__ */ jsx18(
      Table,
      {
        caption: "Native calls",
        heads: ["route", "class", "status", "bytes out / in", "from ms", "ms", `0 to ${total} ms`],
        rows: io.map((c) => [
          c.route,
          c.class,
          c.status,
          `${c.bytes_out} / ${c.bytes_in}`,
          c.start_ms ?? "",
          c.ms,
          /* @__PURE__ */ jsx18(Lane, { call: c, total })
        ])
      }
    ),
    /* @__PURE__ */ jsx18(Facts, { of: [
      ["whole operation", ms(of.latency_ms)],
      ["in the backend", ms(of.backend_ms)],
      ["in the plugin", ms(of.plugin_ms)],
      ["in the host", ms(of.host_ms)]
    ] })
  ] });
}
function Lane({ call: call2, total }) {
  const percent = (ms) => `${Math.min(100, 100 * ms / total)}%`;
  return /* @__PURE__ */ jsx18(
    "div",
    {
      class: "lane",
      role: "img",
      "aria-label": `${call2.route}: ${call2.ms} ms from ${call2.start_ms ?? "an unknown time"} of ${total} ms`,
      children: /* @__PURE__ */ jsx18("span", { class: call2.class, style: { insetInlineStart: percent(call2.start_ms ?? 0), inlineSize: percent(call2.ms) } })
    }
  );
}

// src/views/Ask.tsx
import { Fragment as Fragment4, jsx as jsx19, jsxs as jsxs10 } from "./preact.js";
function Ask({ about: about2 }) {
  const [got] = useLoad(() => Promise.all([
    choices(),
    get("/v1/manifest"),
    get("/v1/modules").catch(() => ({ modules: [] }))
  ]), []);
  return /* @__PURE__ */ jsxs10(Fragment4, { children: [
    /* @__PURE__ */ jsx19("h2", { children: "Ask" }),
    /* @__PURE__ */ jsx19(Loaded, { got, children: ([found, manifest, { modules }]) => found.list.length === 0 ? /* @__PURE__ */ jsx19(Nothing, {}) : /* @__PURE__ */ jsx19(Form, { found, manifest, modules: modules ?? [], about: about2 }) })
  ] });
}
function Form({ found, manifest, modules, about: about2 }) {
  const [chosen, choose] = useState5(about2.scope ?? nameOf(found.list[0].scope));
  const query = useRef4(null);
  const tokens = useRef4(null);
  const [answer, start] = useDoing();
  const submit = (e) => {
    e.preventDefault();
    const scope = scopeOf(found, chosen);
    void start("asking", async () => {
      const asked2 = query.current?.value ?? "";
      const maxTokens = Number(tokens.current?.value);
      const result = await post("/v1/retrieve", { query: asked2, scope, session_id: "page", budget: { max_tokens: maxTokens } });
      return /* @__PURE__ */ jsxs10(Fragment4, { children: [
        /* @__PURE__ */ jsx19(Answer, { result, scope }),
        /* @__PURE__ */ jsx19(Others, { ...{ result, query: asked2, maxTokens, scope, manifest, modules } }, `${asked2} ${maxTokens}`),
        /* @__PURE__ */ jsx19(Technical, { result })
      ] });
    });
  };
  return /* @__PURE__ */ jsxs10(Fragment4, { children: [
    /* @__PURE__ */ jsxs10("p", { class: "lead", children: [
      "What would an agent get? A question from here is a real retrieval, which logs and metrics tell apart by origin: page. ",
      /* @__PURE__ */ jsx19(Costs, { manifest, modules })
    ] }),
    /* @__PURE__ */ jsxs10("form", { onSubmit: submit, class: "card", children: [
      /* @__PURE__ */ jsx19(ScopeChoice, { found, value: chosen, onChange: choose }),
      /* @__PURE__ */ jsxs10("label", { class: "wide", children: [
        "Question",
        /* @__PURE__ */ jsx19("input", { ref: query, required: true, dir: "auto", class: "words", defaultValue: about2.query ?? "What is known about the user?" })
      ] }),
      /* @__PURE__ */ jsxs10("label", { children: [
        "Tokens",
        /* @__PURE__ */ jsx19("input", { ref: tokens, type: "number", min: 1, defaultValue: "1500" })
      ] }),
      /* @__PURE__ */ jsx19("button", { class: "act", children: "Ask" })
    ] }),
    answer
  ] });
}
function Answer({ result, scope }) {
  const t = result.trace;
  return /* @__PURE__ */ jsx19(Fragment4, { children: /* @__PURE__ */ jsxs10("div", { class: "columns", children: [
    /* @__PURE__ */ jsxs10("section", { class: "card", children: [
      /* @__PURE__ */ jsx19("h3", { children: "Context" }),
      result.formatted_context === "" ? /* @__PURE__ */ jsx19("p", { children: "There is no memory for this question." }) : /* @__PURE__ */ jsx19(Context, { text: result.formatted_context, evidence: result.evidence }),
      /* @__PURE__ */ jsx19(Facts, { of: [
        ["tokens", t?.token_count === void 0 ? "" : `${t.token_count}${t.truncated ? ", cut to the budget" : ""}`],
        ["took", t?.latency_ms === void 0 ? "" : `${t.latency_ms} ms`],
        ["complete", t?.consistency ? /* @__PURE__ */ jsx19(State, { of: t.consistency }) : null],
        ["warnings", t?.warnings ?? []]
      ] }),
      result.formatted_context === "" ? null : /* @__PURE__ */ jsx19(Copy, { text: result.formatted_context })
    ] }),
    /* @__PURE__ */ jsxs10("section", { class: "card why", "aria-label": "Why", tabIndex: 0, children: [
      /* @__PURE__ */ jsx19("h3", { children: "Why" }),
      /* @__PURE__ */ jsx19(Found, { result, scope })
    ] })
  ] }) });
}
function Technical({ result }) {
  return /* @__PURE__ */ jsxs10(Fragment4, { children: [
    /* @__PURE__ */ jsxs10("section", { class: "card", children: [
      /* @__PURE__ */ jsx19("h3", { children: "Where the time went" }),
      /* @__PURE__ */ jsx19(Waterfall, { of: result.trace ?? {} })
    ] }),
    /* @__PURE__ */ jsxs10("details", { children: [
      /* @__PURE__ */ jsx19("summary", { children: "Raw: the backend's answers as they came" }),
      /* @__PURE__ */ jsx19(Json, { of: result.raw })
    ] }),
    /* @__PURE__ */ jsxs10("details", { children: [
      /* @__PURE__ */ jsx19("summary", { children: "Trace" }),
      /* @__PURE__ */ jsx19(Json, { of: result.trace })
    ] })
  ] });
}
function Copy({ text }) {
  const [said, say] = useState5("Copy the context");
  return /* @__PURE__ */ jsx19("p", { children: /* @__PURE__ */ jsx19("button", { type: "button", onClick: () => navigator.clipboard.writeText(text).then(
    () => say("Copied"),
    () => say("The browser does not let this page copy")
  ), children: said }) });
}
function Costs({ manifest, modules }) {
  const module = modules.find((m) => m.sha256 === manifest.module.sha256);
  const declared = module && declaredBy(module);
  const calls2 = declared?.model_calls?.filter((c) => c.operation === "retrieve" && meets(manifest.config, c));
  if (calls2?.length === 0 || declared && !calls2 && (declared.origins ?? []).length === 0) {
    return /* @__PURE__ */ jsx19(Fragment4, { children: "A question costs no model call with this provider." });
  }
  if (!calls2) {
    return /* @__PURE__ */ jsx19("strong", { class: "wait", children: `${manifest.provider} asks a backend, which may call a model: a question may cost what an agent's question costs.` });
  }
  const each = calls2.map((c) => `a call of ${c.model === "language" ? "a language" : "an embedding"} model (${c.about})`);
  return /* @__PURE__ */ jsxs10("strong", { class: "wait", children: [
    "A question costs what an agent's question costs: ",
    /* @__PURE__ */ jsx19(Words, { children: each.join("; ") }),
    "."
  ] });
}
function meets(config, { pointer, equals }) {
  if (!pointer) return true;
  const at3 = pointer.slice(1).split("/").reduce((v, k) => v?.[k.replaceAll("~1", "/").replaceAll("~0", "~")], config);
  return at3 !== void 0 && at3 !== null && (equals === void 0 || JSON.stringify(at3) === JSON.stringify(equals));
}

// src/views/Filling.tsx
import { useEffect as useEffect3 } from "./preact.js";
import { jsx as jsx20, jsxs as jsxs11 } from "./preact.js";
var every = 2e3;
function Filling() {
  const [got, again] = useLoad(() => get("/v1/backfill").catch(() => null), []);
  const [said, start] = useDoing();
  const moving = got && "data" in got && got.data && /^(filling|waiting|read_only|not_ready|ready)$/.test(got.data.state);
  useEffect3(() => {
    if (!moving) return void 0;
    const timer = setInterval(() => void again(), every);
    return () => clearInterval(timer);
  }, [moving]);
  const stop = async () => {
    if (!await confirm("Stop the filling?", "What it filled is kept, and starting it again continues it.", "Stop it")) return;
    await start("stopping", async () => {
      await post("/v1/backfill/stop", {});
      await again();
      return /* @__PURE__ */ jsx20("p", { children: "Stopped." });
    });
  };
  const turn = () => start("asking", async () => {
    const b = await post("/v1/backfill/serve", {});
    await again();
    return /* @__PURE__ */ jsx20("p", { children: b.state });
  });
  return /* @__PURE__ */ jsx20(Loaded, { got, children: (b) => !b || b.state === "none" ? null : /* @__PURE__ */ jsxs11("section", { class: "card", children: [
    /* @__PURE__ */ jsxs11("h3", { children: [
      "Filling ",
      /* @__PURE__ */ jsx20(Words, { children: b.provider })
    ] }),
    /* @__PURE__ */ jsx20("progress", { max: Math.max(1, b.progress.events), value: b.progress.done, "aria-label": "events filled" }),
    /* @__PURE__ */ jsx20(Facts, { of: [
      ["state", /* @__PURE__ */ jsx20(State, { of: b.state })],
      ["events", `${b.progress.done} of ${b.progress.events}`],
      ["open", b.progress.open || ""],
      ["left out", b.progress.left_out || ""],
      ["per second", Math.round(b.progress.per_second)],
      ["still takes", b.progress.remaining_ms === void 0 ? "" : `${Math.round(b.progress.remaining_ms / 1e3)} s`],
      ["error", b.progress.error?.message]
    ] }),
    /* @__PURE__ */ jsxs11("p", { class: "buttons", children: [
      b.state === "asks" ? /* @__PURE__ */ jsx20("button", { type: "button", class: "act", onClick: turn, children: "Let it serve" }) : null,
      b.state === "serves" || b.state === "stopped" ? null : /* @__PURE__ */ jsx20("button", { type: "button", onClick: stop, children: "Stop" })
    ] }),
    said
  ] }) });
}

// src/views/Swap.tsx
import { useRef as useRef5, useState as useState6 } from "./preact.js";

// src/parts/SchemaField.tsx
import { jsx as jsx21, jsxs as jsxs12 } from "./preact.js";
function resolved(s, schema) {
  if (!s.$ref?.startsWith("#/")) return s;
  const found = s.$ref.slice(2).split("/").reduce((at3, k) => at3?.[k.replaceAll("~1", "/").replaceAll("~0", "~")], schema);
  return { ...found, ...s };
}
var isSecret = (s) => s.properties?.secret !== void 0 || [...s.anyOf ?? [], ...s.oneOf ?? []].some(isSecret);
var typesOf = (s) => [s.type].flat();
var isNumber = (s) => typesOf(s).some((t) => t === "integer" || t === "number");
var choicesOf = (s) => s.enum ?? (typesOf(s).includes("boolean") ? [true, false] : null);
function valueOf(text, s) {
  if (text.trim() === "") return void 0;
  if (isSecret(s)) return { secret: text.trim() };
  if (choicesOf(s)) return JSON.parse(text);
  if (isNumber(s)) {
    const n = Number(text);
    if (Number.isNaN(n)) throw new Error("want a number");
    return n;
  }
  if (typesOf(s).includes("string")) return text;
  try {
    return JSON.parse(text);
  } catch (e) {
    if (s.type === void 0 && !s.anyOf && !s.oneOf) return text;
    throw new Error("want JSON");
  }
}
function SchemaField({ name, schema: s, required, fault }) {
  const text = s.default === void 0 ? "" : JSON.stringify(s.default);
  const choices2 = isSecret(s) ? null : choicesOf(s);
  const plain2 = isSecret(s) || isNumber(s) || typesOf(s).includes("string");
  const said = `said-${name}`;
  return /* @__PURE__ */ jsxs12("label", { class: "key", children: [
    `${name}${required ? " (required)" : ""}`,
    choices2 ? /* @__PURE__ */ jsxs12("select", { name, required, "aria-describedby": said, children: [
      /* @__PURE__ */ jsx21("option", { value: "", children: text ? `default ${text}` : "" }),
      choices2.map((c) => /* @__PURE__ */ jsx21("option", { value: JSON.stringify(c), children: String(c) }))
    ] }) : /* @__PURE__ */ jsx21(
      "input",
      {
        name,
        required,
        spellcheck: false,
        autoComplete: "off",
        dir: "auto",
        type: !isSecret(s) && isNumber(s) ? "number" : "text",
        step: typesOf(s).includes("number") ? "any" : void 0,
        min: s.minimum,
        max: s.maximum,
        "aria-invalid": fault ? true : void 0,
        "aria-describedby": said,
        placeholder: isSecret(s) ? "name of the secret, never its value" : plain2 ? text : `JSON ${text}`
      }
    ),
    /* @__PURE__ */ jsxs12("small", { id: said, children: [
      fault ? /* @__PURE__ */ jsxs12("strong", { class: "bad", children: [
        /* @__PURE__ */ jsx21(Words, { children: fault }),
        " "
      ] }) : null,
      /* @__PURE__ */ jsx21(Words, { children: s.description ?? s.title ?? "" })
    ] })
  ] });
}
var typed = (form) => Object.fromEntries([...new FormData(form)].map(([name, v]) => [name, typeof v === "string" ? v : ""]));

// src/views/Swap.tsx
import { Fragment as Fragment5, jsx as jsx22, jsxs as jsxs13 } from "./preact.js";
var offersOf = (modules) => modules.flatMap((m) => declaredBy(m).providers.map((p) => ({
  name: p.name,
  kind: p.kind === "control" ? "condition" : "backend",
  backend: calls(m),
  about: [declaredBy(m).description, p.note].filter(Boolean).join(" "),
  schema: declaredBy(m).config_schema ?? {}
}))).toSorted((a, b) => a.name.localeCompare(b.name));
function Swap({ manifest, modules }) {
  const slot = useSlot();
  const offers = offersOf(modules);
  const [name, choose] = useState6(manifest.provider);
  const [given, setGiven] = useState6(false);
  const [faults, setFaults] = useState6({});
  const form = useRef5(null);
  const [said, start] = useDoing();
  const offer = offers.find((o) => o.name === name);
  const required = offer?.schema.required ?? [];
  const keys = Object.entries(offer?.schema.properties ?? {}).map(([key2, s]) => ({ key: key2, s: resolved(s, offer?.schema ?? {}) }));
  const request2 = () => {
    if (!offer || !form.current) return void 0;
    if (!given) return { [offer.kind]: offer.name };
    const fields = typed(form.current);
    const wrong = {};
    const config = {};
    for (const { key: key2, s } of keys) {
      try {
        const value = valueOf(fields[key2] ?? "", s);
        if (value !== void 0) config[key2] = value;
        else if (required.includes(key2)) wrong[key2] = "is required";
      } catch (e) {
        wrong[key2] = e.message;
      }
    }
    setFaults(wrong);
    return Object.keys(wrong).length > 0 ? void 0 : { [offer.kind]: offer.name, config };
  };
  const told = (e) => {
    const message = e.message;
    const key2 = keys.find(({ key: key3 }) => new RegExp(`(^|[^a-z_])${key3}([^a-z_]|$)`).test(message))?.key;
    if (key2 && given) setFaults({ [key2]: message });
    throw e;
  };
  const attempt = () => {
    const q = request2();
    if (q) void start("loading the module", async () => /* @__PURE__ */ jsx22(Plan, { of: await post("/v1/backfill/plan", q).catch(told) }));
  };
  const change = async () => {
    const q = request2();
    if (!q || !await confirm("Exchange the provider?", `${manifest.provider} is replaced by ${name}. Calls under way end first; when a step fails, ${manifest.provider} keeps serving. What was recorded before is not carried over.`, "Exchange it")) return;
    await start("working", async () => {
      const m = await post("/v1/swap", q).catch(told);
      return /* @__PURE__ */ jsxs13(Fragment5, { children: [
        /* @__PURE__ */ jsx22("p", { children: `${m.provider} serves.` }),
        /* @__PURE__ */ jsx22("button", { type: "button", onClick: slot.again, children: "Show what holds now" })
      ] });
    });
  };
  const fill = async () => {
    const q = request2();
    if (!q || !await confirm("Fill it first, then let it serve?", `${name} is filled from the archive while ${manifest.provider} serves, and serves once it has everything.`, "Fill it")) return;
    await start("working", async () => {
      const b = await post("/v1/backfill", q).catch(told);
      return /* @__PURE__ */ jsxs13(Fragment5, { children: [
        /* @__PURE__ */ jsx22("p", { children: `${b.provider}: ${b.state}` }),
        /* @__PURE__ */ jsx22("button", { type: "button", onClick: slot.again, children: "Show how far it is" })
      ] });
    });
  };
  return /* @__PURE__ */ jsxs13("section", { class: "card", children: [
    /* @__PURE__ */ jsx22("h3", { children: "Provider" }),
    /* @__PURE__ */ jsxs13("fieldset", { class: "offers", children: [
      /* @__PURE__ */ jsx22("legend", { class: "quiet", children: `${manifest.provider} serves` }),
      offers.map((o) => /* @__PURE__ */ jsxs13("label", { class: "offer", children: [
        /* @__PURE__ */ jsx22(
          "input",
          {
            type: "radio",
            name: "provider",
            value: o.name,
            checked: o.name === name,
            onChange: () => {
              choose(o.name);
              setFaults({});
            }
          }
        ),
        /* @__PURE__ */ jsxs13("span", { children: [
          /* @__PURE__ */ jsx22("b", { children: o.name }),
          " ",
          /* @__PURE__ */ jsx22("span", { class: "badge", children: o.backend ? "asks a backend" : "runs here" }),
          /* @__PURE__ */ jsx22("br", {}),
          /* @__PURE__ */ jsx22("small", { children: /* @__PURE__ */ jsx22(Words, { children: o.about }) })
        ] })
      ] }))
    ] }),
    /* @__PURE__ */ jsxs13("form", { ref: form, onSubmit: (e) => {
      e.preventDefault();
      void change();
    }, children: [
      /* @__PURE__ */ jsxs13("label", { class: "check", children: [
        /* @__PURE__ */ jsx22("input", { type: "checkbox", checked: given, onChange: (e) => setGiven(e.currentTarget.checked) }),
        "Give a configuration here, in place of the slot's own"
      ] }),
      given ? keys.map(({ key: key2, s }) => /* @__PURE__ */ jsx22(SchemaField, { name: key2, schema: s, required: required.includes(key2), fault: faults[key2] })) : null,
      /* @__PURE__ */ jsxs13("p", { class: "buttons", children: [
        /* @__PURE__ */ jsx22("button", { type: "button", onClick: attempt, children: "Try it" }),
        /* @__PURE__ */ jsx22("button", { class: "act", children: "Exchange" }),
        manifest.archive ? /* @__PURE__ */ jsx22("button", { type: "button", onClick: fill, children: "Fill it first" }) : null
      ] })
    ] }, name),
    said
  ] });
}
var Plan = ({ of: p }) => /* @__PURE__ */ jsx22(Facts, { of: [
  ["loads", `${p.provider} can be loaded with this configuration`],
  ["events", p.events],
  ["scopes", p.scopes],
  ["tokens", `${p.tokens} (${p.tokenizer})`],
  ["native calls", p.native_calls],
  ["oldest", /* @__PURE__ */ jsx22(Time, { at: p.oldest })],
  ["newest", /* @__PURE__ */ jsx22(Time, { at: p.newest })],
  ["notes", p.notes]
] });

// src/views/Change.tsx
import { Fragment as Fragment6, jsx as jsx23, jsxs as jsxs14 } from "./preact.js";
function Change() {
  const slot = useSlot();
  const [got] = useLoad(() => Promise.all([
    get("/v1/manifest"),
    get("/v1/mode"),
    get("/v1/modules").catch(() => ({ modules: [] }))
  ]), []);
  return /* @__PURE__ */ jsxs14(Fragment6, { children: [
    /* @__PURE__ */ jsx23("h2", { children: "Change" }),
    /* @__PURE__ */ jsx23(Loaded, { got, children: ([manifest, mode, { modules }]) => slot.settings.mode !== "on" ? /* @__PURE__ */ jsxs14(Empty, { children: [
      /* @__PURE__ */ jsx23("p", { children: "This page was started to read only: it offers no changes." }),
      /* @__PURE__ */ jsxs14("p", { children: [
        /* @__PURE__ */ jsx23("code", { children: "server.page: on" }),
        " offers them."
      ] })
    ] }) : /* @__PURE__ */ jsxs14(Fragment6, { children: [
      /* @__PURE__ */ jsx23(Wall, { mode }),
      /* @__PURE__ */ jsx23(Swap, { manifest, modules: modules ?? [] }),
      /* @__PURE__ */ jsx23(Filling, {})
    ] }) })
  ] });
}
function Wall({ mode }) {
  const slot = useSlot();
  const [said, start] = useDoing();
  const raise = !mode.read_only;
  const change = async () => {
    if (!await confirm(raise ? "Make the slot read-only?" : "Make the slot writable?", raise ? "Events are answered with skipped_read_only and are not kept until the slot is writable again." : "Events reach the provider again.", raise ? "Make it read-only" : "Make it writable")) return;
    await start("working", async () => {
      const m = await call("PUT", "/v1/mode", { read_only: raise, reason: raise ? "from the page" : "" });
      return /* @__PURE__ */ jsxs14(Fragment6, { children: [
        /* @__PURE__ */ jsx23("p", { children: m.read_only ? "The slot is read-only." : "The slot is writable." }),
        /* @__PURE__ */ jsx23("button", { type: "button", onClick: slot.again, children: "Show what holds now" })
      ] });
    });
  };
  return /* @__PURE__ */ jsxs14("section", { class: "card mode", children: [
    /* @__PURE__ */ jsx23("h3", { children: mode.read_only ? "The slot is read-only" : "The slot is writable" }),
    /* @__PURE__ */ jsx23("p", { class: "quiet grow", children: mode.read_only ? "Questions are answered, and nothing is kept until it is writable again." : "Every turn reaches the provider. Read-only keeps the memory as it is." }),
    /* @__PURE__ */ jsx23("p", { children: /* @__PURE__ */ jsx23("button", { type: "button", onClick: change, children: raise ? "Make read-only" : "Make writable" }) }),
    said
  ] });
}

// src/views/Live.tsx
import { useEffect as useEffect4, useRef as useRef6, useState as useState8 } from "./preact.js";

// src/views/Latency.tsx
import { Fragment as Fragment7, jsx as jsx24, jsxs as jsxs15 } from "./preact.js";
var [height, left, below] = [180, 44, 18];
var minute = 6e4;
var quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
function Latency({ lines: lines3, now }) {
  const width = Math.max(320, Math.min(1500, innerWidth - 84));
  const last = Math.floor(now / minute);
  const minutes = /* @__PURE__ */ new Map();
  for (const l of lines3) {
    const m = Math.floor(Date.parse(l.at) / minute);
    if (l.latency_ms !== void 0 && m > last - 60) minutes.set(m, [...minutes.get(m) ?? [], l.latency_ms]);
  }
  const points = [...minutes].map(([m, ms]) => {
    const sorted = ms.toSorted((a, b) => a - b);
    return { m, n: ms.length, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
  }).toSorted((a, b) => a.m - b.m);
  if (points.length === 0) return /* @__PURE__ */ jsx24("p", { class: "quiet", children: "Nothing ended in the last hour." });
  const most2 = Math.max(...points.map((p) => p.p99)) || 1;
  const x = (m) => left + (m - last + 59) / 59 * (width - left - 4);
  const y = (ms) => height - below - ms / most2 * (height - below - 8);
  const path = (of) => points.map((p, i) => `${i === 0 ? "M" : "L"}${x(p.m).toFixed(1)} ${y(p[of]).toFixed(1)}`).join(" ");
  const told = points.at(-1);
  return /* @__PURE__ */ jsxs15("figure", { class: "plot", children: [
    /* @__PURE__ */ jsxs15(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        role: "img",
        "aria-label": `Latency by minute. Last: p50 ${told?.p50} ms, p99 ${told?.p99} ms of ${told?.n} operations.`,
        children: [
          [0, 0.5, 1].map((part) => [
            /* @__PURE__ */ jsx24("line", { x1: left, x2: width - 4, y1: y(part * most2), y2: y(part * most2), class: "grid" }),
            /* @__PURE__ */ jsx24("text", { x: left - 6, y: y(part * most2) + 4, "text-anchor": "end", children: Number((part * most2).toPrecision(2)) })
          ]),
          /* @__PURE__ */ jsx24("text", { x: left, y: height - 3, children: "an hour ago" }),
          /* @__PURE__ */ jsx24("text", { x: width - 4, y: height - 3, "text-anchor": "end", children: "now" }),
          /* @__PURE__ */ jsx24("path", { d: path("p99"), class: "p99" }),
          /* @__PURE__ */ jsx24("path", { d: path("p50"), class: "p50" }),
          points.map((p) => [
            /* @__PURE__ */ jsx24("circle", { cx: x(p.m), cy: y(p.p99), r: 2.5, class: "p99" }),
            /* @__PURE__ */ jsx24("circle", { cx: x(p.m), cy: y(p.p50), r: 2.5, class: "p50" })
          ])
        ]
      }
    ),
    /* @__PURE__ */ jsxs15("figcaption", { class: "quiet", children: [
      /* @__PURE__ */ jsx24("span", { class: "key p50", children: "p50" }),
      " ",
      /* @__PURE__ */ jsx24("span", { class: "key p99", children: "p99" }),
      " in ms by minute, of ",
      lines3.length,
      " operations",
      lines3.length < 2e3 ? "" : /* @__PURE__ */ jsxs15(Fragment7, { children: [
        " since ",
        /* @__PURE__ */ jsx24(Time, { at: lines3[0].at })
      ] })
    ] })
  ] });
}

// src/views/Operations.tsx
import { useState as useState7 } from "./preact.js";
import { Fragment as Fragment8, jsx as jsx25, jsxs as jsxs16 } from "./preact.js";
function Operations({ of }) {
  const [chosen, choose] = useState7(null);
  if (of.length === 0) return /* @__PURE__ */ jsx25("p", { class: "quiet", children: "None yet: each is shown here as it ends." });
  const most2 = Math.max(...of.map((l) => l.latency_ms ?? 0)) || 1;
  return /* @__PURE__ */ jsx25(Fragment8, { children: /* @__PURE__ */ jsx25("ul", { class: "operations", children: of.map((l) => /* @__PURE__ */ jsxs16("li", { children: [
    /* @__PURE__ */ jsxs16("button", { type: "button", class: "row plain", "aria-pressed": l === chosen, onClick: () => choose(l === chosen ? null : l), children: [
      /* @__PURE__ */ jsx25(Time, { at: l.at }),
      /* @__PURE__ */ jsxs16("span", { class: "grow", children: [
        l.operation,
        l.origin ? /* @__PURE__ */ jsx25("span", { class: "badge", children: l.origin }) : null
      ] }),
      l.code ? /* @__PURE__ */ jsx25(State, { of: "error", children: l.code }) : null,
      /* @__PURE__ */ jsx25("span", { class: "spark", "aria-hidden": "true", children: /* @__PURE__ */ jsx25("span", { style: { inlineSize: `${100 * (l.latency_ms ?? 0) / most2}%` } }) }),
      /* @__PURE__ */ jsxs16("span", { class: "number", children: [
        l.latency_ms,
        " ms"
      ] })
    ] }),
    l === chosen ? /* @__PURE__ */ jsxs16("section", { class: "inside", children: [
      /* @__PURE__ */ jsx25("h3", { children: `Where the ${l.latency_ms} ms of ${l.operation} went` }),
      /* @__PURE__ */ jsx25(Layers, { of: l }),
      /* @__PURE__ */ jsx25(Waterfall, { of: { ...l, host_ms: void 0 } })
    ] }) : null
  ] }, `${l.at} ${l.operation}`)) }) });
}
function Layers({ of }) {
  const [all, backend, plugin] = [of.latency_ms ?? 0, of.backend_ms ?? 0, of.plugin_ms ?? 0];
  const layers = [["host", Math.max(0, all - backend - plugin)], ["plugin", plugin], ["backend", backend]];
  return /* @__PURE__ */ jsx25("div", { class: "layers", role: "img", "aria-label": layers.map(([name, ms]) => `${name} ${ms.toFixed(2)} ms`).join(", "), children: layers.filter(([, ms]) => ms > 0).map(([name, ms], i) => /* @__PURE__ */ jsx25(
    "span",
    {
      class: `e${i}`,
      style: { flexGrow: ms / (all || 1) },
      title: `${name} ${ms.toFixed(2)} ms`,
      children: name
    }
  )) });
}

// src/views/Steps.tsx
import { jsx as jsx26, jsxs as jsxs17 } from "./preact.js";
var Steps = ({ of, nth }) => /* @__PURE__ */ jsx26("ol", { class: "steps", children: of.map((s, i) => /* @__PURE__ */ jsxs17("li", { children: [
  /* @__PURE__ */ jsx26(State, { of: s.verdict }),
  " ",
  /* @__PURE__ */ jsx26(Words, { children: s.name }),
  ` ${s.ms} ms `,
  s.detail ? /* @__PURE__ */ jsx26("small", { children: /* @__PURE__ */ jsx26(Words, { children: s.detail }) }) : null
] }, `${nth} ${i}`)) });

// src/views/Live.tsx
import { Fragment as Fragment9, jsx as jsx27, jsxs as jsxs18 } from "./preact.js";
function Live() {
  const [got] = useLoad(() => Promise.all([get("/v1/manifest"), get("/v1/mode"), choices()]), []);
  return /* @__PURE__ */ jsx27(Loaded, { got, children: ([manifest, mode, found]) => /* @__PURE__ */ jsx27(Seen, { manifest, mode, found }) });
}
var shownOperations = 20;
function Seen({ manifest, mode, found }) {
  const slot = useSlot();
  const [steps, setSteps] = useState8({ nth: 0, list: manifest.steps });
  const [health, askHealth] = useLoad(() => get("/v1/health"), []);
  const [now, setNow] = useState8(Date.now());
  const soon = useRef6(0);
  const swapping = useRef6(false);
  useEffect4(() => {
    const every3 = setInterval(() => setNow(Date.now()), 15e3);
    return () => {
      clearInterval(every3);
      clearTimeout(soon.current);
    };
  }, []);
  useLines((line) => {
    if (line.kind !== "step" || !line.step) {
      soon.current ||= window.setTimeout(() => {
        soon.current = 0;
        setNow(Date.now());
      }, 500);
      return;
    }
    const step = line.step;
    const first = !swapping.current;
    setSteps(({ nth, list }) => first ? { nth: nth + 1, list: [step] } : { nth, list: [...list, step] });
    swapping.current = step.name !== "serve" && step.verdict !== "fail";
    if (step.name === "serve" && step.verdict === "pass") setTimeout(slot.again, 500);
  });
  const lines3 = kept(now - 36e5);
  const errors = lines3.filter((l) => l.code).length;
  const open4 = found.list.filter((s) => s.queued + s.pending + s.lost > 0);
  const sum = (of) => open4.reduce((n, s) => n + of(s), 0);
  return /* @__PURE__ */ jsxs18(Fragment9, { children: [
    /* @__PURE__ */ jsxs18("ul", { class: "tiles", children: [
      /* @__PURE__ */ jsx27(Tile, { name: "serves", value: /* @__PURE__ */ jsx27(Words, { children: manifest.provider }) }),
      /* @__PURE__ */ jsx27(Tile, { name: "mode", value: mode.read_only ? "read-only" : "writable" }),
      /* @__PURE__ */ jsx27(Tile, { name: "operations", value: String(lines3.length) }),
      /* @__PURE__ */ jsx27(Tile, { name: "errors", value: String(errors), bad: errors > 0 }),
      /* @__PURE__ */ jsx27(Tile, { name: "queued", value: String(sum((s) => s.queued)) }),
      /* @__PURE__ */ jsx27(Tile, { name: "pending", value: String(sum((s) => s.pending)) }),
      /* @__PURE__ */ jsx27(Tile, { name: "lost", value: String(sum((s) => s.lost)), bad: sum((s) => s.lost) > 0 })
    ] }),
    /* @__PURE__ */ jsxs18("section", { class: "card", children: [
      /* @__PURE__ */ jsx27("h2", { children: "Latency" }),
      /* @__PURE__ */ jsx27(Latency, { lines: lines3, now })
    ] }),
    /* @__PURE__ */ jsxs18("section", { class: "card", children: [
      /* @__PURE__ */ jsx27("h2", { children: "Operations" }),
      /* @__PURE__ */ jsx27(Operations, { of: lines3.slice(-shownOperations).toReversed() })
    ] }),
    /* @__PURE__ */ jsxs18("section", { class: "card", children: [
      /* @__PURE__ */ jsx27("h2", { children: "What is open" }),
      /* @__PURE__ */ jsx27(Open, { list: open4 }),
      /* @__PURE__ */ jsxs18("p", { class: "quiet", children: [
        `${found.list.length}${found.more ? " or more" : ""} scopes. `,
        /* @__PURE__ */ jsx27(Link, { to: "turns", children: "Their turns" })
      ] })
    ] }),
    /* @__PURE__ */ jsxs18("div", { class: "columns", children: [
      /* @__PURE__ */ jsxs18("section", { class: "card", children: [
        /* @__PURE__ */ jsx27("h2", { children: "Serving" }),
        /* @__PURE__ */ jsx27(Facts, { of: [
          ["provider", manifest.provider],
          ["kind", manifest.condition_kind],
          ["module", `${manifest.module.name} ${manifest.module.version}`],
          ["sha256", manifest.module.sha256],
          ["since", /* @__PURE__ */ jsx27(Time, { at: manifest.serving_since })],
          ["load", manifest.load_generation],
          ["tokenizer", manifest.tokenizer],
          ["mode", mode.read_only ? "read-only" : "writable"],
          ["capabilities", manifest.capabilities.capabilities],
          ["warnings", manifest.warnings ?? []]
        ] })
      ] }),
      /* @__PURE__ */ jsxs18("section", { class: "card", children: [
        /* @__PURE__ */ jsx27("h2", { children: "Backend" }),
        /* @__PURE__ */ jsx27(Loaded, { got: health, children: (h) => /* @__PURE__ */ jsx27(Facts, { of: [
          ["status", /* @__PURE__ */ jsx27(State, { of: h.status })],
          ["backend", h.backend_name],
          ["version", h.backend_version],
          ["isolation", h.isolation],
          ["consistency", h.consistency_model],
          ["answered in", `${h.latency_ms} ms`],
          ["warnings", h.warnings]
        ] }) }),
        /* @__PURE__ */ jsx27("p", { children: /* @__PURE__ */ jsx27("button", { type: "button", onClick: askHealth, children: "Ask again" }) }),
        /* @__PURE__ */ jsx27("h2", { children: "Steps" }),
        /* @__PURE__ */ jsx27(Steps, { of: steps.list, nth: steps.nth })
      ] })
    ] })
  ] });
}
var Tile = ({ name, value, bad }) => /* @__PURE__ */ jsxs18("li", { class: "tile", children: [
  /* @__PURE__ */ jsx27("span", { class: "quiet", children: name }),
  /* @__PURE__ */ jsx27("b", { class: bad ? "bad" : "", children: value })
] });
function Open({ list }) {
  const [said, start] = useDoing();
  const settle = (scope) => start("asking the backend", async () => {
    const r = await post("/v1/readiness", { scope: asked(scope), timeout_ms: 0 });
    const ids = Object.entries(r.event_ids).map(([name, of]) => [name, of.slice(0, 20)]);
    return /* @__PURE__ */ jsxs18(Fragment9, { children: [
      /* @__PURE__ */ jsxs18("p", { children: [
        /* @__PURE__ */ jsx27(Words, { children: nameOf(scope) }),
        ": ",
        /* @__PURE__ */ jsx27(State, { of: r.status }),
        ` by ${r.method}`
      ] }),
      /* @__PURE__ */ jsx27(Facts, { of: ids })
    ] });
  });
  if (list.length === 0) return /* @__PURE__ */ jsx27("p", { children: "Every event of every scope is settled." });
  return /* @__PURE__ */ jsxs18(Fragment9, { children: [
    /* @__PURE__ */ jsx27(Table, { caption: "Scopes with open events", heads: ["scope", "queued", "pending", "lost", ""], rows: list.map((s) => [nameOf(s.scope), s.queued, s.pending, s.lost, /* @__PURE__ */ jsx27("button", { type: "button", onClick: () => settle(s.scope), children: "Look now" })]) }),
    said
  ] });
}

// src/views/Modules.tsx
import { useState as useState10 } from "./preact.js";

// src/views/Yaml.tsx
import { useRef as useRef7, useState as useState9 } from "./preact.js";
import { jsx as jsx28, jsxs as jsxs19 } from "./preact.js";
function Yaml({ of }) {
  const [given, setGiven] = useState9({});
  const form = useRef7(null);
  const schema = of.config_schema ?? {};
  const keys = Object.entries(schema.properties ?? {}).map(([name, s]) => ({
    name,
    schema: resolved(s, schema),
    required: (schema.required ?? []).includes(name)
  }));
  return /* @__PURE__ */ jsxs19("section", { class: "card", children: [
    /* @__PURE__ */ jsxs19("form", { ref: form, onInput: () => form.current && setGiven(typed(form.current)), onSubmit: (e) => e.preventDefault(), children: [
      /* @__PURE__ */ jsxs19("label", { children: [
        "Provider",
        /* @__PURE__ */ jsx28("select", { name: " provider", children: of.providers.map((p) => /* @__PURE__ */ jsx28("option", { value: p.name, children: p.name })) })
      ] }),
      keys.map((k) => /* @__PURE__ */ jsx28(SchemaField, { name: k.name, schema: k.schema, required: k.required }))
    ] }),
    /* @__PURE__ */ jsx28("p", { children: "For memhost.yaml. Keys that are empty have their default:" }),
    /* @__PURE__ */ jsx28("pre", { tabIndex: 0, "aria-label": "YAML", children: yaml(of, keys, given) })
  ] });
}
function yaml(of, keys, given) {
  const typedIn = (name) => (given[name] ?? "").trim();
  const chosen = of.providers.find((p) => p.name === given[" provider"]) ?? of.providers[0];
  const word = chosen.kind === "control" ? "condition" : "backend";
  const line = ({ name, schema, required }) => {
    const text = typedIn(name);
    if (text === "") return required ? `${name}: # to fill in` : "";
    if (isSecret(schema)) return `${name}: {secret: ${JSON.stringify(text)}}`;
    try {
      return `${name}: ${JSON.stringify(valueOf(text, schema))}`;
    } catch (e) {
      return `${name}: ${JSON.stringify(text)} # ${e.message}`;
    }
  };
  const originOf = (key2) => {
    const secret = (of.secrets ?? []).find((d) => d.from === `/${key2}`);
    const origin = (of.origins ?? []).find((o) => o.name === secret?.origin);
    const from = keys.find((k) => origin?.from === `/${k.name}`);
    return from && (typedIn(from.name) || (typeof from.schema.default === "string" ? from.schema.default : "")) || "URL";
  };
  const lines3 = keys.map(line).filter(Boolean);
  const secrets = keys.filter((k) => isSecret(k.schema) && typedIn(k.name) !== "").map((k) => `  ${JSON.stringify(typedIn(k.name))}: {env: ${typedIn(k.name).toUpperCase().replace(/[^A-Z0-9]/g, "_")}, origin: ${JSON.stringify(originOf(k.name))}}`);
  return [
    `memory:`,
    `  ${word}: ${chosen.name}`,
    `  ${word}s:`,
    `    ${chosen.name}:${lines3.length === 0 ? " {}" : ""}`,
    ...lines3.map((l) => `      ${l}`),
    ...secrets.length === 0 ? [] : ["secrets:", ...secrets]
  ].join("\n") + "\n";
}

// src/views/Modules.tsx
import { Fragment as Fragment10, jsx as jsx29, jsxs as jsxs20 } from "./preact.js";
function Modules() {
  const [got] = useLoad(() => Promise.all([
    get("/v1/manifest"),
    get("/v1/modules").catch((e) => e)
  ]), []);
  return /* @__PURE__ */ jsxs20(Fragment10, { children: [
    /* @__PURE__ */ jsx29("h2", { children: "Modules" }),
    /* @__PURE__ */ jsx29(Loaded, { got, children: ([manifest, listed]) => /* @__PURE__ */ jsxs20(Fragment10, { children: [
      listed instanceof Error ? /* @__PURE__ */ jsx29(Failure, { of: listed }) : /* @__PURE__ */ jsx29(Choose, { of: listed.modules ?? [], serving: manifest.module.sha256 }),
      /* @__PURE__ */ jsx29("h2", { children: "Configuration in effect" }),
      /* @__PURE__ */ jsx29(Json, { of: manifest.config }),
      /* @__PURE__ */ jsxs20("details", { children: [
        /* @__PURE__ */ jsx29("summary", { children: "The whole run manifest" }),
        /* @__PURE__ */ jsx29(Json, { of: { ...manifest, scopes: void 0 } })
      ] })
    ] }) })
  ] });
}
function Choose({ of, serving }) {
  const [chosen, choose] = useState10(0);
  const serves = (m) => m.sha256 === serving ? 1 : 0;
  const all = of.toSorted((a, b) => serves(b) - serves(a) || a.name.localeCompare(b.name));
  return /* @__PURE__ */ jsxs20(Fragment10, { children: [
    /* @__PURE__ */ jsx29("form", { onSubmit: (e) => e.preventDefault(), children: /* @__PURE__ */ jsxs20("label", { class: "wide", children: [
      "Module",
      /* @__PURE__ */ jsx29("select", { value: String(chosen), onChange: (e) => choose(e.currentTarget.selectedIndex), children: all.map((m, i) => /* @__PURE__ */ jsx29("option", { value: String(i), children: `${m.name} ${m.version}${serves(m) ? " (serves)" : ""}` })) })
    ] }) }),
    all[chosen] ? /* @__PURE__ */ jsx29(Shown, { of: all[chosen] }, chosen) : null
  ] });
}
var params = (d) => {
  const schema = d.schema;
  return schema ? Object.keys(schema.properties ?? {}).map((n) => (schema.required ?? []).includes(n) ? n : `${n}?`).join(", ") : d.params ?? "";
};
var named = (list) => (list ?? []).map((d) => [d.name, params(d), d.about ?? ""]);
function Shown({ of: m }) {
  const f = declaredBy(m);
  return /* @__PURE__ */ jsxs20(Fragment10, { children: [
    /* @__PURE__ */ jsx29("p", { class: "lead", children: /* @__PURE__ */ jsx29(Words, { children: f.description ?? "" }) }),
    /* @__PURE__ */ jsx29("section", { class: "card", children: /* @__PURE__ */ jsx29(Facts, { of: [
      ["module", `${m.name} ${m.version}`],
      ["sha256", m.sha256],
      ["bytes", m.bytes],
      ["interface", f.abi],
      ["engine", m.engine],
      ["powers", m.powers],
      ["operations", m.operations],
      ["capabilities", m.capabilities],
      ["warnings", m.warnings ?? []]
    ] }) }),
    /* @__PURE__ */ jsx29(Some, { title: "Providers", heads: ["name", "kind", "note"], rows: f.providers.map((p) => [p.name, p.kind, p.note ?? ""]) }),
    /* @__PURE__ */ jsx29(
      Some,
      {
        title: "Routes: all that the module can send",
        heads: ["name", "class", "origin", "call"],
        rows: (f.routes ?? []).map((r) => [r.name, r.class, r.origin, r.statement ?? `${r.method} ${r.path}`])
      }
    ),
    /* @__PURE__ */ jsx29(Some, { title: "Native queries", heads: ["name", "parameters", "what it is"], rows: named(f.native_queries) }),
    /* @__PURE__ */ jsx29(Some, { title: "Native mutations", heads: ["name", "parameters", "what it is"], rows: named(f.native_mutations) }),
    /* @__PURE__ */ jsx29("h2", { children: "Configure it" }),
    /* @__PURE__ */ jsx29(Yaml, { of: f }),
    /* @__PURE__ */ jsxs20("details", { children: [
      /* @__PURE__ */ jsx29("summary", { children: "Schema of the configuration" }),
      /* @__PURE__ */ jsx29(Json, { of: f.config_schema })
    ] })
  ] });
}
var Some = ({ title, heads: heads2, rows }) => rows.length === 0 ? null : /* @__PURE__ */ jsxs20("section", { class: "card", children: [
  /* @__PURE__ */ jsx29("h3", { children: title }),
  /* @__PURE__ */ jsx29(Table, { caption: title, heads: heads2, rows })
] });

// src/views/Provider.tsx
import { useState as useState11 } from "./preact.js";

// src/views/Answered.tsx
import { Fragment as Fragment11, jsx as jsx30, jsxs as jsxs21 } from "./preact.js";
var at2 = (v, pointer) => (pointer ?? "").split("/").slice(1).reduce((o, k) => o !== null && typeof o === "object" ? o[k.replaceAll("~1", "/").replaceAll("~0", "~")] : void 0, v);
var plain = (v) => v === void 0 || v === null || v === false ? "" : v === true ? "*" : typeof v === "object" ? JSON.stringify(v) : String(v);
var cut = (text, n) => n ? [...text].slice(0, n).join("") : text;
function Answered({ show, of }) {
  const part = show ? at2(of, show.at) : void 0;
  if (show?.as === "text" && typeof part === "string") return /* @__PURE__ */ jsx30("pre", { dir: "auto", tabIndex: 0, class: "words", children: part });
  const rows = Array.isArray(part) ? part : part !== null && typeof part === "object" ? [part] : void 0;
  if (show?.as !== "table" || !rows) return /* @__PURE__ */ jsx30(Json, { of });
  if (rows.length === 0) return /* @__PURE__ */ jsx30("p", { children: "There is nothing." });
  const under = show.below ?? [];
  const below2 = (row2) => under.flatMap((p) => [at2(row2, p)].flat()).map((v) => plain(v?.text ?? v)).filter(Boolean).join("\n");
  const next = show.next ? at2(of, show.next) : void 0;
  return /* @__PURE__ */ jsxs21(Fragment11, { children: [
    /* @__PURE__ */ jsx30(
      Table,
      {
        caption: "Answer",
        heads: [...(show.columns ?? []).map((c) => c.title), ...under.length > 0 ? [""] : []],
        rows: rows.map((row2) => [
          ...(show.columns ?? []).map((c) => cut(plain(at2(row2, c.at)), c.cut)),
          ...under.length > 0 ? [/* @__PURE__ */ jsx30("pre", { dir: "auto", class: "words", children: below2(row2) })] : []
        ])
      }
    ),
    next ? /* @__PURE__ */ jsxs21("p", { children: [
      "There is more: after ",
      /* @__PURE__ */ jsx30(Words, { children: next })
    ] }) : null
  ] });
}

// src/views/Provider.tsx
import { Fragment as Fragment12, jsx as jsx31, jsxs as jsxs22 } from "./preact.js";
var declares = (c, mode) => (c.native_queries ?? []).length > 0 || mode === "on" && (c.native_mutations ?? []).length > 0;
function Provider() {
  const [got] = useLoad(() => Promise.all([choices(), get("/v1/capabilities")]), []);
  return /* @__PURE__ */ jsxs22(Fragment12, { children: [
    /* @__PURE__ */ jsx31("h2", { children: "Provider" }),
    /* @__PURE__ */ jsx31(Loaded, { got, children: ([found, c]) => found.list.length === 0 ? /* @__PURE__ */ jsx31(Nothing, {}) : /* @__PURE__ */ jsx31(Choose2, { found, of: c }) })
  ] });
}
function Choose2({ found, of }) {
  const slot = useSlot();
  const [name, setName] = useState11(nameOf(found.list[0].scope));
  const [chosen, choose] = useState11(0);
  const all = [
    ...(of.native_queries ?? []).map((d) => ({ d, change: false })),
    ...(slot.settings.mode === "on" ? of.native_mutations ?? [] : []).map((d) => ({ d, change: true }))
  ];
  return /* @__PURE__ */ jsxs22(Fragment12, { children: [
    /* @__PURE__ */ jsxs22("p", { class: "lead", children: [
      "What the module of ",
      /* @__PURE__ */ jsx31(Words, { children: of.provider }),
      " declares, in its own words."
    ] }),
    /* @__PURE__ */ jsxs22("form", { onSubmit: (e) => e.preventDefault(), children: [
      /* @__PURE__ */ jsx31(ScopeChoice, { found, value: name, onChange: setName }),
      /* @__PURE__ */ jsxs22("label", { class: "wide", children: [
        "Query or change",
        /* @__PURE__ */ jsx31("select", { value: String(chosen), onChange: (e) => choose(Number(e.currentTarget.value)), children: all.map(({ d, change }, i) => /* @__PURE__ */ jsx31("option", { value: String(i), children: `${d.name}${change ? " (a change)" : ""}` })) })
      ] })
    ] }),
    all[chosen] ? /* @__PURE__ */ jsx31(Form2, { of: all[chosen], scope: scopeOf(found, name) }, chosen) : null
  ] });
}
function Form2({ of: { d, change }, scope }) {
  const schema = d.schema ?? older(d.params ?? "");
  const [faults, setFaults] = useState11({});
  const [answer, start] = useDoing();
  const submit = async (e) => {
    e.preventDefault();
    const wrong = {};
    const params2 = {};
    for (const [name, text] of Object.entries(typed(e.currentTarget))) {
      try {
        const value = valueOf(text, schema.properties?.[name] ?? {});
        if (value !== void 0) params2[name] = value;
      } catch (fault) {
        wrong[name] = fault.message;
      }
    }
    setFaults(wrong);
    if (Object.keys(wrong).length > 0) return;
    if (change && !await confirm(`Make the change ${d.name}?`, "The provider carries it out at once.", "Make it")) return;
    await start("asking", async () => {
      if (!change) {
        const r2 = await post("/v1/native-query", { scope, name: d.name, params: params2 });
        return /* @__PURE__ */ jsx31(Answered, { show: d.show, of: r2.result });
      }
      const r = await post("/v1/mutations", { scope, name: d.name, params: params2, reason: "asked for on the page" });
      return /* @__PURE__ */ jsxs22(Fragment12, { children: [
        /* @__PURE__ */ jsx31("p", { children: /* @__PURE__ */ jsx31(Words, { children: r.status }) }),
        /* @__PURE__ */ jsx31(Answered, { show: d.show, of: r.trace?.details ?? {} })
      ] });
    });
  };
  return /* @__PURE__ */ jsxs22("section", { class: "card", children: [
    /* @__PURE__ */ jsx31("p", { children: /* @__PURE__ */ jsx31(Words, { children: d.about ?? "" }) }),
    /* @__PURE__ */ jsxs22("form", { onSubmit: submit, children: [
      Object.entries(schema.properties ?? {}).map(([name, s]) => /* @__PURE__ */ jsx31(
        SchemaField,
        {
          name,
          schema: s,
          required: (schema.required ?? []).includes(name),
          fault: faults[name]
        }
      )),
      /* @__PURE__ */ jsx31("button", { class: "act", children: change ? "Change" : "Ask" })
    ] }),
    answer
  ] });
}
function older(params2) {
  const names = params2.split(",").map((n) => n.trim()).filter(Boolean);
  return {
    properties: Object.fromEntries(names.map((n) => [n.replace("?", ""), {}])),
    required: names.filter((n) => !n.endsWith("?"))
  };
}

// src/views/People.tsx
import { useEffect as useEffect9, useState as useState16 } from "./preact.js";

// src/views/Import.tsx
import { useEffect as useEffect5, useState as useState12 } from "./preact.js";
import { Fragment as Fragment13, jsx as jsx32, jsxs as jsxs23 } from "./preact.js";
var largest = 256 << 20;
var every2 = 500;
function Import({ first, started, done }) {
  const { settings } = useSlot();
  const [check, setCheck] = useState12(null);
  const [over, setOver] = useState12(false);
  const [doing, start, clear] = useDoing();
  if (settings.mode !== "on") {
    return first ? /* @__PURE__ */ jsxs23("p", { class: "quiet", children: [
      "Nothing was recorded yet. This page reads only: ",
      /* @__PURE__ */ jsx32("code", { children: "memhost record FILE" }),
      " brings a conversation."
    ] }) : null;
  }
  const read = (file, name) => {
    setCheck(null);
    return start(`reading ${name}`, async () => {
      if (file.size > largest) {
        return /* @__PURE__ */ jsxs23("p", { children: [
          "The file is larger than 256 MiB. This command reads it: ",
          /* @__PURE__ */ jsx32("code", { children: "memhost record FILE" })
        ] });
      }
      setCheck(await send("/v1/import", file, /\.zip$/i.test(name) ? "application/zip" : "application/json"));
      return null;
    });
  };
  const example = () => start("reading the example", async () => {
    const response = await fetch(at("demo.jsonl"), { credentials: "omit", cache: "no-store" });
    setCheck(await send("/v1/import", await response.blob(), "application/json"));
    return null;
  });
  const dropped = (e) => {
    e.preventDefault();
    setOver(false);
    const file = e.dataTransfer?.files[0];
    if (file) void read(file, file.name);
  };
  const form = /* @__PURE__ */ jsxs23(Fragment13, { children: [
    /* @__PURE__ */ jsxs23(
      "div",
      {
        class: `drop ${over ? "over" : ""}`,
        onDragOver: (e) => {
          e.preventDefault();
          setOver(true);
        },
        onDragLeave: () => setOver(false),
        onDrop: dropped,
        children: [
          /* @__PURE__ */ jsxs23("label", { children: [
            "Drop a file here, or choose one",
            /* @__PURE__ */ jsx32("input", { type: "file", accept: ".json,.jsonl,.zip", onChange: (e) => {
              const file = e.currentTarget.files?.[0];
              if (file) void read(file, file.name);
            } })
          ] }),
          /* @__PURE__ */ jsx32("p", { class: "quiet", children: "An export of ChatGPT or Claude, a log of Claude Code or Codex, Gemini's activity, or messages with times: JSON, JSON Lines or ZIP, at most 256 MiB. Nothing is recorded before you have seen what it holds." })
        ]
      }
    ),
    first ? /* @__PURE__ */ jsx32("p", { class: "buttons", children: /* @__PURE__ */ jsx32("button", { type: "button", onClick: example, children: "Try it with the example conversation" }) }) : null,
    doing,
    check ? /* @__PURE__ */ jsx32(Found2, { of: check, started, done: () => {
      setCheck(null);
      clear();
      done();
    } }) : null
  ] });
  return first ? /* @__PURE__ */ jsxs23("div", { class: "empty", children: [
    /* @__PURE__ */ jsxs23("p", { children: [
      /* @__PURE__ */ jsx32("strong", { children: "Nothing was recorded yet." }),
      " An agent records as it talks; to look around first, bring a conversation."
    ] }),
    form
  ] }) : /* @__PURE__ */ jsxs23("details", { class: "import", children: [
    /* @__PURE__ */ jsx32("summary", { children: "Bring a conversation" }),
    form
  ] });
}
function Found2({ of: c, started, done }) {
  const [run, setRun] = useState12("default");
  const [person, setPerson] = useState12("");
  const [progress, setProgress] = useState12(null);
  const [failed, setFailed] = useState12(null);
  const moving = progress?.state === "recording";
  useEffect5(() => {
    if (!moving) return void 0;
    const timer = setInterval(() => {
      void get("/v1/import").then(setProgress, () => void 0);
    }, every2);
    return () => clearInterval(timer);
  }, [moving]);
  const record = async (e) => {
    e.preventDefault();
    setFailed(null);
    started();
    try {
      setProgress(await post("/v1/import/confirm", {
        confirmation: c.confirmation,
        ...c.needs_scope ? { scope: { run_id: run, persona_id: person } } : {}
      }));
    } catch (problem) {
      setFailed(problem);
    }
  };
  if (progress) return /* @__PURE__ */ jsx32(Recorded, { of: progress, done });
  return /* @__PURE__ */ jsxs23("form", { class: "card", onSubmit: record, "aria-label": "What the file holds", children: [
    /* @__PURE__ */ jsx32("h3", { children: c.confirmation ? `This is ${c.title}` : "Nothing in it can be recorded" }),
    /* @__PURE__ */ jsx32(Facts, { of: [
      ["conversations", c.conversations || ""],
      ["turns", c.events],
      ["messages", c.messages],
      ["from", c.first?.slice(0, 10)],
      ["to", c.last?.slice(0, 10)],
      ["for", c.scopes.map(nameOf).join(", ") + (c.needs_scope && c.scopes.length > 0 ? ", and whom you name" : "")],
      ["left out", c.left_out.join(", ")],
      ["cannot be read", c.cannot_be_read || ""]
    ] }),
    c.problems.length > 0 ? /* @__PURE__ */ jsx32("ul", { children: c.problems.map((p) => /* @__PURE__ */ jsx32("li", { children: /* @__PURE__ */ jsx32(Words, { children: p }) }, p)) }) : null,
    c.needs_scope && c.confirmation ? /* @__PURE__ */ jsxs23("p", { class: "fields", children: [
      /* @__PURE__ */ jsxs23("label", { children: [
        "Person",
        /* @__PURE__ */ jsx32("input", { required: true, value: person, onInput: (e) => setPerson(e.currentTarget.value) })
      ] }),
      /* @__PURE__ */ jsxs23("label", { children: [
        "Run",
        /* @__PURE__ */ jsx32("input", { required: true, value: run, onInput: (e) => setRun(e.currentTarget.value) })
      ] })
    ] }) : null,
    c.confirmation ? /* @__PURE__ */ jsx32("p", { class: "buttons", children: /* @__PURE__ */ jsx32("button", { type: "submit", class: "act", children: `Record ${c.events} ${c.events === 1 ? "turn" : "turns"}` }) }) : null,
    failed ? /* @__PURE__ */ jsx32(Failure, { of: failed }) : null
  ] });
}
function Recorded({ of: p, done }) {
  const tried = p.recorded + p.known + p.not_kept + p.failed;
  return /* @__PURE__ */ jsxs23("div", { class: "card", role: "status", children: [
    /* @__PURE__ */ jsx32("h3", { children: p.state === "recording" ? "Recording" : p.state === "done" ? "Recorded" : "It stopped" }),
    /* @__PURE__ */ jsx32("progress", { max: Math.max(1, p.events), value: tried, "aria-label": "turns recorded" }),
    /* @__PURE__ */ jsx32(Facts, { of: [
      ["turns", `${tried} of ${p.events}`],
      ["recorded now", p.recorded],
      ["were there already", p.known || ""],
      ["not kept by this memory", p.not_kept || ""],
      ["failed", p.failed || ""]
    ] }),
    p.error ? /* @__PURE__ */ jsx32(Failure, { of: p.error }) : null,
    p.problems.length > 0 ? /* @__PURE__ */ jsx32("ul", { children: p.problems.map((t) => /* @__PURE__ */ jsx32("li", { children: /* @__PURE__ */ jsx32(Words, { children: t }) }, t)) }) : null,
    p.state === "recording" ? null : /* @__PURE__ */ jsx32("p", { class: "buttons", children: /* @__PURE__ */ jsx32("button", { type: "button", class: "act", onClick: done, children: "Show the people" }) })
  ] });
}

// src/views/Person.tsx
import { useEffect as useEffect8, useMemo, useRef as useRef9, useState as useState15 } from "./preact.js";

// src/views/Conversation.tsx
import { useEffect as useEffect6 } from "./preact.js";

// src/views/TurnChange.tsx
import { useRef as useRef8, useState as useState13 } from "./preact.js";
import { Fragment as Fragment14, jsx as jsx33, jsxs as jsxs24 } from "./preact.js";
function TurnChange({ of: { listed, said }, items, scope, provider, archive, forgets, changed }) {
  const [correcting, correct] = useState13(false);
  const [doing, start] = useDoing();
  const form = useRef8(null);
  const corrected = useRef8(`${listed.event_id}-${Date.now().toString(36)}`);
  const id = listed.event_id;
  const kept2 = listed.receipt?.native_ids ?? [];
  const parts = [archive ? "the turn in the archive" : "", !forgets ? "" : items.length > 0 ? `${items.length} ${items.length === 1 ? "item" : "items"} that ${provider} made of it` : kept2.length > 0 ? `what ${provider} kept of it (${kept2.slice(0, 5).join(", ")})` : `what ${provider} made of it`].filter(Boolean);
  const goes = `At least this goes: ${parts.join(", and ")}. ${forgets ? "" : `${provider} cannot forget: what it holds stays until the scope is erased. `}Nothing brings it back.`;
  const remove = () => post("/v1/forget", { scope, event_ids: [id], reason: "asked on the page" });
  const told = (r) => /* @__PURE__ */ jsx33(Facts, { of: [
    ["status", /* @__PURE__ */ jsx33(State, { of: r.status })],
    ["may remain", r.derived_may_remain.length === 0 ? "nothing" : r.derived_may_remain]
  ] });
  const forget = async () => {
    if (!await confirm("Forget this turn?", goes, "Forget it")) return;
    await start("forgetting", async () => {
      const receipt = await remove();
      changed();
      return told(receipt);
    });
  };
  const replace = async (e) => {
    e.preventDefault();
    if (!said || !form.current) return;
    const texts2 = [...form.current.querySelectorAll("textarea")].map((t) => t.value);
    if (!await confirm("Correct this turn?", `${goes} The corrected turn is recorded in its place, at the same time in the same session.`, "Correct it")) return;
    await start("correcting", async () => {
      const written = await post("/v1/events", {
        ...said,
        event_id: corrected.current,
        messages: said.messages.map((m, i) => ({ ...m, content: texts2[i] }))
      });
      if (written.status !== "committed" && written.status !== "queued") {
        throw new Error(`The corrected turn is ${written.status}: the turn stays as it is.`);
      }
      const receipt = await remove();
      correct(false);
      changed();
      return told(receipt);
    });
  };
  return /* @__PURE__ */ jsxs24(Fragment14, { children: [
    /* @__PURE__ */ jsxs24("span", { class: "row change", children: [
      forgets && archive && said ? /* @__PURE__ */ jsx33(
        "button",
        {
          type: "button",
          class: "link",
          "aria-label": `Correct ${id}`,
          "aria-expanded": correcting,
          onClick: () => correct(!correcting),
          children: "correct"
        }
      ) : null,
      /* @__PURE__ */ jsx33("button", { type: "button", class: "link bad", "aria-label": `Forget ${id}`, onClick: forget, children: "forget" })
    ] }),
    correcting && said ? /* @__PURE__ */ jsxs24("form", { ref: form, onSubmit: replace, children: [
      said.messages.map((m) => /* @__PURE__ */ jsxs24("label", { class: "wide", children: [
        m.name || m.role,
        /* @__PURE__ */ jsx33("textarea", { dir: "auto", class: "words", required: true, rows: 3, children: m.content ?? "" })
      ] })),
      /* @__PURE__ */ jsxs24("p", { class: "buttons", children: [
        /* @__PURE__ */ jsx33("button", { class: "act", children: "Correct it" }),
        /* @__PURE__ */ jsx33("button", { type: "button", onClick: () => correct(false), children: "Leave it" })
      ] })
    ] }) : null,
    doing
  ] });
}

// src/views/Conversation.tsx
import { Fragment as Fragment15, jsx as jsx34, jsxs as jsxs25 } from "./preact.js";
var atOf = (t) => t.said?.timestamp ?? t.listed.sent_at;
function Conversation({ turns: turns2, none, archive, search, turn, lit, made: madeOf, changes, look }) {
  const first = lit.size > 0 ? turns2.find((t) => lit.has(t.listed.event_id))?.listed.event_id : turn;
  useEffect6(() => {
    document.getElementById(`turn ${first}`)?.scrollIntoView({ block: "nearest" });
  }, [first]);
  if (none) return /* @__PURE__ */ jsx34(Empty, { children: /* @__PURE__ */ jsx34("p", { children: "Nothing was recorded in this generation." }) });
  if (turns2.length === 0) return /* @__PURE__ */ jsx34("p", { class: "quiet", children: "No turn has these words." });
  const sessions = /* @__PURE__ */ new Map();
  for (const t of turns2) {
    const session = t.listed.session_id || t.said?.session_id || "";
    sessions.set(session, [...sessions.get(session) ?? [], t]);
  }
  return /* @__PURE__ */ jsxs25(Fragment15, { children: [
    archive ? null : /* @__PURE__ */ jsx34("p", { class: "quiet", children: "The slot keeps no text of what was said unless memory.archive is on: what stands here is what the memory kept word for word." }),
    [...sessions].map(([session, list]) => /* @__PURE__ */ jsxs25("section", { class: "session", children: [
      /* @__PURE__ */ jsxs25("h4", { children: [
        "Session ",
        /* @__PURE__ */ jsx34(Words, { children: session }),
        /* @__PURE__ */ jsx34(Time, { at: atOf(list[0]), part: "day" })
      ] }),
      /* @__PURE__ */ jsx34("ol", { class: "turns", children: list.map((t) => {
        const id = t.listed.event_id;
        const made = madeOf.get(id) ?? [];
        return /* @__PURE__ */ jsxs25("li", { id: `turn ${id}`, class: `turn ${id === turn ? "looked" : ""} ${lit.has(id) ? "lit" : ""}`, children: [
          (t.said?.messages ?? []).map((m) => /* @__PURE__ */ jsxs25("p", { class: `said ${m.role === "user" ? "user" : ""}`, children: [
            /* @__PURE__ */ jsx34("b", { children: /* @__PURE__ */ jsx34(Words, { search, children: m.name || m.role }) }),
            " ",
            /* @__PURE__ */ jsx34(Words, { search, children: m.content ?? "" })
          ] })),
          /* @__PURE__ */ jsxs25("div", { class: "quiet row about", children: [
            /* @__PURE__ */ jsx34(Time, { at: atOf(t), part: dayOf(atOf(t)) === dayOf(atOf(list[0])) ? "hour" : void 0 }),
            /* @__PURE__ */ jsx34("span", { class: "id", children: /* @__PURE__ */ jsx34(Words, { search, children: id }) }),
            t.listed.state === "committed" ? null : /* @__PURE__ */ jsx34(State, { of: t.listed.state }),
            made.length > 0 ? /* @__PURE__ */ jsx34("button", { type: "button", class: "link", "aria-pressed": id === turn, onClick: () => look(id), children: `${made.length} in memory` }) : null,
            changes ? /* @__PURE__ */ jsx34(TurnChange, { of: t, items: made, archive, ...changes }) : null
          ] })
        ] }, id);
      }) })
    ] }))
  ] });
}

// src/views/Items.tsx
import { useEffect as useEffect7, useState as useState14 } from "./preact.js";
import { Fragment as Fragment16, jsx as jsx35, jsxs as jsxs26 } from "./preact.js";
function Items(p) {
  const slot = useSlot();
  const [asked2, setAsked] = useState14(null);
  const [correcting, setCorrecting] = useState14("");
  const [said, start] = useDoing();
  useEffect7(() => {
    document.querySelector(".item.lit, .item.looked")?.scrollIntoView({ block: "nearest" });
  }, [p.item, p.turn]);
  const all = asked2 ?? p.of;
  const found = all.filter(({ evidence: e, native }) => fits(p.search, textOf(e.text, native)) && (p.turn === "" || e.source_event_ids?.includes(p.turn)));
  const types = /* @__PURE__ */ new Map();
  for (const i of found) types.set(i.evidence.native_type ?? "item", [...types.get(i.evidence.native_type ?? "item") ?? [], i]);
  const forget = async (id) => {
    if (!await confirm("Forget this item?", "At least this goes: the memory removes the item, as far as it can, and says what may remain. Nothing brings it back.", "Forget it")) return;
    await start("forgetting", async () => {
      const r = await post("/v1/forget", { scope: p.scope, native_ids: [id], reason: "asked on the page" });
      p.changed();
      return /* @__PURE__ */ jsx35(Facts, { of: [["status", /* @__PURE__ */ jsx35(State, { of: r.status })], ["may remain", r.derived_may_remain.length === 0 ? "nothing" : r.derived_may_remain]] });
    });
  };
  const correct = async (e, id) => {
    e.preventDefault();
    const text = e.currentTarget.querySelector("textarea")?.value;
    await start("correcting", async () => {
      const r = await post("/v1/feedback", {
        feedback_id: `page-${crypto.randomUUID?.() ?? Date.now()}`,
        scope: p.scope,
        session_id: "page",
        timestamp: (/* @__PURE__ */ new Date()).toISOString(),
        text,
        native_ids: [id]
      });
      setCorrecting("");
      p.changed();
      return /* @__PURE__ */ jsx35(Facts, { of: [["status", /* @__PURE__ */ jsx35(State, { of: r.status })], ["warnings", r.warnings]] });
    });
  };
  const ask = () => start("asking about each turn of this page", async () => {
    setAsked(await p.byTurn());
    return null;
  });
  return /* @__PURE__ */ jsxs26(Fragment16, { children: [
    p.reason ? /* @__PURE__ */ jsxs26("p", { class: "quiet", children: [
      /* @__PURE__ */ jsx35(Words, { children: p.reason }),
      ". ",
      /* @__PURE__ */ jsx35("button", { type: "button", onClick: ask, children: "Ask about each turn on this page" })
    ] }) : null,
    said,
    p.turn === "" ? null : /* @__PURE__ */ jsxs26("p", { class: "quiet row", children: [
      "Only what came from ",
      /* @__PURE__ */ jsx35(Words, { children: p.turn }),
      /* @__PURE__ */ jsx35("button", { type: "button", class: "link", onClick: () => p.lookAtTurn(""), children: "Show all" })
    ] }),
    found.length === 0 && !p.reason ? /* @__PURE__ */ jsx35("p", { class: "quiet", children: all.length === 0 ? "The memory holds nothing of this person." : "No item fits." }) : null,
    [...types].map(([type, list]) => /* @__PURE__ */ jsxs26("section", { class: "session", children: [
      /* @__PURE__ */ jsxs26("h4", { children: [
        /* @__PURE__ */ jsx35(Words, { children: type }),
        ` (${list.length}${p.more ? " or more" : ""})`
      ] }),
      /* @__PURE__ */ jsx35("ol", { class: "turns", children: list.map(({ evidence: e, native }) => /* @__PURE__ */ jsxs26("li", { class: `turn item ${e.native_id === p.item ? "looked" : ""} ${p.turn !== "" ? "lit" : ""}`, children: [
        /* @__PURE__ */ jsx35("p", { class: "said", children: textOf(e.text, native).split("\n").map((line) => /* @__PURE__ */ jsx35("span", { class: "line", children: /* @__PURE__ */ jsx35(Words, { search: p.search, children: line }) })) }),
        /* @__PURE__ */ jsxs26("div", { class: "quiet row about", children: [
          e.superseded ? /* @__PURE__ */ jsx35("span", { title: "The memory says that this holds no longer. It does not say what took its place.", children: /* @__PURE__ */ jsx35(State, { of: "open", children: "replaced" }) }) : null,
          e.valid_at ? /* @__PURE__ */ jsxs26("span", { children: [
            "holds from ",
            /* @__PURE__ */ jsx35(Time, { at: e.valid_at })
          ] }) : e.created_at ? /* @__PURE__ */ jsxs26("span", { children: [
            e.time_basis === "event" ? "said " : "made ",
            /* @__PURE__ */ jsx35(Time, { at: e.created_at })
          ] }) : null,
          e.invalid_at ?? e.expired_at ? /* @__PURE__ */ jsxs26("span", { children: [
            "until ",
            /* @__PURE__ */ jsx35(Time, { at: e.invalid_at ?? e.expired_at })
          ] }) : null,
          (e.source_event_ids ?? []).length === 0 ? "source turns not known" : "from",
          (e.source_event_ids ?? []).slice(0, 12).map((id) => /* @__PURE__ */ jsx35(
            "button",
            {
              type: "button",
              class: "link",
              title: p.texts.get(id),
              onClick: () => p.look(e.native_id ?? id),
              children: /* @__PURE__ */ jsx35(Words, { children: id })
            }
          )),
          (e.source_event_ids ?? []).length > 12 ? `and ${(e.source_event_ids ?? []).length - 12} more` : "",
          p.corrects && slot.settings.mode === "on" && e.native_id ? /* @__PURE__ */ jsx35(
            "button",
            {
              type: "button",
              class: "link",
              "aria-label": `Correct ${e.native_id}`,
              "aria-expanded": correcting === e.native_id,
              onClick: () => setCorrecting(correcting === e.native_id ? "" : e.native_id ?? ""),
              children: "correct"
            }
          ) : null,
          p.forgets && slot.settings.mode === "on" && e.native_id ? /* @__PURE__ */ jsx35(
            "button",
            {
              type: "button",
              class: "link bad",
              "aria-label": `Forget ${e.native_id}`,
              onClick: () => forget(e.native_id ?? ""),
              children: "forget"
            }
          ) : null
        ] }),
        correcting !== "" && correcting === e.native_id ? /* @__PURE__ */ jsxs26("form", { onSubmit: (event) => correct(event, e.native_id ?? ""), children: [
          /* @__PURE__ */ jsxs26("label", { class: "wide", children: [
            "What is right?",
            /* @__PURE__ */ jsx35("textarea", { dir: "auto", class: "words", required: true, rows: 2 })
          ] }),
          /* @__PURE__ */ jsx35("button", { class: "act", children: "Correct it" })
        ] }) : null,
        /* @__PURE__ */ jsxs26("details", { children: [
          /* @__PURE__ */ jsx35("summary", { children: "As it is kept" }),
          /* @__PURE__ */ jsx35(Facts, { of: [["id", e.native_id]] }),
          /* @__PURE__ */ jsx35(Json, { of: native })
        ] })
      ] })) })
    ] }))
  ] });
}
function textOf(text, native) {
  if (text) return text;
  const messages = native?.messages;
  return Array.isArray(messages) ? messages.map((m) => `${m.name || m.role}: ${m.content ?? ""}`).join("\n") : JSON.stringify(native);
}

// src/views/Person.tsx
import { Fragment as Fragment17, jsx as jsx36, jsxs as jsxs27 } from "./preact.js";
var pageSize = 50;
var wholeAtOnce = 1e3;
var [mostItems, mostSearched] = [500, 5e3];
function Person({ of, manifest, event }) {
  const slot = useSlot();
  const scope = asked(of.scope);
  const name = nameOf(of.scope);
  const can = (capability) => manifest.capabilities.capabilities.includes(capability);
  const [before, setBefore] = useState15([]);
  const [nth, setNth] = useState15(0);
  const [typed2, setTyped] = useState15("");
  const search = useMemo(() => wordsOf(typed2), [typed2]);
  const [turn, lookAtTurn] = useState15(event ?? "");
  const [item, lookAtItem] = useState15("");
  const at3 = before.at(-1) ?? "";
  const whole = search.words.length > 0 || (of.events ?? Infinity) <= wholeAtOnce;
  const [turns2, readTurns] = useLoad(async () => {
    const page2 = whole ? await allEvents(scope) : await events({ scope, ...at3 ? { after: at3 } : {} }, pageSize);
    const said2 = manifest.archive ? await texts(scope, whole ? void 0 : page2.events.map((e) => e.event_id)).catch(() => void 0) : void 0;
    const list2 = page2.events.map((e) => ({ listed: e, said: said2?.get(e.event_id) }));
    return { list: list2.toSorted(byTime), next: page2.next, whole };
  }, [at3, whole]);
  const [items, readItems] = useLoad(() => can("provenance") ? itemsOf(scope, search.words.length > 0 ? mostSearched : mostItems) : Promise.resolve(null), [search.words.length > 0 && (of.events ?? Infinity) > mostItems]);
  const soon = useRef9(0);
  useEffect8(() => () => clearTimeout(soon.current), []);
  useLines((line) => {
    if (!/^(record_events?|reset_scope|forget|apply_feedback)$/.test(line.operation ?? "") || soon.current) return;
    soon.current = window.setTimeout(() => {
      soon.current = 0;
      void readTurns();
      void readItems();
    }, 1e3);
  });
  const data = turns2 && "data" in turns2 ? turns2.data : void 0;
  const has = items && "data" in items ? items.data?.list ?? [] : [];
  const made = useMemo(() => {
    const by = /* @__PURE__ */ new Map();
    for (const i of has) for (const id of i.evidence.source_event_ids ?? []) by.set(id, [...by.get(id) ?? [], i]);
    return by;
  }, [items]);
  const list = useMemo(
    () => (data?.list ?? []).map((t) => ({ ...t, said: t.said ?? heardIn(made.get(t.listed.event_id) ?? [], t.listed) })),
    [data, made]
  );
  const found = useMemo(() => list.filter((t) => fits(search, wordsIn(t))), [list, search]);
  const pages = Math.max(1, Math.ceil(found.length / pageSize));
  const page = Math.min(nth, pages - 1);
  const shown = data?.whole ? found.slice(page * pageSize, (page + 1) * pageSize) : found;
  const lit = new Set(has.filter((i) => i.evidence.native_id === item).flatMap((i) => i.evidence.source_event_ids ?? []));
  useEffect8(() => setNth(0), [typed2]);
  useEffect8(() => {
    const first = found.findIndex((t) => lit.size > 0 ? lit.has(t.listed.event_id) : t.listed.event_id === turn);
    if (first >= 0) setNth(Math.floor(first / pageSize));
  }, [item, turn, data !== void 0]);
  const said = new Map(list.map((t) => [t.listed.event_id, textOf2(t.said)]));
  const count = of.queued + of.pending + of.lost;
  const many = items && "data" in items && items.data?.more;
  return /* @__PURE__ */ jsxs27("section", { class: "one", "aria-label": `What is known about ${name}`, children: [
    /* @__PURE__ */ jsxs27("div", { class: "row head", children: [
      /* @__PURE__ */ jsxs27("div", { class: "grow", children: [
        /* @__PURE__ */ jsx36("h2", { children: /* @__PURE__ */ jsx36(Words, { children: of.scope.persona_id }) }),
        /* @__PURE__ */ jsxs27("p", { class: "quiet", children: [
          [of.events === void 0 ? "" : countOf(of.events, "turn"), has.length > 0 ? `${countOf(has.length, "item")}${many ? " or more" : ""} in ${manifest.provider}` : ""].filter(Boolean).join(" · "),
          of.last_at ? /* @__PURE__ */ jsxs27(Fragment17, { children: [
            " · last recorded ",
            /* @__PURE__ */ jsx36(Ago, { at: of.last_at })
          ] }) : null
        ] })
      ] }),
      /* @__PURE__ */ jsxs27("p", { class: "buttons", children: [
        /* @__PURE__ */ jsx36(Link, { to: "ask", about: { scope: name }, children: "Ask about this person" }),
        /* @__PURE__ */ jsx36(Link, { to: "turns", about: { scope: name }, children: count > 0 ? countOf(count, "open matter") : "Outcomes, forget, erase" }),
        /* @__PURE__ */ jsx36(Export, { scope: of.scope, manifest })
      ] })
    ] }),
    /* @__PURE__ */ jsx36("form", { role: "search", onSubmit: (e) => e.preventDefault(), children: /* @__PURE__ */ jsxs27("label", { class: "wide", children: [
      "Search in what was said and what is known",
      /* @__PURE__ */ jsx36(
        "input",
        {
          type: "search",
          value: typed2,
          dir: "auto",
          class: "words",
          onInput: (e) => setTyped(e.currentTarget.value)
        }
      )
    ] }) }),
    /* @__PURE__ */ jsxs27("div", { class: "columns both", children: [
      /* @__PURE__ */ jsxs27("section", { "aria-label": "What was said", tabIndex: 0, children: [
        /* @__PURE__ */ jsx36("h3", { children: "What was said" }),
        /* @__PURE__ */ jsx36(Loaded, { got: turns2, children: ({ next }) => /* @__PURE__ */ jsxs27(Fragment17, { children: [
          search.words.length === 0 ? null : /* @__PURE__ */ jsxs27("p", { class: "quiet", role: "status", children: [
            data?.whole ? `${found.length} of ${countOf(list.length, "turn")} ${found.length === 1 ? "has" : "have"} these words` : "searching all turns",
            found.length > 0 || !data?.whole ? null : /* @__PURE__ */ jsxs27(Fragment17, { children: [
              ". ",
              /* @__PURE__ */ jsx36(Link, { to: "ask", about: { scope: name, query: typed2 }, children: "Ask it as a question" })
            ] })
          ] }),
          /* @__PURE__ */ jsx36(
            Conversation,
            {
              turns: shown,
              none: list.length === 0,
              archive: Boolean(manifest.archive),
              search,
              turn,
              lit,
              made,
              changes: slot.settings.mode === "on" && (can("forget") || Boolean(manifest.archive)) ? {
                scope,
                provider: manifest.provider,
                forgets: can("forget"),
                changed: () => {
                  void readTurns();
                  void readItems();
                }
              } : void 0,
              look: (id) => {
                lookAtTurn(id === turn ? "" : id);
                lookAtItem("");
              }
            }
          ),
          data?.whole ? pages === 1 ? null : /* @__PURE__ */ jsx36(Pages, { first: page === 0, last: page === pages - 1, turn: (by) => setNth(page + by) }) : before.length === 0 && !next ? null : /* @__PURE__ */ jsx36(
            Pages,
            {
              first: before.length === 0,
              last: !next,
              turn: (by) => setBefore(by < 0 ? before.slice(0, -1) : [...before, next ?? ""])
            }
          )
        ] }) })
      ] }),
      /* @__PURE__ */ jsxs27("section", { "aria-label": "What the memory made of it", tabIndex: 0, children: [
        /* @__PURE__ */ jsx36("h3", { children: `What ${manifest.provider} made of it` }),
        /* @__PURE__ */ jsx36(Loaded, { got: items, children: (known) => known === null ? /* @__PURE__ */ jsx36("p", { class: "quiet", children: `${manifest.provider} cannot list what it has. Ask shows what it gives for a question.` }) : /* @__PURE__ */ jsx36(
          Items,
          {
            of: known.list,
            more: known.more,
            reason: known.reason,
            search,
            item,
            turn,
            texts: said,
            scope,
            look: (id) => {
              lookAtItem(id === item ? "" : id);
              lookAtTurn("");
            },
            lookAtTurn: (id) => {
              lookAtTurn(id);
              lookAtItem("");
            },
            byTurn: async () => fromTurns(scope, shown.map((t) => t.listed.event_id)),
            corrects: can("apply_feedback") && Boolean(manifest.feedback_enabled),
            forgets: can("forget"),
            changed: () => {
              void readTurns();
              void readItems();
            }
          }
        ) })
      ] })
    ] })
  ] });
}
var countOf = (n, what) => `${n.toLocaleString("en-GB")} ${what}${n === 1 ? "" : "s"}`;
var Pages = ({ first, last, turn }) => /* @__PURE__ */ jsxs27("p", { class: "buttons", children: [
  /* @__PURE__ */ jsx36("button", { type: "button", disabled: first, onClick: () => turn(-1), children: "Page before" }),
  /* @__PURE__ */ jsx36("button", { type: "button", disabled: last, onClick: () => turn(1), children: "Next page" })
] });
var wordsIn = ({ listed, said }) => [listed.event_id, ...(said?.messages ?? []).flatMap((m) => [m.name || m.role, m.content ?? ""])].join("\n");
async function allEvents(scope) {
  const all = await events({ scope }, 500);
  while (all.next) {
    const more = await events({ scope, after: all.next }, 500);
    all.events.push(...more.events);
    all.next = more.next;
  }
  return all;
}
var byTime = (a, b) => (a.said?.timestamp ?? a.listed.sent_at ?? "").localeCompare(b.said?.timestamp ?? b.listed.sent_at ?? "") || a.listed.event_id.localeCompare(b.listed.event_id);
var textOf2 = (e) => (e?.messages ?? []).map((m) => m.content ?? "").join("\n");
function heardIn(items, { event_id: id, session_id: session }) {
  const of = items.filter((i) => i.evidence.source_event_ids?.length === 1);
  const whole = of.map((i) => i.native).find((n) => Array.isArray(n?.messages));
  if (whole) return whole;
  const messages = of.map((i) => i.native).filter((n) => typeof n?.speaker === "string" && typeof n.text === "string").map((n) => ({ role: n?.speaker === "user" ? "user" : "assistant", name: n?.speaker, content: n?.text }));
  if (messages.length === 0) return void 0;
  return {
    event_id: id,
    session_id: session ?? "",
    timestamp: of[0].evidence.created_at ?? "",
    messages,
    run_id: "",
    user_id: "",
    turn_id: ""
  };
}
async function itemsOf(scope, most2) {
  const list = [];
  let cursor = "";
  try {
    do {
      const page = await post("/v1/provenance", {
        scope,
        from: "1970-01-01T00:00:00Z",
        to: "9999-01-01T00:00:00Z",
        limit: 100,
        ...cursor ? { cursor } : {}
      });
      list.push(...page.items);
      cursor = page.next_cursor ?? "";
    } while (cursor && list.length < most2);
  } catch (e) {
    if (e.code !== "unsupported") throw e;
    return { list: [], more: false, reason: e.message };
  }
  return { list, more: cursor !== "" };
}
async function fromTurns(scope, ids) {
  const found = /* @__PURE__ */ new Map();
  for (const id of ids) {
    const page = await post("/v1/provenance", { scope, event_id: id, limit: 50 }).catch(() => ({ items: [] }));
    for (const i of page.items) {
      const e = { ...i.evidence, source_event_ids: [.../* @__PURE__ */ new Set([...i.evidence.source_event_ids ?? [], id])] };
      found.set(e.native_id ?? JSON.stringify(i.native), { ...i, evidence: e });
    }
  }
  return [...found.values()];
}
function Export({ scope, manifest }) {
  const [doing, start] = useDoing();
  const save = () => start("reading all of it", async () => {
    const of = asked(scope);
    const { events: listed } = await allEvents(of);
    const said = manifest.archive ? await texts(of) : /* @__PURE__ */ new Map();
    const items = manifest.capabilities.capabilities.includes("provenance") ? (await itemsOf(of, mostSearched)).list : [];
    const turns2 = listed.map((e) => said.get(e.event_id) ?? e);
    const text = JSON.stringify({ scope, turns: turns2, items }, null, 2);
    const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    const a = document.createElement("a");
    Object.assign(a, { href: url, download: "memory.json" });
    a.click();
    setTimeout(() => URL.revokeObjectURL(url), 1e4);
    return /* @__PURE__ */ jsx36("small", { children: `Saved ${countOf(turns2.length, "turn")} and ${countOf(items.length, "item")} as memory.json` });
  });
  return /* @__PURE__ */ jsxs27(Fragment17, { children: [
    /* @__PURE__ */ jsx36("button", { type: "button", onClick: save, children: "Save as a file" }),
    doing
  ] });
}

// src/views/People.tsx
import { Fragment as Fragment18, jsx as jsx37, jsxs as jsxs28 } from "./preact.js";
var shownAtOnce = 100;
var pause = 150;
function People({ about: about2 }) {
  const chosen = about2.scope ?? "";
  const [typed2, setTyped] = useState16("");
  const [open4, setOpen] = useState16(false);
  const [asked2, ask] = useState16({ contains: "", open: false });
  const [got, again] = useLoad(() => people({ contains: asked2.contains.trim(), only_open: asked2.open }), [asked2]);
  const [one] = useLoad(() => chosen === "" ? Promise.resolve(void 0) : people({ contains: chosen }).then((p) => p.list.find((s) => nameOf(s.scope) === chosen)), [chosen]);
  const [manifest] = useLoad(() => get("/v1/manifest"), []);
  const [importing, setImporting] = useState16(false);
  useEffect9(() => {
    if (typed2 === asked2.contains && open4 === asked2.open) return void 0;
    const timer = setTimeout(() => ask({ contains: typed2, open: open4 }), open4 === asked2.open ? pause : 0);
    return () => clearTimeout(timer);
  }, [typed2, open4, asked2]);
  const list = got && "data" in got ? got.data.list : void 0;
  const everybody = asked2.contains === "" && !asked2.open;
  const empty2 = list?.length === 0 && everybody;
  const [recorded, note] = useState16(0);
  useLines((line) => {
    if (/^(setup_scope|reset_scope|record_events?)$/.test(line.operation ?? "")) note((n) => n + 1);
  });
  useEffect9(() => {
    if (recorded > 0 && empty2 && !importing) void again();
  }, [recorded]);
  const alone2 = everybody && list?.length === 1 ? list[0] : void 0;
  const person = chosen === "" ? alone2 : one && "data" in one ? one.data : void 0;
  return /* @__PURE__ */ jsxs28("div", { class: `people ${person ? "chosen" : ""}`, children: [
    /* @__PURE__ */ jsxs28("section", { class: "list", "aria-label": "People", children: [
      /* @__PURE__ */ jsx37("h2", { children: "People" }),
      empty2 || !got ? null : /* @__PURE__ */ jsxs28("form", { role: "search", onSubmit: (e) => e.preventDefault(), children: [
        /* @__PURE__ */ jsxs28("label", { class: "wide", children: [
          "Search by id",
          /* @__PURE__ */ jsx37(
            "input",
            {
              type: "search",
              value: typed2,
              dir: "auto",
              class: "words",
              onInput: (e) => setTyped(e.currentTarget.value)
            }
          )
        ] }),
        /* @__PURE__ */ jsxs28("label", { class: "check", children: [
          /* @__PURE__ */ jsx37("input", { type: "checkbox", checked: open4, onChange: (e) => setOpen(e.currentTarget.checked) }),
          "With open matters"
        ] })
      ] }),
      /* @__PURE__ */ jsx37(Loaded, { got, children: ({ list: found, more }) => empty2 ? null : /* @__PURE__ */ jsx37(List, { list: found, more, search: asked2.contains, chosen: person ? nameOf(person.scope) : chosen }) }),
      got ? /* @__PURE__ */ jsx37(Import, { first: Boolean(empty2), started: () => setImporting(true), done: () => {
        setImporting(false);
        void again();
      } }) : null
    ] }),
    person && manifest && "data" in manifest ? /* @__PURE__ */ jsx37(Person, { of: person, manifest: manifest.data, event: about2.event }, `${nameOf(person.scope)} ${about2.event}`) : chosen !== "" ? /* @__PURE__ */ jsx37(Loaded, { got: one, children: (found) => found ? null : /* @__PURE__ */ jsx37("section", { class: "hint quiet", children: /* @__PURE__ */ jsxs28("p", { children: [
      "The slot does not know ",
      /* @__PURE__ */ jsx37(Words, { children: chosen }),
      "."
    ] }) }) }) : empty2 || !list ? null : /* @__PURE__ */ jsx37("section", { class: "hint quiet", children: /* @__PURE__ */ jsx37("p", { children: "Choose a person to see what was said, and what the memory made of it." }) })
  ] });
}
function List({ list, more, search, chosen }) {
  const wanted = partOf(search);
  return /* @__PURE__ */ jsxs28(Fragment18, { children: [
    /* @__PURE__ */ jsx37("p", { class: "quiet", role: "status", children: `${list.length}${more ? " or more" : ""} ${list.length === 1 ? "person" : "people"}` + (list.length > shownAtOnce || more ? `, the first ${Math.min(shownAtOnce, list.length)} are shown: search for others` : "") }),
    /* @__PURE__ */ jsx37("ul", { class: "persons", children: list.slice(0, shownAtOnce).map((s) => /* @__PURE__ */ jsx37("li", { children: /* @__PURE__ */ jsxs28("button", { type: "button", class: "person", "aria-pressed": nameOf(s.scope) === chosen, onClick: () => go("people", { scope: nameOf(s.scope) }), children: [
      /* @__PURE__ */ jsxs28("span", { class: "grow", children: [
        /* @__PURE__ */ jsx37("b", { children: /* @__PURE__ */ jsx37(Words, { search: wanted, children: s.scope.persona_id }) }),
        /* @__PURE__ */ jsx37("small", { children: /* @__PURE__ */ jsx37(Words, { search: wanted, children: [s.scope.run_id, s.scope.agent_id].filter(Boolean).join(" / ") }) })
      ] }),
      /* @__PURE__ */ jsxs28("span", { class: "quiet figures", children: [
        /* @__PURE__ */ jsx37("span", { children: turns(s.events) }),
        /* @__PURE__ */ jsx37(Ago, { at: s.last_at || s.since })
      ] }),
      s.queued + s.pending > 0 ? /* @__PURE__ */ jsx37("span", { class: "badge wait", children: `${s.queued + s.pending} open` }) : null,
      s.lost > 0 ? /* @__PURE__ */ jsx37("span", { class: "badge bad", children: `${s.lost} lost` }) : null
    ] }) }, nameOf(s.scope))) })
  ] });
}
var turns = (n) => n === void 0 ? "" : `${n.toLocaleString("en-GB")} ${n === 1 ? "turn" : "turns"}`;

// src/views/Runs.tsx
import { Fragment as Fragment19, jsx as jsx38, jsxs as jsxs29 } from "./preact.js";
function Runs() {
  const [got] = useLoad(() => get("/v1/runs"), []);
  const [shown, start] = useDoing();
  const show = (r) => start("reading", async () => {
    const report = r.report ? await post("/v1/runs/report", { name: r.name }).catch((e) => e) : null;
    return /* @__PURE__ */ jsx38(Shown2, { run: r, report });
  });
  return /* @__PURE__ */ jsxs29(Fragment19, { children: [
    /* @__PURE__ */ jsx38("h2", { children: "Runs" }),
    /* @__PURE__ */ jsx38(Loaded, { got, children: ({ runs, left_out: leftOut }) => runs.length === 0 ? /* @__PURE__ */ jsx38(Empty, { children: /* @__PURE__ */ jsxs29("p", { children: [
      "The folder server.runs has no run. ",
      /* @__PURE__ */ jsx38("code", { children: "memhost eval run" }),
      " makes one."
    ] }) }) : /* @__PURE__ */ jsxs29("section", { class: "card", children: [
      /* @__PURE__ */ jsx38(
        Table,
        {
          caption: "Evaluation runs",
          heads: ["run", "lab", "begun", "memories", "probes", "verdicts", ""],
          rows: runs.map((r) => [
            r.name,
            r.title ?? "",
            /* @__PURE__ */ jsx38(Time, { at: r.begun_at }),
            r.providers.join(", "),
            r.probes,
            /* @__PURE__ */ jsx38(Counts, { of: r }),
            /* @__PURE__ */ jsx38("button", { type: "button", "aria-label": `Show ${r.name}`, onClick: () => show(r), children: "Show" })
          ])
        }
      ),
      leftOut ? /* @__PURE__ */ jsx38("p", { children: `${leftOut} older runs are not listed.` }) : null
    ] }) }),
    shown
  ] });
}
function Shown2({ run: r, report }) {
  return /* @__PURE__ */ jsxs29(Fragment19, { children: [
    /* @__PURE__ */ jsxs29("section", { class: "card tall", children: [
      /* @__PURE__ */ jsx38("h2", { children: /* @__PURE__ */ jsx38(Words, { children: r.title ?? r.name }) }),
      r.problem ? /* @__PURE__ */ jsx38(Failure, { of: { message: r.problem } }) : null,
      /* @__PURE__ */ jsx38(Facts, { of: [["complete", r.complete ? "yes" : "no: what was not asked is missing, not zero"]] }),
      r.verdicts.length === 0 ? null : /* @__PURE__ */ jsx38(
        Table,
        {
          caption: "Verdicts",
          heads: ["check", "outcome", "what was found"],
          rows: r.verdicts.map((v) => [v.name, /* @__PURE__ */ jsx38(State, { of: v.outcome }), v.detail ?? ""])
        }
      )
    ] }),
    report instanceof Error ? /* @__PURE__ */ jsx38(Failure, { of: report }) : report ? /* @__PURE__ */ jsxs29(Fragment19, { children: [
      /* @__PURE__ */ jsx38("h2", { children: "Report" }),
      /* @__PURE__ */ jsx38("iframe", { sandbox: "", referrerPolicy: "no-referrer", title: `Report of ${r.name}`, src: report.path })
    ] }) : null
  ] });
}
function Counts({ of: r }) {
  if (r.problem) return /* @__PURE__ */ jsx38(State, { of: "open", children: "not known" });
  const each = ["good", "bad", "open"].map((o) => [o, r.verdicts.filter((v) => v.outcome === o).length]);
  return /* @__PURE__ */ jsx38("span", { children: each.filter(([, n]) => n > 0).map(([o, n]) => [/* @__PURE__ */ jsx38(State, { of: o, children: `${n} ${o}` }), " "]) });
}

// src/views/Side.tsx
import { useState as useState17 } from "./preact.js";
import { Fragment as Fragment20, jsx as jsx39, jsxs as jsxs30 } from "./preact.js";
var pageSize2 = 10;
function Side() {
  const [got] = useLoad(() => get("/v1/shadows"), []);
  return /* @__PURE__ */ jsxs30(Fragment20, { children: [
    /* @__PURE__ */ jsx39("h2", { children: "Side by side" }),
    /* @__PURE__ */ jsx39(Loaded, { got, children: (list) => /* @__PURE__ */ jsx39(Shadows, { of: list }) })
  ] });
}
function Shadows({ of }) {
  const [provider, setProvider] = useState17("");
  const [before, setBefore] = useState17([]);
  const at3 = before.at(-1);
  const [got] = useLoad(() => post("/v1/shadows/answers", {
    limit: pageSize2,
    ...at3 ? { before: at3 } : {},
    ...provider ? { provider } : {}
  }), [provider, at3]);
  return /* @__PURE__ */ jsxs30(Fragment20, { children: [
    /* @__PURE__ */ jsxs30("p", { class: "lead", children: [
      /* @__PURE__ */ jsx39(Words, { children: of.serving }),
      " serves. A shadow gets every event, too, and is asked a share of the questions after the agent has its answer. No agent sees what it says."
    ] }),
    /* @__PURE__ */ jsx39("div", { class: "card", children: /* @__PURE__ */ jsx39(Table, { caption: "Shadows", heads, rows: of.shadows.map(row) }) }),
    /* @__PURE__ */ jsx39("h2", { children: "Questions, the newest first" }),
    /* @__PURE__ */ jsx39("form", { onSubmit: (e) => e.preventDefault(), children: /* @__PURE__ */ jsxs30("label", { children: [
      "Shadow",
      /* @__PURE__ */ jsxs30("select", { value: provider, onChange: (e) => {
        setProvider(e.currentTarget.value);
        setBefore([]);
      }, children: [
        /* @__PURE__ */ jsx39("option", { value: "", children: "all" }),
        of.shadows.map((s) => /* @__PURE__ */ jsx39("option", { value: s.provider, children: s.provider }))
      ] })
    ] }) }),
    /* @__PURE__ */ jsx39(Loaded, { got, children: (page) => /* @__PURE__ */ jsxs30(Fragment20, { children: [
      page.answers.length === 0 ? /* @__PURE__ */ jsx39(Empty, { children: /* @__PURE__ */ jsx39("p", { children: "No question was asked of a shadow yet." }) }) : byQuestion(page.answers).map((answers) => /* @__PURE__ */ jsx39(Question, { answers })),
      /* @__PURE__ */ jsxs30("p", { class: "buttons", children: [
        /* @__PURE__ */ jsx39("button", { type: "button", disabled: before.length === 0, onClick: () => setBefore(before.slice(0, -1)), children: "Newer" }),
        /* @__PURE__ */ jsx39("button", { type: "button", disabled: !page.next, onClick: () => setBefore([...before, page.next ?? ""]), children: "Older" })
      ] })
    ] }) })
  ] });
}
var number = (n, digits = 3) => n === void 0 || n === null ? "not known" : String(Number(n.toPrecision(digits)));
var heads = ["memory", "state", "events", "asked", "answers", "errors", "tokens", "ms at p50", "same turns"];
function row({ provider, state: is, progress: p, sample_percent: share, report: r }) {
  return [
    provider,
    /* @__PURE__ */ jsx39(State, { of: is }),
    `${p.done} of ${p.events}`,
    `${share} %`,
    r.answers,
    r.failed,
    `${number(r.tokens_mean)} / ${number(r.serving_tokens_mean)}`,
    `${number(r.latency_p50_ms)} / ${number(r.serving_p50_ms)}`,
    r.overlap_mean === void 0 ? "not known" : `${number(100 * r.overlap_mean)} %`
  ];
}
function byQuestion(answers) {
  const groups = /* @__PURE__ */ new Map();
  for (const a of answers) {
    const key2 = JSON.stringify([a.at, a.query, a.scope, a.session_id]);
    groups.set(key2, [...groups.get(key2) ?? [], a]);
  }
  return [...groups.values()];
}
function Question({ answers }) {
  const first = answers[0];
  const served = new Set(lines2(first.serving_context));
  const answered = answers.filter((a) => !a.error);
  const others = answered.length === 0 ? served : new Set(answered.flatMap((a) => lines2(a.formatted_context ?? "")));
  return /* @__PURE__ */ jsxs30("section", { class: "question card", children: [
    /* @__PURE__ */ jsx39("h3", { children: /* @__PURE__ */ jsx39(Words, { children: first.query }) }),
    /* @__PURE__ */ jsxs30("p", { class: "quiet", children: [
      /* @__PURE__ */ jsx39(Time, { at: first.at }),
      " ",
      /* @__PURE__ */ jsx39(Words, { children: nameOf(first.scope) }),
      ", session ",
      /* @__PURE__ */ jsx39(Words, { children: first.session_id })
    ] }),
    /* @__PURE__ */ jsxs30("div", { class: "columns", children: [
      /* @__PURE__ */ jsx39(
        Column,
        {
          name: first.serving,
          role: "serves",
          context: first.serving_context,
          other: others,
          about: [["tokens", first.serving_tokens], ["took", `${first.serving_latency_ms} ms`]]
        }
      ),
      answers.map((a) => a.error ? /* @__PURE__ */ jsxs30("section", { children: [
        /* @__PURE__ */ jsx39("h4", { children: /* @__PURE__ */ jsx39(Words, { children: a.provider }) }),
        /* @__PURE__ */ jsx39(Failure, { of: a.error })
      ] }) : /* @__PURE__ */ jsx39(
        Column,
        {
          name: a.provider,
          role: "shadow",
          context: a.formatted_context ?? "",
          other: served,
          about: [
            ["tokens", a.tokens],
            ["took", `${a.latency_ms} ms`],
            ["turns", a.overlap === void 0 ? "one of the two names none" : `${a.both} of both, ${a.only_serving} only of ${a.serving}, ${a.only_shadow} only of ${a.provider}`],
            ["had not yet", a.behind ? `${a.behind} events` : ""]
          ]
        }
      ))
    ] })
  ] });
}
function Column({ name, role, context, other, about: about2 }) {
  return /* @__PURE__ */ jsxs30("section", { children: [
    /* @__PURE__ */ jsxs30("h4", { children: [
      /* @__PURE__ */ jsx39(Words, { children: name }),
      ` (${role})`
    ] }),
    context === "" ? /* @__PURE__ */ jsx39("p", { children: "There is no memory for this question." }) : /* @__PURE__ */ jsx39("pre", { dir: "auto", tabIndex: 0, "aria-label": `Context of ${name}`, class: "words", children: context.split("\n").map((line) => [
      lines2(line).some((l) => !other.has(l)) ? /* @__PURE__ */ jsx39("mark", { class: "e0", title: "the other side has no such line", children: line }) : line,
      "\n"
    ]) }),
    /* @__PURE__ */ jsx39(Facts, { of: about2 })
  ] });
}

// src/views/Token.tsx
import { useState as useState18 } from "./preact.js";
import { jsx as jsx40, jsxs as jsxs31 } from "./preact.js";
function Token({ first, enter: enter2 }) {
  const [token, setToken] = useState18("");
  const [wrong, setWrong] = useState18(first);
  const submit = async (e) => {
    e.preventDefault();
    useToken(token);
    try {
      await get("/v1/mode");
      enter2();
    } catch (e2) {
      setWrong(e2);
    }
  };
  return /* @__PURE__ */ jsxs31("section", { class: "card narrow", children: [
    /* @__PURE__ */ jsx40("h2", { children: "This slot wants a token" }),
    /* @__PURE__ */ jsx40("p", { children: "Open the page with the link that memhost run printed, which works once; or give the slot's token (MEMHOST_TOKEN). It is kept in this page only." }),
    /* @__PURE__ */ jsxs31("form", { onSubmit: submit, children: [
      /* @__PURE__ */ jsxs31("label", { children: [
        "Token",
        /* @__PURE__ */ jsx40(
          "input",
          {
            type: "password",
            autoComplete: "off",
            required: true,
            value: token,
            onInput: (e) => setToken(e.currentTarget.value)
          }
        )
      ] }),
      /* @__PURE__ */ jsx40("button", { class: "act", children: "Open" })
    ] }),
    /* @__PURE__ */ jsx40(Failure, { of: wrong })
  ] });
}

// src/views/Turns.tsx
import { useEffect as useEffect10, useRef as useRef10, useState as useState19 } from "./preact.js";
import { Fragment as Fragment21, jsx as jsx41, jsxs as jsxs32 } from "./preact.js";
var open3 = ["queued", "pending", "partial", "uncertain", "sent", "lost", "failed"];
var filters = {
  all: [],
  open: open3,
  lost: ["lost", "failed"],
  committed: ["committed"],
  "not retained": ["not_retained"]
};
var pageSize3 = 100;
function Turns({ about: about2 }) {
  const [got] = useLoad(() => Promise.all([choices(), get("/v1/manifest")]), []);
  return /* @__PURE__ */ jsxs32(Fragment21, { children: [
    /* @__PURE__ */ jsx41("h2", { children: "Turns" }),
    /* @__PURE__ */ jsx41(Loaded, { got, children: ([found, manifest]) => found.list.length === 0 ? /* @__PURE__ */ jsx41(Nothing, {}) : /* @__PURE__ */ jsx41(List2, { found, manifest, about: about2 }) })
  ] });
}
function List2({ found, manifest, about: about2 }) {
  const slot = useSlot();
  const can = (capability) => manifest.capabilities.capabilities.includes(capability);
  const tells = can("provenance");
  const texts2 = Boolean(manifest.archive);
  const changes = slot.settings.mode === "on";
  const forgets = changes && (can("forget") || texts2);
  const [name, setName] = useState19(about2.scope ?? nameOf(found.list[0].scope));
  const [filter, setFilter] = useState19("all");
  const [session, setSession] = useState19(about2.session ?? "");
  const [before, setBefore] = useState19([]);
  const native = useRef10(null);
  const [where, start, clear] = useDoing();
  const scope = scopeOf(found, name);
  const at3 = before.at(-1) ?? "";
  const [page, again] = useLoad(async () => ({ of: name, ...await events(
    {
      scope,
      ...at3 ? { after: at3 } : {},
      ...session ? { session_id: session } : {},
      ...filters[filter].length > 0 ? { states: filters[filter] } : {}
    },
    pageSize3
  ) }), [name, filter, session, at3]);
  const soon = useRef10(0);
  useEffect10(() => () => clearTimeout(soon.current), []);
  useLines((line) => {
    const changed = /^(record_event|record_events|reset_scope|forget|readiness|wait_until_ready)$/;
    if (!changed.test(line.operation ?? "") || soon.current) return;
    soon.current = window.setTimeout(() => {
      soon.current = 0;
      void again();
    }, 1e3);
  });
  useEffect10(() => {
    if (about2.event) void show(about2.event);
  }, []);
  const anew = (change) => {
    change();
    setBefore([]);
    clear();
  };
  const show = (id) => start("asking", async () => {
    const [said, has] = await Promise.all([
      texts2 ? post("/v1/archive/page", { scope, event_id: id, limit: 1 }).catch((e) => e) : null,
      tells ? post("/v1/provenance", { scope, event_id: id, limit: 50 }) : null
    ]);
    const event = said instanceof Error ? void 0 : said?.events?.[0];
    return /* @__PURE__ */ jsxs32("div", { class: "card", children: [
      /* @__PURE__ */ jsxs32("h2", { children: [
        "What was said in ",
        /* @__PURE__ */ jsx41(Words, { children: id })
      ] }),
      event ? /* @__PURE__ */ jsxs32("div", { children: [
        /* @__PURE__ */ jsx41(Facts, { of: [["session", event.session_id], ["turn", event.turn_id], ["at", /* @__PURE__ */ jsx41(Time, { at: event.timestamp })]] }),
        event.messages.map((m) => /* @__PURE__ */ jsxs32("p", { children: [
          /* @__PURE__ */ jsxs32("b", { children: [
            /* @__PURE__ */ jsx41(Words, { children: m.name || m.role }),
            ": "
          ] }),
          /* @__PURE__ */ jsx41(Words, { children: m.content ?? "" })
        ] }))
      ] }) : /* @__PURE__ */ jsx41("p", { children: said instanceof Error ? said.message : texts2 ? "The archive does not have this event." : "The slot keeps no text of an event unless memory.archive is on." }),
      /* @__PURE__ */ jsx41("h2", { children: "What memory has of it" }),
      has ? /* @__PURE__ */ jsx41(Held, { of: has, scope: name, origins }) : /* @__PURE__ */ jsx41("p", { children: "This provider does not say what it has of an event." })
    ] });
  });
  const origins = (id) => start("asking the provider", async () => {
    const p = await post("/v1/provenance", { scope, native_id: id, limit: 50 });
    return /* @__PURE__ */ jsxs32("div", { class: "card", children: [
      /* @__PURE__ */ jsxs32("h2", { children: [
        "Where ",
        /* @__PURE__ */ jsx41(Words, { children: id }),
        " came from"
      ] }),
      /* @__PURE__ */ jsx41(Held, { of: p, scope: name, origins })
    ] });
  });
  const forget = async (what, called) => {
    const rest = can("forget") ? `${manifest.provider} removes what it made of it, as far as it can, and says what may remain.` : `${manifest.provider} cannot forget: what it holds stays until the scope is erased.`;
    if (!await confirm("Forget this?", `The ${called} leaves the archive and is not recorded again. ${rest} Nothing brings it back.`, "Forget it")) return;
    await start("forgetting", async () => {
      const r = await post("/v1/forget", { scope, ...what, reason: "asked on the page" });
      await again();
      return /* @__PURE__ */ jsxs32("div", { class: "card", children: [
        /* @__PURE__ */ jsxs32("h2", { children: [
          "Forgotten: ",
          /* @__PURE__ */ jsx41(Words, { children: called })
        ] }),
        /* @__PURE__ */ jsx41(Facts, { of: [
          ["status", /* @__PURE__ */ jsx41(State, { of: r.status })],
          ...Object.entries(r.removed).map(([type, ids]) => [`removed: ${type}`, `${ids?.length ?? 0}: ${(ids ?? []).slice(0, 20).join(", ")}`]),
          ["may remain", r.derived_may_remain.length === 0 ? "nothing" : r.derived_may_remain],
          ["outside", r.outside ?? "nothing"]
        ] })
      ] });
    });
  };
  const erase = async () => {
    if (!await confirm("Erase this scope's memory?", `All that ${manifest.provider} holds of ${name} is removed, as far as the provider can. Nothing brings it back.`, "Erase it")) return;
    await start("erasing", async () => {
      const r = await post("/v1/scopes/reset", scope);
      setBefore([]);
      await again();
      return /* @__PURE__ */ jsxs32("div", { class: "card", children: [
        /* @__PURE__ */ jsxs32("h2", { children: [
          "Erased: ",
          /* @__PURE__ */ jsx41(Words, { children: name })
        ] }),
        /* @__PURE__ */ jsx41(Facts, { of: [
          ["status", /* @__PURE__ */ jsx41(State, { of: r.status })],
          ["generation", r.new_generation],
          ["remains", r.remains]
        ] })
      ] });
    });
  };
  const row2 = (e) => [
    e.event_id,
    e.session_id ? /* @__PURE__ */ jsx41(Link, { to: "turns", about: { scope: name, session: e.session_id }, children: /* @__PURE__ */ jsx41(Words, { children: e.session_id }) }) : "",
    /* @__PURE__ */ jsx41(State, { of: e.state }),
    outcome(e, manifest),
    /* @__PURE__ */ jsx41(Time, { at: e.sent_at }),
    /* @__PURE__ */ jsxs32("div", { class: "buttons", children: [
      tells || texts2 ? /* @__PURE__ */ jsx41("button", { type: "button", "aria-label": `Show ${e.event_id}`, onClick: () => show(e.event_id), children: "Show" }) : null,
      forgets ? /* @__PURE__ */ jsx41(
        "button",
        {
          type: "button",
          "aria-label": `Forget ${e.event_id}`,
          onClick: () => forget({ event_ids: [e.event_id] }, `event ${e.event_id}`),
          children: "Forget"
        }
      ) : null
    ] })
  ];
  return /* @__PURE__ */ jsxs32(Fragment21, { children: [
    /* @__PURE__ */ jsxs32("form", { class: "card", onSubmit: (e) => e.preventDefault(), children: [
      /* @__PURE__ */ jsx41(ScopeChoice, { found, value: name, onChange: (n) => anew(() => setName(n)) }),
      /* @__PURE__ */ jsxs32("label", { children: [
        "State",
        /* @__PURE__ */ jsx41("select", { value: filter, onChange: (e) => anew(() => setFilter(e.currentTarget.value)), children: Object.keys(filters).map((f) => /* @__PURE__ */ jsx41("option", { value: f, children: f })) })
      ] }),
      /* @__PURE__ */ jsxs32("label", { children: [
        "Session",
        /* @__PURE__ */ jsx41(
          "input",
          {
            autoComplete: "off",
            spellcheck: false,
            placeholder: "all",
            class: "words",
            value: session,
            onChange: (e) => anew(() => setSession(e.currentTarget.value))
          }
        )
      ] }),
      changes ? /* @__PURE__ */ jsx41("button", { type: "button", class: "danger", onClick: erase, children: "Erase this scope's memory" }) : null,
      forgets && session ? /* @__PURE__ */ jsx41(
        "button",
        {
          type: "button",
          class: "danger",
          onClick: () => forget({ session_id: session }, `session ${session}`),
          children: "Forget this session"
        }
      ) : null
    ] }),
    /* @__PURE__ */ jsx41(Loaded, { got: page, children: (p) => /* @__PURE__ */ jsxs32("div", { class: "card", children: [
      /* @__PURE__ */ jsx41("p", { class: "quiet", children: `Generation ${p.generation}, ${p.events.length} events on this page, in the order of their ids. ` + (texts2 ? "The archive keeps their text" : "The slot keeps no text of them (memory.archive is off)") + (tells ? ", and the provider says what it has of each." : ", and this provider does not say what it has of each.") }),
      /* @__PURE__ */ jsx41(Table, { caption: "Events", heads: ["event", "session", "state", "outcome", "sent", ""], rows: p.events.map(row2) }),
      /* @__PURE__ */ jsxs32("p", { class: "buttons", children: [
        /* @__PURE__ */ jsx41("button", { type: "button", disabled: before.length === 0, onClick: () => setBefore(before.slice(0, -1)), children: "Page before" }),
        /* @__PURE__ */ jsx41("button", { type: "button", disabled: !p.next, onClick: () => setBefore([...before, p.next ?? ""]), children: "Next page" })
      ] })
    ] }, p.of) }),
    tells ? /* @__PURE__ */ jsxs32("form", { onSubmit: (e) => {
      e.preventDefault();
      void origins(native.current?.value ?? "");
    }, children: [
      /* @__PURE__ */ jsxs32("label", { children: [
        "Memory, by the backend's id",
        /* @__PURE__ */ jsx41("input", { ref: native, autoComplete: "off", spellcheck: false, required: true })
      ] }),
      /* @__PURE__ */ jsx41("button", { children: "Where it came from" })
    ] }) : null,
    where
  ] });
}
function Held({ of, scope, origins }) {
  if (of.items.length === 0) return /* @__PURE__ */ jsx41("p", { children: "Nothing." });
  return /* @__PURE__ */ jsx41(Fragment21, { children: of.items.map(({ evidence: e, native }) => /* @__PURE__ */ jsxs32("details", { open: of.items.length < 6, children: [
    /* @__PURE__ */ jsxs32("summary", { children: [
      /* @__PURE__ */ jsx41(Words, { children: e.native_type ?? "" }),
      " ",
      /* @__PURE__ */ jsx41(Words, { children: e.native_id ?? "" }),
      " ",
      /* @__PURE__ */ jsx41(Words, { children: e.text ?? "" })
    ] }),
    /* @__PURE__ */ jsxs32("p", { children: [
      "From turns: ",
      (e.source_event_ids ?? []).length === 0 ? "not known" : e.source_event_ids?.map((id) => [/* @__PURE__ */ jsx41(Link, { to: "turns", about: { scope, event: id }, children: /* @__PURE__ */ jsx41(Words, { children: id }) }), " "])
    ] }),
    e.native_id ? /* @__PURE__ */ jsx41("p", { children: /* @__PURE__ */ jsx41(
      "button",
      {
        type: "button",
        "aria-label": `Where ${e.native_id} came from`,
        onClick: () => origins(e.native_id ?? ""),
        children: "Where it came from"
      }
    ) }) : null,
    /* @__PURE__ */ jsx41(Json, { of: native })
  ] })) });
}
function outcome({ state: is, receipt }, manifest) {
  const ids = receipt?.native_ids ?? [];
  const derived = manifest.health?.consistency_model === "async_derived";
  const kept2 = ids.length === 0 ? "" : `${ids.length} in the backend: ${ids.slice(0, 5).join(", ")}`;
  const outcomes = {
    committed: [derived ? "derived" : "in memory", receipt?.native_ids_kind === "transient" ? "the backend gave what it derived other ids" : kept2],
    not_retained: ["read, and nothing was kept"],
    queued: ["the backend has it and works on it"],
    pending: ["may still come"],
    partial: ["a part of it arrived", kept2],
    uncertain: ["may have arrived or not: record it again, which sends nothing twice"],
    sent: ["may have arrived or not: record it again, which sends nothing twice"],
    lost: ["did not arrive: record it again"],
    failed: ["did not arrive: record it again"]
  };
  return [...outcomes[is] ?? [], ...receipt?.warnings ?? []].filter(Boolean).join("; ");
}

// src/Page.tsx
import { Fragment as Fragment22, jsx as jsx42, jsxs as jsxs33 } from "./preact.js";
var views = [
  { id: "people", title: "People", part: "people", Is: People, stays: true },
  { id: "turns", title: "Turns", part: "people", Is: Turns },
  { id: "ask", title: "Ask", part: "ask", Is: Ask },
  { id: "side", title: "Side by side", part: "ask", Is: Side, needs: "shadows" },
  { id: "live", title: "Live", part: "live", Is: Live },
  { id: "change", title: "Change", part: "change", Is: Change },
  { id: "provider", title: "Provider", part: "change", Is: Provider, needs: "provider" },
  { id: "modules", title: "Modules", part: "change", Is: Modules },
  { id: "runs", title: "Runs", part: "runs", Is: Runs, needs: "runs" }
];
var Mark = () => /* @__PURE__ */ jsx42("svg", { class: "mark", viewBox: "0 0 16 16", "aria-hidden": "true", children: /* @__PURE__ */ jsx42("path", { d: "M2 3h12v10H2zm2 2v2h8V5zm0 4v2h5V9z" }) });
function Page() {
  const [settings, setSettings] = useState20(null);
  const [refused, setRefused] = useState20(null);
  const [inside, setInside] = useState20(false);
  const begin2 = async () => {
    try {
      const s = await enter();
      setSettings(s);
      if (s.token) await get("/v1/mode");
      setInside(true);
    } catch (e) {
      if (e instanceof Problem && e.status === 401) {
        setSettings(await get("settings").catch(() => ({ mode: "read", token: true, views: [] })));
      }
      setRefused(e);
    }
  };
  useEffect11(() => {
    void begin2();
  }, []);
  if (inside && settings) return /* @__PURE__ */ jsx42(Open2, { settings });
  return /* @__PURE__ */ jsxs33(Fragment22, { children: [
    /* @__PURE__ */ jsx42("header", { children: /* @__PURE__ */ jsxs33("h1", { children: [
      /* @__PURE__ */ jsx42(Mark, {}),
      "memhost"
    ] }) }),
    /* @__PURE__ */ jsx42("main", { id: "main", tabIndex: -1, children: refused instanceof Problem && refused.status === 401 ? /* @__PURE__ */ jsx42(Token, { first: refused, enter: () => setInside(true) }) : refused ? /* @__PURE__ */ jsx42(Failure, { of: refused }) : null })
  ] });
}
function Open2({ settings }) {
  const [route, setRoute] = useState20(here);
  const [more, setMore] = useState20([]);
  const [link, setLink] = useState20({ word: "", good: true });
  const [times, setTimes] = useState20(0);
  const [blurred, blur] = useState20(false);
  const listeners2 = useRef11(/* @__PURE__ */ new Set());
  const away = useRef11(false);
  const main2 = useRef11(null);
  const slot = useMemo2(() => ({
    settings: { ...settings, views: [...settings.views, ...more] },
    again: () => setTimes((n) => n + 1),
    onLine: (listen) => {
      listeners2.current.add(listen);
      return () => listeners2.current.delete(listen);
    }
  }), [settings, more]);
  const offered = views.filter((v) => !v.needs || slot.settings.views.includes(v.needs));
  const view = offered.find((v) => v.id === route.view) ?? offered[0];
  const parts = offered.filter((v) => v.id === v.part || v.part === "runs");
  const beside = offered.filter((v) => v.part === view.part);
  useEffect11(() => onRoute(() => {
    setRoute(here());
    main2.current?.focus();
  }), []);
  useEffect11(() => {
    document.title = `${view.title} - memhost`;
  }, [view]);
  useEffect11(() => {
    void follow(keep, (line) => {
      keep(line);
      for (const l of listeners2.current) l(line);
    }, (there, e) => {
      const status = e instanceof Problem ? e.status : 0;
      setLink({ good: there, word: there ? "live" : status === 501 ? "this slot has no live stream" : status === 401 ? "the session ended: open the page with a new link of memhost run" : "the slot is away, trying again" });
      if (there && away.current) slot.again();
      away.current = !there;
    });
    void get("/v1/manifest").then(({ followers, capabilities }) => {
      setMore([
        ...followers?.some((f) => f.role === "shadow") ? ["shadows"] : [],
        ...declares(capabilities, settings.mode) ? ["provider"] : []
      ]);
    }, () => void 0);
  }, []);
  const tab = (v, current) => /* @__PURE__ */ jsx42("li", { children: /* @__PURE__ */ jsx42("a", { href: `#${v.id}`, "aria-current": current ? "page" : void 0, children: v.title }) });
  return /* @__PURE__ */ jsxs33(SlotContext.Provider, { value: slot, children: [
    /* @__PURE__ */ jsx42("a", { class: "skip", href: "#main", children: "Skip to the view" }),
    /* @__PURE__ */ jsxs33("header", { children: [
      /* @__PURE__ */ jsxs33("h1", { children: [
        /* @__PURE__ */ jsx42(Mark, {}),
        "memhost"
      ] }),
      /* @__PURE__ */ jsx42("nav", { "aria-label": "Views", children: /* @__PURE__ */ jsx42("ul", { id: "views", children: parts.map((v) => tab(v, v.part === view.part)) }) }),
      /* @__PURE__ */ jsxs33("div", { class: "tools", children: [
        settings.mode === "on" ? null : /* @__PURE__ */ jsx42("span", { class: "badge", title: "This page was started to read only.", children: "reading only" }),
        /* @__PURE__ */ jsx42("span", { class: "quiet", title: "All times are shown in this time zone.", children: zone }),
        /* @__PURE__ */ jsx42(
          "button",
          {
            type: "button",
            class: "plain",
            "aria-pressed": blurred,
            title: "Hides what people said, for sharing a screen",
            onClick: () => blur(!blurred),
            children: "Blur"
          }
        ),
        /* @__PURE__ */ jsx42("p", { id: "link", role: "status", class: link.good ? "good" : "bad", children: link.word })
      ] })
    ] }),
    /* @__PURE__ */ jsxs33("main", { id: "main", ref: main2, tabIndex: -1, "aria-busy": "true", class: `${blurred ? "blurred " : ""}${link.good ? "" : "stale"}`, children: [
      beside.length > 1 ? /* @__PURE__ */ jsx42("nav", { "aria-label": `Within ${parts.find((p) => p.part === view.part)?.title}`, class: "within", children: /* @__PURE__ */ jsx42("ul", { children: beside.map((v) => tab(v, v === view)) }) }) : null,
      /* @__PURE__ */ jsx42(view.Is, { about: route.about }, `${view.id} ${times} ${view.stays ? "" : JSON.stringify(route.about)}`)
    ] }),
    /* @__PURE__ */ jsx42(Confirm, {})
  ] });
}

// src/main.tsx
import { jsx as jsx43 } from "./preact.js";
var main = document.getElementById("page");
if (main) {
  main.replaceChildren();
  render(/* @__PURE__ */ jsx43(Page, {}), main);
}
