// Items are what a memory has of a person, by type, each with the turns that it came from.
import { useEffect, useState } from "preact/hooks";
import { post } from "../api";
import { confirm } from "../parts/Confirm";
import { useDoing } from "../parts/Doing";
import { Facts } from "../parts/Facts";
import { Json } from "../parts/Json";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { Words } from "../parts/Words";
import { fits, type Search } from "../search";
import { useSlot } from "../slot";
import type { FeedbackReceipt, ForgetReceipt, ProvenanceItem } from "../wire";

interface Props {
  of: ProvenanceItem[];
  more: boolean;
  reason?: string;
  search: Search;
  item: string; // the one that is looked at
  turn: string; // only what came from this turn
  texts: Map<string, string>; // what was said, by turn
  scope: object;
  corrects: boolean;
  forgets: boolean;
  look: (id: string) => void;
  lookAtTurn: (id: string) => void;
  byTurn: () => Promise<ProvenanceItem[]>;
  changed: () => void;
}

export function Items(p: Props) {
  const slot = useSlot();
  const [asked, setAsked] = useState<ProvenanceItem[] | null>(null);
  const [correcting, setCorrecting] = useState(""); // an item's id
  const [said, start] = useDoing();
  useEffect(() => { document.querySelector(".item.lit, .item.looked")?.scrollIntoView({ block: "nearest" }); }, [p.item, p.turn]);
  const all = asked ?? p.of;
  const found = all.filter(({ evidence: e, native }) => fits(p.search, textOf(e.text, native)) &&
    (p.turn === "" || e.source_event_ids?.includes(p.turn)));
  const types = new Map<string, ProvenanceItem[]>();
  for (const i of found) types.set(i.evidence.native_type ?? "item", [...(types.get(i.evidence.native_type ?? "item") ?? []), i]);
  const forget = async (id: string) => {
    if (!await confirm("Forget this item?", "At least this goes: the memory removes the item, as far as it can, and says what may " +
      "remain. Nothing brings it back.", "Forget it")) return;
    await start("forgetting", async () => {
      const r = await post<ForgetReceipt>("/v1/forget", { scope: p.scope, native_ids: [id], reason: "asked on the page" });
      p.changed();
      return <Facts of={[["status", <State of={r.status} />], ["may remain", r.derived_may_remain.length === 0 ? "nothing" :
        r.derived_may_remain]]} />;
    });
  };
  // correct tells the memory what is right about an item, in the words of a person.
  const correct = async (e: Event, id: string) => {
    e.preventDefault();
    const text = (e.currentTarget as HTMLFormElement).querySelector("textarea")?.value;
    await start("correcting", async () => {
      const r = await post<FeedbackReceipt>("/v1/feedback", { feedback_id: `page-${crypto.randomUUID?.() ?? Date.now()}`, scope: p.scope,
        session_id: "page", timestamp: new Date().toISOString(), text, native_ids: [id] });
      setCorrecting("");
      p.changed();
      return <Facts of={[["status", <State of={r.status} />], ["warnings", r.warnings]]} />;
    });
  };
  const ask = () => start("asking about each turn of this page", async () => { setAsked(await p.byTurn()); return null; });
  return (
    <>
      {p.reason ? <p class="quiet"><Words>{p.reason}</Words>. <button type="button" onClick={ask}>Ask about each turn on this
        page</button></p> : null}
      {said}
      {p.turn === "" ? null : <p class="quiet row">Only what came from <Words>{p.turn}</Words>
        <button type="button" class="link" onClick={() => p.lookAtTurn("")}>Show all</button></p>}
      {found.length === 0 && !p.reason ? <p class="quiet">{all.length === 0 ? "The memory holds nothing of this person." :
        "No item fits."}</p> : null}
      {[...types].map(([type, list]) => (
        <section class="session">
          <h4><Words>{type}</Words>{` (${list.length}${p.more ? " or more" : ""})`}</h4>
          <ol class="turns">{list.map(({ evidence: e, native }) => (
            <li class={`turn item ${e.native_id === p.item ? "looked" : ""} ${p.turn !== "" ? "lit" : ""}`}>
              <p class="said">{textOf(e.text, native).split("\n").map((line) => <span class="line"><Words search={p.search}>{line}</Words></span>)}</p>
              <div class="quiet row about">
                {e.superseded ? <span title="The memory says that this holds no longer. It does not say what took its place.">
                  <State of="open">replaced</State></span> : null}
                {e.valid_at ? <span>holds from <Time at={e.valid_at} /></span> : e.created_at ?
                  <span>{e.time_basis === "event" ? "said " : "made "}<Time at={e.created_at} /></span> : null}
                {e.invalid_at ?? e.expired_at ? <span>until <Time at={e.invalid_at ?? e.expired_at} /></span> : null}
                {(e.source_event_ids ?? []).length === 0 ? "source turns not known" : "from"}
                {(e.source_event_ids ?? []).slice(0, 12).map((id) => <button type="button" class="link" title={p.texts.get(id)}
                  onClick={() => p.look(e.native_id ?? id)}><Words>{id}</Words></button>)}
                {(e.source_event_ids ?? []).length > 12 ? `and ${(e.source_event_ids ?? []).length - 12} more` : ""}
                {p.corrects && slot.settings.mode === "on" && e.native_id ? <button type="button" class="link"
                  aria-label={`Correct ${e.native_id}`} aria-expanded={correcting === e.native_id}
                  onClick={() => setCorrecting(correcting === e.native_id ? "" : e.native_id ?? "")}>correct</button> : null}
                {p.forgets && slot.settings.mode === "on" && e.native_id ? <button type="button" class="link bad"
                  aria-label={`Forget ${e.native_id}`} onClick={() => forget(e.native_id ?? "")}>forget</button> : null}
              </div>
              {correcting !== "" && correcting === e.native_id ? <form onSubmit={(event) => correct(event, e.native_id ?? "")}>
                <label class="wide">What is right?<textarea dir="auto" class="words" required rows={2} /></label>
                <button class="act">Correct it</button></form> : null}
              <details><summary>As it is kept</summary><Facts of={[["id", e.native_id]]} /><Json of={native} /></details>
            </li>
          ))}</ol>
        </section>
      ))}
    </>
  );
}

// textOf is an item's text: its own, or the words of a turn that it keeps as it was said.
function textOf(text: string | undefined, native: unknown): string {
  if (text) return text;
  const messages = (native as { messages?: { role?: string; name?: string; content?: string }[] } | null)?.messages;
  return Array.isArray(messages) ? messages.map((m) => `${m.name || m.role}: ${m.content ?? ""}`).join("\n") : JSON.stringify(native);
}
