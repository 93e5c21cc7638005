// Lines of a context, for comparing two of them.

// lines are what a context says, line by line: without its frame, and without the number and time in front of an item,
// which differ from memory to memory.
export const lines = (context: string) => context.split("\n").map((l) => l.trim().replace(/^m\d+ (\[[^\]]*\] |[\d:.TZ-]+ )?/, ""))
  .filter((l) => l !== "" && !/^<\/?memory-context/.test(l));
