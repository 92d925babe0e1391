package classad

import (
	"strconv"
	"strings"
)

// maxDepth bounds how deep an expression may nest, so that no text can exhaust the
// stack. HTCondor's own parser recurses without a bound.
const maxDepth = 200

// ParseExpr parses one expression in the syntax of submit descriptions,
// -constraint and -long output, where the only escape in a string is \". Errors
// are of type *SyntaxError.
func ParseExpr(s string) (Expr, error) { return parse(s, false) }

// parse parses one expression; newSyntax: in that of -json output, where every backslash in a string is an escape.
func parse(s string, newSyntax bool) (Expr, error) {
	p := &parser{lex: lexer{src: s, newSyntax: newSyntax}}
	x, err := p.after(p.expr)
	if err != nil {
		return nil, err
	}
	if p.tok.kind != tokEnd {
		return nil, p.fail("an operator or the end")
	}
	return x, nil
}

// parser is a recursive descent with one token in hand.
type parser struct {
	lex   lexer
	tok   token
	depth int
}

// precedence of the binary operators; higher binds tighter, all group left.
var precedence = map[string]int{
	"||": 1, "&&": 2, "|": 3, "^": 4, "&": 5,
	"==": 6, "!=": 6, "=?=": 6, "=!=": 6,
	"<": 7, "<=": 7, ">": 7, ">=": 7,
	"<<": 8, ">>": 8, ">>>": 8,
	"+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}

const (
	unaryLevel   = 11
	postfixLevel = 12
)

func (p *parser) advance() (err error) {
	p.tok, err = p.lex.next()
	return err
}

func (p *parser) at(op string) bool { return p.tok.kind == tokOp && p.tok.text == op }

// expect consumes the given operator.
func (p *parser) expect(op, after string) error {
	if !p.at(op) {
		return p.fail(strconv.Quote(op) + after)
	}
	return p.advance()
}

func (p *parser) fail(expected string) error {
	found := strconv.Quote(p.tok.text)
	if p.tok.kind == tokEnd {
		found = "the end"
	}
	return p.lex.fail(p.tok.off, found, expected)
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return p.fail("no more than " + strconv.Itoa(maxDepth) + " levels of nesting")
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// after parses what comes after the token.
func (p *parser) after(rest func() (Expr, error)) (Expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	return rest()
}

// expr parses a whole expression: If ? Then : Else groups right.
func (p *parser) expr() (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	x, err := p.binary(1)
	if err != nil {
		return nil, err
	}
	switch {
	case p.at("?:"):
		y, err := p.after(p.expr)
		if err != nil {
			return nil, err
		}
		return &Cond{If: x, Else: y}, nil
	case p.at("?"):
		then, err := p.after(p.expr)
		if err != nil {
			return nil, err
		}
		if err := p.expect(":", ` to go on after "?"`); err != nil {
			return nil, err
		}
		y, err := p.expr()
		if err != nil {
			return nil, err
		}
		return &Cond{If: x, Then: then, Else: y}, nil
	}
	return x, nil
}

// operator returns the current binary operator; "is" and "isnt" become =?= and =!=.
func (p *parser) operator() string {
	switch {
	case p.tok.kind == tokOp:
		return p.tok.text
	case p.tok.kind == tokName && strings.EqualFold(p.tok.text, "is"):
		return "=?="
	case p.tok.kind == tokName && strings.EqualFold(p.tok.text, "isnt"):
		return "=!="
	}
	return ""
}

// binary parses operators that bind at least as tightly as least.
func (p *parser) binary(least int) (Expr, error) {
	x, err := p.unary()
	if err != nil {
		return nil, err
	}
	for {
		op := p.operator()
		level := precedence[op]
		if level == 0 || level < least {
			return x, nil
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
		y, err := p.binary(level + 1)
		if err != nil {
			return nil, err
		}
		x = &Binary{Op: op, L: x, R: y}
	}
}

func (p *parser) unary() (Expr, error) {
	if p.tok.kind == tokOp {
		switch op := p.tok.text; op {
		case "-", "+", "!", "~":
			if err := p.enter(); err != nil {
				return nil, err
			}
			defer p.leave()
			x, err := p.after(p.unary)
			if err != nil {
				return nil, err
			}
			return &Unary{Op: op, X: x}, nil
		}
	}
	return p.postfix()
}

func (p *parser) postfix() (Expr, error) {
	x, err := p.primary()
	if err != nil {
		return nil, err
	}
	// The tree grows downwards here without recursion; printing and walking recurse.
	for n := 0; ; n++ {
		if n > maxDepth {
			return nil, p.fail("no more than " + strconv.Itoa(maxDepth) + " levels of nesting")
		}
		switch {
		case p.at("."):
			if err := p.advance(); err != nil {
				return nil, err
			}
			name, err := p.name(`an attribute's name after "."`)
			if err != nil {
				return nil, err
			}
			if r, ok := x.(*Ref); ok && r.Scope == "" && !r.Absolute {
				x = &Ref{Scope: r.Name, Name: name}
			} else {
				x = &Select{X: x, Name: name}
			}
		case p.at("["):
			i, err := p.after(p.expr)
			if err != nil {
				return nil, err
			}
			if err := p.expect("]", " after the index"); err != nil {
				return nil, err
			}
			x = &Index{X: x, I: i}
		default:
			return x, nil
		}
	}
}

const operandWanted = "a value, an attribute or an expression"

func (p *parser) primary() (Expr, error) {
	t := p.tok
	switch {
	case t.kind == tokNumber, t.kind == tokString:
		lit := &Literal{Value: t.val, text: t.text}
		if t.kind == tokString && p.lex.newSyntax {
			lit.text = "" // its escapes have another meaning in the old syntax
		}
		return lit, p.advance()
	case t.kind == tokName:
		return p.named()
	case t.kind == tokQuotedName:
		return &Ref{Name: t.text}, p.advance()
	case p.at("."):
		if err := p.advance(); err != nil {
			return nil, err
		}
		name, err := p.name(`an attribute's name after "."`)
		if err != nil {
			return nil, err
		}
		return &Ref{Name: name, Absolute: true}, nil
	case p.at("("):
		x, err := p.after(p.expr)
		if err != nil {
			return nil, err
		}
		return &Paren{X: x}, p.expect(")", "")
	case p.at("{"):
		if err := p.advance(); err != nil {
			return nil, err
		}
		elems, err := p.list("}")
		return &List{Elems: elems}, err
	case p.at("["):
		return p.record()
	}
	return nil, p.fail(operandWanted)
}

// named parses what begins with a plain word: a value, a call or an attribute.
func (p *parser) named() (Expr, error) {
	word := p.tok
	switch strings.ToLower(word.text) {
	case "true":
		return &Literal{Value: BoolValue(true)}, p.advance()
	case "false":
		return &Literal{Value: BoolValue(false)}, p.advance()
	case "undefined":
		return &Literal{}, p.advance()
	case "error":
		return &Literal{Value: ErrValue()}, p.advance()
	case "is", "isnt":
		return nil, p.fail(operandWanted)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if !p.at("(") {
		return &Ref{Name: word.text}, nil
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	args, err := p.list(")")
	return &Call{Name: word.text, Args: args, Off: word.off}, err
}

// name consumes an attribute's name.
func (p *parser) name(wanted string) (string, error) {
	t := p.tok
	if t.kind != tokQuotedName && (t.kind != tokName || reserved[strings.ToLower(t.text)]) {
		return "", p.fail(wanted)
	}
	return t.text, p.advance()
}

// list parses expressions between commas, and the closing bracket.
func (p *parser) list(closing string) ([]Expr, error) {
	if p.at(closing) {
		return nil, p.advance()
	}
	var xs []Expr
	for {
		x, err := p.expr()
		if err != nil {
			return nil, err
		}
		xs = append(xs, x)
		if p.at(closing) {
			return xs, p.advance()
		}
		if err := p.expect(",", " or "+strconv.Quote(closing)); err != nil {
			return nil, err
		}
	}
}

// record parses [a = 1; b = 2].
func (p *parser) record() (Expr, error) {
	r := &Record{Off: p.tok.off}
	if err := p.advance(); err != nil {
		return nil, err
	}
	for !p.at("]") {
		name, err := p.name(`an attribute's name or "]"`)
		if err != nil {
			return nil, err
		}
		if err := p.expect("=", " after the attribute's name"); err != nil {
			return nil, err
		}
		x, err := p.expr()
		if err != nil {
			return nil, err
		}
		r.Fields = append(r.Fields, Field{Name: name, X: x})
		if !p.at("]") {
			if err := p.expect(";", ` or "]"`); err != nil {
				return nil, err
			}
		}
	}
	return r, p.advance()
}
