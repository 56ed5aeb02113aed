"""Verifies and signs with the reference library of Standard Webhooks.

Each line of input has a command, a secret, an id, a timestamp, signatures and the base64 of
a payload, separated by tabs. The line of output is valid, invalid or a signature.
"""
import base64
import sys
from datetime import datetime, timezone

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

for line in sys.stdin:
    command, secret, id, timestamp, signatures, payload = line.rstrip("\n").split("\t")
    webhook, payload = Webhook(secret), base64.b64decode(payload)
    if command == "sign":
        sent = datetime.fromtimestamp(int(timestamp), timezone.utc)
        print(webhook.sign(id, sent, payload.decode()), flush=True)
        continue
    headers = {"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures}
    try:
        webhook.verify(payload, headers)
        print("valid", flush=True)
    except WebhookVerificationError:
        print("invalid", flush=True)
