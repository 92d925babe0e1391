package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Lab is one lab, running or not, known by its directory.
type Lab struct {
	// Dir is absolute and free of symbolic links: it is seen under the same path inside the Debian root.
	Dir string
}

// Open returns the lab in dir, which need not exist yet.
func Open(dir string) (*Lab, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if resolved, err := filepath.EvalSymlinks(abs); err == nil {
		abs = resolved
	} else if parent, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		abs = filepath.Join(parent, filepath.Base(abs))
	}
	return &Lab{Dir: abs}, nil
}

// Find returns the running lab that the environment names: HTCD_LAB (set by the lab's env file), else LAB, else
// .lab in the clone around the current directory.
func Find() (*Lab, error) {
	dir := os.Getenv("HTCD_LAB")
	if dir == "" {
		dir = os.Getenv("LAB")
	}
	if dir == "" {
		clone, err := CloneAround(".")
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(clone, ".lab")
	}
	l, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if _, err := l.Identity(); err != nil {
		return nil, fmt.Errorf("lab %s: %w", l.Dir, err)
	}
	return l, nil
}

// CloneAround returns the directory of htcd's sources that dir lies in.
func CloneAround(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for d := abs; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "test", "cmd", "lab")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", errors.New("no clone of htcd around " + abs)
		}
	}
}

// Path joins names below the lab's directory.
func (l *Lab) Path(names ...string) string {
	return filepath.Join(append([]string{l.Dir}, names...)...)
}

// Bin returns the path of one of the lab's commands, such as kubectl or condor_q.
func (l *Lab) Bin(name string) string { return l.Path("bin", name) }

// Log returns the log file of a part.
func (l *Lab) Log(part string) string { return l.Path("log", part+".log") }

// Kubeconfig returns the administrator's kubeconfig.
func (l *Lab) Kubeconfig() string { return l.Path("kube", "admin.kubeconfig") }

// Cgroup returns the name of the cgroup that a node's pods are in.
func (l *Lab) Cgroup() string {
	sum := sha256.Sum256([]byte(l.Dir))
	return "htcd-lab-" + hex.EncodeToString(sum[:4])
}

// Ledger returns htcd's SQLite file.
func (l *Lab) Ledger() string { return l.Path("htcd", "data", "sqlite", "htcjobs.db") }

// Fingerprint distinguishes builds of the lab's own program.
func (l *Lab) Fingerprint() (string, error) { return fingerprint(l.Bin("lab")) }

func fingerprint(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}
