// Side by side: what an agent got, and what the slot's shadows would have said to the same question.
import { el, facts, problem, state, table, time, words } from "./dom.js";
import { get, post } from "./api.js";
import { nameOf } from "./scopes.js";

const pageSize = 10; // questions come with whole contexts

export async function side(place) {
  const { serving, shadows } = await get("/v1/shadows");
  const answers = el("div", { role: "status" });
  const provider = el("select", {}, el("option", { value: "" }, "all"),
    shadows.map((s) => el("option", {}, s.provider)));
  const before = []; // where the pages before this one began
  let at = "";
  let reads = 0;
  const read = async () => {
    const turn = ++reads;
    try {
      const page = await post("/v1/shadows/answers", { limit: pageSize, ...(at ? { before: at } : {}),
        ...(provider.value ? { provider: provider.value } : {}) });
      if (turn !== reads) return; // a later question's answer is what counts
      answers.replaceChildren(...(page.answers.length === 0 ? [el("p", {}, "No question was asked of a shadow yet.")] :
        byQuestion(page.answers).map(question)), el("p", { class: "buttons" },
        el("button", { type: "button", disabled: before.length === 0, onclick: () => { at = before.pop(); read(); } },
          "Newer"),
        el("button", { type: "button", disabled: !page.next,
          onclick: () => { before.push(at); at = page.next; read(); } }, "Older")));
    } catch (e) {
      if (turn === reads) answers.replaceChildren(problem(e));
    }
  };
  provider.addEventListener("change", () => { at = ""; before.length = 0; read(); });
  place.append(el("h2", {}, "Side by side"), el("p", {}, words(serving), " serves. A shadow gets every event, too, " +
    "and is asked a share of the questions after the agent has its answer. No agent sees what it says."),
  table("Shadows", heads, shadows.map(row)), el("h2", {}, "Questions, the newest first"),
  el("form", { onsubmit: (e) => e.preventDefault() }, el("label", {}, "Shadow", provider)), answers);
  await read();
  return null;
}

const number = (n, digits = 3) => (n === undefined || n === null ? "not known" : String(Number(n.toPrecision(digits))));

const heads = ["memory", "state", "events", "asked", "answers", "errors", "tokens", "ms at p50", "same turns"];

// row is a shadow beside the serving provider: each figure of a pair is the shadow's, then the serving provider's.
function row({ provider, state: is, progress: p, sample_percent: share, report: r }) {
  return [provider, state(is), `${p.done} of ${p.events}`, `${share} %`, r.answers, r.failed,
    `${number(r.tokens_mean)} / ${number(r.serving_tokens_mean)}`,
    `${number(r.latency_p50_ms)} / ${number(r.serving_p50_ms)}`,
    r.overlap_mean === undefined ? "not known" : `${number(100 * r.overlap_mean)} %`];
}

// byQuestion puts the answers of several shadows to one question together.
function byQuestion(answers) {
  const groups = new Map();
  for (const a of answers) {
    const key = JSON.stringify([a.at, a.query, a.scope, a.session_id]);
    groups.set(key, [...(groups.get(key) ?? []), a]);
  }
  return [...groups.values()];
}

// question shows the contexts beside each other. A line that the other side lacks is marked, unless that has no answer.
function question(answers) {
  const first = answers[0];
  const served = new Set(lines(first.serving_context));
  const answered = answers.filter((a) => !a.error);
  const others = answered.length === 0 ? served : new Set(answered.flatMap((a) => lines(a.formatted_context ?? "")));
  return el("section", { class: "question" }, el("h3", {}, words(first.query)),
    el("p", {}, time(first.at), " ", words(nameOf(first.scope)), ", session ", words(first.session_id)),
    el("div", { class: "columns" },
      column(first.serving, "serves", first.serving_context, others, [["tokens", first.serving_tokens],
        ["took", `${first.serving_latency_ms} ms`]]),
      answers.map((a) => (a.error ? el("section", {}, el("h4", {}, words(a.provider)), problem(a.error)) :
        column(a.provider, "shadow", a.formatted_context ?? "", served, [["tokens", a.tokens],
          ["took", `${a.latency_ms} ms`], ["turns", a.overlap === undefined ? "one of the two names none" :
            `${a.both} of both, ${a.only_serving} only of ${a.serving}, ${a.only_shadow} only of ${a.provider}`],
          ["had not yet", a.behind ? `${a.behind} events` : ""]])))));
}

const lines = (context) => context.split("\n").map((l) => l.trim()).filter((l) => l && !/^<\/?memory-context/.test(l));

function column(name, role, context, other, about) {
  const pre = el("pre", { dir: "auto", tabindex: "0", "aria-label": `Context of ${name}` });
  for (const line of context.split("\n")) {
    const alone = lines(line).some((l) => !other.has(l));
    pre.append(alone ? el("mark", { class: "e0", title: "the other side has no such line" }, line) : line, "\n");
  }
  return el("section", {}, el("h4", {}, words(name), ` (${role})`), context === "" ? el("p", {},
    "There is no memory for this question.") : pre, facts(about));
}
