// Runs: evaluation reports that were found in a folder.
import { el, facts, problem, state, table, time, words } from "./dom.js";
import { get, post } from "./api.js";

export async function runs(place) {
  const found = await get("/v1/runs");
  const shown = el("div", { role: "status" });
  place.append(el("h2", {}, "Runs"));
  if (found.runs.length === 0) {
    place.append(el("p", {}, "The folder server.runs has no run. ", el("code", {}, "memhost eval run"), " makes one."));
    return;
  }
  const heads = ["run", "lab", "begun", "memories", "probes", "verdicts", ""];
  place.append(table("Evaluation runs", heads, found.runs.map((r) => [r.name, r.title ?? "", time(r.begun_at),
    r.providers.join(", "), r.probes, el("span", {}, counts(r)),
    el("button", { type: "button", "aria-label": `Show ${r.name}`, onclick: () => show(r) }, "Show")])),
  found.left_out ? el("p", {}, `${found.left_out} older runs are not listed.`) : "", shown);

  const show = async (r) => {
    shown.replaceChildren(el("h2", {}, words(r.title ?? r.name)), r.problem ? problem({ message: r.problem }) : "",
      facts([["complete", r.complete ? "yes" : "no: what was not asked is missing, not zero"]]),
      r.verdicts.length === 0 ? "" : table("Verdicts", ["check", "", "what was found"], r.verdicts.map((v) => [v.name,
        state(v.outcome), v.detail ?? ""])));
    if (r.report) {
      try {
        // Whatever the report contains, the frame runs no script: an origin of its own would not keep WebRTC off the network.
        const report = await post("/v1/runs/report", { name: r.name });
        shown.append(el("h2", {}, "Report"), el("iframe", { sandbox: "", referrerpolicy: "no-referrer",
          title: `Report of ${r.name}`, src: report.path }));
      } catch (e) {
        shown.append(problem(e));
      }
    }
    shown.scrollIntoView();
  };
}

// counts tells how many verdicts have each outcome.
function counts(r) {
  if (r.problem) return [state("open", "not known")];
  const each = ["good", "bad", "open"].map((o) => [o, r.verdicts.filter((v) => v.outcome === o).length]);
  return each.filter(([, n]) => n > 0).flatMap(([o, n]) => [state(o, `${n} ${o}`), " "]);
}
