package output

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Room is how much of a volume is free, taken or wanted.
type Room struct{ Bytes, Files int64 }

// Plus is the sum of both.
func (r Room) Plus(other Room) Room { return Room{r.Bytes + other.Bytes, r.Files + other.Files} }

// Minus is what is left without other.
func (r Room) Minus(other Room) Room { return Room{r.Bytes - other.Bytes, r.Files - other.Files} }

// Holds reports whether other fits.
func (r Room) Holds(other Room) bool { return r.Bytes >= other.Bytes && r.Files >= other.Files }

// Volume is the free space for htcd, and the size, of the volume that holds dir.
func Volume(dir string) (free, size Room, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return Room{}, Room{}, fmt.Errorf("free space of %s: %w", dir, err)
	}
	free, size = roomOf(stat)
	return free, size, nil
}

// roomOf is the free space, and the size, that a file system reports. One that has no bound on files reports that there
// are none, or, as CephFS does, that more are free than there are: then there are a great many.
func roomOf(stat unix.Statfs_t) (free, size Room) {
	block := cmp.Or(stat.Frsize, stat.Bsize) // what it counts blocks in; Bsize is what to read at once
	// #nosec G115 -- no volume has 8 EiB, or as many files
	free = Room{int64(stat.Bavail) * block, int64(stat.Ffree)}
	size = Room{int64(stat.Blocks) * block, int64(stat.Files)} // #nosec G115
	if stat.Files == 0 || stat.Ffree > stat.Files || stat.Files > uncounted {
		free.Files, size.Files = uncounted, uncounted
	}
	return free, size
}

const uncounted = 1 << 40

// BoundsFiles reports whether a volume of that size has a bound on its files.
func (r Room) BoundsFiles() bool { return r.Files < uncounted }

// What output leaves free of a volume by default: a tenth, and no more than this.
const (
	mostKept      = 1 << 30
	mostFilesKept = 10_000
)

// Reserve is what output leaves free of a volume of that size: so many bytes, or with 0 a share of it. The same volume
// holds the ledger and files to be submitted.
func Reserve(bytes int64, size Room) Room {
	if bytes == 0 {
		bytes = min(size.Bytes/10, mostKept)
	}
	return Room{bytes, min(size.Files/10, mostFilesKept)}
}

// ReserveOfStaged is what files to be submitted leave free, where output leaves Reserve(bytes, size): half of it, and
// no more than half of what is the default. So output that has taken what it may leaves room for submissions, and both
// leave some for the ledger.
func ReserveOfStaged(bytes int64, size Room) Room {
	kept := Reserve(bytes, size)
	return Room{min(kept.Bytes, Reserve(0, size).Bytes) / 2, kept.Files / 2}
}

// NewShares returns the shares of the store's volume, of which output leaves so many bytes free, or with 0 a share of
// it.
func (s Store) NewShares(keepFree int64, now func() time.Time) *Shares {
	return &Shares{
		Volume:  s.Volume,
		Reserve: func(size Room) Room { return Reserve(keepFree, size) },
		Kept:    []string{s.Root},
		Now:     now,
	}
}

// Volume is the free space and the size of the store's volume.
func (s Store) Volume() (free, size Room, err error) {
	if err := os.MkdirAll(s.Root, 0o700); err != nil {
		return Room{}, Room{}, err
	}
	return Volume(s.Root)
}

// NoSpaceError: the volume has no room for something.
type NoSpaceError struct{ Message string }

func (e *NoSpaceError) Error() string { return e.Message }

// MoreRoom is what users can do about it.
const MoreRoom = "delete HTCJobs and HTCWorkflows whose output is no longer needed, or have the volume enlarged"

// Full reports whether an error comes from a full volume or an exhausted quota. HTCondor's tools and SQLite only give
// its words.
func Full(err error) bool {
	if err == nil || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return err != nil
	}
	return strings.Contains(err.Error(), "o space left on device") ||
		strings.Contains(err.Error(), "isk quota exceeded") ||
		strings.Contains(err.Error(), "database or disk is full")
}
