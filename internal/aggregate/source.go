package aggregate

import (
	"context"
	"io"
)

// Query is what a user asks for.
type Query struct {
	Namespace, Name string
	User            string // who asks, as the apiserver knows him
	Proc            int
	Attempt         int // 0: the newest

	// Of a log.
	Stderr    bool
	Follow    bool  // wait for it, and go on until the job has ended
	TailLines int   // only the last so many lines of what is there; -1: all
	Offset    int64 // bytes to leave out, by somebody who has them already; stands above TailLines

	// Of an archive.
	AllProcs bool // all from Proc on, as far as they are there
}

// Answer is what there is. Its Write is called once, and Close always.
type Answer struct {
	Attempt int   // 0: not known yet
	Jobs    int   // how many the attempt has, those without output included; 0: not told
	Offset  int64 // of the first byte that Write writes
	Write   func(ctx context.Context, w io.Writer) error
	Close   func()
}

// Source has the output. Its errors are a *StatusError of apimachinery where the user can do something about them.
type Source interface {
	Log(ctx context.Context, q Query) (*Answer, error)
	Archive(ctx context.Context, q Query) (*Answer, error)
}
