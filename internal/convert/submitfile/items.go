package submitfile

import (
	"errors"
	"fmt"
	"strings"
)

// queued is what a queue statement can hold in all.
const maxItems = 1_000_000

// queue takes a queue statement and the lines of its list, and returns how many they are.
func (r *reader) queue(f *File, i int, arguments string) (used int, err error) {
	statement := r.statement
	statement.Kind = Queue
	if r.depth > 0 {
		return 0, errors.New("a queue statement has no place in an included file")
	}
	if !r.appended {
		r.appended = true
		if err := r.outside(r.env.After); err != nil {
			return 0, err
		}
	}
	written := arguments
	if arguments, err = r.expander().expand(arguments); err != nil {
		return 0, err
	}
	q, err := parseQueue(trim(arguments))
	if err != nil && arguments != written {
		err = fmt.Errorf("%w; with its macros replaced it is %q: NAME=VALUE on the command line gives one a value", err,
			"queue "+trim(arguments))
	}
	if err != nil {
		return 0, err
	}
	if q.mode != alone && len(q.names) == 0 {
		q.names = []string{"Item"}
	}
	for _, name := range q.names {
		if !isName(name) {
			return 0, fmt.Errorf("%q cannot be the name of a variable", name)
		}
	}
	items, rows, used, err := r.items(f, i, q)
	if err != nil {
		return 0, err
	}
	jobs := &Jobs{by: statement, Position: statement.Position, each: q.count, statement: r.sequence, reader: r}
	if q.mode != alone {
		jobs.named(q.names)
		r.fill(jobs, q, items, rows)
	}
	if r.enqueue(jobs); len(r.out.Clusters) > 1 || len(r.out.Clusters[0].Queues) > 1 {
		r.warn(jobs.Position, "HTCondor 25 takes only one queue statement in a file")
	}
	r.ifs = nil
	r.sequence++
	for _, name := range q.names {
		r.macros.define(name, definition{from: r.sequence, value: "<Queue_item>"})
	}
	return used, nil
}

// enqueue adds the jobs to their cluster.
func (r *reader) enqueue(jobs *Jobs) {
	executable, _ := r.macros.at("executable", jobs.statement)
	if len(r.out.Clusters) == 0 || executable.value != r.last {
		r.out.Clusters = append(r.out.Clusters, Cluster{})
		r.jobs, r.head = 0, nil
	}
	if r.head == nil && jobs.Len() > 0 {
		r.head = jobs
	}
	jobs.head = r.head
	r.last = executable.value
	cluster := &r.out.Clusters[len(r.out.Clusters)-1]
	jobs.cluster, jobs.first = len(r.out.Clusters), r.jobs
	cluster.Queues = append(cluster.Queues, jobs)
	r.jobs += jobs.Len()
}

// items returns the items as they are written, where each stands, and how many lines of this file they take.
func (r *reader) items(f *File, i int, q request) (items []string, rows []Position, used int, err error) {
	here := Position{f.name, f.lines[i].number}
	add := func(text string, at Position) {
		if q.mode == from {
			items, rows = append(items, text), append(rows, at)
			return
		}
		for _, item := range tokens(text) {
			items, rows = append(items, item), append(rows, at)
		}
	}
	switch {
	case q.mode == alone:
	case q.source != "":
		if err := r.table(q, add); err != nil {
			return nil, nil, 0, err
		}
	case q.list != "" || !q.inline && q.mode == from:
		add(q.list, here)
	}
	if q.inline {
		for used = 1; ; used++ {
			if i+used >= len(f.lines) {
				return nil, nil, 0, errors.New(
					"expected a line that begins with ) after the list, found the end of the file",
				)
			}
			l := f.lines[i+used]
			if strings.HasPrefix(l.text, "#") {
				continue
			}
			at := Position{f.name, l.number}
			r.out.Statements = append(r.out.Statements, &Statement{Position: at, Kind: Row, Text: l.text})
			if strings.HasPrefix(l.text, ")") {
				break
			}
			add(l.text, at)
		}
	}
	if len(items) > maxItems {
		return nil, nil, 0, fmt.Errorf("expected at most %d items, found %d", maxItems, len(items))
	}
	if q.mode >= matching {
		items, err = r.match(q, items)
		rows = nil
	}
	return items, rows, used, err
}

// table reads the items of a file, or of a command's output. Lines that begin with # are rows, too.
func (r *reader) table(q request, add func(string, Position)) error {
	read := r.read
	source, piped := strings.CutSuffix(q.source, "|")
	if source = trim(source); piped {
		read = r.run
	}
	text, err := read(source)
	if err != nil {
		return err
	}
	file, err := Parse(source, text)
	if err != nil {
		return err
	}
	for _, l := range file.lines {
		add(l.text, Position{source, l.number})
	}
	return nil
}

// match lists the files and directories of patterns; what two match counts once.
func (r *reader) match(q request, patterns []string) ([]string, error) {
	if r.env.Glob == nil {
		return nil, errors.New("no files can be listed here")
	}
	var items []string
	seen := map[string]bool{}
	for _, pattern := range patterns {
		found, err := r.env.Glob(pattern)
		if err != nil {
			return nil, err
		}
		any := false
		for _, path := range found {
			dir := strings.HasSuffix(path, "/")
			if q.mode == matchingFiles && dir || q.mode == matchingDirs && !dir || seen[path] {
				continue
			}
			any, seen[path] = true, true
			items = append(items, path)
		}
		if !any {
			r.warn(r.statement.Position, "nothing matches %s", pattern)
		}
	}
	return items, nil
}

// fill gives the jobs the values of the variables of each item that the slice takes.
func (r *reader) fill(jobs *Jobs, q request, items []string, rows []Position) {
	jobs.Items = [][]string{}
	before := make([]string, len(q.names))
	for i, item := range items {
		if !q.slice.has(i, len(items)) {
			continue
		}
		at := jobs.Position
		if i < len(rows) {
			at = rows[i]
		}
		row := columns(item, len(q.names))
		switch missing := q.names[len(row):]; {
		case item == "" && len(missing) > 0:
			r.warn(
				at,
				"an empty line is a job, whose %s is empty; %s as in the row before",
				q.names[0],
				strings.Join(missing,
					" and "),
			)
		case item == "":
			r.warn(at, "an empty line is a job, whose %s is empty", q.names[0])
		case len(missing) > 0:
			r.warn(at, "the row has no %s: the value of the row before stays", strings.Join(missing, " and "))
		}
		row = append(row, before[len(row):]...)
		before = row
		jobs.Items, jobs.indexes = append(jobs.Items, row), append(jobs.indexes, i)
	}
}
