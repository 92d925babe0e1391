package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/lab/root"
)

// condorTools lists the HTCondor commands that a lab offers; "lab as" runs any other.
var condorTools = []string{
	"condor_q", "condor_history", "condor_rm", "condor_hold", "condor_release", "condor_submit", "condor_status",
	"condor_qedit", "condor_transfer_data",
}

// wrapped is the program under the name of one of the lab's commands.
func wrapped(l *lab.Lab, name string, args []string) (int, error) {
	switch {
	case name == "kubectl", name == "helm":
		return administrator(l, name, args)
	case name == pluginName, name == "htcd" && isOfUsers(args):
		return user(l, name, args)
	case name == "htcd":
		return htcd(l, args)
	case name == "sqlite3":
		return as(l, "root", true, name, args)
	// People who try something want it to be like htcd's jobs.
	case name == "condor_submit":
		return as(l, "robot", true, name, args)
	// As root, HTCondor's tools would look for a daemon's keytab instead of a ticket.
	case slices.Contains(condorTools, name):
		return as(l, "admin", true, name, args)
	}
	return 1, fmt.Errorf("no command %q", name)
}

// pluginName is what kubectl finds htcd by when a user says "kubectl htcjob".
const pluginName = "kubectl-htcjob"

// userCommands are those of htcd that know nothing of the operator. They run on the host, where the user's files are.
var userCommands = []string{
	"submit",
	"convert",
	"status",
	"wait",
	"list",
	"cancel",
	"rerun",
	"delete",
	"completion",
	"__complete",
	"logs",
	"top",
	"exec",
	"port-forward",
	"get-output",
	"nodes",
	"graph",
	"history",
	"upload",
	"ui",
	"sync-secret",
}

// isOfUsers reports whether a command of users is meant, which may stand behind flags, as in htcd -n physics list.
func isOfUsers(args []string) bool {
	if len(args) == 0 || !strings.HasPrefix(args[0], "-") {
		args = args[:min(1, len(args))]
	}
	return slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(userCommands, arg) })
}

// user runs users' commands, with their own kubeconfig if they have one, else the administrator's.
func user(l *lab.Lab, name string, args []string) (int, error) {
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		kubeconfig = l.Kubeconfig()
	}
	return onHost(l, kubeconfig, l.Path("htcd", "bin", "htcd"), name, args)
}

// administrator runs kubectl, or the helm of a lab with a node, which are always the administrator's.
func administrator(l *lab.Lab, name string, args []string) (int, error) {
	text, err := os.ReadFile(l.Path("programs.json"))
	if err != nil {
		return 1, err
	}
	var programs map[string]string
	if err := json.Unmarshal(text, &programs); err != nil {
		return 1, err
	}
	if programs[name] == "" {
		return 1, fmt.Errorf("a lab without a node has no %s", name)
	}
	return onHost(l, l.Kubeconfig(), programs[name], name, args)
}

// onHost runs a program in the lab's network, but with the host's files.
func onHost(l *lab.Lab, kubeconfig, program, name string, args []string) (int, error) {
	id, err := l.Identity()
	if err != nil {
		return 1, fmt.Errorf("lab %s: %w", l.Dir, err)
	}
	// The program executed next gets the network of this thread.
	runtime.LockOSThread()
	if err := root.JoinNetwork(id.Init); err != nil {
		return 1, err
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "KUBECONFIG=") || strings.HasPrefix(v, "PATH=")
	})
	env = append(env, "KUBECONFIG="+kubeconfig, "PATH="+l.Path("bin")+":"+os.Getenv("PATH")) // for kubectl's plugins
	return 1, syscall.Exec(program, append([]string{name}, args...), env)
}

// htcd runs htcd like the running one: with the same account and configuration, or in the same pod.
func htcd(l *lab.Lab, args []string) (int, error) {
	world, err := parts.Open(l)
	if err != nil {
		return 1, err
	}
	if world.Node != nil {
		return administrator(
			l,
			"kubectl",
			append([]string{"-n", parts.PodNamespace, "exec", "deploy/htcd", "--", "htcd"}, args...),
		)
	}
	env := append([]string{"PATH=" + root.Path, "LANG=C.UTF-8", "HOME=/nonexistent"}, parts.HTCdEnv(world)...)
	return enter(l, "htcd", false, env, l.Path("htcd", "bin", "htcd"), args)
}

// as runs a program of the Debian root as one of its accounts, optionally with access to everybody's files, since
// people call the lab's commands in their own directories.
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
