package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pinned measures submits with HTCondor's daemons and tools on one core and everything else, htcd included, on another:
// neither half can take time from the other. The floor's tools run on the same core.
func pinned(ctx context.Context, p *place, n int) (figures []figure, err error) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, err
	}
	var cores []int
	for core := range 64 * len(all) {
		if all.IsSet(core) {
			cores = append(cores, core)
		}
	}
	if len(cores) < 2 {
		return nil, errors.New("it needs two cores")
	}
	bin, err := p.dir("robot", "bin")
	if err != nil {
		return nil, err
	}
	tools, err := filepath.Glob(p.lab.Path("bin", "condor_*"))
	if err != nil {
		return nil, err
	}
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		return nil, err
	}
	for _, tool := range tools {
		name := filepath.Base(tool)
		program, err := exec.LookPath(name) // HTCondor's own: here we are in the lab
		if err != nil {
			return nil, err
		}
		script := fmt.Sprintf("#!/bin/sh\nexec %s -c %d %s \"$@\"\n", taskset, cores[0], program)
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			return nil, err
		}
	}
	path := os.Getenv("PATH")
	if err := os.Setenv("PATH", bin+":"+path); err != nil {
		return nil, err
	}
	var condor, others unix.CPUSet
	condor.Set(cores[0])
	others.Set(cores[1])
	defer func() { err = errors.Join(err, os.Setenv("PATH", path), pin(&all, &all)) }()
	if err := pin(&condor, &others); err != nil {
		return nil, err
	}
	figures, err = submits(ctx, p, n)
	for i := range figures {
		figures[i].aim = "0.95"
	}
	return figures, err
}

// pin has HTCondor's daemons run on some cores and all other processes of the lab on others. What they start inherits
// it.
func pin(condor, others *unix.CPUSet) error {
	all, err := programs()
	if err != nil {
		return err
	}
	for pid, name := range all {
		cores := others
		if strings.HasPrefix(name, "condor_") {
			cores = condor
		}
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			continue // it has ended
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err == nil {
				err = unix.SchedSetaffinity(id, cores)
			}
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("the cores of %s: %w", name, err)
			}
		}
	}
	return nil
}

// programs returns the names of all processes of the lab, which has its own /proc, by pid.
func programs() (map[int]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, err
	}
	all := map[int]string{}
	for _, file := range files {
		name, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		all[pid] = strings.TrimSpace(string(name))
	}
	return all, nil
}
