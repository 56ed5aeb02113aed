package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// openClients returns the verifier of the clients. It reads the credential file, or takes the
// clients from the environment if there's no file.
func (s *service) openClients() (webhookcfg.CredentialVerifier, error) {
	if s.cfg.credentials == "" {
		clients, err := auth.NewStatic(s.cfg.clients...)
		if err != nil {
			err = fmt.Errorf("environment variable CLIENT, want for instance acme:a-long-random-secret other:another-secret: %w", err)
		}
		return clients, err
	}
	file, err := auth.OpenFile(s.cfg.credentials, &auth.FileOptions{Poll: 2 * time.Second, AllowReadable: s.cfg.shared, Logger: s.logger})
	if err != nil {
		return nil, err
	}
	s.credentials = file
	s.probes.Watch("credentials", file)
	return file, s.metrics.Watch("credentials", file)
}

// withFiles returns getenv for variables that can also be in files, as Docker and Kubernetes
// mount secrets: MASTER_FILE names the file of MASTER. If it can't read a file, it sets err.
func withFiles(getenv func(string) string, err *error) func(string) string {
	return func(name string) string {
		path := getenv(name + "_FILE")
		if path == "" {
			return getenv(name)
		}
		text, failed := os.ReadFile(path)
		if failed != nil && *err == nil {
			*err = fmt.Errorf("environment variable %s_FILE: %w", name, failed)
		}
		return strings.TrimSpace(string(text))
	}
}
