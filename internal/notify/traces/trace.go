package traces

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Trace is what became of one attempt of an object.
type Trace struct {
	UID     string
	Attempt int
	Spans   []Span

	goesOn bool // the first of its spans are in an earlier request
}

// Span says how long something took.
type Span struct {
	Path       string // in its trace: "a/b" is a part of "a", which is a part of "", the whole
	Name       string
	Start, End time.Time
	Error      string // empty: it did not fail
	Attributes map[string]string
}

// Run is the path of the span in which jobs run, within the one of what was sent.
const Run = "run"

// Parent returns the traceparent with which others add to a span of a trace.
func Parent(uid string, attempt int, path string) string {
	trace := traceID(uid, attempt)
	return "00-" + trace + "-" + spanID(trace, path) + "-01"
}

func traceID(uid string, attempt int) string { return digest(fmt.Sprintf("%s/%d", uid, attempt), 16) }

func spanID(trace, path string) string { return digest(trace+"/"+path, 8) }

func digest(text string, size int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:size])
}

// parentID returns the id of the span that another one is a part of, "" for the whole.
func parentID(trace, path string) string {
	if path == "" {
		return ""
	}
	return spanID(trace, path[:max(0, strings.LastIndexByte(path, '/'))])
}
