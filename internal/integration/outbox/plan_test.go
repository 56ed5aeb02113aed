package outbox_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// crowd is how many rows the client "big" has. It fills thousands of PostgreSQL's pages.
const crowd = 100_000

// collected are the statements that went through a wire, by their kind. Of each kind, it has a few
// with different arguments.
type collected struct {
	mu   sync.Mutex
	seen map[string][]call
}

func (c *collected) hook(made call) (before, after error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := func(known call) bool { return known.text == made.text && reflect.DeepEqual(known.args, made.args) }
	if all := c.seen[made.kind]; made.text != "" && len(all) < 8 && !slices.ContainsFunc(all, same) {
		c.seen[made.kind] = append(all, made)
	}
	return nil, nil
}

// take returns what was sent, and forgets it.
func (c *collected) take() map[string][]call {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = make(map[string][]call)
	return seen
}

// await waits until a statement with a text was sent.
func (c *collected) await(t testing.TB, text string) {
	t.Helper()
	for range 8000 {
		c.mu.Lock()
		for kind := range c.seen {
			if strings.Contains(kind, text) {
				c.mu.Unlock()
				return
			}
		}
		c.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("no statement has %q", text)
}

// TestQueuePlans: every LIMIT of the queue's statements has an order, and no plan for them reads
// what others have, or what the client has in other states. PostgreSQL can choose a plan that
// doesn't depend on the arguments from the sixth execution on, so that one is measured, too.
func TestQueuePlans(t *testing.T) {
	t.Parallel()
	var all together
	for _, e := range engines {
		// What nearly all rows are: the statistics then say that any other state, group or number of groups
		// is as frequent.
		for name, crowd := range map[string]struct {
			state int
			group string
		}{
			"delivered": {delivered, "0"}, "waiting": {waiting, "4001"}, "waiting for many webhooks": {waiting, "4003 + 4 * s.n"},
		} {
			all.start(t, e.name+" "+name, func(t *testing.T) {
				f := newFixture(t, e, nil, nil)
				f.set("few", "/")
				now := time.Now()
				future := now.Add(24 * time.Hour).UnixMicro()
				due := map[int]int64{delivered: now.Add(-time.Hour).UnixMicro(), waiting: future}[crowd.state]
				group := map[int]int64{delivered: 0, waiting: 4001}[crowd.state]
				f.fillRows([]shownRow{{seq: 1, client: "big", entity: "e", state: crowd.state, group: group, due: due, attempts: 1, enqueued: now.Add(-2 * time.Hour).UnixMicro()}})
				f.multiply(e, "outbox_message", "client, entity, state, enqueued, attempts, status, reason, content_type, body", "grp, due, id", crowd.group+", due + s.n, "+e.numbered("b", false), "id = 'm1'")
				var rows []shownRow
				for i := range 40 {
					r := shownRow{seq: 2 + i, client: []string{"few", "zero"}[i%2], entity: "e", state: i / 2 % 4, due: now.Add(-time.Hour).UnixMicro() + int64(i), attempts: 1, enqueued: now.UnixMicro()}
					if r.state == waiting {
						r.group, r.due = f.tried("few"), future+int64(i)
					}
					rows = append(rows, r)
				}
				f.fillRows(rows)
				// As due as a line can be for which something waits, so that no survey claims it.
				f.exec("INSERT INTO ", f.prefix, "outbox_line (client, owner, due) SELECT DISTINCT client, 0, ", now.Add(10*time.Minute).UnixMicro(), " FROM {message}")
				f.analyze(e, "outbox_message")

				calls := collected{seen: make(map[string][]call)}
				db, _ := f.wired(calls.hook)
				box := f.peer(e, db, outbox.Options{})
				stop := f.runBox(box)
				f.enqueue("few", "e", "sent")
				f.await(1, 40*time.Second)
				box.Changed("few", webhookcfg.Entity("e"))
				calls.await(t, "NOT IN (grp, grp - 1)") // it gathers what waits for the entity
				calls.await(t, "m.due DESC LIMIT")      // it sweeps
				for _, client := range []string{"big", "few", "nobody"} {
					f.callAll(box, client)
				}
				stop()
				f.expectPlans(e, calls.take(), "outbox_message")
			})
		}
	}
	all.wait()
}

// callAll makes every call of an operator and of a client's page that only reads.
func (f *fixture) callAll(box *outbox.Outbox, client string) {
	f.t.Helper()
	ctx := f.t.Context()
	must := func(err error) {
		f.t.Helper()
		if err != nil {
			f.t.Error(err)
		}
	}
	_, err := box.Stats(ctx)
	must(err)
	_, err = box.ClientStats(ctx, client)
	must(err)
	for _, state := range []outbox.State{outbox.Waiting, outbox.Delivered, outbox.GivenUp, outbox.Dropped} {
		for _, of := range []string{"", client} {
			page, err := box.List(ctx, outbox.Query{State: state, Client: of, Limit: 10})
			if err == nil && page.Next != "" {
				_, err = box.List(ctx, outbox.Query{State: state, Client: of, Limit: 10, After: page.Next})
			}
			must(err)
		}
	}
	for _, entity := range []string{"", "e"} {
		for _, state := range []string{"", "waiting", "delivered", "given_up", "dropped"} {
			q := sent.Query{Entity: entity, State: state, Limit: 10}
			page, err := box.Notifications(ctx, client, q)
			if q.After = page.Next; err == nil && q.After != "" {
				_, err = box.Notifications(ctx, client, q)
			}
			must(err)
		}
	}
	for _, scope := range []webhookcfg.Scope{webhookcfg.All(), webhookcfg.Entity("e")} {
		for _, since := range []time.Time{{}, time.Now().Add(-time.Hour)} {
			_, err := box.PlanSendAgain(ctx, client, sent.Selection{Scope: scope, Since: since})
			must(err)
		}
	}
	if client == "nobody" {
		_, err := box.Erase(ctx, client)
		must(err)
	}
}

// TestStorePlans is TestQueuePlans for package sqlstore, and for the triggers that limit overrides.
func TestStorePlans(t *testing.T) {
	t.Parallel()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, e, nil, nil)
			f.prefix += "store_"
			calls := collected{seen: make(map[string][]call)}
			db, _ := f.wired(calls.hook)
			st, err := sqlstore.New(db, e.dialect, &sqlstore.Options{Prefix: f.prefix})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Error(err)
				}
			}
			set := func(client string, scope webhookcfg.Scope) {
				t.Helper()
				c := webhookcfg.SetChange(client, scope, egress.NewURL("https://hooks.example.com/"))
				c.Time = time.Now()
				must(st.Apply(ctx, c))
			}
			must(st.Migrate(ctx))
			since := ""
			if changes, err := st.Changes(ctx, ""); err == nil {
				since = changes.Next
			}
			set("big", webhookcfg.Entity("e1"))
			set("few", webhookcfg.Entity("e1"))
			set("zero", webhookcfg.All())
			f.multiply(e, "override", "client, gen, url, since", "entity", e.numbered("x", true), "client = "+e.bytes("big"))
			columns := "gen, swept, url, since, mark, vacated"
			if e.name != "MariaDB" {
				columns += ", chg"
			}
			f.multiply(e, "client", columns, "id", e.numbered("n", true), "id = "+e.bytes("zero"))
			f.analyze(e, "override", "client")
			calls.take()

			for _, client := range []string{"big", "few", "zero", "nobody"} {
				_, err := st.Resolve(ctx, client, "e1")
				must(err)
				_, err = st.List(ctx, client, "e", 10)
				must(err)
				_, err = st.Versions(ctx, []string{client})
				must(err)
				_, err = st.LoadDelivery(ctx, client, webhookcfg.Entity("e1"))
				must(err)
				must(st.SaveDelivery(ctx, client, webhookcfg.Entity("e1"), deliver.Record{Since: time.Now(), LastSuccess: time.Now()}))
			}
			page, err := st.ListClients(ctx, "", 10)
			must(err)
			_, err = st.ListClients(ctx, page.Next, 10)
			must(err)
			if since != "" {
				_, err = st.Changes(ctx, since)
				must(err)
			}
			set("zero", webhookcfg.Entity("e2"))
			must(st.Apply(ctx, webhookcfg.UnsetChange("zero", webhookcfg.Entity("e2"))))
			must(st.Apply(ctx, webhookcfg.UnsetChange("few", webhookcfg.All())))
			f.exec("UPDATE ", f.prefix, "client SET vacated = 1 WHERE id = ", e.bytes("few")) // long ago
			_, err = st.Sweep(ctx, 100)
			must(err)
			must(st.Erase(ctx, "few"))
			seen := calls.take()
			f.expectPlans(e, seen, "override", "client")

			file := map[string]string{"SQLite": "sqlite.sql", "PostgreSQL": "postgresql.sql", "MariaDB": "mysql.sql"}[e.name]
			trigger, err := os.ReadFile("../../../store/sqlstore/limit/" + file)
			if err != nil {
				t.Fatal(err)
			}
			if text := unordered(string(trigger)); text != "" {
				t.Errorf("%s: a LIMIT without an order: %s", file, text)
			}
		})
	}
}

// numbered is an expression for a name with the number of a row, in text or in bytes.
func (e engineCase) numbered(name string, inBytes bool) string {
	switch {
	case e.name == "MariaDB":
		return "CONCAT('" + name + "', s.n)"
	case e.name == "SQLite" && inBytes:
		return "CAST('" + name + "' || s.n AS BLOB)"
	case e.name == "PostgreSQL" && inBytes:
		return "convert_to('" + name + "' || s.n, 'UTF8')"
	default:
		return "'" + name + "' || s.n"
	}
}

// bytes is a literal of bytes.
func (e engineCase) bytes(text string) string {
	if e.name == "PostgreSQL" {
		return `'\x` + hex.EncodeToString([]byte(text)) + "'"
	}
	return "x'" + hex.EncodeToString([]byte(text)) + "'"
}

// multiply copies a row of a table so often that a crowd results, with some columns changed.
func (f *fixture) multiply(e engineCase, table, columns, changed, values, where string) {
	f.t.Helper()
	numbers := map[string]string{
		"SQLite":     "(WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < %d) SELECT n FROM r) s",
		"PostgreSQL": "generate_series(1, %d) s (n)",
		"MariaDB":    "(SELECT seq AS n FROM seq_1_to_%d) s",
	}[e.name]
	f.exec("INSERT INTO ", f.prefix, table, " (", columns, ", ", changed, ") SELECT ", columns, ", ", values, " FROM ", f.prefix, table, " t, ", fmt.Sprintf(numbers, crowd), " WHERE t.", where)
}

func (f *fixture) analyze(e engineCase, tables ...string) {
	f.t.Helper()
	for _, table := range tables {
		f.exec(map[string]string{"SQLite": "ANALYZE ", "PostgreSQL": "VACUUM ANALYZE ", "MariaDB": "ANALYZE TABLE "}[e.name], f.prefix, table)
	}
}

// expectPlans demands that statements have an order with each LIMIT, and read a small part of the
// tables.
func (f *fixture) expectPlans(e engineCase, seen map[string][]call, tables ...string) {
	f.t.Helper()
	if len(seen) < 20 {
		f.t.Errorf("only %d kinds of statements", len(seen))
	}
	most := 250 // pages, of thousands: a plan of sending again looks at 10,000 that wait
	if e.name == "MariaDB" {
		most = crowd / 4 // rows, since counts go up to 10,000, and read each row twice
	}
	highest := 0
	for kind, calls := range seen {
		text := calls[0].text
		if bad := unordered(text); bad != "" {
			f.t.Errorf("a LIMIT without an order: %s\nin %s", bad, text)
		}
		isAbout := slices.ContainsFunc(tables, func(table string) bool { return strings.Contains(text, f.prefix+table) })
		if !isAbout || strings.HasPrefix(kind, "CREATE") || strings.Contains(kind, "swept < gen OR") || strings.Contains(kind, "m.due DESC LIMIT") {
			// A sweep looks at all clients, and as deep into a client's as it may keep: see TestSweepReads.
			continue
		}
		for _, c := range calls {
			cost, plan := f.measure(e, c.text, c.values())
			highest = max(highest, cost)
			if cost > most {
				f.t.Errorf("reads %d, want at most %d: %s\n%s", cost, most, c.text, plan)
				break
			}
		}
		if e.name == "PostgreSQL" && len(calls[0].args) > 0 {
			highest = max(highest, f.expectPrepared(calls, most))
		}
	}
	f.t.Logf("%d kinds of statements read %d at most", len(seen), highest)
}

func (c call) values() (args []any) {
	for _, a := range c.args {
		args = append(args, a.Value)
	}
	return args
}

// expectPrepared measures a prepared statement of PostgreSQL. It's executed often enough for the
// server to choose a plan for all arguments, if that seems to be no worse.
func (f *fixture) expectPrepared(calls []call, most int) (highest int) {
	f.t.Helper()
	for _, usual := range calls {
		tx, err := f.db.Begin()
		if err != nil {
			f.t.Fatal(err)
		}
		exec := func(statement string) {
			f.t.Helper()
			if _, err := tx.Exec(statement); err != nil {
				f.t.Fatalf("%v: %s", err, statement)
			}
		}
		exec("PREPARE measured AS " + usual.text)
		for range 6 {
			exec("EXPLAIN " + usual.execute(f.t))
		}
		for _, c := range calls {
			if c.text != usual.text {
				continue // it has numbers of rows in it
			}
			exec("SAVEPOINT before")
			var plan string
			if err := tx.QueryRow("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + c.execute(f.t)).Scan(&plan); err != nil {
				f.t.Fatalf("%v: %s", err, c.text)
			}
			exec("ROLLBACK TO before")
			cost := pagesRead(f.t, plan)
			highest = max(highest, cost)
			if cost > most {
				f.t.Errorf("a prepared statement reads %d pages, want at most %d: %s\n%s", cost, most, c.text, plan)
				break
			}
		}
		exec("DEALLOCATE measured")
		_ = tx.Rollback()
	}
	return highest
}

// execute is the statement that executes a prepared one.
func (c call) execute(t testing.TB) string {
	t.Helper()
	literals := make([]string, len(c.args))
	for i, a := range c.args {
		switch v := a.Value.(type) {
		case []byte:
			literals[i] = `'\x` + hex.EncodeToString(v) + "'"
		case int64:
			literals[i] = "'" + strconv.FormatInt(v, 10) + "'"
		case string:
			literals[i] = "'" + strings.ReplaceAll(v, "'", "''") + "'"
		default:
			t.Fatalf("an argument is a %T: %s", v, c.text)
		}
	}
	return "EXECUTE measured(" + strings.Join(literals, ", ") + ")"
}

// pagesRead returns how many pages an executed plan of PostgreSQL has read.
func pagesRead(t testing.TB, plan string) int {
	t.Helper()
	var explained []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal([]byte(plan), &explained); err != nil {
		t.Fatal(err)
	}
	return explained[0].Plan.Hit + explained[0].Plan.Read
}

var limitPattern = regexp.MustCompile(`(?i)\blimit\b`)

// unordered returns the first query of a statement that has a LIMIT and no ORDER BY of its own, nor an
// index that the server has to use.
func unordered(statement string) string {
	for _, at := range limitPattern.FindAllStringIndex(statement, -1) {
		var own strings.Builder // the query, backwards, without those in parentheses
		depth := 0
		for i := at[0] - 1; i >= 0 && depth >= 0; i-- {
			switch c := statement[i]; {
			case c == ')':
				depth++
			case c == '(':
				depth--
			case depth == 0:
				own.WriteByte(c)
			}
		}
		isOrdered := strings.Contains(own.String(), "YB REDRO") || strings.Contains(own.String(), "XEDNI ECROF")
		if !isOrdered && !isComment(statement, at[0]) {
			return statement[max(0, at[0]-200):at[1]]
		}
	}
	return ""
}

func isComment(statement string, at int) bool {
	line := statement[strings.LastIndexByte(statement[:at], '\n')+1 : at]
	return strings.Contains(line, "--")
}

func TestUnordered(t *testing.T) {
	for statement, want := range map[string]bool{
		"SELECT 1 FROM a WHERE b = 1 LIMIT 1":                                             true,
		"SELECT 1 FROM (SELECT 1 FROM a ORDER BY b) q LIMIT 1":                            true,
		"SELECT 1 FROM (SELECT 1 FROM a LIMIT 1) q ORDER BY b":                            true,
		"SELECT 1 FROM a ORDER BY (SELECT 1 FROM b LIMIT 1) LIMIT 1":                      true,
		"SELECT 1 FROM a ORDER BY (b) DESC LIMIT 1 OFFSET 2":                              false,
		"SELECT 1 FROM a FORCE INDEX (b) WHERE c = 1 LIMIT 1":                             false,
		"-- The limit\nSELECT (SELECT 1 FROM a ORDER BY b LIMIT 1), 2 FROM a WHERE b = 1": false,
	} {
		if got := unordered(statement) != ""; got != want {
			t.Errorf("%s: %v, want %v", statement, got, want)
		}
	}
}
