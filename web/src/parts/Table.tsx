import type { ComponentChild } from "preact";
import { Words } from "./Words";

// Table has a row for each list of texts or elements.
export function Table({ caption, heads, rows }: { caption: string; heads: string[]; rows: ComponentChild[][] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <thead><tr>{heads.map((h) => (h === "" ? <td /> : <th scope="col">{h}</th>))}</tr></thead>
        <tbody>{rows.map((row) => <tr>{row.map((v) => <td>{v !== null && typeof v === "object" ? v :
          <Words>{v}</Words>}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}
