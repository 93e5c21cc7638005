"use strict";
// Shows the texts of probes. Every text is hostile: it goes into the page by textContent only.
(() => {
  const index = JSON.parse(document.getElementById("index").textContent);
  const list = document.getElementById("list"), detail = document.getElementById("detail");
  const find = document.getElementById("find"), found = document.getElementById("found");
  const chunks = new Map();
  const most = 500;

  function element(name, text, kind) {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    if (kind) e.className = kind;
    return e;
  }

  async function chunk(n) {
    if (!chunks.has(n)) {
      const packed = Uint8Array.from(atob(document.getElementById("chunk-" + n).textContent), c => c.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      chunks.set(n, JSON.parse(await new Response(stream).text()));
    }
    return chunks.get(n);
  }

  function show() {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = index.filter(p => {
      const text = (p.id + " " + p.persona + " " + p.label + " " + (p.query || "")).toLowerCase();
      return words.every(w => text.includes(w));
    });
    found.textContent = hits.length + " of " + index.length +
      (hits.length > most ? ", the first " + most + " shown" : "");
    list.replaceChildren(...hits.slice(0, most).map(p => {
      const item = element("li"), button = element("button", "[" + p.label + "] " + (p.query || p.id));
      button.addEventListener("click", () => open(p, button));
      item.append(button);
      return item;
    }));
  }

  async function open(p, button) {
    for (const b of list.querySelectorAll("[aria-current]")) b.removeAttribute("aria-current");
    button.setAttribute("aria-current", "true");
    const heading = element("h3", p.id);
    detail.replaceChildren(heading,
      element("p", "persona " + p.persona + ", after session " + p.session + ", " + p.label));
    if (p.chunk < 0) {
      detail.append(element("p", "Its texts are not in this file."));
      return;
    }
    const data = await chunk(p.chunk), told = data.probes.find(t => t.probe.probe_id === p.id);
    if (detail.firstChild !== heading) return; // another probe was opened in the meantime
    const gold = told.probe.gold;
    detail.append(element("p", told.probe.query));
    const answers = (gold.answers || []).map(g => g.join(" or ")).join("; ");
    const expected = gold.answerable ? answers || "(no answer given)" : "not answerable";
    detail.append(element("p", "Expected: " + expected, "gold"));
    if (gold.evidence) detail.append(element("p", "Evidence: " + gold.evidence.map(g => g.join(" or ")).join("; ")));
    for (const s of gold.stale || []) detail.append(element("p", "Until " + s.superseded_at + ": " + s.value));
    for (const t of told.conversations || []) {
      detail.append(conversation(t, name => (data.contexts[name] || []).map(n => data.lines[n]).join("\n")));
    }
    for (const a of told.answers || []) {
      detail.append(answer(a, (data.contexts[a.context] || []).map(n => data.lines[n]).join("\n")));
    }
  }

  // conversation shows what was said, what the agent retrieved, and which value its first answer used.
  function conversation(t, context) {
    const box = element("details"), retrievals = t.retrievals || [];
    box.append(element("summary", t.label + (t.replicate > 1 ? " #" + t.replicate : "") + ", conversation, " +
      (t.budget ? t.budget + " tokens at most" : "no limit") + ": " + t.ended + ", used: " + t.used + ", " +
      retrievals.length + " retrievals"));
    for (const x of t.exchanges || []) {
      box.append(element("p", "The person: " + x.user));
      box.append(element("p", x.agent ? "The agent: " + x.agent : "(no answer)"));
      if (x.action) box.append(element("p", "(" + x.action + ")"));
    }
    if (t.error) box.append(element("p", t.error.message, "error"));
    for (const b of t.breaches || []) box.append(element("p", "Breach: " + b.kind + " " + (b.detail || ""), "error"));
    for (const r of retrievals) {
      box.append(element("p", "Retrieved at turn " + r.turn + ": " + r.query + (r.error ? " (" + r.error.code + ")" : "")));
      const text = element("pre", context(r.context_sha256) || "(empty)");
      text.tabIndex = 0;
      box.append(text);
    }
    return box;
  }

  function answer(a, context) {
    const bytes = new TextEncoder().encode(context); // shown counts bytes
    const words = s => new TextDecoder().decode(bytes.slice(s.start, s.end));
    const box = element("details");
    const tokens = a.tokens === undefined ? "" : ", " + a.tokens + " tokens";
    box.append(element("summary", a.label + (a.replicate > 1 ? " #" + a.replicate : "") + ", " +
      (a.budget ? a.budget + " tokens at most" : "no limit") +
      (a.error ? ": " + a.error.code : ": " + (a.of || 0) + " items" + tokens)));
    if (a.error) box.append(element("p", a.error.message, "error"));
    for (const s of a.said || []) box.append(element("p", "The agent said: " + s));
    if (a.context) {
      const text = element("pre", context || "(empty)");
      text.tabIndex = 0;
      box.append(text);
    }
    const items = element("ol");
    for (const i of a.items || []) {
      items.append(element("li", [i.shown ? "shown" : "",
        i.score === undefined ? "" : "score " + i.score.toPrecision(4), i.time || "", i.text || (i.shown ? words(i.shown) : ""),
        (i.events || []).join(" ")].filter(Boolean).join(" · ")));
    }
    box.append(items);
    for (const c of a.calls || []) box.append(element("p", c.route + " (" + c.class + "): " + c.status + ", " +
      c.bytes_out + " bytes out, " + c.bytes_in + " in"));
    return box;
  }

  find.addEventListener("input", show);
  show();
})();
