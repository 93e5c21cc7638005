import type { ComponentChild } from "preact";
import { Words } from "./Words";

export type Fact = [name: string, value: ComponentChild | string[]];

const empty = (v: Fact[1]) => v === undefined || v === null || v === "" || (Array.isArray(v) && v.length === 0);

// Facts is a list of names with values; what is empty is left out.
export const Facts = ({ of }: { of: Fact[] }) => (
  <dl>{of.filter(([, value]) => !empty(value)).map(([name, value]) => [<dt>{name}</dt>,
    <dd>{value !== null && typeof value === "object" && !Array.isArray(value) ? value :
      <Words>{Array.isArray(value) ? value.join(", ") : value}</Words>}</dd>])}</dl>
);
