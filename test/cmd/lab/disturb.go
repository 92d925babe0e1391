package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"htc.cern.ch/htcd/test/lab"
)

func disturb(ctx context.Context, l *lab.Lab, op string, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("lab %s: which part?", op)
	}
	part, extra := args[0], args[1:]
	if len(extra) > 0 && extra[0] == "--" {
		extra = extra[1:]
	}
	if len(extra) > 0 && op != lab.OpRestart {
		return fmt.Errorf("lab %s takes one part", op)
	}
	_, err := l.Ask(ctx, lab.Request{Op: op, Part: part, Args: extra}, nil)
	return err
}

func status(ctx context.Context, l *lab.Lab) error {
	id, err := l.Identity()
	if err != nil {
		return fmt.Errorf("lab %s: %w", l.Dir, err)
	}
	event, err := l.Ask(ctx, lab.Request{Op: lab.OpStatus}, nil)
	if err != nil {
		return err
	}
	condor, err := condorVersion(ctx, l)
	if err != nil {
		return err
	}
	fmt.Printf("HTCondor %s\n", condor)
	outside := hostPids(id.Init)
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "PART\tPID\tPORT\tSTATE\tLOG")
	for _, p := range event.Parts {
		pid := "-"
		if host, ok := outside[p.Pid]; ok {
			pid = strconv.Itoa(host)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", p.Part, pid, p.Port, p.State, p.Log)
	}
	return table.Flush()
}

// condorVersion returns the version of the lab's HTCondor, such as 23.9.6.
func condorVersion(ctx context.Context, l *lab.Lab) (string, error) {
	out, err := l.RunAs(ctx, "admin", "condor_version")
	if err != nil {
		return "", err
	}
	words := strings.Fields(out) // $CondorVersion: 23.9.6 2026-07-12 ...
	if len(words) < 2 {
		return "", fmt.Errorf("condor_version said %q", out)
	}
	return words[1], nil
}

// hostPids maps pids in the namespace of init to the host's pids.
func hostPids(init int) map[int]int {
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", init))
	if err != nil {
		return nil
	}
	entries, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return nil
	}
	pids := map[int]int{}
	for _, entry := range entries {
		link, err := os.Readlink(filepath.Join(filepath.Dir(entry), "ns", "pid"))
		if err != nil || link != namespace {
			continue
		}
		text, err := os.ReadFile(entry)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			// NSpid: the pid in each namespace, outermost first.
			if f := strings.Fields(line); len(f) > 2 && f[0] == "NSpid:" {
				outer, _ := strconv.Atoi(f[1])
				inner, _ := strconv.Atoi(f[len(f)-1])
				pids[inner] = outer
			}
		}
	}
	return pids
}

func logs(l *lab.Lab, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("lab logs: which part?")
	}
	file := l.Log(args[0])
	if args[0] == "schedd" {
		file = l.Path("log", "condor", "SchedLog")
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(os.Stdout, f)
	return err
}
