package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// listen listens on an address and prints it, as port 0 picks a free one.
func listen(address string, stdout io.Writer) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err == nil {
		fmt.Fprintln(stdout, listener.Addr())
	}
	return listener, err
}

// serve serves requests until ctx ends, and then completes those in flight.
func serve(ctx context.Context, listener net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return server.Shutdown(grace)
}
