import base64
import sys

from sample import verify

for line in sys.stdin:
    _, _, id, timestamp, signatures, body = line.rstrip("\n").split("\t")
    print("valid" if verify(id, timestamp, signatures, base64.b64decode(body)) else "invalid", flush=True)
