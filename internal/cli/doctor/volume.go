package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
	_ "modernc.org/sqlite" // the driver "sqlite"

	outputs "htc.cern.ch/htcd/internal/output"
)

// Volume is where the ledger and jobs' output are.
type Volume struct {
	Data     string
	Ledger   string   // the file
	Further  []string // what else htcd writes there, if it exists
	KeepFree int64    // bytes; 0: see output.Reserve
}

// sqliteLocked is the first of the bytes that SQLite locks in a file (PENDING_BYTE), and how many there are
// (https://www.sqlite.org/fileformat.html, 1.3.14 and os.h).
const (
	sqliteLocked = 0x40000000
	sqliteLocks  = 512
)

// volume creates a database beside the ledger, locks it, and checks that the lock is seen through another open file, as
// another process would see it. It does not touch the ledger: closing a file releases all of its process's locks on it.
func volume(v Volume) Check {
	return Check{Name: "volume", Try: func(ctx context.Context) (string, error) {
		dir, err := nearest(filepath.Dir(v.Ledger))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", unwritten(dir, err)
		}
		if err != nil {
			return "", &Trouble{
				"the ledger's directory " + filepath.Dir(v.Ledger) + " does not exist: " + err.Error(),
				"mount the volume of --data (deploy/base/manager/pvc.yaml)",
			}
		}
		probe, err := os.MkdirTemp(dir, ".doctor-")
		if err != nil {
			return "", unwritten(dir, err)
		}
		defer os.RemoveAll(probe)
		if err := writable(probe); err != nil {
			return "", unwritten(dir, err)
		}
		if err := locks(ctx, filepath.Join(probe, "probe.db")); err != nil {
			return "", err
		}
		for _, path := range append([]string{v.Ledger}, v.Further...) {
			if err := unix.Access(path, unix.R_OK|unix.W_OK); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", unwritten(path, err)
			}
		}
		free, err := room(v.Data, v.KeepFree)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s can be written, keeps locks, and has %s free", dir, free), nil
	}}
}

// nearest is the directory, or its nearest existing parent: htcd creates the rest at its first start.
func nearest(dir string) (string, error) {
	for range 2 { // the volume itself must exist
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			return dir, err
		}
		dir = filepath.Dir(dir)
	}
	_, err := os.Stat(dir)
	return dir, err
}

func locks(ctx context.Context, file string) error {
	const do = "use a volume whose file system keeps POSIX locks: CephFS, a local disk, NFS 4; not an object store or NFS with nolock"
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?_pragma=synchronous(FULL)")
	if err != nil {
		return err
	}
	defer db.Close()
	first, err := db.Conn(ctx)
	if err == nil {
		defer first.Close()
		_, err = first.ExecContext(ctx, "CREATE TABLE probe (n); BEGIN IMMEDIATE; INSERT INTO probe VALUES (1)")
	}
	if outputs.Full(err) {
		return unwritten(filepath.Dir(filepath.Dir(file)), err)
	}
	if err != nil {
		return &Trouble{"SQLite cannot write there: " + err.Error(), do}
	}
	second, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer second.Close()
	if _, err := second.ExecContext(ctx, "BEGIN IMMEDIATE"); err == nil {
		return &Trouble{"two connections got SQLite's write lock at once", do}
	}
	seen, err := lockSeen(file)
	if err != nil || !seen {
		return &Trouble{fmt.Sprintf("a lock is not seen through another open file (%v)", err), do}
	}
	if _, err := first.ExecContext(ctx, "COMMIT; BEGIN IMMEDIATE; ROLLBACK"); err != nil {
		return &Trouble{"SQLite cannot commit there: " + err.Error(), do}
	}
	return nil
}

// lockSeen asks with a lock of its own open file (fcntl(2), "Open file description locks"), which conflicts with those
// of the process as those of another process do.
func lockSeen(file string) (bool, error) {
	f, err := os.Open(file) // #nosec G304 -- the probe
	if err != nil {
		return false, err
	}
	defer f.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: sqliteLocked, Len: sqliteLocks}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock)
	return err == nil && lock.Type != unix.F_UNLCK, err
}

// room is the free space of the volume.
func room(dir string, keep int64) (string, error) {
	free, size, err := outputs.Volume(dir)
	if err != nil {
		return "", &Trouble{"--data: " + err.Error(), "mount the volume there"}
	}
	reserve := outputs.Reserve(keep, size)
	words := resource.NewQuantity(free.Bytes>>20<<20, resource.BinarySI).String()
	if free.Bytes < reserve.Bytes {
		return "", &Trouble{
			fmt.Sprintf(
				"%s has %s free, less than --keep-free=%s: no output is fetched",
				dir,
				words,
				resource.NewQuantity(reserve.Bytes>>20<<20, resource.BinarySI),
			),
			moreRoom,
		}
	}
	if free.Files < reserve.Files {
		return "", &Trouble{
			fmt.Sprintf(
				"%s has room for %d more files, and %d stay free: no output is fetched",
				dir,
				free.Files,
				reserve.Files,
			),
			moreRoom,
		}
	}
	return words, nil
}
