package main

import "example.com/go-webhookcfg/webhookcfg/deliver"

// testMessage is what a client sends itself from the page. It changes nothing.
var testMessage = deliver.Message{Body: []byte(`{"type":"test"}`)}
