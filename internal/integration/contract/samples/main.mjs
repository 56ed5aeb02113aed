import { createInterface } from "node:readline";
import { verify } from "./sample.mjs";

for await (const line of createInterface({ input: process.stdin })) {
  const [, , id, timestamp, signatures, body] = line.split("\t");
  console.log(verify(id, timestamp, signatures, Buffer.from(body, "base64")) ? "valid" : "invalid");
}
