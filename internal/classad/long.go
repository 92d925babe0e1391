package classad

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// maxAd bounds the text of one ad, so that a broken peer cannot make a reader hold
// more than this. The largest real ads are some tens of kilobytes.
const maxAd = 16 << 20

// ReadLong reads ads in the form of condor_q -long: a line "Name = expression" for each
// attribute, an empty line after each ad. It calls fn for every ad, which fn may
// keep. An error of fn ends the reading and is returned as it is. The form does not
// tell whether it was cut short: the exit code of its writer must.
func ReadLong(r io.Reader, fn func(Ad) error) error {
	br := bufio.NewReaderSize(r, 64<<10)
	var text []byte
	line, size := 0, 16
	for {
		if whole, ok := wholeAd(br); ok {
			// What is odd about it, if anything, is found out below.
			if ad, err := parseLong(string(whole), line+1, size); err == nil {
				size, line = len(ad), line+len(ad)+1
				_, _ = br.Discard(len(whole) + 1)
				if err := fn(ad); err != nil {
					return err
				}
				continue
			}
		}
		// Gather one ad, so that all its strings share one allocation.
		text = text[:0]
		start := line + 1
		ended := false
		for {
			part, err := br.ReadSlice('\n')
			if len(part) > 0 {
				if err == nil {
					line++
				}
				whole := err == nil && (len(text) == 0 || text[len(text)-1] == '\n')
				if whole && blank(part) {
					if len(text) > 0 {
						break
					}
					start = line + 1
					continue
				}
				if len(text)+len(part) > maxAd {
					return fmt.Errorf("line %d: an ad of more than %d bytes", start, maxAd)
				}
				text = append(text, part...)
			}
			if errors.Is(err, io.EOF) {
				ended = true
				break
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return err
			}
		}
		if len(text) > 0 {
			ad, err := parseLong(string(text), start, size)
			if err != nil {
				return err
			}
			size = len(ad)
			if err := fn(ad); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
	}
}

// wholeAd returns the ad that stands next in the buffer, without the empty line after it, if all of that is there already,
// as nearly always.
func wholeAd(br *bufio.Reader) ([]byte, bool) {
	buffered, _ := br.Peek(br.Buffered())
	n := bytes.Index(buffered, []byte("\n\n"))
	if n <= 0 || bytes.IndexByte(buffered[:n], '\r') >= 0 {
		return nil, false
	}
	return buffered[:n+1], true
}

func blank(b []byte) bool {
	for _, c := range b {
		if !isSpace(c) {
			return false
		}
	}
	return true
}

func parseLong(s string, line, size int) (Ad, error) {
	ad := make(Ad, 0, size)
	for s != "" {
		var l string
		l, s, _ = strings.Cut(s, "\n")
		if l = strings.TrimRight(l, "\r"); l != "" {
			name, value, ok := cutLong(l)
			if !ok || name == "" {
				return nil, fmt.Errorf("line %d: found %q, expected \"Name = value\"", line, clip(l))
			}
			if len(name) > 0 && name[0] == '\'' {
				if n, raw, esc := endOfQuoted(name, '\'', true); n == len(name) {
					if name = raw; esc {
						name = unescape(raw, true)
					}
				}
			}
			ad = append(ad, Attr{Name: name, Value: literal(value)})
		}
		line++
	}
	return ad, nil
}

// cutLong is strings.Cut at " = ", faster for a name without a space, as nearly all are.
func cutLong(l string) (name, value string, ok bool) {
	if i := strings.IndexByte(l, ' '); i >= 0 && strings.HasPrefix(l[i:], " = ") {
		return l[:i], l[i+len(" = "):], true
	}
	return strings.Cut(l, " = ")
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}

// numberLiteral reads a decimal integer or real; what looks like one and is
// none, such as -x, stays unevaluated.
func numberLiteral(s string) Value {
	n := len(s)
	if n < 19 {
		i, neg := 0, s[0] == '-'
		if neg {
			i = 1
		}
		var v int64
		for ; i < n && isDigit(s[i]); i++ {
			v = v*10 + int64(s[i]-'0')
		}
		if i == n && (n > 1 || !neg) {
			if neg {
				v = -v
			}
			return IntValue(v)
		}
	} else if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return IntValue(v)
	}
	for i := range n {
		if c := s[i]; !isDigit(c) && c != '-' && c != '+' && c != '.' && c|0x20 != 'e' {
			return unevaluated(s)
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return unevaluated(s)
	}
	return RealValue(f)
}
