// Conversation is what was said, by session.
import { useEffect } from "preact/hooks";
import { Empty } from "../parts/Empty";
import { State } from "../parts/State";
import { dayOf, Time } from "../parts/Time";
import { Words } from "../parts/Words";
import type { ListedEvent, MemoryEvent, ProvenanceItem } from "../wire";
import type { Search } from "../search";
import { TurnChange } from "./TurnChange";

export interface Turn {
  listed: ListedEvent;
  said?: MemoryEvent; // from the archive, or as the memory kept it
}

interface Props {
  turns: Turn[];
  none: boolean; // nothing was recorded
  archive: boolean;
  search: Search;
  turn: string; // the one that is looked at
  lit: Set<string>; // those from which the item that is looked at came
  made: Map<string, ProvenanceItem[]>; // what the memory made of a turn
  changes?: { scope: object; provider: string; forgets: boolean; changed: () => void }; // absent if the page changes nothing
  look: (id: string) => void;
}

const atOf = (t: Turn) => t.said?.timestamp ?? t.listed.sent_at;

export function Conversation({ turns, none, archive, search, turn, lit, made: madeOf, changes, look }: Props) {
  const first = lit.size > 0 ? turns.find((t) => lit.has(t.listed.event_id))?.listed.event_id : turn;
  useEffect(() => { document.getElementById(`turn ${first}`)?.scrollIntoView({ block: "nearest" }); }, [first]);
  if (none) return <Empty><p>Nothing was recorded in this generation.</p></Empty>;
  if (turns.length === 0) return <p class="quiet">No turn has these words.</p>;
  const sessions = new Map<string, Turn[]>();
  for (const t of turns) {
    const session = t.listed.session_id || t.said?.session_id || "";
    sessions.set(session, [...(sessions.get(session) ?? []), t]);
  }
  return (
    <>
      {archive ? null : <p class="quiet">The slot keeps no text of what was said unless memory.archive is on: what stands here is what
        the memory kept word for word.</p>}
      {[...sessions].map(([session, list]) => (
        <section class="session">
          <h4>Session <Words>{session}</Words><Time at={atOf(list[0])} part="day" /></h4>
          <ol class="turns">{list.map((t) => {
            const id = t.listed.event_id;
            const made = madeOf.get(id) ?? [];
            return (
              <li key={id} id={`turn ${id}`} class={`turn ${id === turn ? "looked" : ""} ${lit.has(id) ? "lit" : ""}`}>
                {(t.said?.messages ?? []).map((m) => <p class={`said ${m.role === "user" ? "user" : ""}`}>
                  <b><Words search={search}>{m.name || m.role}</Words></b> <Words search={search}>{m.content ?? ""}</Words></p>)}
                <div class="quiet row about"><Time at={atOf(t)} part={dayOf(atOf(t)) === dayOf(atOf(list[0])) ? "hour" : undefined} />
                  <span class="id"><Words search={search}>{id}</Words></span>
                  {t.listed.state === "committed" ? null : <State of={t.listed.state} />}
                  {made.length > 0 ? <button type="button" class="link" aria-pressed={id === turn} onClick={() => look(id)}>
                    {`${made.length} in memory`}</button> : null}
                  {changes ? <TurnChange of={t} items={made} archive={archive} {...changes} /> : null}</div>
              </li>
            );
          })}</ol>
        </section>
      ))}
    </>
  );
}
