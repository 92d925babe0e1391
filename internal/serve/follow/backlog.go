package follow

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// errTooSlow is for a reader that has fallen too far behind.
var errTooSlow = errors.New("the reader takes less than the job writes")

// backlog holds what was written and not yet read, in an unlinked file. Writing never waits for reading. The file is a
// ring: it never grows beyond most, however long somebody reads from it.
type backlog struct {
	file *os.File
	most int64 // bytes
	room *room
	of   requester

	mu            sync.Mutex
	more          sync.Cond
	read, written int64 // the bytes in between are in the file, at these offsets modulo most
	taken         int64 // of the room
	broken        error // why writing failed
	ended         error // io.EOF, or why no more data arrives
}

func newBacklog(room *room, of requester, most int64) (*backlog, error) {
	if err := os.MkdirAll(room.dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(room.dir, ".follow-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	b := &backlog{file: file, most: most, room: room, of: of}
	b.more.L = &b.mu
	return b, nil
}

func (b *backlog) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.more.Broadcast()
	if b.broken == nil {
		b.broken = b.grow(int64(len(p)))
	}
	if b.broken != nil { // permanently: there would be a gap
		return 0, b.broken
	}
	done := 0
	for done < len(p) {
		at := b.written % b.most
		n, err := b.file.WriteAt(p[done:min(int64(len(p)), int64(done)+b.most-at)], at)
		b.written += int64(n)
		done += n
		if err != nil {
			b.broken = err
			return done, err
		}
	}
	return done, nil
}

// growsBy is the unit in which a file takes from the room.
const growsBy = 1 << 20

// grow reserves room for n more bytes.
func (b *backlog) grow(n int64) error {
	if b.written-b.read+n > b.most {
		return errTooSlow
	}
	wants := min(b.written+n, b.most) - b.taken
	if wants <= 0 {
		return nil
	}
	wants = min((wants+growsBy-1)/growsBy*growsBy, b.most-b.taken)
	if err := b.room.take(b.of, wants); err != nil {
		return err
	}
	b.taken += wants
	return nil
}

// Read waits until there is data.
func (b *backlog) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.read == b.written && b.ended == nil {
		b.more.Wait()
	}
	if b.read == b.written {
		return 0, b.ended
	}
	at := b.read % b.most
	n, err := b.file.ReadAt(p[:min(int64(len(p)), b.written-b.read, b.most-at)], at)
	b.read += int64(n)
	if b.read == b.written { // caught up: others may have the room
		b.read, b.written = 0, 0
		err = errors.Join(err, b.file.Truncate(0))
		b.leave()
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("read back %d bytes: %w", len(p), io.ErrUnexpectedEOF)
	}
	return n, err
}

// end records that nothing more will be written.
func (b *backlog) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended = b.broken; b.ended == nil {
		b.ended = io.EOF
	}
	b.more.Broadcast()
}

func (b *backlog) leave() {
	b.room.bytes.give(b.of, b.taken)
	b.taken = 0
}

func (b *backlog) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave()
	return b.file.Close()
}

// from finds where the last n lines begin in the first size bytes of r. The last line need not be terminated.
func from(r io.ReaderAt, size int64, lines int) (int64, error) {
	switch {
	case lines < 0:
		return 0, nil
	case lines == 0:
		return size, nil
	}
	buf := make([]byte, 64<<10)
	for end := size; end > 0; {
		begin := max(0, end-int64(len(buf)))
		part := buf[:end-begin]
		if _, err := r.ReadAt(part, begin); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] != '\n' || begin+int64(i) == size-1 {
				continue
			}
			if lines--; lines == 0 {
				return begin + int64(i) + 1, nil
			}
		}
		end = begin
	}
	return 0, nil
}
