import { asked, nameOf, type Found } from "../ask";
import type { Scope } from "../wire";

// ScopeChoice is a labelled list of scopes.
export function ScopeChoice({ found, value, onChange }: { found: Found; value: string; onChange: (name: string) => void }) {
  return (
    <label class="wide">{`Person (run / id${found.more ? ", the first 500" : ""})`}
      <select class="words" value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        {found.list.map((s) => <option value={nameOf(s.scope)} selected={nameOf(s.scope) === value}>{nameOf(s.scope)}</option>)}
      </select>
    </label>
  );
}

// scopeOf is the scope of a name, or the first one.
export const scopeOf = (found: Found, name?: string): Scope =>
  asked((found.list.find((s) => nameOf(s.scope) === name) ?? found.list[0]).scope);
