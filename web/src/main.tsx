// The page's start: who may see it.
import { render } from "preact";
import { Page } from "./Page";

const main = document.getElementById("page");
if (main) {
  main.replaceChildren(); // what stands there for browsers without JavaScript
  render(<Page />, main);
}
