package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// identity tells the file that was opened from one that somebody has put in its place, or from an older copy that was
// written into it. What htcd remembers then is not of that file: whoever goes on with it sends again what the file has
// forgotten, and readers with an open file go on with the one before.
type identity struct {
	// Open as long as the ledger, so that no other file gets its number. It is closed after the connections: that
	// releases all locks of this process on the file.
	file    *os.File
	is      os.FileInfo
	changes uint32 // of the file, when it was last looked at
}

func identify(path string) (*identity, error) {
	file, err := os.Open(path) // #nosec G304 -- the ledger
	if err != nil {
		return nil, err
	}
	i := &identity{file: file}
	if i.is, err = file.Stat(); err == nil {
		i.changes, err = i.count()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return i, nil
}

// differs returns ErrLost if path leads to another file, or the file has become older. A file that is not there, or
// cannot be read, is left to SQLite. Nobody may be writing meanwhile.
func (i *identity) differs(path string) error {
	if now, err := os.Stat(path); err == nil && !os.SameFile(now, i.is) {
		return fmt.Errorf("%w: another file is in its place", ErrLost)
	}
	switch now, err := i.count(); {
	case err == io.EOF:
		return fmt.Errorf("%w: it is empty", ErrLost)
	case err == nil && precedes(now, i.changes):
		return fmt.Errorf("%w: an older copy was written into it", ErrLost)
	case err == nil:
		i.changes = now
	}
	return nil
}

// note looks at the file after a commit. What one that fails has written, SQLite takes back.
func (i *identity) note() {
	if now, err := i.count(); err == nil && !precedes(now, i.changes) {
		i.changes = now
	}
}

// precedes compares two counts of changes. The counter may begin again.
func precedes(now, before uint32) bool { return int32(now-before) < 0 } // #nosec G115

// changeCounter is where the file's header has the number of transactions, of whatever program
// (https://www.sqlite.org/fileformat.html, 1.3.6).
const changeCounter = 24

func (i *identity) count() (uint32, error) {
	var text [4]byte
	if _, err := i.file.ReadAt(text[:], changeCounter); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(text[:]), nil
}
