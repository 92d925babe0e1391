package doctor

import (
	"context"
	"fmt"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/feed"
)

// feeds checks that a schedd's feed answers, and shows the queue that the schedd has.
func feeds(e schedd.Endpoint, f *feed.Client, htcondor *schedd.Client, id *schedd.Identity) Check {
	return Check{
		Name:  "feed of " + e.String(),
		Needs: []string{"schedd"},
		Try: func(ctx context.Context) (string, error) {
			state, err := f.State(ctx)
			if err != nil {
				return "", &Trouble{
					err.Error(),
					"see docs/feed.md; without the feed htcd runs condor_q and condor_history",
				}
			}
			if state.Problem != "" {
				return "", &Trouble{f.URL + ": " + state.Problem, "look at the log of htcd feed on the schedd's host"}
			}
			mark, err := feed.ParseMark(state.Mark)
			if err != nil {
				return "", err
			}
			daemon, err := htcondor.Daemon(ctx, id.At(e))
			if err != nil {
				return "", scheddTrouble("which queue it has: ", err)
			}
			if daemon.QueueBorn != mark.Born {
				return "", &Trouble{
					fmt.Sprintf(
						"%s shows a queue of %d, and schedd %s has one of %d (JobQueueBirthdate)",
						f.URL,
						mark.Born,
						e,
						daemon.QueueBorn,
					),
					"give --spool of that schedd to htcd feed, or its address to --feed",
				}
			}
			return fmt.Sprintf("%s shows %d jobs of htcd's, and %d that have left", f.URL, state.Jobs, state.Left), nil
		},
	}
}
