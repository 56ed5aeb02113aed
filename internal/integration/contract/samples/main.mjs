import { createInterface } from "node:readline";
import { verify } from "./sample.mjs";

for await (const line of createInterface({ input: process.stdin })) {
  const [, , ...fields] = line.split("\t");
  const [id, timestamp, signatures, body] = fields.map((field) => field || undefined);
  console.log(verify(id, timestamp, signatures, Buffer.from(body, "base64")) ? "valid" : "invalid");
}
