package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrNotRunning says that the lab is down.
var ErrNotRunning = errors.New("not running")

// Identity says which processes are this lab's. A pid alone could have been reused since.
type Identity struct {
	// Init is the host's pid of the first process of the lab's pid namespace.
	Init int `json:"init"`
	// Started is the start time of Init in clock ticks since boot, field 22 of proc_pid_stat(5).
	Started string `json:"started"`
	// Fingerprint is that of the lab program that runs it.
	Fingerprint string `json:"fingerprint"`
	// Clone is the directory of the sources that htcd is built from.
	Clone string `json:"clone"`
	// Node says that htcd is a pod on the lab's node, which is in its own network.
	Node bool `json:"node,omitempty"`
	// Condor is the major version of its HTCondor.
	Condor string `json:"condor"`
}

// Identity returns ErrNotRunning unless the recorded process still lives.
func (l *Lab) Identity() (Identity, error) {
	var id Identity
	data, err := os.ReadFile(l.identityFile())
	if errors.Is(err, os.ErrNotExist) {
		return id, ErrNotRunning
	}
	if err != nil {
		return id, err
	}
	if json.Unmarshal(data, &id) != nil {
		// It is written as a whole: the machine has crashed since, and the lab with it.
		return Identity{}, ErrNotRunning
	}
	started, err := StartTime(id.Init)
	if err != nil || started != id.Started {
		return id, ErrNotRunning
	}
	return id, nil
}

// SetIdentity records the processes of a lab that has just been started.
func (l *Lab) SetIdentity(id Identity) error {
	data, err := json.Marshal(id)
	if err != nil {
		return err
	}
	tmp := l.identityFile() + ".new"
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, l.identityFile())
}

func (l *Lab) identityFile() string { return l.Path("run", "lab.json") }

// StartTime returns field 22 of /proc/PID/stat; a zombie counts as gone.
func StartTime(pid int) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is the command in parentheses and may contain anything, including blanks and parentheses.
	rest := string(data)
	rest = rest[strings.LastIndexByte(rest, ')')+1:]
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", ErrNotRunning
	}
	return fields[19], nil
}
