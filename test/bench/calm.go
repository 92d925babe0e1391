package main

import (
	"errors"
	"os"
	"syscall"
)

// calm has HTCondor's daemons look through the queue as rarely as they do by default, until restore is called. The lab's own intervals suit
// tests with few jobs: with 90,000 in the queue, the schedd did nothing else, and DAGMan could send 4 a second.
func (p *place) calm() (restore func() error, err error) {
	file := p.lab.Path("condor", "server.conf")
	was, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	usual := "\nSCHEDD_INTERVAL = 300\nSCHEDD_MIN_INTERVAL = 5\nNEGOTIATOR_INTERVAL = 60\nNEGOTIATOR_MIN_INTERVAL = 5\nNEGOTIATOR_CYCLE_DELAY = 20\n" +
		"PERIODIC_EXPR_INTERVAL = 60\nPERIODIC_EXPR_TIMESLICE = 0.01\n"
	set := func(config []byte) error {
		if err := os.WriteFile(file, config, 0o644); err != nil {
			return err
		}
		return reconfigure()
	}
	return func() error { return set(was) }, set(append(was[:len(was):len(was)], usual...))
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
