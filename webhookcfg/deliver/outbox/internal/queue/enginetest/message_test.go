// Package enginetest tests the tables of the queue on an engine that runs in the test's process.
package enginetest

import (
	"cmp"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	_ "modernc.org/sqlite"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/line"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

func open(t *testing.T) (*sql.DB, *queue.Tables) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "q.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	m, err := queue.NewTables(db, sqlstore.SQLite(), "wh_")
	if err != nil {
		t.Fatal(err)
	}
	create(t, db)
	return db, m
}

// create creates the tables of the queue.
func create(t *testing.T, db *sql.DB) {
	t.Helper()
	schema, err := outbox.Schema(sqlstore.SQLite(), "wh_")
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range schema {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

// stored is a row of the table. Its due time is a day before or after now, or zero.
type stored struct {
	line.Row
	client string
	state  int
	due    int64
}

const day = int64(24 * time.Hour / time.Microsecond)

func insert(t *testing.T, db *sql.DB, s *stored) {
	t.Helper()
	body := fmt.Append(nil, "body of ", s.Seq)
	_, err := db.Exec(`INSERT INTO wh_outbox_message (seq, client, entity, id, state, grp, due, enqueued, resent, attempts, content_type, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', ?)`,
		s.Seq, []byte(s.client), []byte(s.Entity), fmt.Sprint("m", s.Seq), s.state, int64(s.Group), s.due, s.Enqueued, s.Resent, s.Attempts, body)
	if err != nil {
		t.Fatal(err)
	}
	s.ID, s.Body = fmt.Sprint("m", s.Seq), body
}

// fill fills a table at random.
func fill(t *testing.T, db *sql.DB, random *rand.Rand, now int64) (all []*stored) {
	groups := []line.Group{line.Fresh, line.Again, 4000, 4001, 4002, 4003, 4010, 4011}
	for i := range 200 {
		s := &stored{client: []string{"a", "b"}[random.IntN(2)], state: max(random.IntN(6)-2, 0)}
		s.Seq, s.Entity = int64(i+1), []string{"e1", "e2", "\x00\xff", "É"}[random.IntN(4)]
		s.Group, s.Enqueued = groups[random.IntN(len(groups))], int64(random.IntN(3))
		s.due = []int64{0, now - day, now - 2*day, now + day, now + 2*day}[random.IntN(5)]
		if s.Group == line.Fresh {
			s.due = 0
		}
		insert(t, db, s)
		all = append(all, s)
	}
	return all
}

// TestAnswer compares what is read for random questions with what the table has.
func TestAnswer(t *testing.T) {
	t.Parallel()
	db, m := open(t)
	random, now := rand.New(rand.NewPCG(1, 2)), time.Now().UnixMicro()
	all := fill(t, db, random, now)
	for range 300 {
		q := &line.Question{}
		for range 1 + random.IntN(5) {
			p := line.Part{Group: []line.Group{line.Fresh, line.Again, 4000, 4001, 4003, 4010}[random.IntN(6)], All: random.IntN(2) == 0, Limit: 1 + random.IntN(12)}
			if random.IntN(4) == 0 {
				p.Entity, p.Group, p.All = []string{"e1", "\x00\xff"}[random.IntN(2)], 4002, false
			}
			q.Parts = append(q.Parts, p)
		}
		for range random.IntN(3) * 20 {
			q.Held = append(q.Held, int64(1+random.IntN(220)))
		}
		if random.IntN(2) == 0 {
			q.Without = []string{"e2", "\x00\xff"}[:1+random.IntN(2)]
		}
		got, err := m.Answer(t.Context(), "a", q)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range q.Parts {
			want := model(all, q, p, now)
			opts := gocmp.Options{
				cmpopts.IgnoreUnexported(line.Row{}), cmpopts.IgnoreFields(line.Row{}, "Age", "Waited", "Taken"),
				gocmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < time.Hour }),
				cmpopts.EquateEmpty(),
			}
			if diff := gocmp.Diff(want, got.Parts[i], opts); diff != "" {
				t.Fatalf("%+v of %+v (-want +got):\n%s", p, *q, diff)
			}
		}
	}
}

// TestDueMeanwhile: a retry that gets due while a question is answered is either in the answer, or the answer
// says when to ask again.
func TestDueMeanwhile(t *testing.T) {
	inBubble(t, func(w *world) {
		const step = 10 * time.Millisecond
		f := new(faults)
		db := w.open(1, f)
		defer db.Close()
		if err := db.Ping(); err != nil {
			w.t.Fatal(err)
		}
		w.enqueue("a", "e", 1)
		f.takes = step
		for after := -step; after < 4*step; after += step / 4 {
			if _, err := w.db.Exec(`UPDATE wh_outbox_message SET grp = 4001, due = bubble_now() + ?`, after.Microseconds()); err != nil {
				w.t.Fatal(err)
			}
			a, err := w.tables(db).Answer(w.t.Context(), "a", &line.Question{Parts: []line.Part{{Group: 4001, Limit: 10}}})
			if err != nil {
				w.t.Fatal(err)
			}
			if p := a.Parts[0]; len(p.Rows) == 0 && p.Next == 0 {
				w.t.Errorf("a retry that was due after %v isn't found", after)
			}
		}
	})
}

// model returns what the table has for a part of a question.
func model(all []*stored, q *line.Question, p line.Part, now int64) (f line.Found) {
	var found []*stored
	next := int64(0)
	for _, s := range all {
		if s.client != "a" || s.state != queue.Waiting {
			continue
		}
		isNext := p.Entity == "" && !p.All && p.Group.IsTried() && s.Group == p.Group && s.due > now
		if isNext && (next == 0 || s.due < next) {
			next = s.due
		}
		switch {
		case slices.Contains(q.Held, s.Seq):
		case p.Entity != "":
			if s.Entity == p.Entity && s.Group != p.Group && s.Group != p.Group+1 {
				found = append(found, s)
			}
		case s.Group == p.Group && !slices.Contains(q.Without, s.Entity) && (p.All || !p.Group.IsTried() || s.due <= now):
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b *stored) int {
		if p.Entity != "" {
			return cmp.Compare(a.Seq, b.Seq)
		}
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.Seq, b.Seq))
	})
	for _, s := range found[:min(len(found), p.Limit)] {
		r := s.Row
		r.Wait = max(time.Duration(s.due-now)*time.Microsecond, 0)
		f.Rows = append(f.Rows, r)
	}
	if next > 0 {
		f.Next = time.Duration(next-now) * time.Microsecond
	}
	return f
}

// TestListing: a client's groups come in pages, each with the entity and the due time of its first
// notification.
func TestListing(t *testing.T) {
	t.Parallel()
	db, m := open(t)
	now := time.Now().UnixMicro()
	const n = 450
	for i := range n {
		for k, due := range []int64{now + 2*day, now + day} {
			s := &stored{client: "a", due: due}
			s.Seq, s.Group, s.Entity = int64(2*i+k+1), line.Group(4000+4*i+3), fmt.Sprint("e", i, "-", k)
			insert(t, db, s)
		}
	}
	insert(t, db, &stored{Row: line.Row{Seq: 5000, Group: 9}, client: "b"})
	insert(t, db, &stored{Row: line.Row{Seq: 5001, Group: 9}, client: "a", state: queue.Delivered})
	var got []line.Listed
	for q := (&line.Question{IsListing: true}); ; {
		a, err := m.Answer(t.Context(), "a", q)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, a.Groups...)
		if !a.IsMore {
			break
		}
		q.After = got[len(got)-1].Group
	}
	if len(got) != n {
		t.Fatalf("%d groups, want %d", len(got), n)
	}
	for i, g := range got {
		if g.Group != line.Group(4000+4*i+3) || g.Entity != fmt.Sprint("e", i, "-", 1) || g.Wait > 24*time.Hour || g.Wait < 23*time.Hour {
			t.Errorf("group %d is %+v", i, g)
		}
	}
}

// TestWrite: what is written changes the notifications that it's about, unless they have ended, were
// sent again since they were read, or are others with the same number.
func TestWrite(t *testing.T) {
	t.Parallel()
	db, m := open(t)
	now := time.Now().UnixMicro()
	rows := make([]*line.Row, 8)
	for i := range rows {
		s := &stored{client: "a"}
		s.Seq, s.Entity, s.Enqueued, s.Resent = int64(i+1), "e", 7, 3
		if i == 1 {
			s.due = now + day
		}
		if i == 4 {
			s.state = queue.Delivered
		}
		insert(t, db, s)
		row := s.Row
		rows[i] = &row
	}
	rows[5].Enqueued, rows[6].Resent = 8, 4
	ended := []queue.End{
		{Write: line.Write{Row: rows[2], HasEnded: true, Group: 4001}, State: queue.GivenUp, Attempts: 4, Status: 500, Reason: "status", History: " 1:status"},
		{Write: line.Write{Row: rows[3], Group: 4001, Delay: time.Hour}, Attempts: 1, Status: 503, Reason: "throttled", History: " 2:throttled"},
	}
	for _, i := range []int{4, 5, 6} {
		ended = append(ended, queue.End{Write: line.Write{Row: rows[i], Group: 4001}, State: queue.Dropped, Attempts: 9})
	}
	again, err := m.Write(t.Context(), db, []line.Write{{Row: rows[0], Group: 4000}, {Row: rows[1], Group: 4003}, {Row: rows[7], Group: line.Again, Delay: 2 * time.Hour}}, ended)
	if err != nil {
		t.Fatal(err)
	}
	if again[3] || again[4] || again[5] || !again[6] || !again[7] {
		t.Errorf("sent again, or others: %v; want 6 and 7", again)
	}
	want := []string{
		"1: state 0, group 4000, due at once, 0 attempts, status 0 ''/''",
		"2: state 0, group 4003, due now, 0 attempts, status 0 ''/''",
		"3: state 2, group 0, due now, 4 attempts, status 500 'status'/' 1:status'",
		"4: state 0, group 4001, due in 1h, 1 attempts, status 503 'throttled'/' 2:throttled'",
		"5: state 1, group 0, due at once, 0 attempts, status 0 ''/''",
		"6: state 0, group 0, due at once, 0 attempts, status 0 ''/''",
		"7: state 0, group 0, due at once, 0 attempts, status 0 ''/''",
		"8: state 0, group 1, due in 2h, 0 attempts, status 0 ''/''",
	}
	var got []string
	all, err := db.Query(`SELECT seq, state, grp, due, attempts, status, reason, history FROM wh_outbox_message ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	for all.Next() {
		var seq, state, group, due, attempts, status int64
		var reason, history string
		if err := all.Scan(&seq, &state, &group, &due, &attempts, &status, &reason, &history); err != nil {
			t.Fatal(err)
		}
		when := "due at once"
		if wait := time.Duration(due-now) * time.Microsecond; due > 0 {
			when = "due now"
			if wait > time.Minute {
				when = fmt.Sprintf("due in %.0fh", wait.Hours())
			}
		}
		got = append(got, fmt.Sprintf("%d: state %d, group %d, %s, %d attempts, status %d '%s'/'%s'", seq, state, group, when, attempts, status, reason, history))
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
}
