package contract_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/pathtest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
)

// nodePrograms are proxies in JavaScript, which print their URL. {lines} is the mount.
var nodePrograms = map[string]string{
	"@fastify/http-proxy": `import Fastify from "fastify";
import proxy from "@fastify/http-proxy";
const app = Fastify();
{lines}
console.log(await app.listen({ host: "127.0.0.1", port: 0 }));
`,
	"http-proxy-middleware": `import http from "node:http";
import { createProxyMiddleware } from "http-proxy-middleware";
{lines}
const server = http.createServer((req, res) => proxy(req, res, () => res.writeHead(404).end()));
server.listen(0, "127.0.0.1", () => console.log("http://127.0.0.1:" + server.address().port));
`,
	"node:http": `import http from "node:http";
{lines}
const server = http.createServer(proxy);
server.listen(0, "127.0.0.1", () => console.log("http://127.0.0.1:" + server.address().port));
`,
}

// gateway is a handwritten proxy. It cleans paths, because new URL does.
const gateway = `const proxy = (req, res) => {
	let url;
	try {
		url = new URL(req.url, "http://127.0.0.1:8080");
	} catch {
		return res.writeHead(400).end();
	}
	const headers = { ...req.headers, "x-original-uri": req.url };
	const to = { host: "127.0.0.1", port: new URL("http://127.0.0.1:8080").port, path: url.pathname + url.search };
	const forwarded = http.request({ ...to, method: req.method, headers }, (from) => {
		res.writeHead(from.statusCode, from.headers);
		from.pipe(res);
	});
	forwarded.on("error", () => res.destroy());
	req.pipe(forwarded);
};`

// nodeMounts put a proxy in front of the service at 127.0.0.1:8080. The README shows the ones
// with a package that don't fail, and their options of the handler.
var nodeMounts = []struct {
	proxy, lines string
	original     bool     // the handler gets the target that the proxy received
	fails        string   // a class of requests that fails; "" if none does
	refuses      []string // well-formed targets that the proxy refuses
}{
	{
		proxy: "http-proxy-middleware", fails: "slashes",
		lines: `const proxy = createProxyMiddleware({ target: "http://127.0.0.1:8080", pathFilter: "/hooks" });`,
	},
	{
		proxy: "http-proxy-middleware", fails: "body", original: true,
		lines: `const hooks = createProxyMiddleware({ target: "http://127.0.0.1:8080", pathFilter: "/hooks" });
const proxy = (req, res, next) => {
	req.headers["x-original-uri"] = req.url;
	return hooks(req, res, next);
};`,
	},
	{
		proxy: "http-proxy-middleware", original: true,
		lines: `const hooks = createProxyMiddleware({ target: "http://127.0.0.1:8080", pathFilter: "/hooks", xfwd: true });
const proxy = (req, res, next) => {
	if (req.method === "DELETE" && req.headers["transfer-encoding"]) return res.writeHead(411).end();
	req.headers["x-original-uri"] = req.url;
	return hooks(req, res, next);
};`,
	},
	{proxy: "node:http", fails: "dots", lines: gateway},
	{proxy: "node:http", original: true, lines: gateway},
	{
		proxy: "@fastify/http-proxy", fails: "dots",
		lines: `app.register(proxy, { upstream: "http://127.0.0.1:8080", prefix: "/hooks", rewritePrefix: "/hooks" });`,
	},
	{
		proxy: "@fastify/http-proxy", original: true,
		refuses: []string{"http://test/hooks" + configure + "/", "/hooks" + configure + "/..."},
		lines: `app.register(proxy, {
	upstream: "http://127.0.0.1:8080",
	prefix: "/hooks",
	rewritePrefix: "/hooks",
	replyOptions: {
		rewriteRequestHeaders: (req, headers) => ({
			...headers,
			"host": req.headers.host,
			"x-original-uri": req.raw.url,
			"x-forwarded-for": req.raw.socket.remoteAddress,
		}),
	},
});`,
	},
}

// TestNodeMounts: the README's mounts behind proxies in JavaScript pass, and simpler ones
// fail.
func TestNodeMounts(t *testing.T) {
	dir := packages(t)
	readme := readFile(t, "../../../examples/mounts/README.md")
	for i, m := range nodeMounts {
		t.Run(m.proxy, func(t *testing.T) {
			o := webhookcfg.Options{BasePath: "/hooks"}
			if m.original {
				o.AllScope, o.OriginalTarget = webhookcfg.AllScopeExact, webhookcfg.TargetFromHeader("X-Original-URI")
			}
			s := pathtest.New(t, o)
			service := strings.TrimPrefix(hooktest.Serve(t, s).URL, "http://")
			program := strings.ReplaceAll(nodePrograms[m.proxy], "{lines}", m.lines)
			script := fmt.Sprintf("mount%d.js", i)
			write(t, filepath.Join(dir, script), []byte(strings.ReplaceAll(program, "127.0.0.1:8080", service)))
			base := start(t, command(t, dir, "node", script), listening) + "/hooks"
			report := s.Check(t, base, nil)
			t.Logf("%d of %d requests failed", len(report.Failures), report.Requests)
			isClass := func(f mounttest.Failure) bool { return f.Class == m.fails }
			switch {
			case m.fails == "" && len(report.Failures) > 0:
				t.Error(report)
			case m.fails != "" && !slices.ContainsFunc(report.Failures, isClass):
				t.Errorf("no failure of class %s: %v", m.fails, report)
			}
			if m.fails == "" {
				s.ExpectEffects(t, base, pathtest.Tolerance{Cleans: true, Refuses: m.refuses}, pathtest.Scopes...)
			}
			if m.fails == "" && m.lines != gateway {
				s.ExpectForwarded(t, base)
			}
			if m.fails == "" && m.lines != gateway && !strings.Contains(readme, m.lines) {
				t.Errorf("the README does not show\n%s", m.lines)
			}
		})
	}
}
