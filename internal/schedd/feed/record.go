package feed

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// op is the kind of a record of job_queue.log.
type op int

// The records, by HTCondor's numbers (classad_log.h).
const (
	opNew     op = 101 // key, type, target type
	opDestroy op = 102 // key
	opSet     op = 103 // key, attribute, expression
	opDelete  op = 104 // key, attribute
	opBegin   op = 105 // of a transaction
	opEnd     op = 106
	opHead    op = 107 // sequence number, "CreationTimestamp", Unix seconds: the first record of a file
)

// number is that of a job; the proc of a cluster's ad is clusterAd. Other ads in the log (the header, owners, sets of
// jobs) are not of interest.
type number struct{ cluster, proc int }

const clusterAd = -1

func (n number) String() string { return strconv.Itoa(n.cluster) + "." + strconv.Itoa(n.proc) }

type record struct {
	op          op
	key         number
	name, value string // of opHead: sequence number and time
}

// isJobs reports whether the record is about a job or a cluster.
func (r record) isJobs() bool { return r.key.cluster > 0 && r.key.proc >= clusterAd }

var errRecord = errors.New("not a record of job_queue.log")

// parseRecord reads one line, without its end.
func parseRecord(line string) (r record, err error) {
	kind, rest, _ := strings.Cut(line, " ")
	n, err := strconv.Atoi(kind)
	if err != nil {
		return r, errRecord
	}
	switch r.op = op(n); r.op {
	case opBegin, opEnd:
		return r, nil
	case opHead:
		sequence, rest, _ := strings.Cut(rest, " ")
		label, born, _ := strings.Cut(rest, " ")
		if label != "CreationTimestamp" {
			return r, errRecord
		}
		r.name, r.value = sequence, strings.TrimSpace(born)
		return r, nil
	case opNew, opDestroy, opSet, opDelete:
	default:
		return r, errRecord
	}
	key, rest, _ := strings.Cut(rest, " ")
	cluster, proc, _ := strings.Cut(key, ".")
	c, wrongC := strconv.Atoi(cluster)
	p, wrongP := strconv.Atoi(proc)
	if wrongC != nil || wrongP != nil {
		return r, errRecord
	}
	r.key = number{c, p}
	if r.op == opSet || r.op == opDelete {
		r.name, r.value, _ = strings.Cut(rest, " ")
		if r.name = strings.TrimSpace(r.name); r.name == "" {
			return r, errRecord
		}
	}
	return r, nil
}

// maxValue is the longest record, in bytes, whose value is mirrored; HTCondor takes any length.
const maxValue = 64 << 10

// readRecords calls fn with every complete record from an offset on. It stops before a line without an end and before a
// transaction without one, which are still being written, and returns the offset of what it has not passed on. A record
// whose value is too long comes with cut set.
//
// What is complete is found by reading it once more before: of a transaction of 100,000 jobs nothing is kept. That
// passes the beginnings of all lines to see.
func readRecords(
	r io.ReaderAt,
	from, size int64,
	see func(line string),
	fn func(rec record, cut bool, after int64) error,
) (int64, error) {
	end, err := complete(newLineReader(r, from, size, maxSeen), see)
	if err != nil {
		return from, err
	}
	lines := newLineReader(r, from, end, maxValue)
	for lines.at < end {
		before := lines.at
		line, cut, err := lines.next()
		if err != nil {
			return before, err
		}
		rec, err := parseRecord(line)
		if err != nil {
			return before, fmt.Errorf("at byte %d: %.40q: %w", before, line, err)
		}
		if err := fn(rec, cut, lines.at); err != nil {
			return before, err
		}
	}
	return end, nil
}

// maxSeen is how much of a line see is shown: its key, its attribute's name and the name of an account.
const maxSeen = 512

// complete returns where the complete records end.
func complete(lines *lineReader, see func(line string)) (end int64, err error) {
	end = lines.at
	for inside := false; ; {
		before := lines.at
		line, _, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return end, nil
		case err != nil:
			return end, err
		case strings.HasPrefix(line, "105"):
			if inside {
				return end, fmt.Errorf("at byte %d: a transaction within another", before)
			}
			inside = true
			continue
		case strings.HasPrefix(line, "106"):
			inside = false
		default:
			see(line)
		}
		if !inside {
			end = lines.at
		}
	}
}

// lineReader reads lines, of which it keeps no more than most bytes.
type lineReader struct {
	br   *bufio.Reader
	at   int64 // after the lines that were read
	most int
	kept []byte
}

func newLineReader(r io.ReaderAt, from, to int64, most int) *lineReader {
	return &lineReader{br: bufio.NewReaderSize(io.NewSectionReader(r, from, to-from), 64<<10), at: from, most: most}
}

// next returns a line without its end; cut: not all of it. A line without an end is io.EOF.
func (l *lineReader) next() (line string, cut bool, err error) {
	l.kept = l.kept[:0]
	for length := int64(0); ; {
		part, err := l.br.ReadSlice('\n')
		length += int64(len(part))
		text := bytes.TrimSuffix(part, []byte{'\n'})
		room := l.most - len(l.kept)
		cut = cut || len(text) > room
		l.kept = append(l.kept, text[:min(room, len(text))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return "", false, err
		}
		l.at += length
		return string(l.kept), cut, nil
	}
}
