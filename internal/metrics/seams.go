package metrics

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/internal/kube/reconciler"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Schedd counts submissions to a schedd.
func (m *Metrics) Schedd(s backend.Schedd) backend.Schedd { return countedSchedd{s, m} }

type countedSchedd struct {
	backend.Schedd
	m *Metrics
}

func (s countedSchedd) Submit(ctx context.Context, id schedd.Identity, dir string) (condor.Cluster, error) {
	began := time.Now()
	cluster, err := s.Schedd.Submit(ctx, id, dir)
	s.m.submitTime.WithLabelValues().Observe(time.Since(began).Seconds())
	s.m.submissions.WithLabelValues(kindOf(err)).Inc()
	if err == nil {
		s.m.submitted.WithLabelValues().Add(float64(cluster.Procs))
	}
	return cluster, err
}

// Traced counts traces that a collector has taken, or that are lost.
func (m *Metrics) Traced(sent bool, traces int) {
	result := "Lost"
	if sent {
		result = ok
	}
	m.traces.WithLabelValues(result).Add(float64(traces))
}

// StatusWritten counts a write of a status.
func (m *Metrics) StatusWritten(err error) { m.statusWrites.WithLabelValues(statusResult(err)).Inc() }

// statusResult is the apiserver's reason if it is one of its own: an admission webhook may give any.
func statusResult(err error) string {
	switch {
	case err == nil:
		return ok
	case apierrors.IsForbidden(err):
		return "Forbidden"
	case apierrors.IsInvalid(err):
		return "Invalid"
	case apierrors.IsRequestEntityTooLargeError(err):
		return "TooLarge"
	case apierrors.IsConflict(err):
		return "Conflict"
	case apierrors.IsNotFound(err):
		return "NotFound"
	}
	return failed
}

// Ledger counts writes of a ledger.
func (m *Metrics) Ledger(book reconciler.Ledger) reconciler.Ledger { return countedLedger{book, m} }

type countedLedger struct {
	reconciler.Ledger
	m *Metrics
}

func (l countedLedger) Write(ctx context.Context, fn func(*ledger.Tx) error) error {
	began := time.Now()
	err := l.Ledger.Write(ctx, fn)
	l.m.writeTime.WithLabelValues().Observe(time.Since(began).Seconds())
	l.m.writes.WithLabelValues(writeResult(err)).Inc()
	return err
}

// writeResult distinguishes trouble with the ledger from an error of the transaction's own function.
func writeResult(err error) string {
	switch {
	case err == nil:
		return ok
	case errors.Is(err, ledger.ErrCorrupt), errors.Is(err, ledger.ErrLost):
		return "Damaged"
	case ledger.IsUnavailable(err):
		return "Unavailable"
	case errors.Is(err, context.DeadlineExceeded):
		return "TimedOut"
	}
	return "Rejected"
}
