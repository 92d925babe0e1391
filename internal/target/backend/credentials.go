package backend

import (
	"context"

	"htc.cern.ch/htcd/internal/schedd"
)

// Credentials provides the identities that HTCondor's commands run as. Its errors are *CredentialError.
type Credentials interface {
	// Identity returns the identity as which runs of that target are sent and removed.
	Identity(ctx context.Context, t Target) (schedd.Identity, error)
	// Common returns the identity of all namespaces without their own.
	Common(ctx context.Context, endpoint schedd.Endpoint) (schedd.Identity, error)
	// Any returns whichever identity works, for questions about everybody's jobs.
	Any(ctx context.Context, endpoint schedd.Endpoint) (schedd.Identity, error)
}

// Questioner returns the identity that asks about a target's runs.
func Questioner(ctx context.Context, c Credentials, t Target) (schedd.Identity, error) {
	if t.Secret != "" {
		return c.Identity(ctx, t)
	}
	return c.Any(ctx, t.Endpoint)
}

// Senders returns the identities as which htcd may have sent a target's jobs: the target's identity now, and the common
// one, because the namespace may have had no account of its own then. An HTCJob that named a Secret used its account
// from the start.
func Senders(ctx context.Context, c Credentials, t Target, now schedd.Identity) []schedd.Identity {
	if t.Secret != "" {
		return []schedd.Identity{now}
	}
	common, err := c.Common(ctx, now.Endpoint)
	if err != nil || common == now {
		return []schedd.Identity{now}
	}
	return []schedd.Identity{now, common}
}

// SendersOf is Senders for the identity that the target has now.
func SendersOf(ctx context.Context, c Credentials, t Target) ([]schedd.Identity, error) {
	id, err := c.Identity(ctx, t)
	if err != nil {
		return nil, err
	}
	return Senders(ctx, c, t, id), nil
}

// CredentialError says why no command can run as the user. Its message contains no secret.
type CredentialError struct{ Reason, Message string }

func (e *CredentialError) Error() string { return e.Message }

const reasonOtherAccount = "OtherAccount"

// OtherAccount returns the error for jobs that do not belong to the current account.
func OtherAccount(message string) error { return &CredentialError{reasonOtherAccount, message} }
