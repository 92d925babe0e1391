package logspod

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"

	"htc.cern.ch/htcd/internal/output"
)

const (
	// MaxSize is the most bytes of a text: half of what a ConfigMap may have.
	MaxSize = 512 << 10
	// MaxJobs is the most jobs in a text.
	MaxJobs = 1000

	// The parts of MaxSize for the first line, and for a job's head line and note.
	firstLine = 1024
	besides   = 128
	maxNote   = 64 // of a job's note, where there are many jobs
)

// Job is one of the jobs that a text shows.
type Job struct {
	Proc int
	ID   string // HTCondor's name
	Note string // shown if it has left no output
}

// Text is what to show of an attempt.
type Text struct {
	Store   output.Store
	Attempt output.Attempt
	Jobs    []Job // the first of them, at most MaxJobs
	All     int   // how many there are in all
	Note    string
}

// streams are a job's streams, in the order of printing.
var streams = []struct{ file, suffix string }{{output.Stdout, toStdout}, {output.Stderr, toStderr}}

// Compose reads the jobs' output and returns it as the files of a text.
func (t Text) Compose() (map[string][]byte, error) {
	sizes, err := t.sizes()
	if err != nil {
		return nil, err
	}
	var all []int64
	for _, of := range sizes {
		all = append(all, of...)
	}
	most := share(all, MaxSize-firstLine-int64(len(t.Jobs))*besides)
	var c chunks
	if missing := t.missing(all, most); missing != "" {
		c.add(toStderr, missing)
	}
	if t.Note != "" {
		c.add(toStderr, "htcd: "+t.Note+"\n")
	}
	for i, job := range t.Jobs {
		if t.All > 1 {
			c.line(fmt.Sprintf("==> %s <==\n", job.ID))
		}
		if sizes[i] == nil {
			c.add(toStderr, fmt.Sprintf("htcd: no output of job %s: %s\n", job.ID, shorten(job.Note, t.All)))
			continue
		}
		for k, stream := range streams {
			if sizes[i][k] == 0 {
				continue
			}
			end, err := t.end(job.Proc, stream.file, most)
			if err != nil {
				return nil, err
			}
			c.add(stream.suffix, string(end))
		}
	}
	return c.files(), nil
}

// sizes are those of each job's streams, nil for a job without output.
func (t Text) sizes() ([][]int64, error) {
	all := make([][]int64, len(t.Jobs))
	for i, job := range t.Jobs {
		for k, stream := range streams {
			f, err := t.open(job.Proc, stream.file)
			if err != nil {
				return nil, err
			}
			if f == nil {
				continue
			}
			info, err := f.Stat()
			if err = errors.Join(err, f.Close()); err != nil {
				return nil, err
			}
			if all[i] == nil {
				all[i] = make([]int64, len(streams))
			}
			all[i][k] = info.Size()
		}
	}
	return all, nil
}

// open returns nil if there is no such file or it may not be read: jobs may leave anything under that name.
func (t Text) open(proc int, file string) (*os.File, error) {
	if t.Store.Root == "" {
		return nil, nil
	}
	f, err := t.Store.Open(t.Attempt, proc, file)
	if _, odd := errors.AsType[*fs.PathError](err); odd {
		return nil, nil
	}
	return f, err
}

// share is the most that each may have for all to fit into a room.
func share(sizes []int64, room int64) int64 {
	sizes = slices.Sorted(slices.Values(sizes))
	for i, size := range sizes {
		each := room / int64(len(sizes)-i)
		if size > each {
			return each
		}
		room -= size
	}
	return math.MaxInt64
}

// missing describes what is not shown.
func (t Text) missing(sizes []int64, most int64) string {
	cut := 0
	for _, size := range sizes {
		if size > most {
			cut++
		}
	}
	said := ""
	switch {
	case cut == 0 && len(t.Jobs) < t.All:
		said = fmt.Sprintf("only the first %d of %d jobs are here", len(t.Jobs), t.All)
	case cut == 1:
		said = fmt.Sprintf("of 1 stream only the last %d KiB are here", most>>10)
	case cut > 1:
		said = fmt.Sprintf("of %d streams only the last %d KiB each are here", cut, most>>10)
	}
	if said == "" {
		return ""
	}
	if cut > 0 && len(t.Jobs) < t.All {
		said += fmt.Sprintf(", and only the first %d of %d jobs", len(t.Jobs), t.All)
	}
	each := ""
	if t.All > 1 {
		each = " --all"
	}
	return fmt.Sprintf(
		"htcd: %s; `kubectl htcjob logs %s -n %s%s` shows all\n",
		said,
		t.Attempt.Name,
		t.Attempt.Namespace,
		each,
	)
}

// end reads the end of a stream, from the beginning of a line if one is near.
func (t Text) end(proc int, file string, most int64) ([]byte, error) {
	f, err := t.open(proc, file)
	if err != nil || f == nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-most)
	text, err := io.ReadAll(io.NewSectionReader(f, from, min(most, info.Size())))
	if i := bytes.IndexByte(text, '\n'); from > 0 && i >= 0 && i < 4096 {
		text = text[i+1:]
	}
	return text, err
}

// shorten cuts a note if there are many.
func shorten(note string, jobs int) string {
	if jobs > 1 && len(note) > maxNote {
		return note[:maxNote] + "..."
	}
	return note
}

// chunks are pieces of text for one stream or the other, in order.
type chunks struct {
	suffix []string
	text   []*bytes.Buffer
}

// add appends to the last chunk if that belongs to the same stream.
func (c *chunks) add(suffix, text string) {
	if text == "" {
		return
	}
	if n := len(c.suffix); n == 0 || c.suffix[n-1] != suffix {
		c.suffix, c.text = append(c.suffix, suffix), append(c.text, &bytes.Buffer{})
	}
	_, _ = c.text[len(c.text)-1].WriteString(text) // a buffer's never fails
}

// line adds a head line, preceded by a line end if needed.
func (c *chunks) line(text string) {
	if n := len(c.text); n > 0 && !bytes.HasSuffix(c.text[n-1].Bytes(), []byte("\n")) {
		_ = c.text[n-1].WriteByte('\n') // a buffer's never fails
	}
	c.add(toStdout, text)
}

func (c *chunks) files() map[string][]byte {
	files := map[string][]byte{}
	for i, text := range c.text {
		files[fmt.Sprintf("%05d.%s", i, c.suffix[i])] = text.Bytes()
	}
	return files
}
