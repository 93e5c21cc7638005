// Runs: evaluation reports that were found in a folder.
import { get, post } from "../api";
import { useDoing } from "../parts/Doing";
import { Empty } from "../parts/Empty";
import { Facts } from "../parts/Facts";
import { Failure } from "../parts/Failure";
import { Loaded, useLoad } from "../parts/Loaded";
import { State } from "../parts/State";
import { Table } from "../parts/Table";
import { Time } from "../parts/Time";
import { Words } from "../parts/Words";
import type { Run, RunList } from "../wire";

export function Runs() {
  const [got] = useLoad(() => get<RunList>("/v1/runs"), []);
  const [shown, start] = useDoing();
  const show = (r: Run) => start("reading", async () => {
    const report = r.report ? await post<{ path: string }>("/v1/runs/report", { name: r.name }).catch((e) => e as Error) : null;
    return <Shown run={r} report={report} />;
  });
  return (
    <>
      <h2>Runs</h2>
      <Loaded got={got}>{({ runs, left_out: leftOut }) => (runs.length === 0 ?
        <Empty><p>The folder server.runs has no run. <code>memhost eval run</code> makes one.</p></Empty> :
        <section class="card">
          <Table caption="Evaluation runs" heads={["run", "lab", "begun", "memories", "probes", "verdicts", ""]}
            rows={runs.map((r) => [r.name, r.title ?? "", <Time at={r.begun_at} />, r.providers.join(", "), r.probes,
              <Counts of={r} />, <button type="button" aria-label={`Show ${r.name}`} onClick={() => show(r)}>Show</button>])} />
          {leftOut ? <p>{`${leftOut} older runs are not listed.`}</p> : null}
        </section>)}</Loaded>
      {shown}
    </>
  );
}

function Shown({ run: r, report }: { run: Run; report: { path: string } | Error | null }) {
  return (
    <>
      <section class="card tall">
        <h2><Words>{r.title ?? r.name}</Words></h2>
        {r.problem ? <Failure of={{ message: r.problem }} /> : null}
        <Facts of={[["complete", r.complete ? "yes" : "no: what was not asked is missing, not zero"]]} />
        {r.verdicts.length === 0 ? null : <Table caption="Verdicts" heads={["check", "outcome", "what was found"]}
          rows={r.verdicts.map((v) => [v.name, <State of={v.outcome} />, v.detail ?? ""])} />}
      </section>
      {report instanceof Error ? <Failure of={report} /> : report ? <>
        <h2>Report</h2>
        {/* Whatever the report contains, the frame runs no script: an origin of its own would not keep WebRTC off the network. */}
        <iframe sandbox="" referrerPolicy="no-referrer" title={`Report of ${r.name}`} src={report.path} />
      </> : null}
    </>
  );
}

// Counts tells how many verdicts have each outcome.
function Counts({ of: r }: { of: Run }) {
  if (r.problem) return <State of="open">not known</State>;
  const each = ["good", "bad", "open"].map((o): [string, number] => [o, r.verdicts.filter((v) => v.outcome === o).length]);
  return <span>{each.filter(([, n]) => n > 0).map(([o, n]) => [<State of={o}>{`${n} ${o}`}</State>, " "])}</span>;
}
