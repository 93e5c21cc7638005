// Person is what was said by and to one person, beside what the memory made of it, linked both ways.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { post } from "../api";
import { asked, events, nameOf, texts } from "../ask";
import { useDoing } from "../parts/Doing";
import { Link } from "../parts/Link";
import { Loaded, useLoad } from "../parts/Loaded";
import { Ago } from "../parts/Time";
import { Words } from "../parts/Words";
import { fits, wordsOf } from "../search";
import { useLines, useSlot } from "../slot";
import type { EventList, ListedEvent, ListedScope, Manifest, MemoryEvent, Provenance, ProvenanceItem, Scope } from "../wire";
import { Conversation, type Turn } from "./Conversation";
import { Items } from "./Items";

const pageSize = 50;
const wholeAtOnce = 1000; // turns: of somebody with more, a page is read at a time until somebody searches
const [mostItems, mostSearched] = [500, 5000];

interface Props {
  of: ListedScope;
  manifest: Manifest;
  event?: string; // the turn to look at
}

export function Person({ of, manifest, event }: Props) {
  const slot = useSlot();
  const scope = asked(of.scope);
  const name = nameOf(of.scope);
  const can = (capability: string) => manifest.capabilities.capabilities.includes(capability);
  const [before, setBefore] = useState<string[]>([]); // where this page and those before it began, as the slot counts
  const [nth, setNth] = useState(0); // which page of all turns
  const [typed, setTyped] = useState("");
  const search = useMemo(() => wordsOf(typed), [typed]);
  const [turn, lookAtTurn] = useState(event ?? "");
  const [item, lookAtItem] = useState("");
  const at = before.at(-1) ?? "";
  const whole = search.words.length > 0 || (of.events ?? Infinity) <= wholeAtOnce;

  const [turns, readTurns] = useLoad(async () => {
    const page = whole ? await allEvents(scope) : await events({ scope, ...(at ? { after: at } : {}) }, pageSize);
    const said = manifest.archive ? await texts(scope, whole ? undefined : page.events.map((e) => e.event_id)).catch(() => undefined) : undefined;
    const list = page.events.map((e): Turn => ({ listed: e, said: said?.get(e.event_id) }));
    return { list: list.toSorted(byTime), next: page.next, whole };
  }, [at, whole]);
  const [items, readItems] = useLoad(() => (can("provenance") ? itemsOf(scope, search.words.length > 0 ? mostSearched : mostItems) :
    Promise.resolve(null)), [search.words.length > 0 && (of.events ?? Infinity) > mostItems]);
  const soon = useRef(0);
  useEffect(() => () => clearTimeout(soon.current), []);
  useLines((line) => {
    if (!/^(record_events?|reset_scope|forget|apply_feedback)$/.test(line.operation ?? "") || soon.current) return;
    soon.current = window.setTimeout(() => { soon.current = 0; void readTurns(); void readItems(); }, 1000);
  });

  const data = turns && "data" in turns ? turns.data : undefined;
  const has = items && "data" in items ? items.data?.list ?? [] : [];
  const made = useMemo(() => {
    const by = new Map<string, ProvenanceItem[]>();
    for (const i of has) for (const id of i.evidence.source_event_ids ?? []) by.set(id, [...(by.get(id) ?? []), i]);
    return by;
  }, [items]);
  const list = useMemo(() => (data?.list ?? []).map((t) => ({ ...t, said: t.said ?? heardIn(made.get(t.listed.event_id) ?? [], t.listed) })),
    [data, made]);
  const found = useMemo(() => list.filter((t) => fits(search, wordsIn(t))), [list, search]);
  const pages = Math.max(1, Math.ceil(found.length / pageSize));
  const page = Math.min(nth, pages - 1);
  const shown = data?.whole ? found.slice(page * pageSize, (page + 1) * pageSize) : found;
  const lit = new Set(has.filter((i) => i.evidence.native_id === item).flatMap((i) => i.evidence.source_event_ids ?? []));
  useEffect(() => setNth(0), [typed]);
  useEffect(() => { // the page that has what is looked at
    const first = found.findIndex((t) => (lit.size > 0 ? lit.has(t.listed.event_id) : t.listed.event_id === turn));
    if (first >= 0) setNth(Math.floor(first / pageSize));
  }, [item, turn, data !== undefined]);
  const said = new Map(list.map((t) => [t.listed.event_id, textOf(t.said)]));
  const count = of.queued + of.pending + of.lost;
  const many = items && "data" in items && items.data?.more;
  return (
    <section class="one" aria-label={`What is known about ${name}`}>
      <div class="row head">
        <div class="grow"><h2><Words>{of.scope.persona_id}</Words></h2>
          <p class="quiet">{[of.events === undefined ? "" : countOf(of.events, "turn"), has.length > 0 ?
            `${countOf(has.length, "item")}${many ? " or more" : ""} in ${manifest.provider}` : ""].filter(Boolean).join(" · ")}
            {of.last_at ? <> · last recorded <Ago at={of.last_at} /></> : null}</p></div>
        <p class="buttons"><Link to="ask" about={{ scope: name }}>Ask about this person</Link>
          <Link to="turns" about={{ scope: name }}>{count > 0 ? countOf(count, "open matter") : "Outcomes, forget, erase"}</Link>
          <Export scope={of.scope} manifest={manifest} /></p>
      </div>
      <form role="search" onSubmit={(e) => e.preventDefault()}>
        <label class="wide">Search in what was said and what is known<input type="search" value={typed} dir="auto" class="words"
          onInput={(e) => setTyped(e.currentTarget.value)} /></label>
      </form>
      <div class="columns both">
        <section aria-label="What was said" tabIndex={0}>
          <h3>What was said</h3>
          <Loaded got={turns}>{({ next }) => (
            <>
              {search.words.length === 0 ? null : <p class="quiet" role="status">{data?.whole ?
                `${found.length} of ${countOf(list.length, "turn")} ${found.length === 1 ? "has" : "have"} these words` : "searching all turns"}{found.length > 0 || !data?.whole ? null :
                <>. <Link to="ask" about={{ scope: name, query: typed }}>Ask it as a question</Link></>}</p>}
              <Conversation turns={shown} none={list.length === 0} archive={Boolean(manifest.archive)} search={search} turn={turn} lit={lit}
                made={made} changes={slot.settings.mode === "on" && (can("forget") || Boolean(manifest.archive)) ? { scope,
                  provider: manifest.provider, forgets: can("forget"), changed: () => { void readTurns(); void readItems(); } } : undefined}
                look={(id) => { lookAtTurn(id === turn ? "" : id); lookAtItem(""); }} />
              {data?.whole ? pages === 1 ? null : <Pages first={page === 0} last={page === pages - 1} turn={(by) => setNth(page + by)} /> :
                before.length === 0 && !next ? null : <Pages first={before.length === 0} last={!next}
                  turn={(by) => setBefore(by < 0 ? before.slice(0, -1) : [...before, next ?? ""])} />}
            </>
          )}</Loaded>
        </section>
        <section aria-label="What the memory made of it" tabIndex={0}>
          <h3>{`What ${manifest.provider} made of it`}</h3>
          <Loaded got={items}>{(known) => (known === null ?
            <p class="quiet">{`${manifest.provider} cannot list what it has. Ask shows what it gives for a question.`}</p> :
            <Items of={known.list} more={known.more} reason={known.reason} search={search} item={item} turn={turn} texts={said}
              scope={scope} look={(id) => { lookAtItem(id === item ? "" : id); lookAtTurn(""); }}
              lookAtTurn={(id) => { lookAtTurn(id); lookAtItem(""); }}
              byTurn={async () => fromTurns(scope, shown.map((t) => t.listed.event_id))}
              corrects={can("apply_feedback") && Boolean(manifest.feedback_enabled)} forgets={can("forget")} changed={() => { void readTurns(); void readItems(); }} />)}</Loaded>
        </section>
      </div>
    </section>
  );
}

const countOf = (n: number, what: string) => `${n.toLocaleString("en-GB")} ${what}${n === 1 ? "" : "s"}`;

// Pages turns to the page before and to the next one.
const Pages = ({ first, last, turn }: { first: boolean; last: boolean; turn: (by: number) => void }) => (
  <p class="buttons"><button type="button" disabled={first} onClick={() => turn(-1)}>Page before</button>
    <button type="button" disabled={last} onClick={() => turn(1)}>Next page</button></p>
);

// wordsIn is what a search looks at in a turn.
const wordsIn = ({ listed, said }: Turn) => [listed.event_id, ...(said?.messages ?? []).flatMap((m) => [m.name || m.role, m.content ?? ""])]
  .join("\n");

// allEvents reads all events of a person.
async function allEvents(scope: object): Promise<EventList> {
  const all = await events({ scope }, 500);
  while (all.next) {
    const more = await events({ scope, after: all.next }, 500);
    all.events.push(...more.events);
    all.next = more.next;
  }
  return all;
}

const byTime = (a: Turn, b: Turn) => (a.said?.timestamp ?? a.listed.sent_at ?? "").localeCompare(b.said?.timestamp ??
  b.listed.sent_at ?? "") || a.listed.event_id.localeCompare(b.listed.event_id);

const textOf = (e?: MemoryEvent) => (e?.messages ?? []).map((m) => m.content ?? "").join("\n");

// heardIn is a turn as a memory keeps it that keeps turns or messages word for word, for a slot without an archive.
function heardIn(items: ProvenanceItem[], { event_id: id, session_id: session }: ListedEvent): MemoryEvent | undefined {
  const of = items.filter((i) => i.evidence.source_event_ids?.length === 1);
  const whole = of.map((i) => i.native as MemoryEvent | null).find((n) => Array.isArray(n?.messages));
  if (whole) return whole;
  const messages = of.map((i) => i.native as { speaker?: string; text?: string } | null)
    .filter((n) => typeof n?.speaker === "string" && typeof n.text === "string")
    .map((n) => ({ role: n?.speaker === "user" ? "user" as const : "assistant" as const, name: n?.speaker, content: n?.text }));
  if (messages.length === 0) return undefined;
  return { event_id: id, session_id: session ?? "", timestamp: of[0].evidence.created_at ?? "", messages, run_id: "", user_id: "",
    turn_id: "" };
}

interface Listed {
  list: ProvenanceItem[];
  more: boolean;
  reason?: string; // why the memory does not list by time
}

// itemsOf reads what memory has of a person.
async function itemsOf(scope: object, most: number): Promise<Listed> {
  const list: ProvenanceItem[] = [];
  let cursor = "";
  try {
    do {
      const page = await post<Provenance>("/v1/provenance", { scope, from: "1970-01-01T00:00:00Z", to: "9999-01-01T00:00:00Z",
        limit: 100, ...(cursor ? { cursor } : {}) });
      list.push(...page.items);
      cursor = page.next_cursor ?? "";
    } while (cursor && list.length < most);
  } catch (e) {
    if ((e as { code?: string }).code !== "unsupported") throw e;
    return { list: [], more: false, reason: (e as Error).message };
  }
  return { list, more: cursor !== "" };
}

// fromTurns reads what memory has of each turn.
async function fromTurns(scope: object, ids: string[]): Promise<ProvenanceItem[]> {
  const found = new Map<string, ProvenanceItem>();
  for (const id of ids) {
    const page = await post<Provenance>("/v1/provenance", { scope, event_id: id, limit: 50 }).catch(() => ({ items: [] }));
    for (const i of page.items) {
      const e = { ...i.evidence, source_event_ids: [...new Set([...(i.evidence.source_event_ids ?? []), id])] };
      found.set(e.native_id ?? JSON.stringify(i.native), { ...i, evidence: e });
    }
  }
  return [...found.values()];
}

// Export saves what the slot has of a person as a file: all turns, and at most 5,000 items.
function Export({ scope, manifest }: { scope: Scope; manifest: Manifest }) {
  const [doing, start] = useDoing();
  const save = () => start("reading all of it", async () => {
    const of = asked(scope);
    const { events: listed } = await allEvents(of);
    const said = manifest.archive ? await texts(of) : new Map<string, MemoryEvent>();
    const items = manifest.capabilities.capabilities.includes("provenance") ? (await itemsOf(of, mostSearched)).list : [];
    const turns = listed.map((e) => said.get(e.event_id) ?? e);
    const text = JSON.stringify({ scope, turns, items }, null, 2);
    const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    const a = document.createElement("a");
    Object.assign(a, { href: url, download: "memory.json" });
    a.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
    return <small>{`Saved ${countOf(turns.length, "turn")} and ${countOf(items.length, "item")} as memory.json`}</small>;
  });
  return <><button type="button" onClick={save}>Save as a file</button>{doing}</>;
}
