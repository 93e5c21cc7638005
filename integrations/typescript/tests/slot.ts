// The real memhost program (AGENTS_TEST_PROGRAM) as a slot.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Scope } from "../src/index.ts";

const program = process.env.AGENTS_TEST_PROGRAM ?? "memhost";
const running = new Set<ChildProcess>();

/** Ends what a test has left. */
export function endAll(): void {
  for (const child of running) child.kill();
  running.clear();
}

/** memhost run on a data folder; it can be stopped and started again at its address. */
export class RunningSlot {
  readonly folder = mkdtempSync(join(tmpdir(), "memhost-ts-"));
  server = "127.0.0.1:0";
  #child: ChildProcess | undefined;

  async start(): Promise<this> {
    const config = join(this.folder, "memhost.yaml");
    writeFileSync(config, "memory: {condition: full_history, archive: true}\n");
    const child = spawn(program, ["run", "--json", "--config", config, "--data", join(this.folder, "data"), "--listen", this.server], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    running.add(child);
    this.#child = child;
    let said = "";
    for await (const part of child.stdout!) {
      said += String(part);
      if (said.endsWith("\n}\n")) break;
    }
    this.server = (JSON.parse(said) as { url: string }).url.replace("http://", "");
    return this;
  }

  async stop(): Promise<void> {
    const ended = once(this.#child!, "exit");
    this.#child!.kill();
    await ended;
    running.delete(this.#child!);
  }

  /** What a command of memhost prints. */
  command(...args: string[]): string {
    return execFileSync(program, ["--server", this.server, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  }

  /** What users said, as full_history has it. */
  said(scope: Scope): string[] {
    const text = this.command("retrieve", "x", "--run", scope.runId, "--user", scope.userId);
    return text.split("\n").filter((line) => line.includes("] user: ")).map((line) => line.split("] user: ")[1]!);
  }
}
