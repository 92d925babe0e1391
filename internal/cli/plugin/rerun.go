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
		Short: "Run HTCJobs and HTCWorkflows again that have ended, or only some of their jobs",
		Long: `Run HTCJobs again that have ended, as the next attempt: all of their jobs, with --failed those that have failed, with --proc those with
these numbers. The other jobs keep what they have ended with and their output, and count as before. Every job keeps its number. An
HTCJob whose spec was changed runs again as a whole.

An HTCWorkflow that has ended runs again as its spec.resume says; with --failed that is set to FromFailure: nodes that have succeeded are not
run again, unless one before them is.

It does not wait until they run: htcd wait does that. With kubectl the same is

  kubectl annotate --overwrite htcjob NAME htc.cern.ch/rerun=$(date +%s) htc.cern.ch/rerun-procs=3,7-9    # or failed

Exit codes: 0 done, 1 one does not exist, has not ended, or has no such job (the others are run), 2 a mistake in the command line, 130
interrupted.
` + bothKinds,
		ValidArgsFunction: at.complete(kinds...),
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
		return where.each(cmd.Context(), args, func(o *object) error {
			which, err := chosen(o, failed, procs)
			if err != nil {
				return fmt.Errorf("%s %s: %w", o.name, o.Name, err)
			}
			if _, err := where.of(o.kind).
				patch(cmd.Context(), o.Name, types.MergePatchType, rerunPatch(o, which, time.Now()),
					metav1.PatchOptions{FieldManager: manager}); err != nil {
				return err
			}
			said := "runs again"
			if which != "" {
				said = "runs again: " + which
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), o.fullName(o.Name), said)
			return err
		})
	}
	return c
}

// chosen returns the value of the annotation for which jobs run again, empty for all.
func chosen(o *object, failed bool, procs string) (string, error) {
	switch {
	case procs != "" && o.job == nil:
		return "", errNoProcs(o)
	case !over(o, o) && o.Status.Phase == v1alpha1.PhaseSuspended:
		return "", errors.New("it is suspended: set spec.suspend to false, which sends what had not ended")
	case !over(o, o):
		return "", errors.New("it has not ended: htcd wait waits for that, htcd cancel stops it")
	case failed && o.workflow != nil && o.workflow.Status.Nodes.Done == o.workflow.Status.Nodes.Total:
		return "", errors.New("all of its nodes have succeeded")
	case failed && o.job != nil && o.Status.Failed == 0:
		return "", errors.New("no job of it has failed")
	case failed:
		return "failed", nil
	case procs == "":
		return "", nil
	}
	numbers, err := procset.Parse(procs, o.job.Jobs())
	if err != nil {
		return "", err
	}
	return numbers.String(), nil
}

// rerunPatch sets the annotations on this version of the object: another change in between may have made the choice
// wrong.
func rerunPatch(o *object, which string, now time.Time) []byte {
	annotations := map[string]any{v1alpha1.RerunAnnotation: now.UTC().Format(time.RFC3339Nano)}
	change := map[string]any{
		"metadata": map[string]any{"resourceVersion": o.ResourceVersion, "annotations": annotations},
	}
	switch {
	case o.workflow != nil && which != "":
		change["spec"] = map[string]any{"resume": v1alpha1.ResumeFromFailure}
	case o.job != nil:
		annotations[v1alpha1.RerunProcsAnnotation] = nil
		if which != "" {
			annotations[v1alpha1.RerunProcsAnnotation] = which
		}
	}
	patch, err := json.Marshal(change)
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
