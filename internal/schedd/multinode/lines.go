package multinode

import (
	"bytes"
	"io"
)

// lines writes whole lines, with something before each.
type lines struct {
	to     io.Writer
	before string
	rest   []byte // of a line without an end
}

// longest is a part of a line that waits for no end.
const longest = 64 << 10

func (l *lines) Write(text []byte) (int, error) {
	l.rest = append(l.rest, text...)
	for {
		at := bytes.IndexByte(l.rest, '\n') + 1
		if at == 0 && len(l.rest) < longest {
			return len(text), nil
		}
		if at == 0 {
			l.rest, at = append(l.rest, '\n'), len(l.rest)+1
		}
		if _, err := l.to.Write(append([]byte(l.before), l.rest[:at]...)); err != nil {
			l.rest = nil // on a full disk nothing is kept in memory for later
			return 0, err
		}
		l.rest = l.rest[at:]
	}
}

// end writes what has no end.
func (l *lines) end() {
	if len(l.rest) > 0 {
		_, _ = l.Write([]byte{'\n'})
	}
}
