import base64
import sys

from sample import verify

for line in sys.stdin:
    _, _, *header, body = line.rstrip("\n").split("\t")
    id, timestamp, signatures = [field or None for field in header]
    print("valid" if verify(id, timestamp, signatures, base64.b64decode(body)) else "invalid", flush=True)
