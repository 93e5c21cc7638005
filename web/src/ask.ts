// Questions to the slot that more than one view asks.
import { get, post } from "./api";
import type { ArchivePage, EventList, ListedScope, MemoryEvent, Scope, ScopeList } from "./wire";

export const nameOf = (s: Scope) => [s.run_id, s.persona_id, s.agent_id].filter(Boolean).join(" / ");

// asked is the scope as a request names it.
export const asked = (s: Scope): Scope => ({ run_id: s.run_id, persona_id: s.persona_id,
  ...(s.agent_id ? { agent_id: s.agent_id } : {}) });

export interface Found {
  list: ListedScope[];
  more: boolean;
}

// scopes reads at most so many scopes. more says that there are others.
export async function scopes(most: number): Promise<Found> {
  const list: ListedScope[] = [];
  let next = "";
  do {
    const page = await get<ScopeList>(`/v1/scopes?limit=500${next ? `&after=${encodeURIComponent(next)}` : ""}`);
    list.push(...page.scopes);
    next = page.next ?? "";
  } while (next && list.length < most);
  list.sort((a, b) => nameOf(a.scope).localeCompare(nameOf(b.scope)));
  return { list, more: next !== "" };
}

// people reads scopes with the number of their events: at most 500, those that were active last first. Calls are many where
// few scopes fit, or where these have many events.
export async function people(q: { contains?: string; only_open?: boolean }): Promise<Found> {
  const list: ListedScope[] = [];
  let next = "";
  for (let calls = 0; calls === 0 || (next && list.length < 500 && calls < 50); calls++) {
    const page = await post<ScopeList>("/v1/scopes/list", { ...q, counts: true, limit: 500 - list.length, ...(next ? { after: next } : {}) });
    list.push(...page.scopes);
    next = page.next ?? "";
  }
  list.sort((a, b) => (b.last_at ?? "").localeCompare(a.last_at ?? "") || nameOf(a.scope).localeCompare(nameOf(b.scope)));
  return { list, more: next !== "" };
}

// texts reads what was said from the archive, by event id: in these events, or in all of a person's.
export async function texts(scope: object, ids?: string[]): Promise<Map<string, MemoryEvent>> {
  const found = new Map<string, MemoryEvent>();
  for (let after = 0; ;) {
    const page = await post<ArchivePage>("/v1/archive/page", { scope, after, limit: 1000, ...(ids ? { event_ids: ids } : {}) });
    for (const e of page.events) if (!found.has(e.event_id)) found.set(e.event_id, e);
    if (!page.more || (ids && found.size >= ids.length)) return found;
    after = page.last;
  }
}

// choices are the scopes that a list of choices offers: one that is longer helps nobody.
export const choices = () => scopes(500);

// events reads a page of events. The slot looks at 5000 events in a call: a page of a rare state or of one session is
// filled by several calls.
export async function events(q: Record<string, unknown>, limit: number): Promise<EventList> {
  const page = await post<EventList>("/v1/events/list", { ...q, limit });
  for (let calls = 1; page.next && page.events.length < limit && calls < 50; calls++) {
    const more = await post<EventList>("/v1/events/list", { ...q, after: page.next, limit: limit - page.events.length });
    page.events.push(...more.events);
    page.next = more.next;
  }
  return page;
}
