package kube

import (
	"context"
	"fmt"
	"slices"

	"htc.cern.ch/htcd/internal/backend"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
)

// Whoever may submit to the schedd can write an HTCJob's tag into a job of their own, and read it in the ads. What they
// cannot write is a job's Owner and its cluster's number, which the schedd gives. Where the ledger knows the cluster, that
// decides; where it does not, the Owner does.

// own keeps, of jobs with the right tag, those of an account that htcd may have sent them as: that of their target, or the
// common one if the namespace had no other then.
func (c *Controller) own(ctx context.Context, t backend.Target, id schedd.Identity, queued, left []schedd.Job) (ours, gone, others []schedd.Job, err error) {
	if len(queued)+len(left) == 0 {
		return nil, nil, nil, nil
	}
	account, err := c.Schedd.Account(ctx, id)
	if err != nil {
		return nil, nil, nil, err
	}
	accounts := []string{account}
	if common, err := c.Credentials.Common(ctx); err == nil && common.Who() != id.Who() && t.Secret == "" {
		common.Place = id.Place
		account, err = c.Schedd.Account(ctx, common)
		if err != nil {
			return nil, nil, nil, err
		}
		accounts = append(accounts, account)
	}
	foreign := func(j schedd.Job) bool { return !slices.Contains(accounts, j.Owner) }
	for _, j := range slices.Concat(queued, left) {
		if foreign(j) {
			others = append(others, j)
		}
	}
	return slices.DeleteFunc(queued, foreign), slices.DeleteFunc(left, foreign), others, nil
}

// othersCluster says whose job stands where the one that may have been sent is looked for.
func othersCluster(j schedd.Job) error {
	return &CredentialError{"OtherAccount", fmt.Sprintf("job %s of the account %s carries this HTCJob's tag, and htcd has no credentials of that account: "+
		"if the HTCJob was being sent with them, put them back into the secret; if the tag is forged, have the schedd's administrator remove that job, "+
		"or let go of it with the annotation %s=true, delete this HTCJob and apply it again", j.ID(), j.Owner, v1alpha1.AbandonAnnotation)}
}

// clusters are those in which an HTCJob's jobs are; all is false where one may have been sent that the ledger does not know.
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

// strangers are the jobs that a condor_rm passed over and that are in none of the clusters that were sent.
func strangers(alive []schedd.Job, sent []int) []schedd.Job {
	return slices.DeleteFunc(untouched(alive), func(j schedd.Job) bool { return slices.Contains(sent, j.Cluster) })
}

// removed are those that it did not pass over.
func removed(alive []schedd.Job) []schedd.Job {
	return slices.DeleteFunc(slices.Clone(alive), func(j schedd.Job) bool { return j.Status != schedd.Removed })
}
