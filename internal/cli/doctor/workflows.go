package doctor

import (
	"context"
	"os"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
)

// triedWithin is how long the job that tries it may take: a schedd at rest needs some seconds, one on a machine with
// thirty others at work more than half a minute.
const triedWithin = 150 * time.Second

// workflows sends a job that tries what DAGMan needs on the schedd's host: nothing else can see that.
func workflows(htcondor *schedd.Client, id *schedd.Identity, wanted bool) Check {
	return Check{Name: "workflows", Needs: []string{"authorisation"}, Try: func(ctx context.Context) (string, error) {
		if !wanted {
			return "", notHere("not tried: --workflows=false")
		}
		dir, err := os.MkdirTemp("", "htcd-doctor-")
		if err != nil {
			return "", err
		}
		defer os.RemoveAll(dir)
		ctx, cancel := context.WithTimeout(ctx, triedWithin)
		defer cancel()
		why, err := htcondor.TryDAG(ctx, *id, dir)
		switch {
		case err != nil:
			return "", scheddTrouble("", err)
		case why != "":
			return "", &Trouble{
				"HTCWorkflows cannot run: " + why,
				"have the schedd's administrator see to it (docs/configure.md, Workflows); where HTCWorkflows are not wanted: --workflows=false",
			}
		}
		return "the schedd's host can run DAGMan, and the schedd takes jobs from there", nil
	}}
}
