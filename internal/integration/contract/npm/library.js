// Verifies and signs with the reference library of Standard Webhooks.
//
// Each line of input has a command, a secret, an id, a timestamp, signatures and the base64
// of a payload, separated by tabs. The line of output is valid, invalid or a signature.
import { createInterface } from "node:readline";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

for await (const line of createInterface({ input: process.stdin })) {
  const [command, secret, id, timestamp, signatures, encoded] = line.split("\t");
  const webhook = new Webhook(secret);
  const payload = Buffer.from(encoded, "base64");
  if (command === "sign") {
    console.log(webhook.sign(id, new Date(Number(timestamp) * 1000), payload.toString()));
    continue;
  }
  const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures };
  try {
    webhook.verify(payload, headers);
    console.log("valid");
  } catch (err) {
    if (!(err instanceof WebhookVerificationError)) throw err;
    console.log("invalid");
  }
}
