// Turns: a scope's events with their outcome, a page at a time, and where memory came from.
import { confirm, el, facts, json, problem, state, table, time, words } from "./dom.js";
import { get, post } from "./api.js";
import { asked, choice, every, nameOf } from "./scopes.js";

const open = ["queued", "pending", "partial", "uncertain", "sent", "lost", "failed"];
const filters = { all: [], open, lost: ["lost", "failed"], committed: ["committed"], "not retained": ["not_retained"] };

export async function turns(place, slot, wanted) {
  const [found, can] = await Promise.all([every(), get("/v1/capabilities")]);
  const tells = can.capabilities.includes("provenance");
  if (found.list.length === 0) {
    place.append(el("h2", {}, "Turns"), el("p", {}, "This slot has no scope yet: nothing was recorded."));
    return null;
  }
  const scope = choice(found, wanted.get("scope"));
  const filter = el("select", {}, Object.keys(filters).map((name) => el("option", {}, name)));
  const [list, where] = [el("div", { role: "status" }), el("div", { role: "status" })];
  const before = []; // where the pages before this one began
  let at = "";
  const read = async () => {
    try {
      const q = { scope: asked(scope.value()), limit: 100, ...(at ? { after: at } : {}) };
      if (filters[filter.value].length > 0) q.states = filters[filter.value];
      const page = await post("/v1/events/list", q);
      list.replaceChildren(...rows(page), el("p", { class: "buttons" },
        el("button", { type: "button", disabled: before.length === 0, onclick: () => { at = before.pop(); read(); } },
          "Page before"),
        el("button", { type: "button", disabled: !page.next,
          onclick: () => { before.push(at); at = page.next; read(); } }, "Next page")));
    } catch (e) {
      list.replaceChildren(problem(e));
    }
  };
  const rows = (page) => [el("p", {},
    `Generation ${page.generation}, ${page.events.length} events on this page, in the order of their ids. ` +
    "The slot keeps no text of them" +
    (tells ? ": Memory asks the provider what it has." : ", and this provider does not tell what it made of each.")),
    table("Events", ["event", "state", "sent", "in the backend", "says", ""], page.events.map((e) => [e.event_id,
      state(e.state), time(e.sent_at),
      (e.receipt?.native_ids ?? []).slice(0, 5).join(", "), (e.receipt?.warnings ?? []).join("; "),
      tells ? el("button", { type: "button", "aria-label": `What memory has of ${e.event_id}`, onclick: () =>
        trace(e.event_id) }, "Memory") : ""]))];
  const trace = async (id) => {
    if (!tells) {
      where.replaceChildren(el("p", {}, words(id),
        ": this provider does not say what it has of an event, and the slot keeps no text."));
      return;
    }
    where.replaceChildren("asking the provider");
    try {
      const p = await post("/v1/provenance", { scope: asked(scope.value()), event_id: id, limit: 50 });
      where.replaceChildren(el("h2", {}, "What memory has of ", words(id)), ...(p.items.length === 0 ? [el("p", {},
        "Nothing.")] : p.items.map((i) =>
        el("details", {}, el("summary", {}, words(i.evidence.native_id ?? ""), " ", words(i.evidence.text ?? "")),
          json(i.native)))));
    } catch (e) {
      where.replaceChildren(problem(e));
    }
    where.scrollIntoView();
  };
  // erase resets the scope, once a person has read what that does.
  const erase = async () => {
    const name = nameOf(scope.value());
    if (!await confirm("Erase this scope's memory?", `All that the backend has of ${name} is erased, and nothing ` +
      "brings it back. What the backend cannot remove is told afterwards.", "Erase it")) return;
    where.replaceChildren("erasing");
    try {
      const r = await post("/v1/scopes/reset", asked(scope.value()));
      await again();
      where.replaceChildren(el("h2", {}, "Erased: ", words(name)), facts([["status", state(r.status)],
        ["generation", r.new_generation], ["remains", r.remains]]));
    } catch (e) {
      where.replaceChildren(problem(e));
    }
  };
  const again = () => { at = ""; before.length = 0; where.replaceChildren(); return read(); };
  filter.addEventListener("change", again);
  scope.select.addEventListener("change", again);
  place.append(el("h2", {}, "Turns"), el("form", { onsubmit: (e) => e.preventDefault() }, scope.node, el("label", {},
    "State", filter), slot.settings.mode === "on" ? el("button", { type: "button", onclick: erase },
    "Erase this scope's memory") : null), list, where);
  await again();
  if (wanted.get("event") && scope.value() &&
    nameOf(scope.value()) === wanted.get("scope")) await trace(wanted.get("event"));
  let soon = 0;
  return (line) => {
    const changes = /^(record_event|record_events|reset_scope|readiness|wait_until_ready)$/;
    if (!changes.test(line.operation ?? "") || soon) return;
    soon = setTimeout(() => { soon = 0; if (place.isConnected) read(); }, 1000);
  };
}
