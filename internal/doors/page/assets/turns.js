// Turns: a scope's events with their outcome, a page at a time, and where memory came from.
import { confirm, el, facts, json, problem, state, table, time, words } from "./dom.js";
import { get, post } from "./api.js";
import { asked, choice, every, nameOf } from "./scopes.js";

const open = ["queued", "pending", "partial", "uncertain", "sent", "lost", "failed"];
const filters = { all: [], open, lost: ["lost", "failed"], committed: ["committed"], "not retained": ["not_retained"] };

const pageSize = 100;

export async function turns(place, slot, wanted) {
  const [found, manifest] = await Promise.all([every(), get("/v1/manifest")]);
  if (found.list.length === 0) {
    place.append(el("h2", {}, "Turns"), el("p", {}, "This slot has no scope yet: nothing was recorded."));
    return null;
  }
  const can = (capability) => manifest.capabilities.capabilities.includes(capability);
  const tells = can("provenance");
  const texts = Boolean(manifest.archive);
  const changes = slot.settings.mode === "on";
  const forgets = changes && (can("forget") || texts);
  const scope = choice(found, wanted.get("scope"));
  const filter = el("select", {}, Object.keys(filters).map((name) => el("option", {}, name)));
  const session = el("input", { autocomplete: "off", spellcheck: "false", placeholder: "all",
    value: wanted.get("session") ?? "" });
  const forgetSession = el("button", { type: "button", onclick: () => forget({ session_id: session.value },
    `session ${session.value}`) }, "Forget this session");
  const offer = el("span");
  const [list, where] = [el("div", { role: "status" }), el("div", { role: "status" })];
  const before = []; // where the pages before this one began
  let at = "";
  let reads = 0;
  const read = async () => {
    const turn = ++reads;
    offer.replaceChildren(...(forgets && session.value ? [forgetSession] : []));
    try {
      const page = await filled({ scope: asked(scope.value()), ...(at ? { after: at } : {}),
        ...(session.value ? { session_id: session.value } : {}),
        ...(filters[filter.value].length > 0 ? { states: filters[filter.value] } : {}) });
      if (turn !== reads) return; // a later question's answer is what counts
      list.replaceChildren(...rows(page), el("p", { class: "buttons" },
        el("button", { type: "button", disabled: before.length === 0, onclick: () => { at = before.pop(); read(); } },
          "Page before"),
        el("button", { type: "button", disabled: !page.next,
          onclick: () => { before.push(at); at = page.next; read(); } }, "Next page")));
    } catch (e) {
      if (turn === reads) list.replaceChildren(problem(e));
    }
  };
  const link = (more, text) => {
    const query = new URLSearchParams({ scope: nameOf(scope.value()), ...more });
    return el("a", { href: `#turns?${query}` }, words(text));
  };
  const rows = (page) => [el("p", {},
    `Generation ${page.generation}, ${page.events.length} events on this page, in the order of their ids. ` +
    (texts ? "The archive keeps their text" : "The slot keeps no text of them (memory.archive is off)") +
    (tells ? ", and the provider says what it has of each." : ", and this provider does not say what it has of each.")),
  table("Events", ["event", "session", "state", "outcome", "sent", ""], page.events.map((e) => [e.event_id,
    e.session_id ? link({ session: e.session_id }, e.session_id) : "", state(e.state), outcome(e, manifest),
    time(e.sent_at), el("div", { class: "buttons" },
      tells || texts ? el("button", { type: "button", "aria-label": `Show ${e.event_id}`, onclick: () =>
        show(e.event_id) }, "Show") : null,
      forgets ? el("button", { type: "button", "aria-label": `Forget ${e.event_id}`, onclick: () =>
        forget({ event_ids: [e.event_id] }, `event ${e.event_id}`) }, "Forget") : null)]))];
  // answer shows in its place what make resolves to.
  const answer = async (meanwhile, make) => {
    where.replaceChildren(meanwhile);
    try {
      where.replaceChildren(...await make());
    } catch (e) {
      where.replaceChildren(problem(e));
    }
    where.scrollIntoView();
  };
  // show tells what was said in an event, and what memory has of it.
  const show = (id) => answer("asking", async () => {
    const s = asked(scope.value());
    const [said, has] = await Promise.all([
      texts ? post("/v1/archive/page", { scope: s, event_id: id, limit: 1 }).catch(problem) : null,
      tells ? post("/v1/provenance", { scope: s, event_id: id, limit: 50 }) : null]);
    const event = said?.events?.[0];
    return [el("h2", {}, "What was said in ", words(id)),
      event ? el("div", {}, facts([["session", event.session_id], ["turn", event.turn_id],
        ["at", time(event.timestamp)]]), event.messages.map((m) => el("p", {}, el("b", {}, words(m.name || m.role),
        ": "), words(m.content ?? "")))) :
        said instanceof Node ? said : el("p", {}, texts ? "The archive does not have this event." :
          "The slot keeps no text of an event unless memory.archive is on."),
      el("h2", {}, "What memory has of it"),
      ...(has ? items(has) : [el("p", {}, "This provider does not say what it has of an event.")])];
  });
  // origins tells from which turns an item of memory came.
  const origins = (id) => answer("asking the provider", async () => {
    const p = await post("/v1/provenance", { scope: asked(scope.value()), native_id: id, limit: 50 });
    return [el("h2", {}, "Where ", words(id), " came from"), ...items(p)];
  });
  const items = (p) => (p.items.length === 0 ? [el("p", {}, "Nothing.")] : p.items.map(({ evidence: e, native }) =>
    el("details", { open: p.items.length < 6 }, el("summary", {}, words(e.native_type ?? ""), " ",
      words(e.native_id ?? ""), " ", words(e.text ?? "")),
    el("p", {}, "From turns: ", (e.source_event_ids ?? []).length === 0 ? "not known" :
      e.source_event_ids.flatMap((id) => [link({ event: id }, id), " "])),
    e.native_id ? el("p", {}, el("button", { type: "button", "aria-label": `Where ${e.native_id} came from`,
      onclick: () => origins(e.native_id) }, "Where it came from")) : null, json(native))));
  // forget removes events, once a person has read what that does.
  const forget = async (what, name) => {
    const rest = can("forget") ? `${manifest.provider} removes what it made of it, as far as it can, and says what ` +
      "may remain." : `${manifest.provider} cannot forget: what it holds stays until the scope is erased.`;
    if (!await confirm("Forget this?", `The ${name} leaves the archive and is not recorded again. ${rest} Nothing ` +
      "brings it back.", "Forget it")) return;
    await answer("forgetting", async () => {
      const r = await post("/v1/forget", { scope: asked(scope.value()), ...what, reason: "asked on the page" });
      await read();
      return [el("h2", {}, "Forgotten: ", words(name)), facts([["status", state(r.status)],
        ...Object.entries(r.removed).map(([type, ids]) =>
          [`removed: ${type}`, `${ids.length}: ${ids.slice(0, 20).join(", ")}`]),
        ["may remain", r.derived_may_remain.length === 0 ? "nothing" : r.derived_may_remain],
        ["outside", r.outside ?? "nothing"]])];
    });
  };
  // erase resets the scope, once a person has read what that does.
  const erase = async () => {
    const name = nameOf(scope.value());
    if (!await confirm("Erase this scope's memory?", `All that the backend has of ${name} is erased, and nothing ` +
      "brings it back. What the backend cannot remove is told afterwards.", "Erase it")) return;
    await answer("erasing", async () => {
      const r = await post("/v1/scopes/reset", asked(scope.value()));
      at = "";
      before.length = 0;
      await read();
      return [el("h2", {}, "Erased: ", words(name)), facts([["status", state(r.status)],
        ["generation", r.new_generation], ["remains", r.remains]])];
    });
  };
  const again = () => { at = ""; before.length = 0; where.replaceChildren(); return read(); };
  for (const changed of [filter, session, scope.select]) changed.addEventListener("change", again);
  const native = el("input", { autocomplete: "off", spellcheck: "false", required: true });
  place.append(el("h2", {}, "Turns"), el("form", { onsubmit: (e) => { e.preventDefault(); again(); } }, scope.node,
    el("label", {}, "State", filter), el("label", {}, "Session", session),
    changes ? el("button", { type: "button", onclick: erase }, "Erase this scope's memory") : null,
    offer),
  list, tells ? el("form", { onsubmit: (e) => { e.preventDefault(); origins(native.value); } },
    el("label", {}, "Memory, by the backend's id", native), el("button", {}, "Where it came from")) : "", where);
  await again();
  if (wanted.get("event") && scope.value() &&
    nameOf(scope.value()) === wanted.get("scope")) await show(wanted.get("event"));
  let soon = 0;
  return (line) => {
    const changes = /^(record_event|record_events|reset_scope|forget|readiness|wait_until_ready)$/;
    if (!changes.test(line.operation ?? "") || soon) return;
    soon = setTimeout(() => { soon = 0; if (place.isConnected) read(); }, 1000);
  };
}

// filled is a page of events. The slot looks at 5000 events in a call: a page of a rare state or of one session is
// filled by several calls.
async function filled(q) {
  const page = await post("/v1/events/list", { ...q, limit: pageSize });
  for (let calls = 1; page.next && page.events.length < pageSize && calls < 50; calls++) {
    const more = await post("/v1/events/list", { ...q, after: page.next, limit: pageSize - page.events.length });
    page.events.push(...more.events);
    page.next = more.next;
  }
  return page;
}

// outcome is the outcome of an event in words.
function outcome({ state: is, receipt }, manifest) {
  const ids = receipt?.native_ids ?? [];
  const derived = manifest.health?.consistency_model === "async_derived";
  const kept = ids.length === 0 ? "" : `${ids.length} in the backend: ${ids.slice(0, 5).join(", ")}`;
  const outcomes = {
    committed: [derived ? "derived" : "in memory", receipt?.native_ids_kind === "transient" ?
      "the backend gave what it derived other ids" : kept],
    not_retained: ["read, and nothing was kept"], queued: ["the backend has it and works on it"],
    pending: ["may still come"], partial: ["a part of it arrived", kept],
    uncertain: ["may have arrived or not: record it again, which sends nothing twice"],
    sent: ["may have arrived or not: record it again, which sends nothing twice"],
    lost: ["did not arrive: record it again"], failed: ["did not arrive: record it again"] };
  return [...(outcomes[is] ?? []), ...(receipt?.warnings ?? [])].filter(Boolean).join("; ");
}
