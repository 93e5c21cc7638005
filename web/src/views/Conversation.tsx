// Conversation is what was said, by session.
import { useEffect } from "preact/hooks";
import { Empty } from "../parts/Empty";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { Words } from "../parts/Words";
import type { ListedEvent, MemoryEvent, ProvenanceItem } from "../wire";
import { fits, type Search } from "../search";
import { heardIn } from "./Person";
import { TurnChange } from "./TurnChange";

export interface Turn {
  listed: ListedEvent;
  said?: MemoryEvent; // from the archive
}

// wordsIn is what a search looks at in a turn.
const wordsIn = ({ listed, said }: Turn) => [listed.event_id, ...(said?.messages ?? []).flatMap((m) => [m.name || m.role, m.content ?? ""])]
  .join("\n");

interface Props {
  turns: Turn[];
  archive: boolean;
  search: Search;
  turn: string; // the one that is looked at
  lit: Set<string>; // those from which the item that is looked at came
  items: ProvenanceItem[];
  changes?: { scope: object; provider: string; forgets: boolean; changed: () => void }; // absent if the page changes nothing
  look: (id: string) => void;
}

export function Conversation({ turns: listed, archive, search, turn, lit, items, changes, look }: Props) {
  const turns = listed.map((t) => ({ ...t, said: t.said ?? heardIn(items, t.listed) }));
  const first = lit.size > 0 ? [...lit][0] : turn;
  useEffect(() => { document.getElementById(`turn ${first}`)?.scrollIntoView({ block: "nearest" }); }, [first]);
  const found = turns.filter((t) => fits(search, wordsIn(t)));
  if (turns.length === 0) return <Empty><p>Nothing was recorded in this generation.</p></Empty>;
  if (found.length === 0) return <p class="quiet">Nothing on this page has these words.</p>;
  const sessions = new Map<string, Turn[]>();
  for (const t of found) {
    const session = t.listed.session_id || t.said?.session_id || "";
    sessions.set(session, [...(sessions.get(session) ?? []), t]);
  }
  const madeOf = (id: string) => items.filter((i) => i.evidence.source_event_ids?.includes(id));
  return (
    <>
      {archive ? null : <p class="quiet">The slot keeps no text of what was said unless memory.archive is on: what stands here is what
        the memory kept word for word.</p>}
      {[...sessions].map(([session, list]) => (
        <section class="session">
          <h4>Session <Words>{session}</Words></h4>
          <ol class="turns">{list.map((t) => {
            const id = t.listed.event_id;
            const made = madeOf(id);
            return (
              <li key={id} id={`turn ${id}`} class={`turn ${id === turn ? "looked" : ""} ${lit.has(id) ? "lit" : ""}`}>
                <p class="quiet row"><Time at={t.said?.timestamp ?? t.listed.sent_at} /> <Words search={search}>{id}</Words>
                  {t.listed.state === "committed" ? null : <State of={t.listed.state} />}
                  {made.length > 0 ? <button type="button" class="link" aria-pressed={id === turn} onClick={() => look(id)}>
                    {`${made.length} in memory`}</button> : null}</p>
                {(t.said?.messages ?? []).map((m) => <p class={`said ${m.role === "user" ? "user" : ""}`}>
                  <b><Words search={search}>{m.name || m.role}</Words></b> <Words search={search}>{m.content ?? ""}</Words></p>)}
                {changes ? <TurnChange of={t} items={made} archive={archive} {...changes} /> : null}
              </li>
            );
          })}</ol>
        </section>
      ))}
    </>
  );
}
