package backend

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestWhatTheTroubleIsWith(t *testing.T) {
	failed := func(kind condor.Kind) error {
		return &condor.Error{Kind: kind, Command: "condor_q", Stderr: "its words"}
	}
	for name, c := range map[string]struct {
		err  error
		want Trouble
	}{
		"a Secret":                          {&CredentialError{"BadPassword", "no ticket"}, Trouble{With: TheCredentials, Reason: "BadPassword", Message: "no ticket"}},
		"a ticket that ended in between":    {failed(condor.Credentials), Trouble{With: TheCredentials, Reason: "Credentials", Message: "condor_q: its words"}},
		"a schedd that does not answer":     {&silence{there, failed(condor.Timeout)}, Trouble{With: TheSchedd, Reason: "Timeout", Message: "condor_q: its words", Endpoint: there}},
		"a command that got no answer":      {failed(condor.Timeout), Trouble{Reason: "Timeout", Message: "condor_q: its words"}},
		"an account that may not":           {failed(condor.NotAuthorised), Trouble{Reason: "NotAuthorised", Message: "condor_q: its words"}},
		"something that may go by itself":   {errors.New("killed"), Trouble{Reason: "Retrying", Message: "killed"}},
		"the same with what was tried then": {fmt.Errorf("submit: %w", failed(condor.Limit)), Trouble{Reason: "LimitReached", Message: "submit: condor_q: its words"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Explain(c.err)) })
	}
}
