package frames

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/http2"
)

// Paths of a handler at Base.
const (
	// Base is the base path of the handler in every mount.
	Base = "/hooks"

	all    = Base + "/api/v1/configure/configure-webhook"
	entity = all + "/e1"

	named = `{"endpoint_id":"e1"}` // a body that names an entity
)

// attempt is a sequence of frames that a client sends over its own connection.
type attempt struct {
	name   string
	frames []frame
	effect string // of a well-formed request; "" means that it must not affect more than one entity
}

// client builds the attempts for one mount.
type client struct {
	scheme, authority string
	attempts          []attempt
}

func (c *client) add(name, effect string, frames ...frame) {
	c.attempts = append(c.attempts, attempt{name, frames, effect})
}

// pseudo returns the pseudo-header fields of a DELETE.
func (c *client) pseudo(path string) []field {
	return []field{{":method", "DELETE"}, {":scheme", c.scheme}, {":authority", c.authority}, {":path", path}}
}

// fields returns the fields of a DELETE.
func (c *client) fields(path string, more ...field) []field {
	return slices.Concat(c.pseudo(path), []field{{"authorization", authorization}}, more)
}

// request is the HEADERS frame of a DELETE.
func (c *client) request(flags http2.Flags, path string, more ...field) frame {
	return headers(flags, c.fields(path, more...)...)
}

// table returns the attempts that we wrote by hand.
func (c *client) table() []attempt {
	c.addValid()
	c.addBodies()
	c.addPaths()
	c.addPseudoHeaders()
	c.addFields()
	c.addSequences()
	c.addSmuggled()
	return c.attempts
}

// inPath returns an offset in the middle of the path, in a header block.
func (c *client) inPath(path string) int {
	fields := c.pseudo(path)
	return (len(encode(fields[:3])) + len(encode(fields))) / 2
}

// addValid adds unusual but well-formed requests. Otherwise a mount that refuses everything
// would pass.
func (c *client) addValid() {
	length := func(text string) field { return field{"content-length", text} }
	for _, path := range []string{all, entity} {
		effect := map[string]string{all: "unset all", entity: "unset entity e1"}[path]
		c.add("valid", effect, c.request(endStream, path))
		c.add("valid, length 0", effect, c.request(endStream, path, length("0")))
		c.add("valid, length 0 and empty DATA", effect, c.request(0, path, length("0")), data(endStream, ""))
		c.add("valid, empty DATA twice", effect, c.request(0, path), data(0, ""), data(endStream, ""))
		c.add("valid, padding", effect, pad(c.request(endStream, path), 200))
		c.add("valid, DATA of padding", effect, c.request(0, path), pad(data(endStream, ""), 9))
		at := c.inPath(path)
		c.add("valid, CONTINUATION in the path", effect, split(c.request(endStream, path), at)...)
		c.add("valid, empty CONTINUATION", effect, split(c.request(endStream, path), at, at, at+1)...)
		c.add("valid, trailers", effect, c.request(0, path), headers(endStream, field{"x-trailer", "1"}))
		c.add("valid, unknown frame", effect, frame{kind: 0xbe, payload: []byte(named)}, c.request(endStream, path))
	}
	c.add("valid, a body for one entity", "unset entity e1", c.request(0, entity), data(endStream, named))
}

// addBodies adds requests whose body names an entity, or is announced but missing.
func (c *client) addBodies() {
	for _, path := range []string{all, all + "/"} {
		for _, length := range []string{"0", "1", "19", "21", "x", "", "-1", "+20", "0x14", "20, 20", "20.0", "00", "99999999999999999999"} {
			c.add("DATA, length "+length, "", c.request(0, path, field{"content-length", length}), data(endStream, named))
			c.add("DATA after empty DATA, length "+length, "", c.request(0, path, field{"content-length", length}), data(0, ""), data(endStream, named))
			if strings.Trim(length, "0") != "" {
				c.add("no DATA, length "+length, "", c.request(endStream, path, field{"content-length", length}))
				c.add("empty DATA, length "+length, "", c.request(0, path, field{"content-length", length}), data(endStream, ""))
			}
		}
		c.add("two lengths", "", c.request(0, path, field{"content-length", "0"}, field{"content-length", "20"}), data(endStream, named))
		c.add("two lengths, no DATA", "", c.request(endStream, path, field{"content-length", "20"}, field{"content-length", "0"}))
		c.add("DATA", "", c.request(0, path), data(endStream, named))
		c.add("DATA byte by byte", "", c.request(0, path), data(0, "{"), data(0, "}"), data(endStream, ""))
		c.add("DATA with padding", "", c.request(0, path), pad(data(endStream, named), 255))
		c.add("DATA, then padding alone", "", c.request(0, path), data(0, "1"), pad(data(endStream, ""), 1))
		c.add("DATA and trailers", "", c.request(0, path), data(0, named), headers(endStream, field{"x-trailer", "1"}))
		c.add("trailers with a length", "", c.request(0, path), data(0, named), headers(endStream, field{"content-length", "0"}))
		c.add("trailers that name the path", "", c.request(0, entity), headers(endStream, field{":path", path}))
		c.add("trailers without an end", "", c.request(0, path), headers(0, field{"x-trailer", "1"}), data(endStream, named))
		c.add("expecting 100", "", c.request(0, path, field{"expect", "100-continue"}), data(endStream, named))
	}
}

// addPaths adds values of :path that are malformed or name an entity.
func (c *client) addPaths() {
	for _, path := range []string{
		"", "*", all[1:], " " + all, "\t" + all, "\x00" + all, "." + all, "/." + all, "/" + all, "//x/.." + all, `\` + all[1:],
		"http://" + c.authority + entity, "http://" + c.authority + all, "https://" + c.authority + all + "/", "http://" + c.authority + all + "/e1/..", "http:" + all, "https:/" + all, "?" + all, "#" + all,
		all + "\x00", all + "\x00e1", all + "/\x00", all + "/\x00e1", all + " ", all + " e1", all + "/ ", all + "/ e1", all + "\t", all + "\r", all + "\n", all + "\x7f",
		all + " HTTP/1.1", all + "/e1 HTTP/1.0", all + "\xff", all + "/\u00e9",
		all + "#", all + "#e1", all + "/#", all + "/#e1", all + "?", all + "?e1", all + "/?", all + "/?endpoint_id=e1", all + "?#e1",
		all + "//", all + "/.", all + "/..", all + "/e1/..", all + "/e1/../", all + "/%2f", all + "/%2e", all + "/e1%2f..", all + "/e1/%2e%2e", all + "/%00", all + "/%", all + ";e1", all + `\`, all + `/e1\..`,
	} {
		c.add(fmt.Sprintf(":path %q", path), "", c.request(endStream, path))
		at := len(encode(c.pseudo(path))) - 1
		c.add(fmt.Sprintf(":path %q, CONTINUATION at its end", path), "", split(c.request(endStream, path), at)...)
	}
}

// addPseudoHeaders adds requests whose pseudo-header fields are repeated, missing or late.
func (c *client) addPseudoHeaders() {
	auth := field{"authorization", authorization}
	method, scheme, authority := field{":method", "DELETE"}, field{":scheme", c.scheme}, field{":authority", c.authority}
	requests := map[string][]field{
		"two paths, entity first": {method, scheme, authority, {":path", entity}, {":path", all}, auth},
		"two paths, entity last":  {method, scheme, authority, {":path", all}, {":path", entity}, auth},
		"the same path twice":     {method, scheme, authority, {":path", all}, {":path", all}, auth},
		"two methods":             {{":method", "GET"}, method, scheme, authority, {":path", all}, auth},
		"two schemes":             {method, scheme, scheme, authority, {":path", all}, auth},
		"no path":                 {method, scheme, authority, auth},
		"no method":               {scheme, authority, {":path", all}, auth},
		"no scheme":               {method, authority, {":path", all}, auth},
		"empty method":            {{":method", ""}, scheme, authority, {":path", all}, auth},
		"method with a space":     {{":method", "DELETE " + all + " HTTP/1.1"}, scheme, authority, {":path", "/"}, auth},
		"empty scheme":            {method, {":scheme", ""}, authority, {":path", all}, auth},
		"scheme with a path":      {method, {":scheme", "http://" + c.authority + all + "?"}, authority, {":path", "/"}, auth},
		"late path":               {method, scheme, authority, auth, {":path", all}},
		"late path, after a path": {method, scheme, authority, {":path", entity}, auth, {":path", all}},
		"late method":             {scheme, authority, {":path", all}, auth, method},
		"unknown pseudo-header":   {method, scheme, authority, {":path", all}, {":entity", "e1"}, auth},
		"status of a response":    {method, scheme, authority, {":path", all}, {":status", "200"}, auth},
		"path as a field":         {method, scheme, authority, {"path", all}, auth},
		"path in capitals":        {method, scheme, authority, {":PATH", all}, auth},
		"CONNECT":                 {{":method", "CONNECT"}, authority, {":path", all}, auth},
		"extended CONNECT":        {{":method", "CONNECT"}, {":protocol", "websocket"}, scheme, authority, {":path", all}, auth},
	}
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		c.add(name, "", headers(endStream, requests[name]...))
	}
}

// addFields adds requests with fields that HTTP/2 doesn't allow.
func (c *client) addFields() {
	for _, f := range []field{
		{"Authorization", "x"},
		{"X-Entity", "e1"},
		{"", "e1"},
		{"x entity", "e1"},
		{"x:y", "e1"},
		{"x\r\ny", "e1"},
		{"x\x00", "e1"},
		{"\u00e9", "e1"},
		{"x-entity", "e1\r\nx: y"},
		{"x-entity", "e1\n"},
		{"x-entity", "\x00"},
		{"connection", "close"},
		{"connection", "x-entity"},
		{"proxy-connection", "close"},
		{"keep-alive", "1"},
		{"upgrade", "h2c"},
		{"te", "gzip"},
		{"transfer-encoding", "chunked"},
		{"transfer-encoding", "identity"},
	} {
		for _, path := range []string{all, entity} {
			name := fmt.Sprintf("%q: %q at %s", f.name, f.value, path)
			c.add(name, "", c.request(endStream, path, f))
			c.add(name+", DATA", "", c.request(0, path, f), data(endStream, named))
		}
	}
}

// addSequences adds frames that aren't allowed in that order or on that stream. The request
// alone means one entity, or isn't complete.
func (c *client) addSequences() {
	one, every, unfinished := c.request(endStream, entity), c.request(endStream, all), c.request(0, all)
	ended, reset := data(endStream, named), frame{http2.FrameRSTStream, 0, 1, []byte{0, 0, 0, 8}}
	at := c.inPath(all)
	parts := split(every, at)
	window := func(stream uint32, n byte) frame {
		return frame{http2.FrameWindowUpdate, 0, stream, []byte{0, 0, 0, n}}
	}
	goAway := frame{http2.FrameGoAway, 0, 0, make([]byte, 8)}
	sequences := map[string][]frame{
		"two requests on a stream":                  {one, every},
		"a second request in place of trailers":     {c.request(0, entity), every},
		"a second request after DATA":               {c.request(0, entity), data(0, named), every},
		"a request after a lower one":               append(on(3, one), every),
		"stream 0":                                  on(0, every),
		"an even stream":                            on(2, every),
		"an even stream, after a request":           append([]frame{one}, on(2, every)...),
		"the reserved bit of the stream":            append([]frame{one}, on(1<<31|1, every)...),
		"HEADERS after RST_STREAM":                  {one, reset, every},
		"RST_STREAM before the end":                 {unfinished, reset},
		"RST_STREAM after a part of the body":       {unfinished, data(0, named[:5]), reset},
		"RST_STREAM, then the end":                  {unfinished, reset, data(endStream, "")},
		"RST_STREAM of another length":              {unfinished, {http2.FrameRSTStream, 0, 1, []byte{0}}},
		"RST_STREAM of an idle stream":              append(on(1, reset), every),
		"WINDOW_UPDATE 0 of the stream":             {unfinished, window(1, 0), ended},
		"WINDOW_UPDATE 0 of the connection":         {unfinished, window(0, 0), ended},
		"WINDOW_UPDATE of an idle stream":           {window(1, 1), every},
		"GOAWAY before the body":                    {unfinished, goAway, ended},
		"GOAWAY within the headers":                 {parts[0], goAway, parts[1]},
		"GOAWAY with a stream":                      {unfinished, {http2.FrameGoAway, 0, 1, make([]byte, 8)}, ended},
		"PING within the headers":                   {parts[0], {http2.FramePing, 0, 0, make([]byte, 8)}, parts[1]},
		"DATA within the headers":                   {parts[0], data(0, named), parts[1]},
		"another stream within the headers":         {parts[0], on(3, one)[0], parts[1]},
		"CONTINUATION of another stream":            {parts[0], on(3, parts[1])[0]},
		"CONTINUATION alone":                        {parts[1]},
		"CONTINUATION after the end of the headers": {one, parts[1]},
		"headers without an end":                    {parts[0]},
		"headers that end in the path":              {{http2.FrameHeaders, endStream | endHeaders, 1, every.payload[:at]}},
		"DATA before the headers":                   {data(0, named), every},
		"DATA on stream 0":                          {unfinished, on(0, ended)[0]},
		"DATA on an idle stream":                    {unfinished, on(3, ended)[0]},
		"DATA, and none that ends":                  {unfinished, data(0, named)},
		"padding longer than the frame":             {unfinished, {http2.FrameData, endStream | padded, 1, []byte{200, '1'}}},
		"padding longer than the headers":           {{http2.FrameHeaders, endStream | endHeaders | padded, 1, append([]byte{255}, every.payload...)}},
		"padding without a length":                  {{http2.FrameHeaders, endStream | endHeaders | padded, 1, nil}},
		"a stream that depends on itself":           {{http2.FrameHeaders, endHeaders | priority, 1, append([]byte{0, 0, 0, 1, 0}, every.payload...)}, ended},
		"priority without a weight":                 {{http2.FrameHeaders, endStream | endHeaders | priority, 1, []byte{0, 0}}},
		"PUSH_PROMISE":                              {{http2.FramePushPromise, endHeaders, 1, append([]byte{0, 0, 0, 2}, every.payload...)}},
		"SETTINGS of another length":                {unfinished, {http2.FrameSettings, 0, 0, []byte{0}}, ended},
		"SETTINGS of a stream":                      {unfinished, {http2.FrameSettings, 0, 1, nil}, ended},
		"HPACK index out of range":                  {{http2.FrameHeaders, endStream | endHeaders, 1, append(slices.Clone(every.payload), 0xff, 0x80, 0x01)}},
		"HPACK integer without an end":              {{http2.FrameHeaders, endStream | endHeaders, 1, append(slices.Clone(every.payload), 0xff, 0xff, 0xff)}},
		"HPACK table size too late":                 {{http2.FrameHeaders, endStream | endHeaders, 1, append(slices.Clone(every.payload), 0x20)}},
		"HPACK table size too large":                {{http2.FrameHeaders, endStream | endHeaders, 1, append([]byte{0x3f, 0xff, 0xff, 0x7f}, every.payload...)}},
		"HPACK text cut short":                      {{http2.FrameHeaders, endStream | endHeaders, 1, every.payload[:len(every.payload)-1]}},
		"HPACK text of Huffman's end":               {{http2.FrameHeaders, endStream | endHeaders, 1, append(slices.Clone(every.payload), 0x00, 0x84, 0xff, 0xff, 0xff, 0xff, 0x00)}},
	}
	for _, name := range slices.Sorted(maps.Keys(sequences)) {
		c.add(name, "", sequences[name]...)
	}
}

// addSmuggled adds requests for one entity that contain one for all in HTTP/1.1. A proxy must
// not pass that on as a separate request.
func (c *client) addSmuggled() {
	inner := fmt.Sprintf("DELETE %s HTTP/1.1\r\nHost: test\r\nAuthorization: %s\r\n\r\n", all, authorization)
	rest := " HTTP/1.1\r\nHost: test\r\n\r\n" + inner
	for _, length := range []string{"0", "1", "-1", "0, 0", ""} {
		c.add("smuggled in DATA, length "+length, "", c.request(0, entity, field{"content-length", length}), data(endStream, inner))
	}
	for _, coding := range []string{"chunked", "Chunked", " chunked", "chunked, identity", "x\r\nTransfer-Encoding: chunked"} {
		c.add("smuggled in DATA, coding "+coding, "", c.request(0, entity, field{"transfer-encoding", coding}), data(endStream, "0\r\n\r\n"+inner))
	}
	c.add("smuggled in :path", "", c.request(endStream, entity+rest))
	c.add("smuggled in :method", "", headers(endStream, slices.Concat([]field{{":method", "DELETE " + entity + rest + "GET"}}, c.fields("/")[1:])...))
	c.add("smuggled in :authority", "", headers(endStream, field{":method", "DELETE"}, field{":scheme", c.scheme}, field{":path", entity}, field{":authority", "test\r\n\r\n" + inner}))
	c.add("smuggled in a field", "", c.request(endStream, entity, field{"x-entity", "e1\r\n\r\n" + inner}))
	c.add("smuggled in a name", "", c.request(endStream, entity, field{"x: e1\r\n\r\n" + inner, "e1"}))
	c.add("smuggled after the headers", "", c.request(endStream, entity), data(endStream, inner))
}
