package uploads

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/output"
)

// Append adds a body to an upload that was begun, at its end, which is the offset. What has come is kept, also if the
// body breaks off. With the last byte the upload is whole, or is dropped if its content has another digest.
func (s *Store) Append(ctx context.Context, namespace, name string, offset int64, body io.Reader) (Upload, error) {
	at, digest, err := s.locate(namespace, name)
	if err != nil {
		return Upload{}, err
	}
	p, u, err := s.take(at, digest, offset)
	if err != nil || p == nil {
		return u, err
	}
	defer func() {
		at.mu.Lock()
		defer at.mu.Unlock()
		p.busy = false
	}()
	f, err := os.OpenFile(
		filepath.Join(at.dir, p.name),
		os.O_RDWR|os.O_APPEND,
		0o600,
	) // #nosec G304 -- of checked names
	if err != nil {
		return u, err
	}
	defer f.Close()
	if err := p.catchUp(f, offset); err != nil {
		return u, err
	}
	err = s.write(ctx, namespace, p, f, body)
	if u.Offset, err = p.keep(f, err); err != nil {
		return u, noRoom(err)
	}
	if u.Changed = s.Now(); u.Offset < p.size {
		return u, nil
	}
	u.Whole = true
	return u, s.finish(at, digest, p, f)
}

// take marks an unfinished upload as being written; nil if it is whole.
func (s *Store) take(at *space, digest string, offset int64) (*part, Upload, error) {
	at.mu.Lock()
	defer at.mu.Unlock()
	u, err := s.stands(at, digest)
	p := at.parts[digest]
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, u, refuse(
			http.StatusNotFound,
			metav1.StatusReasonNotFound,
			"upload %s was not begun: say its size first",
			u.Name,
		)
	case err != nil || u.Whole:
		return nil, u, err
	case p.busy:
		return nil, u, busy(u.Name)
	case u.Offset != offset:
		return nil, u, refuse(
			http.StatusConflict,
			metav1.StatusReasonConflict,
			"upload %s has %d bytes: go on there, and not at %d",
			u.Name,
			u.Offset,
			offset,
		)
	}
	p.busy = true
	return p, u, nil
}

// catchUp reads what was written before, unless its digest is known.
func (p *part) catchUp(f *os.File, offset int64) error {
	if p.sum != nil && p.summed == offset {
		return nil
	}
	p.sum, p.summed = sha256.New(), 0
	n, err := io.Copy(p.sum, io.NewSectionReader(f, 0, offset))
	if p.summed = n; err == nil && n != offset {
		err = fmt.Errorf("upload: expected %d bytes, found %d", offset, n)
	}
	return err
}

// write adds the body to the file, while the volume has room.
func (s *Store) write(ctx context.Context, namespace string, p *part, f *os.File, body io.Reader) error {
	left := p.size - p.summed
	booking, err := s.book(namespace, left)
	if err != nil {
		return err
	}
	defer func() {
		booking.Keep(output.Room{Bytes: left - (p.size - p.summed)})
		booking.Leave()
	}()
	return booking.Guarded(ctx, func(ctx context.Context) error {
		limited := io.LimitReader(output.WhileNeeded(ctx, body), left+1)
		buffer := make([]byte, 128<<10)
		for {
			n, err := limited.Read(buffer)
			more := int64(n) > p.size-p.summed
			n = int(min(int64(n), p.size-p.summed))
			if _, err := f.Write(buffer[:n]); err != nil {
				p.sum = nil // it may be there in part
				return err
			}
			p.sum.Write(buffer[:n])
			p.summed += int64(n)
			switch {
			case more:
				return apierrors.NewBadRequest(
					fmt.Sprintf("the body goes on after the %d bytes that the upload has", p.size),
				)
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
		}
	})
}

// keep returns how much is on disk, after a write that perhaps failed.
func (p *part) keep(f *os.File, failed error) (int64, error) {
	info, err := f.Stat()
	if err = errors.Join(err, f.Sync()); err != nil {
		p.sum = nil
		return 0, errors.Join(failed, err)
	}
	return info.Size(), failed
}

// finish makes an upload whole.
func (s *Store) finish(at *space, digest string, p *part, f *os.File) error {
	at.mu.Lock()
	defer at.mu.Unlock()
	path := filepath.Join(at.dir, p.name)
	if sum := fmt.Sprintf("%x", p.sum.Sum(nil)); sum != digest {
		at.forget(digest)
		return errors.Join(
			os.Remove(path),
			invalid(
				"the %d bytes that came have the digest %s%s, and not %s: upload the file again, and leave it alone meanwhile",
				p.size,
				Prefix,
				sum,
				digest,
			),
		)
	}
	// Jobs get it as a link, with this mode. Nobody else reaches it: the directory is htcd's.
	if err := errors.Join(f.Chmod(0o644), f.Sync()); err != nil {
		return err
	}
	if err := os.Rename(path, filepath.Join(at.dir, digest)); err != nil {
		return err
	}
	delete(at.parts, digest)
	return output.SyncDir(at.dir)
}
