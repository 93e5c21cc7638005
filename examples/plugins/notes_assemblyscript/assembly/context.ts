// The text for the agent's prompt: one element, escaped, that fits its budget.

import { Value } from "./json";
import { countTokens, fitTokens } from "./memhost";

const tag = "memory-context";
const cutMark = "\n[cut to fit the budget]";

/** What fits of some lines. */
export class Fitted {
  text: string = "";
  tokens: i64 = 0;
  /** The range of lines that is kept, half open. */
  first: i32 = 0;
  end: i32 = 0;
  truncated: bool = false;
}

/** Puts the element around lines, which must be escaped. No line gives the empty string, not an empty element. */
function wrap(backend: string, scope: string, body: string): string {
  if (body.length == 0) return "";
  const open = `<${tag} backend="${escapeAttribute(backend)}" scope="${escapeAttribute(scope)}" condition_kind="control">\n`;
  return open + body + (body.endsWith("\n") ? "" : "\n") + `</${tag}>`;
}

/** Keeps as many of the last lines as the budget allows; of the very last one, where not even that fits, the beginning. */
export function fitNewest(backend: string, scope: string, lines: string[], budget: Value): Fitted {
  const maxItems = budget.get("max_items").int(<i64>lines.length);
  const most = <i32>max(0, min(maxItems, <i64>lines.length));
  let best = attempt(backend, scope, lines, most);
  const limit = budget.get("max_tokens").int(i64.MAX_VALUE);
  if (best.tokens <= limit) return best;
  let good = 0;
  let bad = most;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    const next = attempt(backend, scope, lines, middle);
    if (next.tokens <= limit) {
      best = next;
      good = middle;
    } else {
      bad = middle;
    }
  }
  return good > 0 ? best : cut(backend, scope, lines, limit);
}

/** What the last n lines come to. */
function attempt(backend: string, scope: string, lines: string[], n: i32): Fitted {
  const f = new Fitted();
  f.first = lines.length - n;
  f.end = lines.length;
  f.text = wrap(backend, scope, lines.slice(f.first).join(""));
  f.tokens = countTokens(f.text);
  f.truncated = n < lines.length;
  return f;
}

/** The beginning of the last line, with a mark. */
function cut(backend: string, scope: string, lines: string[], limit: i64): Fitted {
  const f = new Fitted();
  f.first = f.end = lines.length;
  f.truncated = true;
  for (let room = limit - countTokens(wrap(backend, scope, cutMark + "\n")); room > 0; room -= 1 + room / 8) {
    const prefix = fitTokens(lines[lines.length - 1], room);
    if (prefix.length == 0) break;
    const text = wrap(backend, scope, prefix + cutMark);
    const tokens = countTokens(text);
    if (tokens <= limit) {
      f.text = text;
      f.tokens = tokens;
      f.first = lines.length - 1;
      break;
    }
  }
  return f;
}

/** Makes text unable to open or close the element: a "<" that begins such a tag, or could become one at the end, gets a backslash behind it. */
export function escapeText(text: string): string {
  let out = "";
  let from = 0;
  for (let i = text.indexOf("<"); i >= 0; i = text.indexOf("<", i + 1)) {
    if (!beginsTag(text, i + 1)) continue;
    out += text.substring(from, i + 1) + "\\";
    from = i + 1;
  }
  return out + text.substring(from);
}

/** Blanks, slashes, control characters and all that is not ASCII may stand before the name: a lenient reader skips them. */
function beginsTag(text: string, at: i32): bool {
  while (at < text.length) {
    const c = text.charCodeAt(at);
    if (c > 0x20 && c != 0x2f && c < 0x7f) break;
    at++;
  }
  const name = text.substring(at, at + tag.length).toLowerCase();
  return tag.startsWith(name);
}

function escapeAttribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\"", "&quot;")
    .replaceAll("\n", " ").replaceAll("\r", " ").replaceAll("\t", " ");
}
