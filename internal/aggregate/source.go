package aggregate

import (
	"context"
	"io"
)

// Query is what a user asks for.
type Query struct {
	Namespace, Name string
	User            string // the user's name at the apiserver
	Proc            int
	Attempt         int // 0: the newest

	// Of a log.
	Stderr    bool
	Follow    bool  // wait for it, and continue until the job has ended
	TailLines int   // only the last lines of what exists; -1: all
	Offset    int64 // bytes to skip, which the reader already has; overrides TailLines

	// Of an archive or a list of files.
	AllProcs bool // all from Proc on, as far as they exist
}

// Answer is some output. Its Write is called once, and Close always.
type Answer struct {
	Attempt int    // 0: not yet known
	Jobs    int    // how many the attempt has, including those without output; 0: unknown
	Item    string // for people: the variables that only this job has; empty: none, or not known yet
	Offset  int64  // of the first byte that Write writes
	Write   func(ctx context.Context, w io.Writer) error
	Close   func()
}

// File is a file of a job's output, as a line of JSON in a list of files.
type File struct {
	Job  int    `json:"job"`
	Path string `json:"path"` // in the job's directory; with a replacement for what is no UTF-8
	Size int64  `json:"size"` // bytes
}

// Source finds output. Its errors are a *StatusError of apimachinery if the user can do something about them.
type Source interface {
	Log(ctx context.Context, q Query) (*Answer, error)
	Archive(ctx context.Context, q Query) (*Answer, error)
	Files(ctx context.Context, q Query) (*Answer, error)
}
