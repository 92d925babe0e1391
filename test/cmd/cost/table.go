package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// row is what a test took.
type row struct {
	name    string
	seconds float64
	result  string
	used    spent
}

// String is the row with tabs between its columns.
func (r row) String() string {
	return fmt.Sprintf(
		"%.1f\t%.1f\t%d\t  %s %s: %s",
		r.seconds,
		float64(r.used.cpu)/100,
		r.used.count(),
		r.result,
		r.name,
		r.used.programs(),
	)
}

// table collects the rows of tests that run one after the other.
type table struct {
	meter    *meter
	progress io.Writer // gets each row as soon as its test has ended
	before   spent
	output   map[string]string
	rows     []row
}

func newTable(m *meter, progress io.Writer) *table {
	return &table{meter: m, progress: progress, output: map[string]string{}}
}

// take notes what an event says; subtests are part of their test.
func (t *table) take(e event) (err error) {
	if e.Test == "" || strings.Contains(e.Test, "/") {
		return nil
	}
	name := e.Package[strings.LastIndexByte(e.Package, '/')+1:] + "." + e.Test
	switch e.Action {
	case "run", "cont": // a parallel test begins when all others have been looked at
		t.before, err = t.meter.read()
	case "output":
		t.output[name] += e.Output
	case "pass", "fail", "skip":
		now, err := t.meter.read()
		if err != nil {
			return err
		}
		t.rows = append(t.rows, row{name, e.Elapsed, e.Action, since(t.before, now)})
		fmt.Fprintln(t.progress, t.rows[len(t.rows)-1])
	}
	return err
}

func since(before, now spent) spent {
	used := spent{cpu: now.cpu - before.cpu, started: map[string]int{}}
	for name, n := range now.started {
		if n -= before.started[name]; n > 0 {
			used.started[name] = n
		}
	}
	return used
}

// mostOften is how many programs a row names.
const mostOften = 4

// print writes the table, the longest test first, and what failed tests have said.
func (t *table) print(w io.Writer) {
	slices.SortFunc(t.rows, func(a, b row) int { return int(b.seconds*100) - int(a.seconds*100) })
	var seconds float64
	var cpu int64
	var processes int
	tab := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "s\tCPU s\tprocesses\t\t")
	for _, r := range t.rows {
		seconds, cpu, processes = seconds+r.seconds, cpu+r.used.cpu, processes+r.used.count()
		fmt.Fprintln(tab, r)
	}
	fmt.Fprintf(tab, "%.1f\t%.1f\t%d\t  all\n", seconds, float64(cpu)/100, processes)
	tab.Flush()
	for _, r := range t.rows {
		if r.result == "fail" {
			fmt.Fprint(w, t.output[r.name])
		}
	}
}

func (s spent) count() (n int) {
	for _, started := range s.started {
		n += started
	}
	return n
}

// programs names those that were started most often.
func (s spent) programs() string {
	var names []string
	for name := range s.started {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if s.started[a] != s.started[b] {
			return s.started[b] - s.started[a]
		}
		return strings.Compare(a, b)
	})
	var said []string
	for _, name := range names[:min(mostOften, len(names))] {
		said = append(said, fmt.Sprintf("%s %d", name, s.started[name]))
	}
	return strings.Join(said, ", ")
}
