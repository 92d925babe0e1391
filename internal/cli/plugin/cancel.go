package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
	"htc.cern.ch/htcd/internal/ledger/procset"
)

func cancelCommand() *cobra.Command {
	var at Connection
	var procs string
	var only selection
	c := &cobra.Command{
		Use:   "cancel NAME... | -l LABELS | NAME --proc LIST",
		Short: "Remove the jobs of HTCJobs and HTCWorkflows from HTCondor, and keep what they have left",
		Long: `Remove the jobs of HTCJobs and HTCWorkflows that have not ended from HTCondor, by setting spec.suspend. The object stays, with the results
and the output of those that had ended; kubectl delete, or htcd delete, deletes that, too. It can be continued, an HTCWorkflow as its
spec.resume says:

  kubectl patch htcjob NAME --type=merge -p '{"spec":{"suspend":false}}'

With --proc only the jobs of an HTCJob with these numbers are removed. They count as failed, with the reason Removed, and the others go on. htcd rerun
runs them again. With kubectl the same is, for attempt 1,

  kubectl annotate --overwrite htcjob NAME htc.cern.ch/cancel-procs=1/3,7-9

One that has ended is left as it is. It does not wait until the jobs are gone.

Exit codes: 0 done, 1 one does not exist, has no such job or could not be changed (the others are), 2 a mistake in the command line, 130
interrupted.
` + bothKinds,
		ValidArgsFunction: at.complete(kinds...),
	}
	at.Flags(c.Flags())
	setting.Text(c.Flags(), &procs, "proc", "", numbers, "only the jobs with these `numbers`, such as 3,7-9")
	only.label(c.Flags())
	c.Args = func(cmd *cobra.Command, args []string) error {
		if only.labels != "" && procs != "" {
			return setting.Usage{Err: errors.New("cancel: --proc is for one name, not for --selector")}
		} else if only.labels != "" {
			return only.orNames(cmd, args)
		}
		return namesAndProcs()(cmd, args)
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		where, err := at.open(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		cancel := func(o *object) error {
			said, err := where.cancel(cmd.Context(), o, procs)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), o.fullName(o.Name), said)
			}
			return err
		}
		if only.labels == "" {
			return where.each(cmd.Context(), args, cancel)
		}
		all, err := where.labelled(cmd.Context(), only)
		if err != nil {
			return err
		}
		return where.eachOf(cmd.Context(), all, cancel)
	}
	return c
}

// cancel has all jobs of an object removed, or those with these numbers, and says what it has done.
func (c *cluster) cancel(ctx context.Context, o *object, procs string) (said string, err error) {
	patch, said := []byte(`{"spec":{"suspend":true}}`), "is cancelled"
	switch {
	case procs != "" && o.job == nil:
		return "", errNoProcs(o)
	case over(o, o):
		return "has ended already", nil
	case procs != "":
		numbers, err := unwanted(o.job, procs)
		if err != nil {
			return "", fmt.Errorf("HTCJob %s: %w", o.Name, err)
		}
		patch, said = cancelPatch(o.job, numbers), "cancels its jobs "+numbers.String()
	}
	_, err = c.of(o.kind).patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	return said, err
}

// errNoProcs refuses --proc for a workflow.
func errNoProcs(o *object) error {
	return setting.Usage{
		Err: fmt.Errorf(
			"--proc is for HTCJobs, and %s is an HTCWorkflow, whose nodes have no numbers of their own",
			o.shown(),
		),
	}
}

// unwanted returns the jobs that are to be removed of the present attempt, those included that were named before.
func unwanted(job *v1alpha1.HTCJob, procs string) (numbers procset.Set, err error) {
	if job.Status.ClusterID == 0 {
		return numbers, errors.New("its jobs are not in HTCondor: cancel it without --proc, or wait until they are")
	}
	if numbers, err = procset.Parse(procs, job.Jobs()); err != nil {
		return numbers, err
	}
	if of, before, _ := strings.Cut(job.CancelProcs(), "/"); of == fmt.Sprint(job.Status.Attempt) {
		if earlier, err := procset.Parse(before, job.Jobs()); err == nil {
			return procset.Of(append(earlier.Numbers(), numbers.Numbers()...)), nil
		}
	}
	return numbers, nil
}

// cancelPatch sets the annotation. It names the attempt, since another one may have begun in between.
func cancelPatch(job *v1alpha1.HTCJob, numbers procset.Set) []byte {
	annotations := map[string]any{v1alpha1.CancelProcsAnnotation: fmt.Sprintf("%d/%s", job.Status.Attempt, numbers)}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		panic(err) // of strings
	}
	return patch
}
