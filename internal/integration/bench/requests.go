package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

// connections is how many clients keep a connection each, and one request in flight.
const connections = 64

// served is a handler behind a server in this process.
type served struct {
	name  string
	next  atomic.Int64
	conns chan *connection
	turns []turn
}

// requests compares POSTs over loopback: the library over each of its stores, and
// the reference handler over the minimal log. The clients run on the same cores.
func requests(s settings) error {
	return s.inFolder(func(dir string) error {
		file, err := openStore(filepath.Join(dir, "webhooks.jsonl"))
		if err != nil {
			return err
		}
		defer file.Close()
		log, err := openMinimalLog(dir, 0)
		if err != nil {
			return err
		}
		defer log.Close()
		overLog := newReference(clientID, clientSecret)
		overLog.log = log
		overFile, fileErr := newHandler(file)
		overMemory, memoryErr := newHandler(store.NewMemory())
		if err := errors.Join(fileErr, memoryErr); err != nil {
			return err
		}
		all := []*served{{name: "**store.File**"}, {name: "store.Memory"}, {name: "reference handler over the minimal log"}, {name: "reference handler in memory"}}
		for i, h := range []http.Handler{overFile, overMemory, overLog, newReference(clientID, clientSecret)} {
			closeServer, err := all[i].serve(h)
			if err != nil {
				return err
			}
			defer closeServer()
		}
		return s.request(all)
	})
}

func (s settings) request(all []*served) error {
	for round := range s.rounds {
		for i := range all {
			h := all[(i+round)%len(all)]
			runtime.GC()
			t, err := makeSets(h.set, connections, &h.next, lasting(s.turn))
			if err != nil {
				return fmt.Errorf("%s: %w", h.name, err)
			}
			h.turns = append(h.turns, t)
		}
	}
	printHeader(fmt.Sprintf("POST of one entity, %d connections over loopback", connections), "requests/s", "p50 / p99 in ms", "÷ the reference over the log")
	for _, h := range all {
		t := join(h.turns)
		printRow(h.name, rounded(median(rates(h.turns))), inMilliseconds(t.quantile(0.5))+" / "+inMilliseconds(t.quantile(0.99)),
			spread(quotients(rates(h.turns), rates(all[2].turns))))
	}
	return nil
}

// serve starts a server and connects the clients to it.
func (h *served) serve(handler http.Handler) (closeServer func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler}
	go server.Serve(listener)
	h.conns = make(chan *connection, connections)
	for range connections {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			return nil, errors.Join(err, server.Close())
		}
		h.conns <- &connection{Conn: conn, answers: bufio.NewReader(conn)}
	}
	return server.Close, nil
}

// set makes a set by a POST over any connection that is free.
func (h *served) set(_ context.Context, c webhookcfg.Change) error {
	conn := <-h.conns
	defer func() { h.conns <- conn }()
	return conn.post(c)
}

// connection is a client that costs as little as it can, so that the servers show.
type connection struct {
	net.Conn
	request []byte
	answers *bufio.Reader
}

func (c *connection) post(change webhookcfg.Change) error {
	const head = "POST " + referencePath + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Basic "
	entity, url := change.Scope.Entity(), change.URL.Reveal()
	length := len(`{"endpoint_id":"","webhook_url":""}`) + len(entity) + len(url)
	c.request = append(c.request[:0], head...)
	c.request = base64.StdEncoding.AppendEncode(c.request, []byte(clientID+":"+clientSecret))
	c.request = fmt.Appendf(c.request, "\r\nContent-Length: %d\r\n\r\n", length)
	c.request = append(append(c.request, `{"endpoint_id":"`...), entity...)
	c.request = append(append(c.request, `","webhook_url":"`...), url...)
	c.request = append(c.request, `"}`...)
	if _, err := c.Write(c.request); err != nil {
		return err
	}
	return c.answered()
}

// answered reads one answer.
func (c *connection) answered() error {
	status, err := c.answers.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("answered with %q", status)
	}
	length := 0
	for {
		line, err := c.answers.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == len("\r\n") {
			_, err := c.answers.Discard(length)
			return err
		}
		if value, is := bytes.CutPrefix(line, []byte("Content-Length: ")); is {
			length = decimal(bytes.TrimRight(value, "\r\n"))
		}
	}
}
