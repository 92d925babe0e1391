package backend

import (
	"errors"

	"htc.cern.ch/htcd/internal/schedd"
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
	kind := schedd.KindOf(err)
	if s, ok := errors.AsType[*silence](err); ok {
		return Trouble{With: TheSchedd, Reason: kind.String(), Message: err.Error(), Endpoint: s.endpoint}
	}
	switch kind {
	case schedd.Credentials:
		return Trouble{With: TheCredentials, Reason: kind.String(), Message: err.Error()}
	case schedd.Unknown:
		return Trouble{Reason: "Retrying", Message: err.Error()}
	}
	return Trouble{Reason: kind.String(), Message: err.Error()}
}
