package reconciler

import (
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/recovery"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/backend"
)

// Shared is what the kinds have in common besides the ledger: at a schedd's limit one object of them all asks, not one
// of each kind.
type Shared struct {
	Answering *backend.Answering // HTCondor as all ask it
	Chooser   *backend.Chooser
	Several   *backend.Several
	Limits    backend.Limits
	Tries     recovery.Tries
	Absences  recovery.Absences
	Mirrors   func(schedd.Endpoint) crosscheck.Mirror // see crosscheck.Checker

	turned []func(endpoint schedd.Endpoint, answers bool)
	passed []func()
}

// NewShared returns what the kinds share. most is the most that a schedd is asked; the zero value: no bound.
func NewShared(
	condor backend.Schedd, credentials backend.Credentials, book Ledger, most backend.Pace, now func() time.Time,
) *Shared {
	s := &Shared{}
	s.Answering = &backend.Answering{Schedd: condor, Now: now, Any: credentials.Any, Most: most}
	s.Answering.Turned = func(endpoint schedd.Endpoint, answers bool) {
		for _, turned := range s.turned {
			turned(endpoint, answers)
		}
	}
	s.Limits.Passed = func() {
		for _, passed := range s.passed {
			passed()
		}
	}
	s.Chooser = &backend.Chooser{Schedd: s.Answering, Credentials: credentials}
	s.Several = &backend.Several{
		Schedd: s.Answering, Credentials: credentials, Limits: &s.Limits, Open: backend.OpenJobs(book), Now: now,
	}
	return s
}

// OnTurned has a function called when a schedd begins or stops answering. It is called before anything is asked.
func (s *Shared) OnTurned(turned func(endpoint schedd.Endpoint, answers bool)) {
	s.turned = append(s.turned, turned)
}

// OnPassed has a function called when a schedd has taken a submission.
func (s *Shared) OnPassed(passed func()) { s.passed = append(s.passed, passed) }
