// Person is what was said by and to one person, beside what the memory made of it, linked both ways.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { post } from "../api";
import { asked, events, nameOf } from "../ask";
import { Link } from "../parts/Link";
import { Loaded, useLoad } from "../parts/Loaded";
import { Words } from "../parts/Words";
import { wordsOf } from "../search";
import { useLines, useSlot } from "../slot";
import type { ArchivePage, ListedEvent, ListedScope, Manifest, MemoryEvent, Provenance, ProvenanceItem } from "../wire";
import { Conversation, type Turn } from "./Conversation";
import { Items } from "./Items";

const pageSize = 50;

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
  const [before, setBefore] = useState<string[]>([]); // where this page and those before it began
  const [typed, setTyped] = useState("");
  const search = useMemo(() => wordsOf(typed), [typed]);
  const [turn, lookAtTurn] = useState(event ?? "");
  const [item, lookAtItem] = useState("");
  const at = before.at(-1) ?? "";

  const [turns, readTurns] = useLoad(async () => {
    const page = await events({ scope, ...(at ? { after: at } : {}) }, pageSize);
    const said = manifest.archive ? await Promise.all(page.events.map((e) =>
      post<ArchivePage>("/v1/archive/page", { scope, event_id: e.event_id, limit: 1 }).then((p) => p.events[0], () => undefined))) : [];
    const list = page.events.map((e, i): Turn => ({ listed: e, said: said[i] }));
    return { list: list.toSorted(byTime), next: page.next, generation: page.generation };
  }, [at]);
  const [items, readItems] = useLoad(() => (can("provenance") ? itemsOf(scope) : Promise.resolve(null)), []);
  const soon = useRef(0);
  useEffect(() => () => clearTimeout(soon.current), []);
  useLines((line) => {
    if (!/^(record_events?|reset_scope|forget|apply_feedback)$/.test(line.operation ?? "") || soon.current) return;
    soon.current = window.setTimeout(() => { soon.current = 0; void readTurns(); void readItems(); }, 1000);
  });

  const data = turns && "data" in turns ? turns.data : undefined;
  const has = items && "data" in items ? items.data?.list ?? [] : [];
  const texts = new Map((data?.list ?? []).map((t) => [t.listed.event_id, textOf(t.said)]));
  const count = of.queued + of.pending + of.lost;
  return (
    <section class="one" aria-label={`What is known about ${name}`}>
      <div class="row head">
        <h2 class="grow"><Words>{of.scope.persona_id}</Words></h2>
        <Link to="ask" about={{ scope: name }}>Ask about this person</Link>
        <Link to="turns" about={{ scope: name }}>{count > 0 ? `${count} open matters` : "Outcomes, forget, erase"}</Link>
        <Export scope={of.scope} turns={data?.list ?? []} items={has} />
      </div>
      <form role="search" onSubmit={(e) => e.preventDefault()}>
        <label class="wide">Search in what was said and what is known<input type="search" value={typed} dir="auto" class="words"
          onInput={(e) => setTyped(e.currentTarget.value)} /></label>
      </form>
      <div class="columns both">
        <section aria-label="What was said">
          <h3>What was said</h3>
          <Loaded got={turns}>{(page) => (
            <>
              <Conversation turns={page.list} archive={Boolean(manifest.archive)} search={search} turn={turn}
                lit={new Set(has.filter((i) => i.evidence.native_id === item).flatMap((i) => i.evidence.source_event_ids ?? []))}
                items={has} changes={slot.settings.mode === "on" && (can("forget") || Boolean(manifest.archive)) ? { scope,
                  provider: manifest.provider, forgets: can("forget"), changed: () => { void readTurns(); void readItems(); } } : undefined}
                look={(id) => { lookAtTurn(id === turn ? "" : id); lookAtItem(""); }} />
              {before.length === 0 && !page.next ? null : <p class="buttons">
                <button type="button" disabled={before.length === 0} onClick={() => setBefore(before.slice(0, -1))}>Page before</button>
                <button type="button" disabled={!page.next} onClick={() => setBefore([...before, page.next ?? ""])}>Next page</button></p>}
            </>
          )}</Loaded>
        </section>
        <section aria-label="What the memory made of it">
          <h3>{`What ${manifest.provider} made of it`}</h3>
          <Loaded got={items}>{(found) => (found === null ?
            <p class="quiet">{`${manifest.provider} cannot list what it has. Ask shows what it gives for a question.`}</p> :
            <Items of={found.list} more={found.more} reason={found.reason} search={search} item={item} turn={turn} texts={texts}
              scope={scope} look={(id) => { lookAtItem(id === item ? "" : id); lookAtTurn(""); }}
              lookAtTurn={(id) => { lookAtTurn(id); lookAtItem(""); }}
              byTurn={async () => fromTurns(scope, (data?.list ?? []).map((t) => t.listed.event_id))}
              corrects={can("apply_feedback")} forgets={can("forget")} changed={() => { void readTurns(); void readItems(); }} />)}</Loaded>
        </section>
      </div>
    </section>
  );
}

const byTime = (a: Turn, b: Turn) => (a.said?.timestamp ?? a.listed.sent_at ?? "").localeCompare(b.said?.timestamp ??
  b.listed.sent_at ?? "") || a.listed.event_id.localeCompare(b.listed.event_id);

const textOf = (e?: MemoryEvent) => (e?.messages ?? []).map((m) => m.content ?? "").join("\n");

// heardIn is a turn as a memory keeps it that keeps turns or messages word for word, for a slot without an archive.
export function heardIn(items: ProvenanceItem[], { event_id: id, session_id: session }: ListedEvent): MemoryEvent | undefined {
  const of = items.filter((i) => i.evidence.source_event_ids?.length === 1 && i.evidence.source_event_ids[0] === id);
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

const mostItems = 500;

// itemsOf reads what memory has of a person, at most 500 items.
async function itemsOf(scope: object): Promise<Listed> {
  const list: ProvenanceItem[] = [];
  let cursor = "";
  try {
    do {
      const page = await post<Provenance>("/v1/provenance", { scope, from: "1970-01-01T00:00:00Z", to: "9999-01-01T00:00:00Z",
        limit: 100, ...(cursor ? { cursor } : {}) });
      list.push(...page.items);
      cursor = page.next_cursor ?? "";
    } while (cursor && list.length < mostItems);
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

// Export saves what is shown of a person as a file.
function Export({ scope, turns, items }: { scope: object; turns: Turn[]; items: ProvenanceItem[] }) {
  const save = () => {
    const text = JSON.stringify({ scope, turns: turns.map((t) => t.said ?? t.listed), items }, null, 2);
    const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    const a = document.createElement("a");
    Object.assign(a, { href: url, download: "memory.json" });
    a.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return <button type="button" onClick={save}>Save as a file</button>;
}
