// Module: what the serving module is and can do.
import { el, facts, json, table } from "./dom.js";
import { get } from "./api.js";

export async function module(place) {
  const m = await get("/v1/manifest");
  const c = m.capabilities;
  const named = (list) => (list ?? []).map((d) => [d.name, d.params ?? "", d.about ?? ""]);
  place.append(el("h2", {}, "Module"),
    facts([["name", `${m.module.name} ${m.module.version}`], ["from", m.module.source], ["sha256", m.module.sha256],
      ["bytes", m.module.bytes],
      ["interface", m.abi], ["engine", m.engine], ["operations", c.operations], ["capabilities", c.capabilities],
      ["memory types", c.native_memory_types], ["ingest modes", c.native_ingest_modes], ["query modes",
        c.native_query_modes]]),
    el("h2", {}, "Native queries"), table("Native queries", ["name", "parameters", "what it is"],
      named(c.native_queries)),
    el("h2", {}, "Native mutations"), table("Native mutations", ["name", "parameters", "what it is"],
      named(c.native_mutations)),
    el("h2", {}, "Configuration in effect"), json(m.config),
    el("details", {}, el("summary", {}, "The whole run manifest, without its scopes"), json({ ...m,
      scopes: undefined })));
}
