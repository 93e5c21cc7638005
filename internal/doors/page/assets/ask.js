// Ask: a question, and the context as a model would see it.
import { el, facts, json, problem, state, table, time, words } from "./dom.js";
import { get, post } from "./api.js";
import { asked, choice, every, nameOf } from "./scopes.js";

export async function ask(place) {
  const [found, manifest, listed] = await Promise.all([every(), get("/v1/manifest"),
    get("/v1/modules").catch(() => ({ modules: [] }))]);
  if (found.list.length === 0) {
    place.append(el("h2", {}, "Ask"), el("p", {}, "This slot has no scope yet: nothing was recorded."));
    return;
  }
  const scope = choice(found);
  const query = el("input", { required: true, dir: "auto", value: "What is known about the user?" });
  const tokens = el("input", { type: "number", min: 1, value: 1500 });
  const answer = el("div", { role: "status" });
  place.append(el("h2", {}, "Ask"),
    el("p", {}, "A question from here is a real retrieval, which logs and metrics tell apart by origin: page. ",
      costs(manifest, listed.modules)),
    el("form", { onsubmit: async (event) => {
      event.preventDefault();
      answer.replaceChildren("asking");
      try {
        const q = { query: query.value, scope: asked(scope.value()), session_id: "page",
          budget: { max_tokens: Number(tokens.value) } };
        answer.replaceChildren(...shown(await post("/v1/retrieve", q), scope.value()));
      } catch (e) {
        answer.replaceChildren(problem(e));
      }
    } }, scope.node, el("label", { class: "wide" }, "Question", query), el("label", {}, "Tokens", tokens), el("button",
      {}, "Ask")),
    answer);
}

// costs says beforehand what a question costs, as the serving module's manifest declares it. A module that declares
// nothing is announced wherever it asks something on the network.
function costs(manifest, modules) {
  const declared = modules.find((m) => m.sha256 === manifest.module.sha256)?.manifest;
  const calls = declared?.model_calls?.filter((c) => c.operation === "retrieve" && meets(manifest.config, c));
  if (calls?.length === 0 || (declared && !calls && (declared.origins ?? []).length === 0)) {
    return "A question costs no model call with this provider.";
  }
  if (calls) {
    const each = calls.map((c) => `a call of ${c.model === "language" ? "a language" : "an embedding"} model ` +
      `(${c.about})`);
    return el("strong", { class: "wait" }, "A question costs what an agent's question costs: ",
      words(each.join("; ")), ".");
  }
  return el("strong", { class: "wait" },
    `${manifest.provider} asks a backend, which may call a model: a question may cost what an agent's question costs.`);
}

// meets tells whether a declaration counts with the effective configuration.
function meets(config, { pointer, equals }) {
  if (!pointer) return true;
  const at = pointer.slice(1).split("/").reduce((v, k) => v?.[k.replaceAll("~1", "/").replaceAll("~0", "~")], config);
  return at !== undefined && at !== null && (equals === undefined || JSON.stringify(at) === JSON.stringify(equals));
}

function shown(r, scope) {
  const t = r.trace ?? {};
  return [el("div", { class: "columns" },
    el("section", {}, el("h2", {}, "Context"),
      r.formatted_context === "" ? el("p", {}, "There is no memory for this question.") : coloured(r.formatted_context,
        r.evidence),
      facts([["tokens", t.token_count], ["cut", t.truncated ? "yes" : ""], ["complete", t.consistency ?
        state(t.consistency) : null], ["warnings", t.warnings]])),
    el("section", {}, el("h2", {}, "Evidence"), table("Evidence", ["rank", "text", "score", "time", "from turns"],
      r.evidence.map((e, i) => [el("mark", { class: `e${i % 6}` }, String(e.rank)),
        e.text || shownText(r.formatted_context, e) || e.native_id,
        e.score === undefined ? "" : Number(e.score.toPrecision(4)), time(e.valid_at || e.created_at),
        el("span", {}, (e.source_event_ids ?? []).map((id) => [el("a",
          { href: `#turns?${new URLSearchParams({ scope: nameOf(scope), event: id })}` },
          words(id)), " "]).flat())])))),
  el("h2", {}, "Native calls"), calls(t),
  el("details", {}, el("summary", {}, "Raw: the backend's answers as they came"), json(r.raw)),
  el("details", {}, el("summary", {}, "Trace"), json(t))];
}

// shownText is what the context has of an item, "" where it has nothing.
const shownText = (context, e) => (e.shown ?
  new TextDecoder().decode(new TextEncoder().encode(context).subarray(e.shown.start, e.shown.end)) : "");

// coloured is the context with each item in the colour of its evidence. Ranges are bytes of UTF-8.
function coloured(context, evidence) {
  const bytes = new TextEncoder().encode(context);
  const text = (from, to) => new TextDecoder().decode(bytes.subarray(from, to));
  const ranges = evidence.map((e, i) => ({ ...e.shown, i, rank: e.rank })).filter((s) => s.end > s.start).sort((a, b) =>
    a.start - b.start);
  const pre = el("pre", { dir: "auto", tabindex: "0" });
  let at = 0;
  for (const s of ranges) {
    if (s.start < at || s.end > bytes.length) continue; // inside one that is shown already
    pre.append(text(at, s.start), el("mark", { class: `e${s.i % 6}`, title: `evidence ${s.rank}` }, text(s.start,
      s.end)));
    at = s.end;
  }
  pre.append(text(at, bytes.length));
  return pre;
}

// calls shows the native calls on the time of the operation, as a waterfall.
function calls(t) {
  const total = t.latency_ms || 1;
  const rows = (t.io ?? []).map((c) => [c.route, c.class, c.status, `${c.bytes_out} / ${c.bytes_in}`,
    c.start_ms === undefined ? "" : c.start_ms, c.ms, lane(c, total)]);
  return el("div", {}, rows.length === 0 ? el("p", {}, "The backend was not asked.") : table("Native calls",
    ["route", "class", "status", "bytes out / in", "from ms", "ms", `0 to ${total} ms`], rows),
  facts([["whole operation", `${t.latency_ms} ms`], ["in the backend", `${t.backend_ms} ms`], ["in the plugin",
    `${t.plugin_ms} ms`], ["in the host", `${t.host_ms} ms`]]));
}

// lane is a call as a bar from its start to its end.
function lane(call, total) {
  const percent = (ms) => `${Math.min(100, 100 * ms / total)}%`;
  const bar = el("span", { class: call.class });
  bar.style.insetInlineStart = percent(call.start_ms ?? 0);
  bar.style.inlineSize = percent(call.ms);
  return el("div", { class: "lane", role: "img",
    "aria-label": `${call.route}: ${call.ms} ms from ${call.start_ms ?? "an unknown time"} of ${total} ms` }, bar);
}
