package classad

import "strings"

// String prints the expression.
func (x *Literal) String() string { return text(x) }

// String prints the expression.
func (x *Ref) String() string { return text(x) }

// String prints the expression.
func (x *Unary) String() string { return text(x) }

// String prints the expression.
func (x *Binary) String() string { return text(x) }

// String prints the expression.
func (x *Cond) String() string { return text(x) }

// String prints the expression.
func (x *Call) String() string { return text(x) }

// String prints the expression.
func (x *List) String() string { return text(x) }

// String prints the expression.
func (x *Record) String() string { return text(x) }

// String prints the expression.
func (x *Select) String() string { return text(x) }

// String prints the expression.
func (x *Index) String() string { return text(x) }

// String prints the expression.
func (x *Paren) String() string { return text(x) }

func text(x Expr) string {
	var b strings.Builder
	x.print(&b)
	return b.String()
}

// level is how tightly a node binds; an operand that binds less tightly than its operator requires gets parentheses.
func level(x Expr) int {
	switch x := x.(type) {
	case *Cond:
		return 0
	case *Binary:
		return precedence[x.Op]
	case *Unary:
		return unaryLevel
	case *Literal:
		// -5 is an operator and a number to every parser of ClassAds.
		if i, ok := x.Value.Real(); ok && x.text == "" &&
			(i < 0 || i == 0 && strings.HasPrefix(x.Value.String(), "-")) {
			return unaryLevel
		}
	}
	return postfixLevel
}

func operand(b *strings.Builder, x Expr, least int) {
	if level(x) < least {
		b.WriteByte('(')
		x.print(b)
		b.WriteByte(')')
		return
	}
	x.print(b)
}

func (x *Literal) print(b *strings.Builder) {
	if x.text != "" {
		b.WriteString(x.text)
		return
	}
	b.WriteString(x.Value.String())
}

func (x *Ref) print(b *strings.Builder) {
	if x.Absolute {
		b.WriteByte('.')
	}
	if x.Scope != "" {
		printName(b, x.Scope)
		b.WriteByte('.')
	}
	printName(b, x.Name)
}

func (x *Unary) print(b *strings.Builder) {
	b.WriteString(x.Op)
	// "- -1" must not become "--1", which some readers refuse.
	if u, ok := x.X.(*Unary); ok && u.Op == x.Op || !ok && level(x.X) == unaryLevel {
		b.WriteByte(' ')
	}
	operand(b, x.X, unaryLevel)
}

func (x *Binary) print(b *strings.Builder) {
	p := precedence[x.Op]
	operand(b, x.L, p)
	b.WriteByte(' ')
	b.WriteString(x.Op)
	b.WriteByte(' ')
	operand(b, x.R, p+1)
}

func (x *Cond) print(b *strings.Builder) {
	operand(b, x.If, 1)
	if x.Then != nil {
		b.WriteString(" ? ")
		x.Then.print(b)
		b.WriteString(" : ")
		x.Else.print(b)
		return
	}
	b.WriteString(" ?: ")
	other := text(x.Else)
	if strings.ContainsRune("!~+-", rune(other[0])) {
		other = "(" + other + ")" // HTCondor 25.14 accepts no such operator after ?:
	}
	b.WriteString(other)
}

func (x *Call) print(b *strings.Builder) {
	b.WriteString(x.Name)
	b.WriteByte('(')
	printList(b, x.Args)
	b.WriteByte(')')
}

func (x *List) print(b *strings.Builder) {
	b.WriteByte('{')
	printList(b, x.Elems)
	b.WriteByte('}')
}

func (x *Record) print(b *strings.Builder) {
	b.WriteByte('[')
	for i, f := range x.Fields {
		if i > 0 {
			b.WriteString("; ")
		}
		printName(b, f.Name)
		b.WriteString(" = ")
		f.X.print(b)
	}
	b.WriteByte(']')
}

func (x *Select) print(b *strings.Builder) {
	if l, ok := x.X.(*Literal); ok && l.Value.kind != String {
		// "1.a" would be read as a number.
		b.WriteByte('(')
		l.print(b)
		b.WriteByte(')')
	} else {
		operand(b, x.X, postfixLevel)
	}
	b.WriteByte('.')
	printName(b, x.Name)
}

func (x *Index) print(b *strings.Builder) {
	operand(b, x.X, postfixLevel)
	b.WriteByte('[')
	x.I.print(b)
	b.WriteByte(']')
}

func (x *Paren) print(b *strings.Builder) {
	b.WriteByte('(')
	x.X.print(b)
	b.WriteByte(')')
}

func printList(b *strings.Builder, xs []Expr) {
	for i, x := range xs {
		if i > 0 {
			b.WriteString(", ")
		}
		x.print(b)
	}
}

// printName writes a name, quoted if the lexer would not read it as one.
func printName(b *strings.Builder, name string) {
	if IsName(name) {
		b.WriteString(name)
		return
	}
	b.WriteByte('\'')
	b.WriteString(nameEscaper.Replace(name))
	b.WriteByte('\'')
}

var nameEscaper = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`)
