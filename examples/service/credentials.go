package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// Both databases understand these statements. A retired secret stays, so the number of retired
// ones, the revision, only grows.
const (
	createSecrets = `CREATE TABLE IF NOT EXISTS secrets (
	client text NOT NULL, name text NOT NULL, hash bytea NOT NULL, used bigint NOT NULL DEFAULT 0,
	retired integer NOT NULL DEFAULT 0, PRIMARY KEY (client, name))`
	indexRetired   = `CREATE INDEX IF NOT EXISTS secrets_retired ON secrets (client) WHERE retired = 1`
	selectRevision = `SELECT count(*) FROM secrets WHERE retired = 1`

	selectSecrets = `SELECT name, hash FROM secrets WHERE client = $1 AND retired = 0`
	insertSecret  = `INSERT INTO secrets (client, name, hash) SELECT $1, $2, $3 WHERE (SELECT count(*) FROM secrets WHERE client = $1 AND retired = 0) < 2`
	retireSecrets = `UPDATE secrets SET retired = 1 WHERE client = $1 AND ($2 = '' OR name = $2) AND retired = 0`
	listSecrets   = `SELECT client, name, used FROM secrets WHERE ($1 = '' OR client = $1) AND retired = 0 ORDER BY client, name`
	updateUsed    = `UPDATE secrets SET used = $1 WHERE client = $2 AND name = $3 AND used < $4`
)

// verifier returns what checks the clients' secrets. A retired secret is refused in
// every process within seconds, although the processes remember those that they checked.
func (s *service) verifier() (*auth.Cache, error) {
	lookup, err := auth.NewLookup(auth.LookupOptions{
		Find:     s.database.findSecrets,
		Hash:     hash,
		Compare:  compare,
		Revision: s.database.revision,
	})
	if err != nil {
		return nil, err
	}
	s.credentials = lookup
	s.probes.Watch("credentials", lookup)
	if err := s.metrics.Watch("credentials", lookup); err != nil {
		return nil, err
	}
	throttled, err := auth.NewThrottle(recorder{lookup, s.database, s.logger}, nil)
	if err != nil {
		return nil, err
	}
	return auth.NewCache(throttled, nil)
}

// findSecrets returns the secrets of a client.
func (d *database) findSecrets(ctx context.Context, client string) (found []auth.HashedSecret, err error) {
	rows, err := d.QueryContext(ctx, selectSecrets, client)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		secret := auth.HashedSecret{Client: webhookcfg.Client{ID: client}}
		if err := rows.Scan(&secret.Client.SecretName, &secret.Hash); err != nil {
			return nil, err
		}
		found = append(found, secret)
	}
	return found, rows.Err()
}

// revision returns a number that changes when a secret is retired.
func (d *database) revision(ctx context.Context) (revision uint64, err error) {
	err = d.QueryRowContext(ctx, selectRevision).Scan(&revision)
	return revision, err
}

// hash is fast, because nobody can guess a secret of [auth.GenerateSecret].
func hash(secret []byte) ([]byte, error) {
	sum := sha256.Sum256(secret)
	return sum[:], nil
}

func compare(hash, secret []byte) error {
	if sum := sha256.Sum256(secret); subtle.ConstantTimeCompare(hash, sum[:]) == 0 {
		return errors.New("wrong secret")
	}
	return nil
}

// recorder records when a secret was last used. The cache around it checks a secret that's in
// use every five minutes, and the recorder writes at most once an hour.
type recorder struct {
	*auth.Lookup
	database *database
	logger   *slog.Logger
}

// Verify implements [webhookcfg.CredentialVerifier].
func (r recorder) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	client, err := r.Lookup.Verify(ctx, id, secret)
	if err != nil {
		return client, err
	}
	now := time.Now()
	if _, err := r.database.change(ctx, updateUsed, now.Unix(), client.ID, client.SecretName, now.Add(-time.Hour).Unix()); err != nil {
		r.logger.WarnContext(ctx, "can't record the use of a secret", "client", client.ID, "secret_name", client.SecretName, "error", err)
	}
	return client, nil
}

// credentialID is the syntax of clients and of the names of their secrets. Basic
// authentication ends an id at its first colon.
var credentialID = regexp.MustCompile(`^[!-9;-~]{1,128}$`)

// addSecret prints a new secret of a client. A client can have two, so that it can change from
// one to the other. Processes that add take turns, or each would count without the other's.
func (d *database) addSecret(ctx context.Context, client, name string, out io.Writer) error {
	if !credentialID.MatchString(client) || !credentialID.MatchString(name) {
		return fmt.Errorf("client %q, secret %q: want 1 to 128 ASCII characters without blanks and colons", client, name)
	}
	secret := auth.GenerateSecret()
	hashed, err := hash([]byte(secret.Reveal()))
	if err != nil {
		return err
	}
	if n, err := d.insertSecret(ctx, client, name, hashed); says(err, "23505", "UNIQUE constraint") {
		return fmt.Errorf("client %s has, or had, a secret %s: choose another name", client, name)
	} else if err != nil {
		return fmt.Errorf("client %s: %w", client, err)
	} else if n == 0 {
		return fmt.Errorf("client %s has two secrets already: retire one of them first, by its name, which the command secrets shows", client)
	}
	_, err = fmt.Fprintf(out, "%s:%s\n", client, secret.Reveal())
	return err
}

// insertSecret returns how many secrets it inserted: none if the client has two.
func (d *database) insertSecret(ctx context.Context, client, name string, hashed []byte) (rows int64, err error) {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	if _, err := tx.ExecContext(ctx, takeTurns); err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, insertSecret, client, name, hashed)
	if err == nil {
		rows, err = result.RowsAffected()
	}
	if err != nil {
		return 0, err
	}
	return rows, tx.Commit()
}

// retireSecrets retires a secret of a client, or all if no name is given. Every process refuses
// them within seconds.
func (d *database) retireSecrets(ctx context.Context, client, name string) error {
	n, err := d.change(ctx, retireSecrets, client, name)
	if err == nil && n == 0 {
		err = fmt.Errorf("client %q has no secret %q", client, name)
	}
	return err
}

// printSecrets prints the secrets of a client, or of all, and when they were last used.
func (d *database) printSecrets(ctx context.Context, client string, out io.Writer) error {
	rows, err := d.QueryContext(ctx, listSecrets, client)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, name string
		var used int64
		if err := rows.Scan(&id, &name, &used); err != nil {
			return err
		}
		last := "never used"
		if used > 0 {
			last = "last used " + time.Unix(used, 0).UTC().Format(time.RFC3339)
		}
		if _, err := fmt.Fprintln(out, id, name, last); err != nil {
			return err
		}
	}
	return rows.Err()
}
