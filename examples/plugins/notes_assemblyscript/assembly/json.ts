// JSON: a reader that makes a tree, and what a writer needs to put text together. AssemblyScript has none of its own.

export enum Kind { Null, Bool, Number, String, Array, Object }

/** A JSON value. What is absent reads as null, so that a path can be followed without looking at each step. */
export class Value {
  kind: Kind = Kind.Null;
  /** A string's characters; of a number or a boolean, its spelling. */
  text: string = "";
  /** An object's keys, in order; its values stand in items. */
  keys: string[] = [];
  items: Value[] = [];

  get(key: string): Value {
    const at = this.keys.indexOf(key);
    return at < 0 ? new Value() : this.items[at];
  }

  get present(): bool { return this.kind != Kind.Null; }

  /** The number as an integer, or otherwise when there is none. */
  int(otherwise: i64): i64 {
    return this.kind == Kind.Number ? I64.parseInt(this.text) : otherwise;
  }
}

/** Deeper than this no document of the contract nests. */
const maxDepth = 64;

/** Reads one JSON value; null when the text is anything else: a backend may answer anything. */
export function parse(text: string): Value | null {
  const p = new Parser(text);
  const v = p.value(0);
  p.blank();
  return p.bad || p.at != text.length ? null : v;
}

class Parser {
  at: i32 = 0;
  bad: bool = false;
  constructor(private s: string) {}

  blank(): void {
    while (this.at < this.s.length) {
      const c = this.s.charCodeAt(this.at);
      if (c != 0x20 && c != 0x0a && c != 0x0d && c != 0x09) return;
      this.at++;
    }
  }

  /** The next character that is no blank; -1 at the end. */
  peek(): i32 {
    this.blank();
    return this.at < this.s.length ? this.s.charCodeAt(this.at) : -1;
  }

  /** Takes a character if it is the next one. */
  take(c: i32): bool {
    if (this.bad || this.peek() != c) return false;
    this.at++;
    return true;
  }

  want(c: i32): void {
    if (!this.take(c)) this.bad = true;
  }

  value(depth: i32): Value {
    const v = new Value();
    if (depth > maxDepth) this.bad = true;
    if (this.bad) return v;
    if (this.take(0x7b)) { // {
      v.kind = Kind.Object;
      if (this.take(0x7d)) return v;
      do {
        this.want(0x22);
        v.keys.push(this.string());
        this.want(0x3a);
        v.items.push(this.value(depth + 1));
      } while (this.take(0x2c));
      this.want(0x7d);
    } else if (this.take(0x5b)) { // [
      v.kind = Kind.Array;
      if (this.take(0x5d)) return v;
      do {
        v.items.push(this.value(depth + 1));
      } while (this.take(0x2c));
      this.want(0x5d);
    } else if (this.take(0x22)) { // "
      v.kind = Kind.String;
      v.text = this.string();
    } else {
      v.text = this.word();
      if (v.text == "true" || v.text == "false") v.kind = Kind.Bool;
      else if (isNumber(v.text)) v.kind = Kind.Number;
      else if (v.text != "null") this.bad = true;
    }
    return v;
  }

  /** A number, true, false or null. */
  word(): string {
    const from = this.at;
    while (this.at < this.s.length) {
      const c = this.s.charCodeAt(this.at);
      if (c <= 0x20 || c == 0x2c || c == 0x5d || c == 0x7d) break;
      this.at++;
    }
    return this.s.substring(from, this.at);
  }

  /** A string, from behind its first quotation mark. */
  string(): string {
    let from = this.at;
    const parts: string[] = []; // joined at the end: adding to one text copies it each time
    while (!this.bad) {
      if (this.at >= this.s.length) {
        this.bad = true;
        break;
      }
      const c = this.s.charCodeAt(this.at);
      if (c == 0x22) break;
      if (c < 0x20) this.bad = true;
      if (c != 0x5c) {
        this.at++;
        continue;
      }
      parts.push(this.s.substring(from, this.at));
      parts.push(this.escape());
      from = this.at;
    }
    if (this.bad) return "";
    parts.push(this.s.substring(from, this.at++));
    return parts.join("");
  }

  /** What a backslash and the next characters stand for. */
  escape(): string {
    const c = this.at + 1 < this.s.length ? this.s.charCodeAt(this.at + 1) : 0;
    this.at += 2;
    switch (c) {
      case 0x22: case 0x2f: case 0x5c: return String.fromCharCode(c);
      case 0x6e: return "\n";
      case 0x72: return "\r";
      case 0x74: return "\t";
      case 0x62: return "\b";
      case 0x66: return "\f";
      case 0x75: return String.fromCharCode(this.unit());
    }
    this.bad = true;
    return "";
  }

  /** Four hex digits. */
  unit(): i32 {
    let unit = 0;
    for (const end = this.at + 4; this.at < end; this.at++) {
      const c = this.at < this.s.length ? this.s.charCodeAt(this.at) | 0x20 : 0;
      const digit = c >= 0x30 && c <= 0x39 ? c - 0x30 : c >= 0x61 && c <= 0x66 ? c - 0x57 : -1;
      if (digit < 0) this.bad = true;
      unit = unit << 4 | digit;
    }
    return unit & 0xffff;
  }
}

/** Whether a word is a number: -? (0 or digits that begin with another) (. digits)? (e or E, a sign, digits)? */
function isNumber(s: string): bool {
  let at = s.startsWith("-") ? 1 : 0;
  const whole = digits(s, at);
  if (whole == at || whole > at + 1 && s.charCodeAt(at) == 0x30) return false;
  at = whole;
  if (at < s.length && s.charCodeAt(at) == 0x2e) {
    const end = digits(s, at + 1);
    if (end == at + 1) return false;
    at = end;
  }
  if (at < s.length && (s.charCodeAt(at) | 0x20) == 0x65) {
    at++;
    if (at < s.length && (s.charCodeAt(at) == 0x2b || s.charCodeAt(at) == 0x2d)) at++;
    const end = digits(s, at);
    if (end == at) return false;
    at = end;
  }
  return at == s.length;
}

/** Where the digits from a place on end. */
function digits(s: string, at: i32): i32 {
  while (at < s.length && s.charCodeAt(at) >= 0x30 && s.charCodeAt(at) <= 0x39) at++;
  return at;
}

/** A JSON string. */
export function quote(text: string): string {
  const parts: string[] = ["\""]; // joined at the end: adding to one text copies it each time
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c >= 0x20 && c != 0x22 && c != 0x5c) continue;
    parts.push(text.substring(from, i));
    from = i + 1;
    if (c == 0x22) parts.push("\\\"");
    else if (c == 0x5c) parts.push("\\\\");
    else if (c == 0x0a) parts.push("\\n");
    else if (c == 0x0d) parts.push("\\r");
    else if (c == 0x09) parts.push("\\t");
    else parts.push("\\u00" + (c < 16 ? "0" : "") + c.toString(16));
  }
  parts.push(text.substring(from));
  parts.push("\"");
  return parts.join("");
}

/** A list of JSON strings. */
export function quoteAll(texts: string[]): string {
  const quoted: string[] = [];
  for (let i = 0; i < texts.length; i++) quoted.push(quote(texts[i]));
  return "[" + quoted.join(",") + "]";
}
