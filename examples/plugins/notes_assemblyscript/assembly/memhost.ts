// The shell of a plugin: the request in, the answer or the error out, and the host's functions with the types of AssemblyScript.

import { Host, Memory } from "@extism/as-pdk";
import { Value, parse, quote } from "./json";

// The host's functions. A pointer is Extism's; packed is what abi/ABI.md says, and pull gives head and body of the pending result as one block.

// @ts-ignore: decorator
@external("extism:host/user", "pull")
declare function hostPull(): u64;
// @ts-ignore: decorator
@external("extism:host/user", "log")
declare function hostLog(level: i32, text: u64): void;
// @ts-ignore: decorator
@external("extism:host/user", "tokens_count")
declare function hostTokensCount(text: u64): i64;
// @ts-ignore: decorator
@external("extism:host/user", "tokens_fit")
declare function hostTokensFit(text: u64, max: i32): u64;
// @ts-ignore: decorator
@external("extism:host/user", "state_append")
declare function hostStateAppend(log: u64, entry: u64): u64;
// @ts-ignore: decorator
@external("extism:host/user", "state_read")
declare function hostStateRead(request: u64): u64;
// @ts-ignore: decorator
@external("extism:host/user", "state_delete")
declare function hostStateDelete(prefix: u64): u64;

/** What an operation gets. */
export class Call {
  constructor(
    /** The envelope of abi/ABI.md, section 3. */
    public envelope: Value,
  ) {}

  get body(): Value { return this.envelope.get("body"); }

  /** run/persona: whose memory it is. */
  get scope(): string {
    const s = this.envelope.get("scope");
    return s.get("run_id").text + "/" + s.get("persona_id").text;
  }
}

/** An error to be answered, as JSON; empty when all is well. There are no exceptions: what can fail is asked about after the call. */
export let failure: string = "";

/** Makes an operation end with an error of the contract. */
export function fail(code: string, message: string): void {
  failure = `{"code":${quote(code)},"message":${quote(message)},"retryable":false}`;
}

/** Runs one operation: what an export returns. */
export function serve(operation: (c: Call) => string): i32 {
  failure = "";
  const answer = operation(new Call(own(Host.inputString())));
  Host.output(bytes(failure.length > 0 ? failure : answer));
  return failure.length > 0 ? 1 : 0;
}

/** JSON of the host's, or of this plugin's own: it is JSON. */
export function own(text: string): Value {
  const v = parse(text);
  assert(v !== null, "this was to be JSON");
  return v!;
}

/** Called where an assertion fails; the compiler is told of it in asconfig.json. */
export function abort(message: string | null, file: string | null, line: u32, column: u32): void {
  log(3, (message === null ? "aborted" : message) + " (" + (file === null ? "" : file) + ":" + line.toString() + ":" + column.toString() + ")");
  unreachable();
}

/** Writes to the host's log; level is 0 debug, 1 info, 2 warn, 3 error. */
export function log(level: i32, text: string): void {
  const m = lend(text);
  hostLog(level, m.offset);
  m.free();
}

export function countTokens(text: string): i64 {
  const m = lend(text);
  const n = hostTokensCount(m.offset);
  m.free();
  return n;
}

/** The longest prefix of a text that has at most max tokens. */
export function fitTokens(text: string, max: i64): string {
  if (max <= 0) return "";
  const all = bytes(text);
  const m = Memory.allocateBytes(all);
  const fit = hostTokensFit(m.offset, <i32>min(max, <i64>i32.MAX_VALUE));
  m.free();
  return textOf(all.subarray(0, <i32>(fit & 0xffffffff)));
}

/** Adds an entry to a log of the scope. */
export function append(name: string, entry: string): void {
  const n = lend(name);
  const e = lend(entry);
  take(hostStateAppend(n.offset, e.offset));
}

/** The newest entries of a log, oldest first: at most 1000. */
export function newest(name: string): string[] {
  const result = take(hostStateRead(lend(`{"log":${quote(name)},"reverse":true}`).offset));
  const entries = result.head.get("entries").items;
  const texts: string[] = [];
  let at = 0;
  for (let i = 0; i < entries.length; i++) {
    const size = <i32>entries[i].get("size").int(0);
    texts.push(textOf(result.body.subarray(at, at + size)));
    at += size;
  }
  return texts.reverse();
}

/** Removes the keys and logs of the scope whose name begins with prefix, and says how many entries that were. */
export function remove(prefix: string): i64 {
  return take(hostStateDelete(prefix.length > 0 ? lend(prefix).offset : 0)).head.get("deleted").int(0);
}

class Result {
  constructor(public head: Value, public body: Uint8Array) {}
}

/** Takes the pending result of a host function. An error becomes the operation's. */
function take(packed: u64): Result {
  const head = <i32>(packed & 0x7fffffff);
  const length = packed >> 32;
  const m = new Memory(hostPull(), <u64>head + length);
  const all = m.toUint8Array();
  m.free();
  const text = textOf(all.subarray(0, head));
  if ((packed & 0x80000000) != 0) {
    failure = text;
    return new Result(new Value(), new Uint8Array(0));
  }
  return new Result(own(text), all.subarray(head));
}

function lend(text: string): Memory { return Memory.allocateBytes(bytes(text)); }

// Host.outputString of the PDK counts UTF-16 units where bytes are meant, so texts go in and out as bytes.

function bytes(text: string): Uint8Array { return Uint8Array.wrap(String.UTF8.encode(text)); }

function textOf(b: Uint8Array): string {
  return String.UTF8.decodeUnsafe(b.dataStart, b.byteLength);
}
