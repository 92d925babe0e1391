package classad

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxAd bounds the text of one ad, so that a broken peer cannot exhaust a reader's memory. The largest real ads are
// some tens of kilobytes.
const maxAd = 16 << 20

// ReadJSON reads ads in the form of condor_q -json and condor_history -json: one array of objects. Empty input means no
// ads, as condor_q prints it. An undefined attribute is null, an expression the string "\/Expr(...)\/". It calls fn for
// every ad, which fn may keep. A string is cut after maxString bytes, so that memory does not grow with the input. An
// error of fn ends the reading and is returned unchanged. An array that is not closed is an error, io.ErrUnexpectedEOF,
// after fn saw all complete ads.
func ReadJSON(r io.Reader, fn func(Ad) error) error {
	d := &jsonReader{br: bufio.NewReaderSize(r, 64<<10), line: 1}
	c, err := d.peek()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	if c != '[' {
		return d.fail(c, `"["`)
	}
	d.skip()
	size := 16
	for first := true; ; first = false {
		c, err := d.peek()
		if err != nil {
			return d.cut(err)
		}
		if c == ']' {
			d.skip()
			break
		}
		if !first {
			if c != ',' {
				return d.fail(c, `"," or "]" after an ad`)
			}
			d.skip()
			if c, err = d.peek(); err != nil {
				return d.cut(err)
			}
		}
		if c != '{' {
			return d.fail(c, `"{", the begin of an ad`)
		}
		line := d.line
		text, err := d.object()
		if err != nil {
			return d.cut(err)
		}
		p := &jsonParser{s: text, line: line}
		ad, err := p.ad(size)
		if err != nil {
			return err
		}
		size = len(ad)
		if err := fn(ad); err != nil {
			return err
		}
	}
	if c, err := d.peek(); err == nil {
		return d.fail(c, "the end after \"]\"")
	} else if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// jsonReader finds where each object of the stream ends.
type jsonReader struct {
	br   *bufio.Reader
	line int
	buf  []byte
	kept keeper
}

// peek returns the next byte that is not a space, without consuming it.
func (d *jsonReader) peek() (byte, error) {
	for {
		c, err := d.br.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case c == '\n':
			d.line++
		case !isSpace(c):
			return c, d.br.UnreadByte()
		}
	}
}

func (d *jsonReader) skip() { _, _ = d.br.Discard(1) }

func (d *jsonReader) fail(c byte, expected string) error {
	return fmt.Errorf("line %d: found %q, expected %s", d.line, c, expected)
}

// cut replaces the end of the stream by the error it is here.
func (d *jsonReader) cut(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("line %d: the ads are cut short: %w", d.line, io.ErrUnexpectedEOF)
	}
	return err
}

// object reads from "{" to the "}" that belongs to it.
func (d *jsonReader) object() (string, error) {
	d.buf, d.kept = d.buf[:0], keeper{}
	var at place
	lines := 0
	for {
		if _, err := d.br.Peek(1); err != nil {
			return "", err
		}
		chunk, _ := d.br.Peek(d.br.Buffered())
		end, ended := at.move(chunk)
		chunk = chunk[:end]
		lines += bytes.Count(chunk, []byte{'\n'})
		var text string
		switch {
		case ended && len(d.buf) == 0: // usually the whole object is buffered
			text = string(chunk)
		default:
			if d.buf = d.kept.keep(d.buf, chunk); len(d.buf) > maxAd {
				return "", fmt.Errorf("line %d: an ad of more than %d bytes", d.line, maxAd)
			}
			if ended {
				text = string(d.buf)
			}
		}
		_, _ = d.br.Discard(len(chunk))
		if ended {
			d.line += lines
			return text, nil
		}
	}
}

// place is the position in an object's text, as far as it matters for finding the end.
type place struct {
	depth             int
	inString, escaped bool
}

// Bytes that end a run without meaning here, outside strings and inside.
var (
	structure = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true}
	inString  = [256]bool{'"': true, '\\': true}
)

// move goes through a chunk and returns the index after the object's last byte, if that is in it, otherwise the chunk's
// length.
func (p *place) move(chunk []byte) (end int, ended bool) {
	for i := 0; i < len(chunk); i++ {
		switch {
		case p.escaped:
			p.escaped = false
			continue
		case p.inString:
			for i < len(chunk) && !inString[chunk[i]] {
				i++
			}
		default:
			for i < len(chunk) && !structure[chunk[i]] {
				i++
			}
		}
		if i == len(chunk) {
			break
		}
		switch c := chunk[i]; {
		case c == '\\':
			p.escaped = true
		case c == '"':
			p.inString = !p.inString
		case c == '{' || c == '[':
			p.depth++
		default:
			if p.depth--; p.depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(chunk), false
}
