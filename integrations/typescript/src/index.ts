// A memhost slot as the memory of a TypeScript agent. Memory is what an agent needs: context before a turn, a record after it.
export { Memory, type Options, withContext } from "./memory.ts";
export { type MemoryEvent, type Message, type Receipt, type Scope, Slot, SlotError } from "./slot.ts";
