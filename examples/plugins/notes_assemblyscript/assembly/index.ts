// A tiny memory: it notes down what the user says and finds the notes that share a word with a question. One export for each operation.

import { Fitted, escapeText, fitNewest } from "./context";
import { Kind, Value, quote } from "./json";
import { Call, append, fail, failure, newest, own, remove, serve } from "./memhost";

export function setup_scope(): i32 { return serve(setupScope); }
export function record_event(): i32 { return serve(recordEvent); }
export function retrieve(): i32 { return serve(find); }
export function format_context(): i32 { return serve(formatContext); }
export function reset_scope(): i32 { return serve(resetScope); }
export function health(): i32 { return serve(healthOf); }

const name = "notes"; // the provider's, whichever module serves it

function setupScope(_: Call): string {
  return `{"ready":true,"native_scope":{},"warnings":[]}`;
}

/** Takes a turn in. The log is the scope's own; what is appended is committed together with the receipt, or not at all. */
function recordEvent(c: Call): string {
  const messages = c.body.get("messages").items;
  for (let i = 0; i < messages.length && failure.length == 0; i++) {
    if (messages[i].get("role").text == "user" && messages[i].get("content").present) {
      const name = messages[i].get("name").text; // of several people, so that the context says who said it
      append("notes", quote(oneLine((name.length > 0 ? name + ": " : "") + messages[i].get("content").text)));
    }
  }
  return `{"event_id":${quote(c.body.get("event_id").text)},"status":"committed","native_ids":[],"native_ids_kind":"none","markers":[],` +
    `"duplicate":false,"warnings":[],"latency_ms":0}`;
}

/** Gives context out: the notes themselves for those who measure, and one text for the agent's prompt. It looks at the newest 1000 notes. */
function find(c: Call): string {
  const asked = words(c.body.get("query").text);
  const all = newest("notes");
  const found: string[] = []; // JSON strings
  for (let i = 0; i < all.length; i++) {
    const said = words(own(all[i]).text);
    for (let k = 0; k < said.length; k++) {
      if (asked.includes(said[k])) {
        found.push(all[i]);
        break;
      }
    }
  }
  const budget = c.body.get("budget");
  const fitted = fitNewest(name, c.scope, lines(found), budget);
  const kept = found.slice(fitted.first, fitted.end);
  const calls: string[] = [];
  const evidence: string[] = [];
  for (let i = 0; i < kept.length; i++) {
    calls.push(`{"route":"notes","body":${kept[i]}}`);
    evidence.push(`{"pointer":"/calls/${i.toString()}/body","rank":${(i + 1).toString()}}`);
  }
  return `{"raw":{"calls":[${calls.join(",")}]},"formatted_context":${quote(fitted.text)},"evidence":[${evidence.join(",")}],` +
    `"trace":${trace(c.body, fitted, kept.length > 0)}}`;
}

/** What is true of an answer, for those who measure. */
function trace(request: Value, fitted: Fitted, found: bool): string {
  const budget = request.get("budget");
  const applied: string[] = [];
  if (budget.get("max_tokens").present) applied.push(`"max_tokens":{"how":"formatter"}`);
  if (budget.get("max_items").present) applied.push(`"max_items":{"how":"formatter"}`);
  let shortfall = "";
  if (budget.get("min_tokens").present) {
    applied.push(`"min_tokens":{"how":"advisory"}`);
    const short = budget.get("min_tokens").int(0) - fitted.tokens;
    if (short > 0) shortfall = `"budget_shortfall":${short.toString()},`;
  }
  return `{"backend_name":${quote(name)},"result_state":"${found ? "results" : "empty"}","token_count":${fitted.tokens.toString()},` +
    `"truncated":${fitted.truncated.toString()},"filter_mode":"none","filters_applied":{${labels(request).join(",")}},` +
    `"budget_applied":{${applied.join(",")}},${shortfall}"as_of_mode":"ignored","warnings":[]}`;
}

/** The labels and filters that a request names: none of them is applied here. */
function labels(request: Value): string[] {
  const filters = request.get("filters");
  const cross = filters.get("cross_context").text == "true";
  const list: string[] = [];
  if (request.get("scenario").text.length > 0) list.push(`"scenario":"none"`);
  if (request.get("context").text.length > 0 && !cross) list.push(`"context":"none"`);
  if (request.get("attribute").text.length > 0) list.push(`"attribute":"none"`);
  for (let i = 0; i < filters.keys.length; i++) {
    if (filters.keys[i] != "cross_context") list.push(quote(filters.keys[i]) + `:"none"`);
  }
  return list;
}

/** Fits an earlier result into a budget; into its own it gives the same text. */
function formatContext(c: Call): string {
  const calls = c.body.get("result").get("raw").get("calls").items;
  const notes: string[] = [];
  for (let i = 0; i < calls.length; i++) {
    const body = calls[i].get("body");
    if (body.kind != Kind.String) {
      fail("invalid_argument", "result.raw.calls: a note is a string");
      return "";
    }
    notes.push(quote(body.text));
  }
  const fitted = fitNewest(name, c.scope, lines(notes), c.body.get("budget"));
  return `{"formatted_context":${quote(fitted.text)},"token_count":${fitted.tokens.toString()},"truncated":${fitted.truncated.toString()}}`;
}

function resetScope(_: Call): string {
  const removed = remove("");
  return `{"status":"done","removed":{"note":${removed.toString()}},"remains":[],"old_generation":0,"new_generation":0,"warnings":[]}`;
}

function healthOf(_: Call): string {
  return `{"status":"ok","backend_name":${quote(name)},"latency_ms":0,"consistency_model":"immediate","isolation":"hard","pet_observability":"weak","warnings":[]}`;
}

/** One line of the prompt for each note. Escaped, a note cannot close the element around it. */
function lines(notes: string[]): string[] {
  const list: string[] = [];
  for (let i = 0; i < notes.length; i++) list.push("- " + escapeText(own(notes[i]).text) + "\n");
  return list;
}

/** The words of a text, in small letters: runs of letters and digits. What is not ASCII counts as a letter, save for blanks and punctuation. */
function words(text: string): string[] { return split(text.toLowerCase(), (c: i32): bool => !isWord(c)); }

/** A text's parts between blanks. */
/** A text with one blank between its words. An array of the words of a long text would take time that grows with its square. */
function oneLine(text: string): string {
  const out = new StaticArray<u16>(text.length);
  let n = 0;
  let gap = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (isBlank(c)) {
      gap = n > 0;
      continue;
    }
    if (gap) out[n++] = 0x20;
    gap = false;
    out[n++] = <u16>c;
  }
  return String.UTF16.decodeUnsafe(changetype<usize>(out), n << 1);
}

function split(text: string, ends: (c: i32) => bool): string[] {
  const parts: string[] = [];
  let from = -1;
  for (let i = 0; i <= text.length; i++) {
    const outside = i == text.length || ends(text.charCodeAt(i));
    if (outside && from >= 0) {
      parts.push(text.substring(from, i));
      from = -1;
    } else if (!outside && from < 0) {
      from = i;
    }
  }
  return parts;
}

function isBlank(c: i32): bool {
  return c == 0x20 || (c >= 0x09 && c <= 0x0d) || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
    c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

function isWord(c: i32): bool {
  if (c < 0x80) return (c >= 0x30 && c <= 0x39) || (c >= 0x61 && c <= 0x7a) || (c >= 0x41 && c <= 0x5a);
  return !isBlank(c) && !(c < 0xc0 && c != 0xaa && c != 0xb5 && c != 0xba) && c != 0xd7 && c != 0xf7 && !(c >= 0x2000 && c <= 0x2bff) &&
    !(c >= 0x3000 && c <= 0x303f) && !(c >= 0xff00 && c <= 0xff0f);
}
