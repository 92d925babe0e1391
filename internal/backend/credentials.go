package backend

import (
	"context"

	"htc.cern.ch/htcd/internal/schedd"
)

// Credentials gives the identities that HTCondor's commands run as. Its errors are *CredentialError.
type Credentials interface {
	// Identity is the one that runs of that target are sent and removed as.
	Identity(ctx context.Context, t Target) (schedd.Identity, error)
	// Common is the identity of all namespaces that have none of their own.
	Common(ctx context.Context, endpoint schedd.Endpoint) (schedd.Identity, error)
	// Any is whichever works, for questions about everybody's jobs.
	Any(ctx context.Context, endpoint schedd.Endpoint) (schedd.Identity, error)
}

// Questioner is who asks about the runs of a target.
func Questioner(ctx context.Context, c Credentials, t Target) (schedd.Identity, error) {
	if t.Secret != "" {
		return c.Identity(ctx, t)
	}
	return c.Any(ctx, t.Endpoint)
}

// Senders are those as whom htcd may have sent the jobs of a target, which is its own identity now: the namespace may have had
// no account of its own then. Who named a Secret had its account from the beginning.
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

// CredentialError says why no command can be run as the user. Its message holds no secret.
type CredentialError struct{ Reason, Message string }

func (e *CredentialError) Error() string { return e.Message }

const reasonOtherAccount = "OtherAccount"

// OtherAccount says that jobs are not those of the account at hand.
func OtherAccount(message string) error { return &CredentialError{reasonOtherAccount, message} }
