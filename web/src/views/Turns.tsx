// Turns: a scope's events with their outcome, a page at a time, and where memory came from.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post } from "../api";
import { choices, events, nameOf, type Found } from "../ask";
import { confirm } from "../parts/Confirm";
import { useDoing } from "../parts/Doing";
import { Facts } from "../parts/Facts";
import { Json } from "../parts/Json";
import { Link } from "../parts/Link";
import { Loaded, useLoad } from "../parts/Loaded";
import { Nothing } from "../parts/Nothing";
import { ScopeChoice, scopeOf } from "../parts/ScopeChoice";
import { State } from "../parts/State";
import { Table } from "../parts/Table";
import { Time } from "../parts/Time";
import { Words } from "../parts/Words";
import { type Query } from "../route";
import { useLines, useSlot } from "../slot";
import type { ArchivePage, ForgetReceipt, ListedEvent, Manifest, Provenance, ResetReceipt } from "../wire";

const open = ["queued", "pending", "partial", "uncertain", "sent", "lost", "failed"];
const filters: Record<string, string[]> = { all: [], open, lost: ["lost", "failed"], committed: ["committed"],
  "not retained": ["not_retained"] };

const pageSize = 100;

export function Turns({ about }: { about: Query }) {
  const [got] = useLoad(() => Promise.all([choices(), get<Manifest>("/v1/manifest")]), []);
  return (
    <>
      <h2>Turns</h2>
      <Loaded got={got}>{([found, manifest]) => (found.list.length === 0 ? <Nothing /> :
        <List found={found} manifest={manifest} about={about} />)}</Loaded>
    </>
  );
}

function List({ found, manifest, about }: { found: Found; manifest: Manifest; about: Query }) {
  const slot = useSlot();
  const can = (capability: string) => manifest.capabilities.capabilities.includes(capability);
  const tells = can("provenance");
  const texts = Boolean(manifest.archive);
  const changes = slot.settings.mode === "on";
  const forgets = changes && (can("forget") || texts);
  const [name, setName] = useState(about.scope ?? nameOf(found.list[0].scope));
  const [filter, setFilter] = useState("all");
  const [session, setSession] = useState(about.session ?? "");
  const [before, setBefore] = useState<string[]>([]); // where this page and those before it began
  const native = useRef<HTMLInputElement>(null);
  const [where, start, clear] = useDoing();
  const scope = scopeOf(found, name);
  const at = before.at(-1) ?? "";
  const [page, again] = useLoad(async () => ({ of: name, ...await events({ scope, ...(at ? { after: at } : {}),
    ...(session ? { session_id: session } : {}), ...(filters[filter].length > 0 ? { states: filters[filter] } : {}) },
  pageSize) }), [name, filter, session, at]);
  const soon = useRef(0);
  useEffect(() => () => clearTimeout(soon.current), []);
  useLines((line) => {
    const changed = /^(record_event|record_events|reset_scope|forget|readiness|wait_until_ready)$/;
    if (!changed.test(line.operation ?? "") || soon.current) return;
    soon.current = window.setTimeout(() => { soon.current = 0; void again(); }, 1000);
  });
  useEffect(() => { if (about.event) void show(about.event); }, []);
  const anew = (change: () => void) => { change(); setBefore([]); clear(); };

  // show tells what was said in an event, and what memory has of it.
  const show = (id: string) => start("asking", async () => {
    const [said, has] = await Promise.all([
      texts ? post<ArchivePage>("/v1/archive/page", { scope, event_id: id, limit: 1 }).catch((e) => e as Error) : null,
      tells ? post<Provenance>("/v1/provenance", { scope, event_id: id, limit: 50 }) : null]);
    const event = said instanceof Error ? undefined : said?.events?.[0];
    return (
      <div class="card">
        <h2>What was said in <Words>{id}</Words></h2>
        {event ? <div><Facts of={[["session", event.session_id], ["turn", event.turn_id], ["at", <Time at={event.timestamp} />]]} />
          {event.messages.map((m) => <p><b><Words>{m.name || m.role}</Words>: </b><Words>{m.content ?? ""}</Words></p>)}</div> :
          <p>{said instanceof Error ? said.message : texts ? "The archive does not have this event." :
            "The slot keeps no text of an event unless memory.archive is on."}</p>}
        <h2>What memory has of it</h2>
        {has ? <Held of={has} scope={name} origins={origins} /> : <p>This provider does not say what it has of an event.</p>}
      </div>
    );
  });
  // origins tells from which turns an item of memory came.
  const origins = (id: string) => start("asking the provider", async () => {
    const p = await post<Provenance>("/v1/provenance", { scope, native_id: id, limit: 50 });
    return <div class="card"><h2>Where <Words>{id}</Words> came from</h2><Held of={p} scope={name} origins={origins} /></div>;
  });
  // forget removes events, once a person has read what that does.
  const forget = async (what: object, called: string) => {
    const rest = can("forget") ? `${manifest.provider} removes what it made of it, as far as it can, and says what may remain.` :
      `${manifest.provider} cannot forget: what it holds stays until the scope is erased.`;
    if (!await confirm("Forget this?", `The ${called} leaves the archive and is not recorded again. ${rest} Nothing brings it ` +
      "back.", "Forget it")) return;
    await start("forgetting", async () => {
      const r = await post<ForgetReceipt>("/v1/forget", { scope, ...what, reason: "asked on the page" });
      await again();
      return (
        <div class="card">
          <h2>Forgotten: <Words>{called}</Words></h2>
          <Facts of={[["status", <State of={r.status} />], ...Object.entries(r.removed).map(([type, ids]): [string, string] =>
            [`removed: ${type}`, `${ids?.length ?? 0}: ${(ids ?? []).slice(0, 20).join(", ")}`]),
          ["may remain", r.derived_may_remain.length === 0 ? "nothing" : r.derived_may_remain],
          ["outside", r.outside ?? "nothing"]]} />
        </div>
      );
    });
  };
  // erase resets the scope, once a person has read what that does.
  const erase = async () => {
    if (!await confirm("Erase this scope's memory?", `All that ${manifest.provider} holds of ${name} is removed, as far as the ` +
      "provider can. Nothing brings it back.", "Erase it")) return;
    await start("erasing", async () => {
      const r = await post<ResetReceipt>("/v1/scopes/reset", scope);
      setBefore([]);
      await again();
      return <div class="card"><h2>Erased: <Words>{name}</Words></h2><Facts of={[["status", <State of={r.status} />],
        ["generation", r.new_generation], ["remains", r.remains]]} /></div>;
    });
  };
  const row = (e: ListedEvent) => [e.event_id,
    e.session_id ? <Link to="turns" about={{ scope: name, session: e.session_id }}><Words>{e.session_id}</Words></Link> : "",
    <State of={e.state} />, outcome(e, manifest), <Time at={e.sent_at} />,
    <div class="buttons">
      {tells || texts ? <button type="button" aria-label={`Show ${e.event_id}`} onClick={() => show(e.event_id)}>Show</button> : null}
      {forgets ? <button type="button" aria-label={`Forget ${e.event_id}`}
        onClick={() => forget({ event_ids: [e.event_id] }, `event ${e.event_id}`)}>Forget</button> : null}
    </div>];
  return (
    <>
      <form class="card" onSubmit={(e) => e.preventDefault()}>
        <ScopeChoice found={found} value={name} onChange={(n) => anew(() => setName(n))} />
        <label>State<select value={filter} onChange={(e) => anew(() => setFilter(e.currentTarget.value))}>
          {Object.keys(filters).map((f) => <option value={f}>{f}</option>)}</select></label>
        <label>Session<input autoComplete="off" spellcheck={false} placeholder="all" class="words" value={session}
          onChange={(e) => anew(() => setSession(e.currentTarget.value))} /></label>
        {changes ? <button type="button" class="danger" onClick={erase}>Erase this scope's memory</button> : null}
        {forgets && session ? <button type="button" class="danger"
          onClick={() => forget({ session_id: session }, `session ${session}`)}>Forget this session</button> : null}
      </form>
      <Loaded got={page}>{(p) => (
        <div key={p.of} class="card">
          <p class="quiet">{`Generation ${p.generation}, ${p.events.length} events on this page, in the order of their ids. ` +
            (texts ? "The archive keeps their text" : "The slot keeps no text of them (memory.archive is off)") +
            (tells ? ", and the provider says what it has of each." : ", and this provider does not say what it has of each.")}</p>
          <Table caption="Events" heads={["event", "session", "state", "outcome", "sent", ""]} rows={p.events.map(row)} />
          <p class="buttons">
            <button type="button" disabled={before.length === 0} onClick={() => setBefore(before.slice(0, -1))}>Page before</button>
            <button type="button" disabled={!p.next} onClick={() => setBefore([...before, p.next ?? ""])}>Next page</button>
          </p>
        </div>
      )}</Loaded>
      {tells ? <form onSubmit={(e) => { e.preventDefault(); void origins(native.current?.value ?? ""); }}>
        <label>Memory, by the backend's id<input ref={native} autoComplete="off" spellcheck={false} required /></label>
        <button>Where it came from</button></form> : null}
      {where}
    </>
  );
}

// Held lists items of memory with the turns that they came from.
function Held({ of, scope, origins }: { of: Provenance; scope: string; origins: (id: string) => void }) {
  if (of.items.length === 0) return <p>Nothing.</p>;
  return <>{of.items.map(({ evidence: e, native }) => (
    <details open={of.items.length < 6}>
      <summary><Words>{e.native_type ?? ""}</Words> <Words>{e.native_id ?? ""}</Words> <Words>{e.text ?? ""}</Words></summary>
      <p>From turns: {(e.source_event_ids ?? []).length === 0 ? "not known" : e.source_event_ids?.map((id) =>
        [<Link to="turns" about={{ scope, event: id }}><Words>{id}</Words></Link>, " "])}</p>
      {e.native_id ? <p><button type="button" aria-label={`Where ${e.native_id} came from`}
        onClick={() => origins(e.native_id ?? "")}>Where it came from</button></p> : null}
      <Json of={native} />
    </details>
  ))}</>;
}

// outcome is the outcome of an event in words.
function outcome({ state: is, receipt }: ListedEvent, manifest: Manifest) {
  const ids = receipt?.native_ids ?? [];
  const derived = manifest.health?.consistency_model === "async_derived";
  const kept = ids.length === 0 ? "" : `${ids.length} in the backend: ${ids.slice(0, 5).join(", ")}`;
  const outcomes: Record<string, string[]> = {
    committed: [derived ? "derived" : "in memory", receipt?.native_ids_kind === "transient" ?
      "the backend gave what it derived other ids" : kept],
    not_retained: ["read, and nothing was kept"], queued: ["the backend has it and works on it"],
    pending: ["may still come"], partial: ["a part of it arrived", kept],
    uncertain: ["may have arrived or not: record it again, which sends nothing twice"],
    sent: ["may have arrived or not: record it again, which sends nothing twice"],
    lost: ["did not arrive: record it again"], failed: ["did not arrive: record it again"] };
  return [...(outcomes[is] ?? []), ...(receipt?.warnings ?? [])].filter(Boolean).join("; ");
}
