package classad

import "strings"

// Expr is a node of a parsed expression. String prints it on one line, in the
// old syntax, so that parsing it again gives the same tree.
type Expr interface {
	String() string
	print(b *strings.Builder)
	sealed()
}

// The nodes. Parentheses are kept as written: HTCondor keeps them too.
type (
	// Literal is a value; its kind is never Unevaluated.
	Literal struct {
		Value Value
		// text is a number as written, so that 0x10 or 2G is preserved.
		text string
	}
	// Ref names an attribute. Scope is empty, or MY, TARGET and the like as
	// written; with Absolute the name was written with a leading dot.
	Ref struct {
		Scope, Name string
		Absolute    bool
	}
	// Unary is -X, +X, !X or ~X.
	Unary struct {
		Op string
		X  Expr
	}
	// Binary is L Op R.
	Binary struct {
		Op   string
		L, R Expr
	}
	// Cond is If ? Then : Else. With Then nil it is If ?: Else.
	Cond struct{ If, Then, Else Expr }
	// Call is a function call. Off is where it begins in the text that was parsed, in bytes.
	Call struct {
		Name string
		Args []Expr
		Off  int
	}
	// List is {A, B}.
	List struct{ Elems []Expr }
	// Record is a nested ad, [a = 1; b = 2]. Off is as in Call.
	Record struct {
		Fields []Field
		Off    int
	}
	// Select is X.Name where X is not just a name.
	Select struct {
		X    Expr
		Name string
	}
	// Index is X[I].
	Index struct{ X, I Expr }
	// Paren is (X).
	Paren struct{ X Expr }
)

// Field is one attribute of a Record.
type Field struct {
	Name string
	X    Expr
}

func (*Literal) sealed() {}
func (*Ref) sealed()     {}
func (*Unary) sealed()   {}
func (*Binary) sealed()  {}
func (*Cond) sealed()    {}
func (*Call) sealed()    {}
func (*List) sealed()    {}
func (*Record) sealed()  {}
func (*Select) sealed()  {}
func (*Index) sealed()   {}
func (*Paren) sealed()   {}

// Walk calls fn for x and everything below it, until fn returns false.
func Walk(x Expr, fn func(Expr) bool) bool {
	if x == nil {
		return true
	}
	if !fn(x) {
		return false
	}
	for _, c := range children(x) {
		if !Walk(c, fn) {
			return false
		}
	}
	return true
}

func children(x Expr) []Expr {
	switch x := x.(type) {
	case *Unary:
		return []Expr{x.X}
	case *Binary:
		return []Expr{x.L, x.R}
	case *Cond:
		return []Expr{x.If, x.Then, x.Else}
	case *Call:
		return x.Args
	case *List:
		return x.Elems
	case *Record:
		var xs []Expr
		for _, f := range x.Fields {
			xs = append(xs, f.X)
		}
		return xs
	case *Select:
		return []Expr{x.X}
	case *Index:
		return []Expr{x.X, x.I}
	case *Paren:
		return []Expr{x.X}
	}
	return nil
}
