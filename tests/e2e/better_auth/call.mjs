// The unmodified Better Auth client. Each line of standard input is a call, each line of standard output its result:
// {"method": "apiKey.create", "argument": {...}} -> {"data": ..., "error": ...}. The first line has the address and the headers.
import { createInterface } from "node:readline";
import { createAuthClient } from "better-auth/client";

let client;
for await (const line of createInterface({ input: process.stdin })) {
  const sent = JSON.parse(line);
  if (client === undefined) {
    const { baseURL, headers, keyPlugin } = sent;
    const { apiKeyClient } = await import(keyPlugin);
    client = createAuthClient({ baseURL, plugins: [apiKeyClient()], fetchOptions: { headers } });
  } else {
    const call = sent.method.split(".").reduce((object, name) => object[name], client);
    console.log(JSON.stringify(await call(sent.argument)));
  }
}
