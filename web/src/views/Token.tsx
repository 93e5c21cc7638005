// Token lets a person in who has the slot's token and no link.
import { useState } from "preact/hooks";
import { get, useToken } from "../api";
import { Failure } from "../parts/Failure";

export function Token({ first, enter }: { first: unknown; enter: () => void }) {
  const [token, setToken] = useState("");
  const [wrong, setWrong] = useState<unknown>(first);
  const submit = async (e: Event) => {
    e.preventDefault();
    useToken(token);
    try {
      await get("/v1/mode");
      enter();
    } catch (e) {
      setWrong(e);
    }
  };
  return (
    <section class="card narrow">
      <h2>This slot wants a token</h2>
      <p>Open the page with the link that memhost run printed, which works once; or give the slot's token
        (MEMHOST_TOKEN). It is kept in this page only.</p>
      <form onSubmit={submit}>
        <label>Token<input type="password" autoComplete="off" required value={token}
          onInput={(e) => setToken(e.currentTarget.value)} /></label>
        <button class="act">Open</button>
      </form>
      <Failure of={wrong} />
    </section>
  );
}
