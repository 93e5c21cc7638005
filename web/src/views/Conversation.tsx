// Conversation is what was said, by session.
import { useEffect } from "preact/hooks";
import { Empty } from "../parts/Empty";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { Words } from "../parts/Words";
import type { ListedEvent, MemoryEvent, ProvenanceItem } from "../wire";
import { heardIn, textOf } from "./Person";

export interface Turn {
  listed: ListedEvent;
  said?: MemoryEvent; // from the archive
}

interface Props {
  turns: Turn[];
  archive: boolean;
  search: string;
  turn: string; // the one that is looked at
  lit: Set<string>; // those from which the item that is looked at came
  items: ProvenanceItem[];
  look: (id: string) => void;
}

export function Conversation({ turns: listed, archive, search, turn, lit, items, look }: Props) {
  const turns = listed.map((t) => ({ ...t, said: t.said ?? heardIn(items, t.listed) }));
  const first = lit.size > 0 ? [...lit][0] : turn;
  useEffect(() => { document.getElementById(`turn ${first}`)?.scrollIntoView({ block: "nearest" }); }, [first]);
  const wanted = search.trim().toLowerCase();
  const found = turns.filter((t) => wanted === "" || `${t.listed.event_id}\n${textOf(t.said)}`.toLowerCase().includes(wanted));
  if (turns.length === 0) return <Empty><p>Nothing was recorded in this generation.</p></Empty>;
  if (found.length === 0) return <p class="quiet">Nothing on this page has these words.</p>;
  const sessions = new Map<string, Turn[]>();
  for (const t of found) {
    const session = t.listed.session_id || t.said?.session_id || "";
    sessions.set(session, [...(sessions.get(session) ?? []), t]);
  }
  const made = (id: string) => items.filter((i) => i.evidence.source_event_ids?.includes(id)).length;
  return (
    <>
      {archive ? null : <p class="quiet">The slot keeps no text of what was said unless memory.archive is on: what stands here is what
        the memory kept word for word.</p>}
      {[...sessions].map(([session, list]) => (
        <section class="session">
          <h4>Session <Words>{session}</Words></h4>
          <ol class="turns">{list.map((t) => {
            const id = t.listed.event_id;
            return (
              <li key={id} id={`turn ${id}`} class={`turn ${id === turn ? "looked" : ""} ${lit.has(id) ? "lit" : ""}`}>
                <p class="quiet row"><Time at={t.said?.timestamp ?? t.listed.sent_at} /> <Words>{id}</Words>
                  {t.listed.state === "committed" ? null : <State of={t.listed.state} />}
                  {made(id) > 0 ? <button type="button" class="link" aria-pressed={id === turn} onClick={() => look(id)}>
                    {`${made(id)} in memory`}</button> : null}</p>
                {(t.said?.messages ?? []).map((m) => <p class={`said ${m.role === "user" ? "user" : ""}`}>
                  <b><Words>{m.name || m.role}</Words></b> <Words>{m.content ?? ""}</Words></p>)}
              </li>
            );
          })}</ol>
        </section>
      ))}
    </>
  );
}
