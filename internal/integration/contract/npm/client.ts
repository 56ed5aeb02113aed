// Calls the interface with types generated from the document. Prints for each step the
// status, and the message, source or error code.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { env: Record<string, string> };
const { BASE = "", RECEIVER = "", CLIENT = "" } = process.env;

const open = (client: string) => createClient<paths>({ baseUrl: BASE, headers: { Authorization: "Basic " + btoa(client) } });
const api = open(CLIENT);
const one = "/api/v1/configure/configure-webhook/{endpoint_id}";
const all = "/api/v1/configure/configure-webhook";
const params = { path: { endpoint_id: "e1" } };

type Result<Data> = { data?: Data; error?: { error: string; error_description: string }; response: Response };

function show<Data>({ data, error, response }: Result<Data>, word: (data: Data) => string): void {
  console.log(response.status, error ? error.error : word(data as Data));
}

const message = (done: components["schemas"]["Success"]): "successful" => done.message;

show(await api.POST(all, { body: { endpoint_id: "e1", webhook_url: RECEIVER } }), message);
show(await api.GET(one, { params }), (webhook) => webhook.source);
show(await api.DELETE(one, { params }), message);
show(await api.POST(all, { body: { webhook_url: RECEIVER } }), message);
show(await api.DELETE(all), message);
// @ts-expect-error: the types do not allow null for an identifier.
show(await api.POST(all, { body: { endpoint_id: null, webhook_url: RECEIVER } }), message);
show(await open(CLIENT + "x").DELETE(all), message);
show(await api.POST(all, { body: { endpoint_id: "e9", webhook_url: RECEIVER } }), message);
