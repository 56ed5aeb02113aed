// Calls the interface with k6; prints a line for each step.
import { b64encode } from "k6/encoding";
import http from "k6/http";

const path = __ENV.BASE + "/api/v1/configure/configure-webhook";

function show(client, method, url, body) {
  const headers = { Authorization: "Basic " + b64encode(client), "Content-Type": "application/json" };
  const response = http.request(method, url, body ? JSON.stringify(body) : null, { headers });
  const { error, message, source } = response.json();
  console.log(response.status, error || message || source);
}

export default function () {
  show(__ENV.CLIENT, "POST", path, { endpoint_id: "e1", webhook_url: __ENV.RECEIVER });
  show(__ENV.CLIENT, "GET", path + "/e1");
  show(__ENV.CLIENT, "DELETE", path + "/e1");
  show(__ENV.CLIENT, "POST", path, { webhook_url: __ENV.RECEIVER });
  show(__ENV.CLIENT, "DELETE", path);
  show(__ENV.CLIENT, "POST", path, { endpoint_id: null, webhook_url: __ENV.RECEIVER });
  show(__ENV.CLIENT + "x", "DELETE", path);
  show(__ENV.CLIENT, "POST", path, { endpoint_id: "e9", webhook_url: __ENV.RECEIVER });
}
