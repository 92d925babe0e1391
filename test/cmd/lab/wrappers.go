package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/lab/root"
)

// condorTools are those of HTCondor's commands that a lab offers; "lab as" runs any other.
var condorTools = []string{
	"condor_q", "condor_history", "condor_rm", "condor_hold", "condor_release", "condor_submit", "condor_status",
	"condor_qedit", "condor_transfer_data",
}

// wrapped is the program under the name of one of the lab's commands.
func wrapped(l *lab.Lab, name string, args []string) (int, error) {
	switch {
	case name == "kubectl":
		return kubectl(l, args)
	case name == "htcd":
		return htcd(l, args)
	case name == "sqlite3":
		return as(l, "root", true, name, args)
	// People who try something want it to be like htcd's jobs.
	case name == "condor_submit":
		return as(l, "robot", true, name, args)
	// As root, HTCondor's tools would not look at a ticket but for the keytab of a daemon.
	case slices.Contains(condorTools, name):
		return as(l, "admin", true, name, args)
	}
	return 1, fmt.Errorf("no command %q", name)
}

// kubectl runs on the host, where the files are that it is to apply.
func kubectl(l *lab.Lab, args []string) (int, error) {
	text, err := os.ReadFile(l.Path("programs.json"))
	if err != nil {
		return 1, err
	}
	var programs map[string]string
	if err := json.Unmarshal(text, &programs); err != nil {
		return 1, err
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KUBECONFIG=") })
	env = append(env, "KUBECONFIG="+l.Kubeconfig())
	return 1, syscall.Exec(programs["kubectl"], append([]string{"kubectl"}, args...), env)
}

// htcd runs as the running one does: same account, same configuration.
func htcd(l *lab.Lab, args []string) (int, error) {
	world, err := parts.Open(l)
	if err != nil {
		return 1, err
	}
	env := append([]string{"PATH=" + root.Path, "LANG=C.UTF-8", "HOME=/nonexistent"}, parts.HTCdEnv(world)...)
	return enter(l, "htcd", false, env, l.Path("htcd", "bin", "htcd"), args)
}

// as runs a program of the Debian root as an account of it, which may be let at the files of everybody, since people
// call the lab's commands in directories of their own.
func as(l *lab.Lab, account string, anyFile bool, name string, args []string) (int, error) {
	return enter(l, account, anyFile, parts.Environment(l, account), name, args)
}

func enter(l *lab.Lab, account string, anyFile bool, env []string, name string, args []string) (int, error) {
	id, err := l.Identity()
	if err != nil {
		return 1, fmt.Errorf("lab %s: %w", l.Dir, err)
	}
	uid, gid, err := root.Account(id.Init, account)
	if err != nil {
		return 1, err
	}
	return root.Enter(id.Init, root.Person{UID: uid, GID: gid, AnyFile: anyFile}, env, l.Dir, name, args...)
}
