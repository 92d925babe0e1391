package doctor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	outputs "htc.cern.ch/htcd/internal/output"
)

// probed is how much is written to see whether the volume has room: more than the database that is tried next.
const probed = 256 << 10

// writable writes a file into dir and syncs it to disk.
func writable(dir string) error {
	f, err := os.OpenFile(
		filepath.Join(dir, "probe"),
		os.O_CREATE|os.O_WRONLY|os.O_EXCL,
		0o600,
	) // #nosec G304 -- a directory of our own
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probed))
	return errors.Join(err, f.Sync(), f.Close())
}

// unwritten explains what keeps dir from being written.
func unwritten(dir string, err error) *Trouble {
	const owner = "let uid %d own the volume: by fsGroup of the pod for a new one, by chown -R for one that another uid has used (docs/upgrade.md, Another uid)"
	switch {
	case outputs.Full(err):
		return &Trouble{fmt.Sprintf("the volume of %s is full, %s: %v", dir, left(dir), err), moreRoom}
	case errors.Is(err, unix.EROFS):
		return &Trouble{dir + " cannot be written: " + err.Error(), "mount the volume so that it can be written"}
	}
	return &Trouble{dir + " cannot be written: " + err.Error(), fmt.Sprintf(owner, os.Getuid())}
}

// left describes the free space on dir's volume.
func left(dir string) string {
	free, size, err := outputs.Volume(dir)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d KiB of %d MiB and %d files are free", free.Bytes>>10, size.Bytes>>20, free.Files)
}

const moreRoom = "delete HTCJobs whose output is not needed, or enlarge the volume (or the quota)"
