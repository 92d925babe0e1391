package backend

import (
	"errors"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Trouble is what a command's error means for whoever waits for it.
type Trouble struct {
	With     Part
	Reason   string // fit for a condition
	Message  string
	Endpoint schedd.Endpoint // the one that does not answer
}

// Part is the part that causes the trouble.
type Part int

// The parts that a command needs.
const (
	TheCommand Part = iota
	TheCredentials
	TheSchedd // it does not answer
)

// Explain returns what an error means, whether from this package, package schedd, or elsewhere.
func Explain(err error) Trouble {
	if e, ok := errors.AsType[*CredentialError](err); ok {
		return Trouble{With: TheCredentials, Reason: e.Reason, Message: e.Message}
	}
	kind := condor.KindOf(err)
	if s, ok := errors.AsType[*silence](err); ok {
		return Trouble{With: TheSchedd, Reason: kind.String(), Message: err.Error(), Endpoint: s.endpoint}
	}
	switch kind {
	case condor.Credentials:
		return Trouble{With: TheCredentials, Reason: kind.String(), Message: err.Error()}
	case condor.Limit:
		return Trouble{Reason: kind.String(), Message: err.Error() + atLimit(err)}
	case condor.Unknown:
		return Trouble{Reason: "Retrying", Message: err.Error()}
	}
	return Trouble{Reason: kind.String(), Message: err.Error()}
}

// atLimit says what a schedd's limit bounds, and when it lets go.
func atLimit(err error) string {
	e, is := errors.AsType[*condor.Error](err)
	if !is {
		return ""
	}
	return limits[e.Limit()]
}

var limits = map[string]string{
	"MAX_JOBS_PER_SUBMISSION": ": it has more jobs than the schedd takes at once; make it several HTCJobs, or have the schedd's administrator raise the limit",
	"MAX_JOBS_PER_OWNER":      ": with it the account would have more jobs in the schedd's queue than one may; it is tried again as they leave",
	"MAX_JOBS_SUBMITTED":      ": with it the schedd's queue would have more jobs than it takes; it is tried again as others leave",
}
