package submitfile

import "fmt"

// Position is where something is written: the first line of a continued one.
type Position struct {
	File string
	Line int
}

func (p Position) String() string { return fmt.Sprintf("%s, line %d", p.File, p.Line) }

// Kind is what a statement is.
type Kind int

// The kinds of statements.
const (
	Set         Kind = iota // NAME = VALUE: a command or a macro
	Attribute               // +NAME = VALUE, MY.NAME = VALUE
	Conditional             // if, elif, else, endif
	Include                 // include : FILE
	Message                 // warning : TEXT
	Queue                   // queue ...
	Row                     // of a table after queue
)

// Statement is one that condor_submit comes by.
type Statement struct {
	Position
	Kind        Kind
	Text        string // the whole, with its continuations joined
	Name, Value string // of Set and Attribute; Value has its macros unreplaced, except for the name itself
	Skipped     bool   // it stands in a branch that is not taken, or includes a file that need not exist
	After       bool   // no queue statement comes after it
	Used        bool   // Set: some job's macros or commands have asked for it
}

// Problem is what condor_submit would refuse or warn of, or what cannot be known here.
type Problem struct {
	Position
	Text string
}

func (p Problem) Error() string { return p.Position.String() + ": " + p.Text }
