package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/ledger/procset"
)

func rerunCommand() *cobra.Command {
	var at Connection
	var failed bool
	var procs string
	c := &cobra.Command{
		Use:   "rerun NAME... | rerun NAME --proc LIST",
		Short: "Run HTCJobs again that have ended, or only some of their jobs",
		Long: `Run HTCJobs again that have ended, as the next attempt: all of their jobs, with --failed those that have failed, with --proc those with
these numbers. The other jobs keep what they have ended with and their output, and count as before. Every job keeps its number. An
HTCJob whose spec was changed runs again as a whole.

It does not wait until they run: htcd wait does that. With kubectl the same is

  kubectl annotate --overwrite htcjob NAME htc.cern.ch/rerun=$(date +%s) htc.cern.ch/rerun-procs=3,7-9    # or failed

Exit codes: 0 done, 1 one does not exist, has not ended, or has no such job (the others are run), 2 a mistake in the command line, 130
interrupted.`,
		ValidArgsFunction: at.completeNames,
	}
	at.Flags(c.Flags())
	setting.Bool(c.Flags(), &failed, "failed", false, "only the jobs that have failed")
	setting.Text(c.Flags(), &procs, "proc", "", numbers, "only the jobs with these `numbers`, such as 3,7-9")
	c.MarkFlagsMutuallyExclusive("failed", "proc")
	c.Args = namesAndProcs()
	c.RunE = func(cmd *cobra.Command, args []string) error {
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		return where.each(cmd.Context(), args, func(name string) error {
			job, err := where.jobs.Get(cmd.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			which, err := chosen(job, failed, procs)
			if err != nil {
				return fmt.Errorf("HTCJob %s: %w", name, err)
			}
			if _, err := where.jobs.Patch(cmd.Context(), name, types.MergePatchType, rerunPatch(job, which, time.Now()), metav1.PatchOptions{FieldManager: manager}); err != nil {
				return err
			}
			said := "runs again"
			if which != "" {
				said = "runs again: " + which
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), fullName(name), said)
			return err
		})
	}
	return c
}

// chosen returns the value of the annotation for which jobs run again, empty for all.
func chosen(job *v1alpha1.HTCJob, failed bool, procs string) (string, error) {
	switch {
	case !over(job, job) && job.Status.Phase == v1alpha1.PhaseSuspended:
		return "", errors.New("it is suspended: set spec.suspend to false, which sends what had not ended")
	case !over(job, job):
		return "", errors.New("it has not ended: htcd wait waits for that, htcd cancel stops it")
	case failed && job.Status.Failed == 0:
		return "", errors.New("no job of it has failed")
	case failed:
		return "failed", nil
	case procs == "":
		return "", nil
	}
	numbers, err := procset.Parse(procs, job.Jobs())
	if err != nil {
		return "", err
	}
	return numbers.String(), nil
}

// rerunPatch sets the annotations on this version of the object: another change in between may have made the choice wrong.
func rerunPatch(job *v1alpha1.HTCJob, which string, now time.Time) []byte {
	annotations := map[string]any{v1alpha1.RerunAnnotation: now.UTC().Format(time.RFC3339Nano), v1alpha1.RerunProcsAnnotation: nil}
	if which != "" {
		annotations[v1alpha1.RerunProcsAnnotation] = which
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": job.ResourceVersion, "annotations": annotations}})
	if err != nil {
		panic(err) // of strings
	}
	return patch
}

// namesAndProcs takes names, or one with the numbers of --proc.
func namesAndProcs() cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("proc") && len(args) > 1 {
			return setting.Usage{Err: fmt.Errorf("%s: --proc is for one HTCJob", cmd.Name())}
		}
		return someNames(cmd, args)
	}
}
