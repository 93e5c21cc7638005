// A search wants words: each one at the start of a word, so that "tea" finds "teapot" and not "steam". Words of scripts that
// join words, or put articles in front of them, are found anywhere.

const inFront = /^[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{N}]/u;
const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|\-/]/g, "\\$&");

export interface Search {
  words: RegExp[];
}

// wordsOf makes a search of what was typed.
export const wordsOf = (typed: string): Search => ({ words: typed.trim().split(/\s+/u).filter(Boolean).map((word) =>
  new RegExp(`${inFront.test(word) ? "(?<![\\p{L}\\p{N}\\p{M}])" : ""}${escaped(word)}`, "giu")) });

// partOf makes a search for what was typed, anywhere: for ids.
export const partOf = (typed: string): Search => ({ words: typed.trim() === "" ? [] : [new RegExp(escaped(typed.trim()), "giu")] });

// fits tells whether a text has all words of a search.
export const fits = ({ words }: Search, text: string) => words.every((w) => text.search(w) >= 0);

// marked cuts a text into pieces: every second one, from the second on, is found.
export function marked({ words }: Search, text: string): string[] {
  const found = words.flatMap((w) => [...text.matchAll(w)].map((m) => [m.index, m.index + m[0].length])).sort(([a], [b]) => a - b);
  const pieces: string[] = [];
  let at = 0;
  for (const [from, to] of found) {
    if (from < at || to === from) continue; // within one that is marked
    pieces.push(text.slice(at, from), text.slice(from, to));
    at = to;
  }
  return [...pieces, text.slice(at)];
}
