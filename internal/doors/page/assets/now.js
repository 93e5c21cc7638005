// Now: what serves, how it is, what is open, and the changes.
import { confirm, el, facts, problem, state, table, time, words } from "./dom.js";
import { call, get, post } from "./api.js";
import { asked, every, nameOf } from "./scopes.js";

export async function now(place, slot) {
  const [manifest, mode, found] = await Promise.all([get("/v1/manifest"), get("/v1/mode"), every()]);
  const health = el("div", { role: "status" }, "asking the backend");
  const said = el("div", { role: "status" });
  const steps = el("ol");
  manifest.steps.forEach((s) => steps.append(stepOf(s)));
  const open = found.list.filter((s) => s.queued + s.pending + s.lost > 0);
  place.append(
    el("div", { class: "columns" },
      el("section", {}, el("h2", {}, "Serving"), facts([["provider", manifest.provider], ["kind",
        manifest.condition_kind],
        ["module", `${manifest.module.name} ${manifest.module.version}`], ["sha256", manifest.module.sha256],
        ["since", time(manifest.serving_since)], ["load", manifest.load_generation], ["tokenizer", manifest.tokenizer],
        ["mode", mode.read_only ? `read-only${mode.reason ? `: ${mode.reason}` : ""}` : "writable"],
        ["capabilities", manifest.capabilities.capabilities], ["warnings", manifest.warnings]])),
      el("section", {}, el("h2", {}, "Backend"), health, el("h2", {}, "Steps"), steps)),
    el("h2", {}, "What is open"),
    open.length === 0 ? el("p", {}, "Every event of every scope is settled.") :
      table("Scopes with open events", ["scope", "queued", "pending", "lost", ""], open.map((s) => [nameOf(s.scope),
        s.queued,
        s.pending, s.lost, el("button", { type: "button", onclick: () => settle(s.scope, said) }, "Look now")])),
    el("p", {}, `${found.list.length}${found.more ? " or more" : ""} scopes. `, el("a", { href: "#turns" },
      "Their turns")),
    slot.settings.mode === "on" ? changes(mode, manifest, said, slot.again) : el("p", {},
      "This page was started to read only: it offers no changes."),
    said);
  get("/v1/health").then((h) => health.replaceChildren(facts([["status", state(h.status)], ["backend", h.backend_name],
    ["version", h.backend_version], ["isolation", h.isolation], ["consistency", h.consistency_model],
    ["answered in", `${h.latency_ms} ms`], ["warnings", h.warnings]])), (e) => health.replaceChildren(problem(e)));
  let swapping = false;
  return (line) => {
    if (line.kind !== "step") return;
    if (!swapping) steps.replaceChildren(); // a new start or swap
    swapping = line.step.name !== "serve" && line.step.verdict !== "fail";
    steps.append(stepOf(line.step));
    if (line.step.name === "serve" && line.step.verdict === "pass") setTimeout(slot.again, 500); // another one serves
  };
}

const stepOf = (s) => el("li", {}, state(s.verdict), " ", words(s.name), ` ${s.ms} ms `, s.detail ? words(s.detail,
  "small") : null);

// settle asks the backend about the open events of a scope.
async function settle(scope, said) {
  said.replaceChildren("asking the backend");
  try {
    const r = await post("/v1/readiness", { scope: asked(scope), timeout_ms: 0 });
    const ids = Object.entries(r.event_ids).filter(([, list]) => list.length > 0);
    said.replaceChildren(el("p", {}, words(nameOf(scope)), ": ", state(r.status), ` by ${r.method}`),
      facts(ids.map(([name, list]) => [name, list.slice(0, 20)])));
  } catch (e) {
    said.replaceChildren(problem(e));
  }
}

function changes(mode, manifest, said, again) {
  const raise = !mode.read_only;
  const name = el("input", { required: true, autocomplete: "off", spellcheck: "false" });
  const kind = el("select", {}, el("option", { value: "condition" }, "condition"), el("option", { value: "backend" },
    "backend"));
  const config = el("textarea", { rows: 2, cols: 40, spellcheck: "false",
    placeholder: "absent: the block of the slot's configuration" });
  const change = async (title, text, yes, make, done) => {
    if (!await confirm(title, text, yes)) return;
    said.replaceChildren("working");
    try {
      const answer = await make();
      said.replaceChildren(el("p", {}, done(answer)), el("button", { type: "button", onclick: again },
        "Show what holds now"));
    } catch (e) {
      said.replaceChildren(problem(e));
    }
  };
  return el("section", {}, el("h2", {}, "Change"),
    el("p", {}, el("button", { type: "button", onclick: () => change(raise ? "Make the slot read-only?" :
      "Make the slot writable?",
      raise ? "Events are answered with skipped_read_only and are not kept until the slot is writable again." :
        "Events reach the provider again.",
      raise ? "Make it read-only" : "Make it writable",
      () => call("PUT", "/v1/mode", { read_only: raise, reason: raise ? "from the page" : "" }),
      (m) => (m.read_only ? "The slot is read-only." : "The slot is writable.")) }, raise ? "Make read-only" :
        "Make writable")),
    el("form", { onsubmit: (event) => {
      event.preventDefault();
      let block;
      try {
        block = config.value.trim() === "" ? undefined : JSON.parse(config.value);
      } catch (e) {
        said.replaceChildren(problem({ message: `config: ${e.message}` }));
        return;
      }
      change("Exchange the provider?",
        `${manifest.provider} is replaced by ${name.value}. Calls under way end first; when a step fails, ` +
          `${manifest.provider} keeps serving.`,
        "Exchange it", () => post("/v1/swap", { [kind.value]: name.value, ...(block === undefined ? {} :
          { config: block }) }),
        (m) => `${m.provider} serves.`);
    } }, el("label", {}, "Kind", kind), el("label", {}, "Provider", name), el("label", { class: "wide" },
      "Config (JSON)", config),
    el("button", {}, "Exchange")));
}
