// People: a list of whom the slot knows, and of one, what was said beside what the memory made of it.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../api";
import { choices, nameOf, scopes } from "../ask";
import { Loaded, useLoad } from "../parts/Loaded";
import { Time } from "../parts/Time";
import { Words } from "../parts/Words";
import { go, type Query } from "../route";
import { fits, partOf } from "../search";
import { useLines } from "../slot";
import type { ListedScope, Manifest } from "../wire";
import { Import } from "./Import";
import { Person } from "./Person";

const shownAtOnce = 100;
const most = 20_000; // that a search looks at: the list before it reads 500

export function People({ about }: { about: Query }) {
  const [whole, readWhole] = useState(false);
  const [got, again] = useLoad(() => Promise.all([whole ? scopes(most) : choices(), get<Manifest>("/v1/manifest")]), [whole]);
  const chosen = about.scope ?? "";
  // the list is read again when somebody comes for the first time, and not with each turn
  const [asked, ask] = useState(0);
  useLines((line) => { if (/^(setup_scope|reset_scope|record_events?)$/.test(line.operation ?? "")) ask((n) => n + 1); });
  const [importing, setImporting] = useState(false);
  const empty = got && "data" in got && got.data[0].list.length === 0;
  const beyond = chosen !== "" && got && "data" in got && got.data[0].more &&
    !got.data[0].list.some((s) => nameOf(s.scope) === chosen);
  useEffect(() => { if (beyond) readWhole(true); }, [beyond]);
  useEffect(() => { if (asked > 0 && empty && !importing) void again(); }, [asked]);
  return (
    <Loaded got={got}>{([{ list, more }, manifest]) => {
      const one = list.find((s) => nameOf(s.scope) === chosen) ?? (list.length === 1 ? list[0] : undefined);
      return (
        <div class={`people ${one ? "chosen" : ""}`}>
          <section class="list" aria-label="People">
            <h2>People</h2>
            {list.length === 0 ? null : <List list={list} more={more} chosen={one} searched={() => readWhole(true)}
              choose={(s) => go("people", { scope: nameOf(s.scope) })} />}
            <Import first={list.length === 0} started={() => setImporting(true)} done={() => { setImporting(false); void again(); }} />
          </section>
          {one ? <Person key={`${nameOf(one.scope)} ${about.event}`} of={one} manifest={manifest} event={about.event} /> : list.length === 0 ? null :
            <section class="hint quiet"><p>Choose a person to see what was said, and what the memory made of it.</p></section>}
        </div>
      );
    }}</Loaded>
  );
}

interface ListProps {
  list: ListedScope[];
  more: boolean;
  chosen?: ListedScope;
  choose: (s: ListedScope) => void;
  searched: () => void;
}

function List({ list, more, chosen, choose, searched }: ListProps) {
  const [search, setSearch] = useState("");
  const wanted = partOf(search);
  const found = useMemo(() => list.filter((s) => fits(wanted, nameOf(s.scope))), [list, search]);
  const [open, setOpen] = useState(false);
  const shown = found.filter((s) => !open || s.queued + s.pending + s.lost > 0);
  return (
    <>
      <form role="search" onSubmit={(e) => e.preventDefault()}>
        <label class="wide">Search by id<input type="search" value={search} dir="auto" class="words"
          onInput={(e) => { setSearch(e.currentTarget.value); if (more) searched(); }} /></label>
        <label class="check"><input type="checkbox" checked={open} onChange={(e) => { setOpen(e.currentTarget.checked); if (more) searched(); }} />
          With open matters</label>
      </form>
      <p class="quiet" role="status">{`${shown.length}${more ? " or more" : ""} ${shown.length === 1 ? "person" : "people"}` +
        (shown.length > shownAtOnce ? `, the first ${shownAtOnce} are shown: search for others` : "")}</p>
      <ul class="persons">{shown.slice(0, shownAtOnce).map((s) => (
        <li key={nameOf(s.scope)}>
          <button type="button" class="person" aria-pressed={s === chosen} onClick={() => choose(s)}>
            <span class="grow"><b><Words search={wanted}>{s.scope.persona_id}</Words></b>
              <small><Words search={wanted}>{[s.scope.run_id, s.scope.agent_id].filter(Boolean).join(" / ")}</Words></small></span>
            <span class="quiet since"><Time at={s.since} /></span>
            {s.queued + s.pending > 0 ? <span class="badge wait">{`${s.queued + s.pending} open`}</span> : null}
            {s.lost > 0 ? <span class="badge bad">{`${s.lost} lost`}</span> : null}
          </button>
        </li>
      ))}</ul>
    </>
  );
}
