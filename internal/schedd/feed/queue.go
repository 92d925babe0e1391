package feed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
)

// maxChanges is how many changes are remembered: a client that has missed more asks for everything.
const maxChanges = 100_000

// change is one of a job, or of a cluster's ad and thereby of all its jobs.
type change struct {
	at    Mark
	of    number
	state bool // its state may have changed, it is new, or it has left
}

// What changes a job's state.
var states = []name{nameOf("JobStatus"), nameOf("HoldReasonCode"), nameOf("EnteredCurrentStatus")}

func (r record) isState() bool {
	return r.op == opNew || r.op == opDestroy || slices.Contains(states, nameOf(r.name))
}

// queue is what job_queue.log has said so far.
type queue struct {
	jobs    *jobs
	mark    Mark     // up to which it has been read
	changes []change // in their order
	since   Mark     // changes after it are all in changes
}

// note remembers a change; those of one job that follow each other are one.
func (q *queue) note(c change) {
	if n := len(q.changes); n > 0 && q.changes[n-1].of == c.of {
		c.state = c.state || q.changes[n-1].state
		q.changes[n-1] = c
		return
	}
	if q.changes = append(q.changes, c); len(q.changes) >= 2*maxChanges {
		old := len(q.changes) - maxChanges
		q.since = q.changes[old-1].at
		q.changes = slices.Clone(q.changes[old:])
	}
}

// file is job_queue.log. It is only read.
type file struct {
	path string
	f    *os.File
	head string // its first line
}

func (f *file) close() {
	if f.f != nil {
		_ = f.f.Close() // nothing was written
		f.f = nil
	}
}

// size returns the file's, and when it was changed, in Unix seconds; 0 if it is not open.
func (f *file) size() (size, modified int64) {
	if f.f == nil {
		return 0, 0
	}
	info, err := f.f.Stat()
	if err != nil {
		return 0, 0
	}
	return info.Size(), info.ModTime().Unix()
}

var errNoHead = errors.New("the file does not begin with a complete record of its sequence number (107)")

// readHead returns the first line, and what it says.
func readHead(r io.ReaderAt) (line string, m Mark, err error) {
	line, _, err = newLineReader(r, 0, maxSeen, maxSeen).next()
	if err != nil {
		return "", m, errNoHead
	}
	rec, err := parseRecord(line)
	if err != nil || rec.op != opHead {
		return "", m, errNoHead
	}
	var wrong [2]error
	m.Sequence, wrong[0] = strconv.ParseInt(rec.name, 10, 64)
	m.Born, wrong[1] = strconv.ParseInt(rec.value, 10, 64)
	if errors.Join(wrong[:]...) != nil {
		return "", m, errNoHead
	}
	return line, m, nil
}

// follow reads what has been added to the file since the last time. replaced: the schedd has written the file anew, or
// somebody has truncated or replaced it: all that was added to the old one has been read, and the new one is to be
// loaded.
func (f *file) follow(q *queue) (replaced bool, err error) {
	if f.f == nil {
		return true, nil
	}
	now, err := os.Stat(f.path) // before the old one is read to its end: nobody adds to a file that has been replaced
	if err != nil {
		return false, err
	}
	open, err := f.f.Stat()
	if err != nil {
		return false, err
	}
	if head, _, err := readHead(f.f); err != nil || head != f.head || open.Size() < q.mark.Offset {
		return true, nil // it was truncated, perhaps in order to be written anew
	}
	if open.Size() > q.mark.Offset {
		err = q.read(f.f, open.Size())
	}
	return !os.SameFile(now, open), err
}

// read applies the complete records up to an offset.
func (q *queue) read(r io.ReaderAt, size int64) error {
	f := &finder{q.jobs.owners, map[int]bool{}, map[int]bool{}}
	taken := false
	end, err := readRecords(r, q.mark.Offset, size, f.see, func(rec record, cut bool, after int64) error {
		if !taken {
			taken = true
			q.jobs.take(f)
		}
		changed, err := q.jobs.apply(rec, cut)
		if changed {
			q.note(change{Mark{q.mark.Born, q.mark.Sequence, after}, rec.key, rec.isState()})
		}
		return err
	})
	q.mark.Offset = end
	return err
}

// load opens and reads a file from its beginning. What differs from the queue before is a change; what has changed is
// not known if that was another queue.
func load(path string, before *queue, owners Owners, most int) (now *queue, f file, err error) {
	f.path = path
	f.f, err = os.Open(path) // #nosec G304 -- the administrator names it
	if err != nil {
		return nil, f, err
	}
	now, err = f.load(before, newJobs(owners, most))
	if err != nil {
		f.close()
		return nil, f, fmt.Errorf("%s: %w", path, err)
	}
	return now, f, nil
}

func (f *file) load(before *queue, empty *jobs) (*queue, error) {
	head, mark, err := readHead(f.f)
	if err != nil {
		return nil, err
	}
	info, err := f.f.Stat()
	if err != nil {
		return nil, err
	}
	f.head = head
	now := &queue{jobs: empty, mark: mark, since: mark}
	if err := now.read(f.f, info.Size()); err != nil {
		return nil, err
	}
	if before != nil && before.mark.Born == mark.Born && before.mark.Sequence < mark.Sequence {
		now.continues(before)
	}
	return now, nil
}

// continues adds the changes of the file before, so that marks in that remain good.
func (q *queue) continues(before *queue) {
	at := Mark{q.mark.Born, q.mark.Sequence, 0}
	changes, since := before.changes, before.since
	differ := func(n number) {
		if a, b := before.jobs.ads[n], q.jobs.ads[n]; !same(a, b) {
			changes = append(changes, change{at, n, true})
		}
	}
	for n := range before.jobs.ads {
		differ(n)
	}
	for n := range q.jobs.ads {
		if _, both := before.jobs.ads[n]; !both {
			differ(n)
		}
	}
	// Those that were found in the new file are in these, or came after it had been written.
	q.changes, q.since = changes, since
	if old := len(q.changes) - maxChanges; old > 0 {
		q.since = q.changes[old-1].at
		q.changes = slices.Clone(q.changes[old:])
	}
}

// same reports whether two ads are equal, in whatever order.
func same(a, b ad) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	for _, at := range a {
		i := b.find(at.name)
		if i < 0 || b[i].value != at.value || b[i].cut != at.cut {
			return false
		}
	}
	return true
}

// changed returns the jobs and clusters' ads that have changed after a mark. ok is false if that is not known.
func (q *queue) changed(after Mark, states bool) (all []number, ok bool) {
	if after.Born != q.mark.Born || after.compare(q.mark) > 0 || after.compare(q.since) < 0 {
		return nil, false
	}
	i, _ := slices.BinarySearchFunc(q.changes, after, func(c change, m Mark) int {
		if c.at.compare(m) <= 0 {
			return -1
		}
		return 1
	})
	seen := map[number]bool{}
	for _, c := range q.changes[i:] {
		if (c.state || !states) && !seen[c.of] {
			seen[c.of] = true
			all = append(all, c.of)
		}
	}
	return all, true
}
