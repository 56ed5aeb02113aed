"""Calls the interface with requests; prints a line for each step."""
import os

import requests

base, receiver = os.environ["BASE"], os.environ["RECEIVER"]
client = tuple(os.environ["CLIENT"].split(":"))
path = base + "/api/v1/configure/configure-webhook"
session = requests.Session()
session.trust_env = False


def show(method, url, client=client, **more):
    response = session.request(method, url, auth=client, timeout=30, **more)
    body = response.json()
    print(response.status_code, body.get("error") or body.get("message") or body.get("source"))


show("POST", path, json={"endpoint_id": "e1", "webhook_url": receiver})
show("GET", path + "/e1")
show("DELETE", path + "/e1")
show("POST", path, json={"webhook_url": receiver})
show("DELETE", path)
show("POST", path, json={"endpoint_id": None, "webhook_url": receiver})
show("DELETE", path, client=(client[0], "wrong"))
show("POST", path, json={"endpoint_id": "e9", "webhook_url": receiver})
