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

// backlog is what was written and not read yet, in a file without a name. Writing never waits for reading.
type backlog struct {
	file *os.File
	most int64 // bytes

	mu            sync.Mutex
	more          sync.Cond
	read, written int64
	ended         error // io.EOF, or why nothing more comes
}

func newBacklog(dir string, most int64) (*backlog, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, ".follow-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	b := &backlog{file: file, most: most}
	b.more.L = &b.mu
	return b, nil
}

func (b *backlog) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written-b.read+int64(len(p)) > b.most {
		return 0, errTooSlow
	}
	n, err := b.file.WriteAt(p, b.written)
	b.written += int64(n)
	b.more.Broadcast()
	return n, err
}

// Read waits until there is something.
func (b *backlog) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.read == b.written && b.ended == nil {
		b.more.Wait()
	}
	if b.read == b.written {
		return 0, b.ended
	}
	n, err := b.file.ReadAt(p[:min(int64(len(p)), b.written-b.read)], b.read)
	b.read += int64(n)
	if b.read == b.written { // caught up: the file need not grow for ever
		b.read, b.written = 0, 0
		err = errors.Join(err, b.file.Truncate(0))
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("read back %d bytes: %w", len(p), io.ErrUnexpectedEOF)
	}
	return n, err
}

// end says that nothing more will be written.
func (b *backlog) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended = err; err == nil {
		b.ended = io.EOF
	}
	b.more.Broadcast()
}

func (b *backlog) Close() error { return b.file.Close() }

// from is where the last so many lines begin in the first size bytes of r. A last line need not have an end.
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
