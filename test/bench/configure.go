package main

import (
	"errors"
	"os"
	"syscall"
)

// raised are the limits of HTCondor that rows of the bench need to be higher than by default, 100,000 and 20,000.
const raised = "\nMAX_JOBS_PER_OWNER = 400000\nMAX_JOBS_PER_SUBMISSION = 100000\n"

// calm has HTCondor's daemons look through the queue as rarely as they do by default. The lab's own intervals suit
// tests with few jobs: with 90,000 in the queue, the schedd did nothing else, and DAGMan could send 4 a second.
const calm = "\nSCHEDD_INTERVAL = 300\nSCHEDD_MIN_INTERVAL = 5\nNEGOTIATOR_INTERVAL = 60\nNEGOTIATOR_MIN_INTERVAL = 5\n" +
	"NEGOTIATOR_CYCLE_DELAY = 20\nPERIODIC_EXPR_INTERVAL = 60\nPERIODIC_EXPR_TIMESLICE = 0.01\n"

// configure adds lines to the configuration of the lab's HTCondor until restore is called.
func (p *place) configure(lines string) (restore func() error, err error) {
	file := p.lab.Path("condor", "server.conf")
	was, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	set := func(config []byte) error {
		// HTCondor may read it at any moment, and without its configuration it ends.
		if err := errors.Join(os.WriteFile(file+".new", config, 0o644), os.Rename(file+".new", file)); err != nil {
			return err
		}
		return reconfigure()
	}
	return func() error { return set(was) }, set(append(was[:len(was):len(was)], lines...))
}

// reconfigure has the lab's HTCondor read its configuration again.
func reconfigure() error {
	all, err := programs()
	if err != nil {
		return err
	}
	for pid, name := range all {
		if name == "condor_master" {
			return syscall.Kill(pid, syscall.SIGHUP)
		}
	}
	return errors.New("no condor_master runs")
}
