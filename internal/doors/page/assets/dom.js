// Building the page. Every text goes into a text node, so none of it can become HTML.

// el makes an element. Properties are set as attributes; on... are listeners; null and undefined children are left out.
export function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else e.setAttribute(name, value === true ? "" : String(value));
  }
  e.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return e;
}

// words is text that came from a user, memory or a backend: its direction is its own.
export const words = (text, tag = "bdi") => el(tag, { dir: "auto" }, String(text));

// time is an RFC 3339 time to the second.
export const time = (at) => el("time", { datetime: at ?? "", class: "time" }, (at ?? "").replace(/\.\d+/, ""));

// facts is a list of names with values; what is empty is left out.
export function facts(pairs) {
  const list = el("dl");
  for (const [name, value] of pairs) {
    if (value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0)) continue;
    list.append(el("dt", {}, name), el("dd", {}, value instanceof Node ? value : words(Array.isArray(value) ?
      value.join(", ") : value)));
  }
  return list;
}

// table makes a table; each row is a list of texts or nodes.
export function table(caption, heads, rows) {
  const cell = (v) => el("td", {}, v instanceof Node ? v : words(v ?? ""));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("thead", {}, el("tr", {}, heads.map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell))))));
}

// state is a word with its colour; the word alone says it, too.
const classes = { ok: "good", ready: "good", committed: "good", pass: "good", applied: "good",
  good: "good", done: "good", lost: "bad", failed: "bad", fail: "bad", down: "bad", error: "bad", bad: "bad" };
export const state = (word, text = word) => el("strong", { class: classes[word] ?? "wait" }, text);

// problem shows what the slot answered in place of an answer.
export const problem = (e) => el("div", { role: "alert" }, el("p", { class: "bad" }, words(e.message)),
  e.hint ? el("p", {}, words(e.hint)) : null, e.code ? el("small", {}, "code ", words(e.code)) : null);

// json shows any JSON.
export const json = (v) => el("pre", { dir: "ltr", tabindex: "0" }, JSON.stringify(v, null, 2));

// confirm asks before a change. It resolves to whether the person agreed. A dialog's close event comes late: it may be
// that of the question before, when this one is open already.
export function confirm(title, text, yes) {
  const dialog = document.getElementById("confirm");
  document.getElementById("confirm-title").textContent = title;
  document.getElementById("confirm-text").textContent = text;
  const [no, go] = [document.getElementById("confirm-no"), document.getElementById("confirm-yes")];
  go.textContent = yes;
  return new Promise((resolve) => {
    const answer = (agreed) => {
      resolve(agreed);
      dialog.close();
    };
    no.onclick = () => answer(false);
    go.onclick = () => answer(true);
    dialog.onclose = () => { if (!dialog.open) resolve(false); }; // by the Escape key
    dialog.showModal();
    no.focus();
  });
}
