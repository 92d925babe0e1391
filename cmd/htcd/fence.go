package main

import (
	"context"
	"errors"

	"k8s.io/client-go/tools/leaderelection"

	"htc.cern.ch/htcd/internal/kube"
	"htc.cern.ch/htcd/internal/schedd"
)

// fencedSchedd sends nothing without being sure of the Lease. A leader that was asleep (a frozen container, a machine
// without CPU) wakes up in the middle of whatever it was doing and learns only a moment later that the Lease has
// run out: by then another htcd may have found the intent, asked the schedd twice, and sent it. Everything else that
// it might still do goes through the ledger's transactions, or removes what is to be removed anyway.
//
// What is left is the time from this look to condor_submit's connection, a few milliseconds in which the process would
// have to fall asleep for longer than the Lease lasts.
type fencedSchedd struct {
	kube.Schedd
	sure func() error
}

func (f fencedSchedd) Submit(ctx context.Context, id schedd.Identity, dir string) (schedd.Cluster, error) {
	if err := f.sure(); err != nil {
		return schedd.Cluster{}, err
	}
	return f.Schedd.Submit(ctx, id, dir)
}

var errUnsure = errors.New("nothing is sent: the lease has not been renewed for too long, another htcd may be at work")

// sureOf tells whether the Lease was renewed so lately that nobody else can have it.
func sureOf(elector *leaderelection.LeaderElector) func() error {
	return func() error {
		if !elector.IsLeader() || elector.Check(renewDeadline-leaseDuration) != nil {
			return errUnsure
		}
		return nil
	}
}
