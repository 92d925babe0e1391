package backend

import (
	"context"
	"slices"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Anyone who may submit to the schedd can read an HTCJob's tag in the ads and write it into their own job, but not the
// job's Owner or its cluster number, which the schedd assigns. If the ledger knows the cluster, that decides; otherwise
// the Owner does.

// Owners distinguishes htcd's jobs from others with the same tag, and removes them as the accounts that may have sent
// them.
type Owners struct {
	Schedd interface {
		Ping(ctx context.Context, id schedd.Identity, p schedd.Permission) (account string, err error)
		Query(ctx context.Context, id schedd.Identity, q schedd.Query, fn condor.JobFunc) error
		Change(ctx context.Context, id schedd.Identity, c schedd.Change) (schedd.Outcome, error)
	}
	Credentials Credentials

	deletions *deletions
}

// NewOwners returns the Owners of a schedd's jobs.
func NewOwners(s Schedd, credentials Credentials) Owners {
	return Owners{Schedd: s, Credentials: credentials, deletions: &deletions{}}
}

// Accounts returns the Owners of the jobs that htcd may have sent to a target.
func (o Owners) Accounts(ctx context.Context, t Target, id schedd.Identity) (accounts []string, err error) {
	for _, sender := range Senders(ctx, o.Credentials, t, id) {
		account, err := o.Schedd.Ping(ctx, sender, schedd.Writing)
		if err != nil {
			return nil, err
		}
		accounts = append(accounts, account)
	}
	return accounts, nil
}

// AccountsOf is Accounts for the target's present identity.
func (o Owners) AccountsOf(ctx context.Context, t Target) ([]string, error) {
	id, err := o.Credentials.Identity(ctx, t)
	if err != nil {
		return nil, err
	}
	return o.Accounts(ctx, t, id)
}

// Own filters jobs with the right tag for those of an account that htcd may have sent them as: their target's, or the
// common one if the namespace had no other then.
func (o Owners) Own(
	ctx context.Context,
	t Target,
	id schedd.Identity,
	queued, left []condor.Job,
) (ours, gone, others []condor.Job, err error) {
	if len(queued)+len(left) == 0 {
		return nil, nil, nil, nil
	}
	accounts, err := o.Accounts(ctx, t, id)
	if err != nil {
		return nil, nil, nil, err
	}
	foreign := func(j condor.Job) bool { return !slices.Contains(accounts, j.Owner) }
	for _, j := range slices.Concat(queued, left) {
		if foreign(j) {
			others = append(others, j)
		}
	}
	return slices.DeleteFunc(queued, foreign), slices.DeleteFunc(left, foreign), others, nil
}

// AccountsOfRuns returns the Owners that jobs of runs at a target may have. Those of a run whose jobs HTCondor has not
// shown yet, or that the ledger may have lost, may have been sent as any of the target's.
func (o Owners) AccountsOfRuns(ctx context.Context, t Target, runs []ledger.Run) ([]string, error) {
	accounts, all := KnownAccounts(runs)
	if all {
		return accounts, nil
	}
	senders, err := o.AccountsOf(ctx, t)
	return append(accounts, senders...), err
}

// KnownAccounts returns the Owners of the runs' jobs that HTCondor has shown; all is false if there may be others.
func KnownAccounts(runs []ledger.Run) (accounts []string, all bool) {
	all = len(runs) > 0
	for _, run := range runs {
		switch {
		case run.Account != "":
			accounts = append(accounts, run.Account)
		case run.State != ledger.Refused:
			all = false
		}
	}
	return accounts, all
}

// Strangers returns those of the jobs that a condor_rm passed over that are in none of these runs' clusters, provided
// that it passed over none of the runs' own jobs and the ledger knows every cluster that was sent.
func Strangers(others []condor.Job, runs []ledger.Run) []condor.Job {
	sent, all := clusters(runs)
	if !all {
		return nil
	}
	strange := slices.DeleteFunc(
		slices.Clone(others),
		func(j condor.Job) bool { return slices.Contains(sent, j.Cluster) },
	)
	if len(strange) < len(others) {
		return nil
	}
	return strange
}

// clusters returns the clusters that hold the runs' jobs; all is false if one may have been sent that the ledger does
// not know.
func clusters(runs []ledger.Run) (sent []int, all bool) {
	all = len(runs) > 0
	for _, run := range runs {
		switch {
		case run.Cluster != 0:
			sent = append(sent, run.Cluster)
		case run.State != ledger.Refused:
			all = false
		}
	}
	return sent, all
}
