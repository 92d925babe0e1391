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
	line := 0
	var ends []int
	for {
		if ends = wholeAd(br, ends[:0]); len(ends) > 0 {
			// What is odd about it, if anything, is found out below.
			if ad, err := parseWhole(br, ends); err == nil {
				line += len(ends) + 1
				if err := fn(ad); err != nil {
					return err
				}
				continue
			}
		}
		// Gather one ad.
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
			ad, err := parseLong(string(text), start)
			if err != nil {
				return err
			}
			if err := fn(ad); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
	}
}

// wholeAd finds the ends of the lines of the ad that stands next in the buffer, without the empty line after it, if all of
// that is there already, as nearly always.
func wholeAd(br *bufio.Reader, ends []int) []int {
	buffered, _ := br.Peek(br.Buffered())
	for end := 0; ; {
		n := bytes.IndexByte(buffered[end:], '\n')
		switch {
		case n == 0:
			return ends
		case n < 0 || buffered[end+n-1] == '\r':
			return nil
		}
		end += n + 1
		ends = append(ends, end)
	}
}

// parseWhole takes the ad that wholeAd found. On an error it takes nothing.
func parseWhole(br *bufio.Reader, ends []int) (Ad, error) {
	size := ends[len(ends)-1]
	buffered, _ := br.Peek(size)
	text, begin := string(buffered), 0 // all its strings share one allocation
	ad := make(Ad, len(ends))
	for i, end := range ends {
		var err error
		if ad[i], err = attribute(text[begin:end-1], 0); err != nil {
			return nil, err
		}
		begin = end
	}
	_, err := br.Discard(size + 1)
	return ad, err
}

func blank(b []byte) bool {
	for _, c := range b {
		if !isSpace(c) {
			return false
		}
	}
	return true
}

func parseLong(s string, line int) (ad Ad, err error) {
	for l := range strings.SplitSeq(s, "\n") {
		if l = strings.TrimRight(l, "\r"); l != "" {
			a, err := attribute(l, line)
			if err != nil {
				return nil, err
			}
			ad = append(ad, a)
		}
		line++
	}
	return ad, nil
}

// attribute reads a line, which has a number in what is said of it.
func attribute(l string, line int) (Attr, error) {
	name, value, ok := cutLong(l)
	if !ok || name == "" {
		return Attr{}, fmt.Errorf("line %d: found %q, expected \"Name = value\"", line, clip(l))
	}
	if name[0] == '\'' {
		if n, raw, esc := endOfQuoted(name, '\'', true); n == len(name) {
			if name = raw; esc {
				name = unescape(raw, true)
			}
		}
	}
	return Attr{Name: name, Value: literal(value)}, nil
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
