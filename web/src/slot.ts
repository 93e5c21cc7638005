// What the views share.
import { createContext } from "preact";
import { useContext, useEffect } from "preact/hooks";
import type { Line, Settings } from "./wire";

export interface Slot {
  settings: Settings;
  // again shows the open view anew.
  again: () => void;
  // onLine calls listen with each line of the stream of operations. It returns what ends that.
  onLine: (listen: (line: Line) => void) => () => void;
}

export const SlotContext = createContext<Slot>({ settings: { mode: "read", token: false, views: [] },
  again: () => undefined, onLine: () => () => undefined });

export const useSlot = () => useContext(SlotContext);

// useLines calls listen with each line for as long as the component is shown.
export function useLines(listen: (line: Line) => void) {
  const slot = useSlot();
  useEffect(() => slot.onLine(listen));
}
