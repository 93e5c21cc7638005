// People: a list of whom the slot knows, and of one, what was said beside what the memory made of it.
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import { nameOf, people } from "../ask";
import { Loaded, useLoad } from "../parts/Loaded";
import { Ago } from "../parts/Time";
import { Words } from "../parts/Words";
import { go, type Query } from "../route";
import { partOf } from "../search";
import { useLines } from "../slot";
import type { ListedScope, Manifest } from "../wire";
import { Import } from "./Import";
import { Person } from "./Person";

const shownAtOnce = 100;
const pause = 150; // ms after the last key before a search starts

export function People({ about }: { about: Query }) {
  const chosen = about.scope ?? "";
  const [typed, setTyped] = useState("");
  const [open, setOpen] = useState(false);
  const [asked, ask] = useState({ contains: "", open: false });
  const [got, again] = useLoad(() => people({ contains: asked.contains.trim(), only_open: asked.open }), [asked]);
  // who is chosen, who may not be in the list
  const [one] = useLoad(() => (chosen === "" ? Promise.resolve(undefined) : people({ contains: chosen }).then((p) =>
    p.list.find((s) => nameOf(s.scope) === chosen))), [chosen]);
  const [manifest] = useLoad(() => get<Manifest>("/v1/manifest"), []);
  const [importing, setImporting] = useState(false);
  useEffect(() => {
    if (typed === asked.contains && open === asked.open) return undefined;
    const timer = setTimeout(() => ask({ contains: typed, open }), open === asked.open ? pause : 0);
    return () => clearTimeout(timer);
  }, [typed, open, asked]);
  // the list is read again when somebody comes for the first time, and not with each turn
  const list = got && "data" in got ? got.data.list : undefined;
  const everybody = asked.contains === "" && !asked.open;
  const empty = list?.length === 0 && everybody;
  const [recorded, note] = useState(0);
  useLines((line) => { if (/^(setup_scope|reset_scope|record_events?)$/.test(line.operation ?? "")) note((n) => n + 1); });
  useEffect(() => { if (recorded > 0 && empty && !importing) void again(); }, [recorded]);
  const alone = everybody && list?.length === 1 ? list[0] : undefined;
  const person = chosen === "" ? alone : one && "data" in one ? one.data : undefined;
  return (
    <div class={`people ${person ? "chosen" : ""}`}>
      <section class="list" aria-label="People">
        <h2>People</h2>
        {empty || !got ? null : <form role="search" onSubmit={(e) => e.preventDefault()}>
          <label class="wide">Search by id<input type="search" value={typed} dir="auto" class="words"
            onInput={(e) => setTyped(e.currentTarget.value)} /></label>
          <label class="check"><input type="checkbox" checked={open} onChange={(e) => setOpen(e.currentTarget.checked)} />
            With open matters</label>
        </form>}
        <Loaded got={got}>{({ list: found, more }) => (empty ? null :
          <List list={found} more={more} search={asked.contains} chosen={person ? nameOf(person.scope) : chosen} />)}</Loaded>
        {got ? <Import first={Boolean(empty)} started={() => setImporting(true)} done={() => { setImporting(false); void again(); }} /> : null}
      </section>
      {person && manifest && "data" in manifest ?
        <Person key={`${nameOf(person.scope)} ${about.event}`} of={person} manifest={manifest.data} event={about.event} /> :
        chosen !== "" ? <Loaded got={one}>{(found) => (found ? null :
          <section class="hint quiet"><p>The slot does not know <Words>{chosen}</Words>.</p></section>)}</Loaded> :
          empty || !list ? null :
            <section class="hint quiet"><p>Choose a person to see what was said, and what the memory made of it.</p></section>}
    </div>
  );
}

interface ListProps {
  list: ListedScope[];
  more: boolean;
  search: string;
  chosen: string;
}

function List({ list, more, search, chosen }: ListProps) {
  const wanted = partOf(search);
  return (
    <>
      <p class="quiet" role="status">{`${list.length}${more ? " or more" : ""} ${list.length === 1 ? "person" : "people"}` +
        (list.length > shownAtOnce || more ? `, the first ${Math.min(shownAtOnce, list.length)} are shown: search for others` : "")}</p>
      <ul class="persons">{list.slice(0, shownAtOnce).map((s) => (
        <li key={nameOf(s.scope)}>
          <button type="button" class="person" aria-pressed={nameOf(s.scope) === chosen} onClick={() => go("people", { scope: nameOf(s.scope) })}>
            <span class="grow"><b><Words search={wanted}>{s.scope.persona_id}</Words></b>
              <small><Words search={wanted}>{[s.scope.run_id, s.scope.agent_id].filter(Boolean).join(" / ")}</Words></small></span>
            <span class="quiet figures"><span>{turns(s.events)}</span><Ago at={s.last_at || s.since} /></span>
            {s.queued + s.pending > 0 ? <span class="badge wait">{`${s.queued + s.pending} open`}</span> : null}
            {s.lost > 0 ? <span class="badge bad">{`${s.lost} lost`}</span> : null}
          </button>
        </li>
      ))}</ul>
    </>
  );
}

// turns is a number of turns in words.
export const turns = (n?: number) => (n === undefined ? "" : `${n.toLocaleString("en-GB")} ${n === 1 ? "turn" : "turns"}`);
