package mounts

import "testing"

// TestMethodOverride: inside grpc-gateway a form can override its method, so that a POST
// becomes a DELETE. Before it, it stays a POST.
func TestMethodOverride(t *testing.T) {
	form := text("POST", configure, "", "Connection: close", "Content-Length: 0",
		"Content-Type: application/x-www-form-urlencoded", "X-HTTP-Method-Override: DELETE")
	st := newRecorder()
	h := newHandler(t, st, options())
	before, err := Gateway(h)
	if err != nil {
		t.Fatal(err)
	}
	if got := outcome(raw(t, serve(t, before), form), st.take()); got != "415 unsupported_media_type" {
		t.Errorf("before: got %s", got)
	}
	if got := outcome(raw(t, serve(t, insideGateway(t, h)), form), st.take()); got != "unset all" {
		t.Errorf("inside: got %s", got)
	}
}
