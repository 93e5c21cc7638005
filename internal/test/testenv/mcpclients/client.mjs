// The official TypeScript client (@modelcontextprotocol/sdk) as a driven client: a command a line on standard input, an answer a line on standard
// output. Arguments and commands are those of client.py; this client always begins with initialize.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages stand in a cache folder, not beside this file.
const require = createRequire(process.env.NODE_MODULES_OF + "/");
const load = (path) => import(pathToFileURL(require.resolve("@modelcontextprotocol/sdk/" + path)));
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");

const [kind, , ...rest] = process.argv.slice(2);
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => /^(RUN_AS_|XDG_|GORACE|PATH|HOME)/.test(name)));
const transport =
  kind === "stdio"
    ? new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: environment })
    : new StreamableHTTPClientTransport(new URL(rest[0]), { requestInit: { headers: rest[1] ? { Authorization: `Bearer ${rest[1]}` } : {} } });
const client = new Client({ name: "driven", version: "1" });
await client.connect(transport);

const answers = {
  info: async () => ({ server: client.getServerVersion().name, protocol: transport.protocolVersion, instructions: client.getInstructions() }),
  tools: async () => (await client.listTools()).tools,
  resources: async () => (await client.listResources()).resources,
  call: ({ name, arguments: given }) => client.callTool({ name, arguments: given }),
  read: ({ uri }) => client.readResource({ uri }),
};
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  let said;
  try {
    said = { answer: await answers[command.do](command) };
  } catch (e) {
    said = { error: { code: e.code, message: e.message, data: e.data } };
  }
  process.stdout.write(JSON.stringify(said) + "\n");
}
await client.close();
