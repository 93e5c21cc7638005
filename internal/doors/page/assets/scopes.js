// Choosing a scope, as every view that is about one does.
import { el } from "./dom.js";
import { scopes } from "./api.js";

export const nameOf = (s) => [s.run_id, s.persona_id, s.agent_id].filter(Boolean).join(" / ");

// asked is the scope as a request names it.
export const asked = (s) => ({ run_id: s.run_id, persona_id: s.persona_id, ...(s.agent_id ? { agent_id: s.agent_id } :
  {}) });

// every reads the scopes, at most 500 of them: a list of choices that is longer helps nobody. more says that there are
// others.
export async function every() {
  const list = [];
  let next = "";
  do {
    const page = await scopes(next);
    list.push(...page.scopes);
    next = page.next ?? "";
  } while (next && list.length < 500);
  list.sort((a, b) => nameOf(a.scope).localeCompare(nameOf(b.scope)));
  return { list, more: next !== "" };
}

// choice is a labelled list of scopes. value() is the chosen one.
export function choice(found, wanted) {
  const select = el("select", {}, found.list.map((s, i) =>
    el("option", { value: i, selected: nameOf(s.scope) === wanted }, nameOf(s.scope))));
  return { node: el("label", { class: "wide" }, `Scope (run / persona${found.more ? ", the first 500" : ""})`, select),
    select, value: () => found.list[Number(select.value)]?.scope };
}
