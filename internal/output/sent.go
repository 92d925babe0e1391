package output

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Sent is a file that the execute node was to write to a URL, as the wrapper saw it before.
type Sent struct {
	Number int    // in the list of declared outputs, from 0
	Size   int64  // in bytes
	Digest string // empty: calculating it would have taken too long
}

const (
	sentList = ".sent" // after the number of the execution: note_sent in internal/schedd/submit/outputs.sh makes it
	maxSent  = 8 << 10 // bytes of it that are read
)

var sentRE = regexp.MustCompile(`^(?:([0-9]{1,2}) ([0-9]{1,18})|([0-9a-f]{64}) [ *]([0-9]{1,2}))$`)

// SentBy lists the files that the last execution of a proc in a fetch has sent to URLs. Lines that mean nothing are
// left out.
func SentBy(fetch string, proc int) ([]Sent, error) {
	root, err := os.OpenRoot(filepath.Join(fetch, strconv.Itoa(proc)))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	last, found, err := lastExecution(root)
	if err != nil || !found {
		return nil, err
	}
	list, err := Regular(root, filepath.Join(declared, strconv.Itoa(last)+sentList))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotRegular) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(list, maxSent))
	if err = errors.Join(err, list.Close()); err != nil {
		return nil, err
	}
	return parseSent(string(text)), nil
}

// parseSent reads lines of a number and a size, or of a checksum and a number.
func parseSent(text string) []Sent {
	var all []Sent
	digests := map[string]string{}
	for line := range strings.Lines(text) {
		m := sentRE.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		switch {
		case m == nil:
		case m[3] != "":
			digests[m[4]] = "sha256:" + m[3]
		default:
			number, _ := strconv.Atoi(m[1]) // they are digits
			size, _ := strconv.ParseInt(m[2], 10, 64)
			all = append(all, Sent{Number: number, Size: size})
		}
	}
	for i := range all {
		all[i].Digest = digests[strconv.Itoa(all[i].Number)]
	}
	return all
}
