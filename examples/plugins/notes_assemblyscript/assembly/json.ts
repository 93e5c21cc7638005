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

/** Reads one JSON value. The host sends nothing that is not JSON: what is, ends the instance. */
export function parse(text: string): Value {
  const p = new Parser(text);
  const v = p.value();
  p.blank();
  assert(p.at == text.length, "JSON: more than one value");
  return v;
}

class Parser {
  at: i32 = 0;
  constructor(private s: string) {}

  blank(): void {
    while (this.at < this.s.length) {
      const c = this.s.charCodeAt(this.at);
      if (c != 0x20 && c != 0x0a && c != 0x0d && c != 0x09) return;
      this.at++;
    }
  }

  peek(): i32 {
    this.blank();
    assert(this.at < this.s.length, "JSON: it ends too early");
    return this.s.charCodeAt(this.at);
  }

  /** Takes a character if it is the next one. */
  take(c: i32): bool {
    if (this.peek() != c) return false;
    this.at++;
    return true;
  }

  value(): Value {
    const v = new Value();
    const c = this.peek();
    if (c == 0x7b) { // {
      v.kind = Kind.Object;
      this.at++;
      if (this.take(0x7d)) return v;
      do {
        this.blank();
        v.keys.push(this.string());
        assert(this.take(0x3a), "JSON: a colon is missing");
        v.items.push(this.value());
      } while (this.take(0x2c));
      assert(this.take(0x7d), "JSON: a brace is missing");
    } else if (c == 0x5b) { // [
      v.kind = Kind.Array;
      this.at++;
      if (this.take(0x5d)) return v;
      do {
        v.items.push(this.value());
      } while (this.take(0x2c));
      assert(this.take(0x5d), "JSON: a bracket is missing");
    } else if (c == 0x22) { // "
      v.kind = Kind.String;
      v.text = this.string();
    } else {
      v.text = this.word();
      if (v.text == "true" || v.text == "false") v.kind = Kind.Bool;
      else if (v.text != "null") v.kind = Kind.Number;
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
    assert(this.at > from, "JSON: a value is missing");
    return this.s.substring(from, this.at);
  }

  string(): string {
    assert(this.s.charCodeAt(this.at) == 0x22, "JSON: a quotation mark is missing");
    let from = ++this.at;
    let out = "";
    while (true) {
      assert(this.at < this.s.length, "JSON: a string does not end");
      const c = this.s.charCodeAt(this.at);
      if (c == 0x22) break;
      if (c != 0x5c) {
        this.at++;
        continue;
      }
      out += this.s.substring(from, this.at) + this.escape();
      from = this.at;
    }
    out += this.s.substring(from, this.at++);
    return out;
  }

  /** What stands behind a backslash. */
  escape(): string {
    assert(this.at + 1 < this.s.length, "JSON: a string does not end");
    const c = this.s.charCodeAt(this.at + 1);
    this.at += 2;
    switch (c) {
      case 0x6e: return "\n";
      case 0x72: return "\r";
      case 0x74: return "\t";
      case 0x62: return "\b";
      case 0x66: return "\f";
      case 0x75: {
        const code = <i32>I64.parseInt(this.s.substring(this.at, this.at + 4), 16);
        this.at += 4;
        return String.fromCharCode(code);
      }
      default: return String.fromCharCode(c);
    }
  }
}

/** A JSON string. */
export function quote(text: string): string {
  let out = "\"";
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c >= 0x20 && c != 0x22 && c != 0x5c) continue;
    out += text.substring(from, i);
    from = i + 1;
    if (c == 0x22) out += "\\\"";
    else if (c == 0x5c) out += "\\\\";
    else if (c == 0x0a) out += "\\n";
    else if (c == 0x0d) out += "\\r";
    else if (c == 0x09) out += "\\t";
    else out += "\\u00" + (c < 16 ? "0" : "") + c.toString(16);
  }
  return out + text.substring(from) + "\"";
}
