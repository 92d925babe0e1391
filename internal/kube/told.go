package kube

import (
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/schedd"
)

// Told hears what happens, so that somebody can count it. Its fields may be nil; none may wait for anything.
type Told struct {
	// Repaired: something was put right that went on unseen, or was broken off.
	Repaired func(crosscheck.Repair)
	// Passed: one pass over the runs at a place, a cross-check or a refresh, has ended.
	Passed func(pass string, place schedd.Place, took time.Duration, err error)
	// Unread: the ads of so many jobs could not be had or read.
	Unread func(jobs int)
	// Fetched: the output of so many procs is here.
	Fetched func(procs int, bytes int64)
	// GaveUp: the output of so many procs cannot be had.
	GaveUp func(procs int)
	// FetchFailed: a fetch has failed and is tried again.
	FetchFailed func(reason string)
}

func (t Told) repaired(kind crosscheck.Repair) {
	if t.Repaired != nil {
		t.Repaired(kind)
	}
}

func (t Told) passed(pass string, place schedd.Place, took time.Duration, err error) {
	if t.Passed != nil {
		t.Passed(pass, place, took, err)
	}
}

func (t Told) unread(jobs int) {
	if t.Unread != nil {
		t.Unread(jobs)
	}
}

func (t Told) fetched(procs int, bytes int64) {
	if t.Fetched != nil {
		t.Fetched(procs, bytes)
	}
}

func (t Told) gaveUp(procs int) {
	if t.GaveUp != nil {
		t.GaveUp(procs)
	}
}

func (t Told) fetchFailed(reason string) {
	if t.FetchFailed != nil {
		t.FetchFailed(reason)
	}
}
