package ui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// column is one of a list. Sort names what rows are sorted by, as data-Sort or as text of the cell.
type column struct{ Name, Class, Sort, Sorted string }

type listView struct {
	Heading, None, Sorry string
	Kind                 kind
	Columns              []column
	Rows                 []row
	Trouble              []string
	At                   uint64
	Boot                 string
}

var headings = map[kind]string{jobs: "HTCJobs", workflows: "HTCWorkflows", pools: "HTCPools"}

// listOf shows the objects of a kind, the youngest first.
func listOf(k kind, c changes, boot string) listView {
	v := listView{
		Heading: headings[k], Kind: k, At: c.at, Boot: boot, Trouble: c.trouble,
		None: "There are no " + headings[k] + " here, or none that you may see.",
		Columns: []column{
			{"Name", "name", "name", "none"}, {"Namespace", "ns", "ns", "none"}, {"Phase", "phase", "phase", "none"},
			{
				"Jobs",
				"counts",
				"failed",
				"none",
			}, {"Of", "of", "", ""}, {"Created", "age", "created", "descending"}, {"Note", "note", "", ""},
		},
	}
	for _, o := range c.of {
		v.Rows = append(v.Rows, rowOf(o))
	}
	slices.SortFunc(v.Rows, func(a, b row) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if len(v.Rows) > atOnce { // the others follow at once
		v.Rows, v.At = v.Rows[:atOnce], 0
	}
	return v
}

func (s *Server) list(k kind) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.page(w, r, page{Title: headings[k], main: s.base().list(listOf(k, s.store.since(k, 0), s.boot))}, k)
	}
}

// together is how long a change may wait for others, so that a burst of them is one message.
const together = 30 * time.Millisecond

// atOnce is how many rows one message has.
const atOnce = 250

// liveList sends the rows that have changed since the page was made, then those that change.
func (s *Server) liveList(w http.ResponseWriter, r *http.Request) {
	k := kind(r.PathValue("kind"))
	at, err := strconv.ParseUint(r.URL.Query().Get("since"), 10, 64)
	if err != nil || headings[k] == "" {
		http.Error(w, "want a kind and since=NUMBER", http.StatusBadRequest)
		return
	}
	out := beginEvents(w)
	if r.URL.Query().Get("boot") != s.boot {
		out.send("reload", "")
		return
	}
	last := "unknown"
	for out.err == nil {
		c := s.store.since(k, at)
		if c.behind {
			out.send("reload", "")
			return
		}
		s.sendRows(r.Context(), out, c)
		at = c.at
		if now := strings.Join(c.trouble, "\n"); now != last {
			last = now
			out.send("trouble", fragment(r.Context(), trouble(c.trouble)))
			out.send("state", s.store.stale())
		}
		if !waits(r.Context(), out, c.more, together) {
			return
		}
	}
}

func (s *Server) sendRows(ctx context.Context, out *events, c changes) {
	var gone []string
	var rows []row
	for _, v := range c.of {
		if v.object == nil {
			gone = append(gone, row{ref: v.ref}.ID())
		} else {
			rows = append(rows, rowOf(v))
		}
	}
	if len(gone) > 0 {
		ids, _ := json.Marshal(gone) // of strings
		out.send("gone", string(ids))
	}
	for some := range slices.Chunk(rows, atOnce) {
		out.send("rows", fragment(ctx, s.base().rows(some)))
	}
	out.send("at", strconv.FormatUint(c.at, 10))
}

// heartbeat keeps the connection, and finds out whether somebody is still there.
const heartbeat = 20 * time.Second

// waits waits for the next change and some time longer, and returns false when the page has gone.
func waits(ctx context.Context, out *events, more <-chan struct{}, longer time.Duration) bool {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-beat.C:
			if out.comment(); out.err != nil {
				return false
			}
			continue
		case <-more:
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(longer):
			return true
		}
	}
}

// events writes server-sent events.
type events struct {
	w   http.ResponseWriter
	err error
}

func beginEvents(w http.ResponseWriter) *events {
	w.Header().Set("Content-Type", "text/event-stream")
	e := &events{w: w}
	e.comment()
	return e
}

// send sends an event; a line of data is a line of the event.
func (e *events) send(name, data string) {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\n")
	for line := range strings.SplitSeq(data, "\n") {
		b.WriteString("data: " + strings.ReplaceAll(line, "\r", "") + "\n")
	}
	b.WriteString("\n")
	e.write(b.Bytes())
}

func (e *events) comment() { e.write([]byte(":\n\n")) }

func (e *events) write(p []byte) {
	if e.err != nil {
		return
	}
	if _, e.err = e.w.Write(p); e.err == nil {
		e.err = http.NewResponseController(e.w).Flush()
	}
}
