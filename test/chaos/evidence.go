package chaos

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
)

const attributes = "ClusterId,ProcId,JobStatus,LastJobStatus,ExitBySignal,ExitCode,NumJobStarts,RemoveReason,HoldReason,HTCJobUID,HTCJobAttempt,HTCJobProc," +
	"HTCWorkflowUID,HTCWorkflowDAG,HTCNode"

// gather collects what all parts say about the HTCJobs of the namespace; it changes nothing.
func gather(ctx context.Context, l *lab.Lab, jobs *v1alpha1.Client, namespace string) (Evidence, error) {
	e := Evidence{Objects: map[string]v1alpha1.HTCJob{}}
	list, err := jobs.HTCJobs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return e, err
	}
	for _, job := range list.Items {
		e.Objects[string(job.UID)] = job
	}
	if e.Ads, err = ads(ctx, l, namespace); err != nil {
		return e, err
	}
	err = rows(ctx, l, &e.Runs, fmt.Sprintf(
		`SELECT uid, attempt, generation, state, cluster FROM runs WHERE namespace = '%s'`, namespace))
	if err != nil {
		return e, err
	}
	err = rows(ctx, l, &e.Rows, fmt.Sprintf(
		`SELECT r.uid, r.attempt, p.proc, p.status, p.reason, p.source FROM runs r JOIN htcjobs p ON p.run = r.id WHERE r.namespace = '%s'`,
		namespace,
	))
	if err != nil {
		return e, err
	}
	staged, err := l.RunAs(ctx, "root", "ls", l.Path("htcd", "data", "staging")) // on a volume visible only inside the lab
	e.Staged = strings.Fields(staged)
	return e, err
}

// wholeArchive runs tar, again if something changed meanwhile: htcd may be dropping the output of earlier attempts.
const wholeArchive = `cd "$1" && mkdir -p "$2" && for try in 1 2 3 4 5 6 7 8 9 10; do
	tar -c -f "$3" "$2" 2>/dev/null && cat "$3" && rm "$3" && exit
	sleep 1
done
tar -c "$2"`

// kept reads all files that htcd has fetched for the HTCJobs (store out) or HTCWorkflows (store workflows) of the
// namespace.
func kept(ctx context.Context, l *lab.Lab, store, namespace string) (map[string]string, error) {
	files := map[string]string{}
	text, err := l.RunAs(
		ctx,
		"root",
		"sh",
		"-c",
		wholeArchive,
		"sh",
		l.Path("htcd", "data", store),
		namespace,
		"/tmp/"+namespace+".tar",
	)
	if err != nil {
		return nil, err
	}
	for archive := tar.NewReader(strings.NewReader(text)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		files[strings.TrimPrefix(header.Name, namespace+"/")] = string(content)
	}
}

// ads asks the queue first: jobs that leave it in between are then in both, and the history counts.
func ads(ctx context.Context, l *lab.Lab, namespace string) ([]Ad, error) {
	constraint := fmt.Sprintf("HTCJobNamespace == %q", namespace)
	query := []string{"-constraint", constraint, "-json", "-attributes", attributes}
	queue, err := ask(ctx, l, true, "condor_q", append([]string{"-allusers"}, query...)...)
	if err != nil {
		return nil, err
	}
	history, err := ask(ctx, l, false, "condor_history", query...)
	if err != nil {
		return nil, err
	}
	type id struct{ cluster, proc int }
	known := map[id]bool{}
	var all []Ad
	for _, ad := range append(history, queue...) {
		if !known[id{ad.ClusterID, ad.ProcID}] {
			known[id{ad.ClusterID, ad.ProcID}] = true
			all = append(all, ad)
		}
	}
	return all, nil
}

func ask(ctx context.Context, l *lab.Lab, queued bool, tool string, args ...string) ([]Ad, error) {
	text, err := l.Run(ctx, tool, args...)
	if err != nil {
		return nil, err
	}
	var found []Ad
	if err := unmarshal(tool, text, &found); err != nil {
		return nil, err
	}
	for i := range found {
		found[i].Queued = queued
	}
	return found, nil
}

func rows(ctx context.Context, l *lab.Lab, into any, query string) error {
	text, err := l.Run(ctx, "sqlite3", "-json", "-cmd", ".timeout 10000", l.Ledger(), query)
	if err != nil {
		return err
	}
	return unmarshal("sqlite3", text, into)
}

// unmarshal accepts that these tools print nothing at all if nothing matches.
func unmarshal(tool, text string, into any) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%s: %w", tool, err)
	}
	return nil
}

// errMoving says that something is still in progress.
type errMoving struct{ what string }

func (e errMoving) Error() string { return e.what }

// fetched reports whether htcd has all the output that it will ever have.
func fetched(job v1alpha1.HTCJob) bool {
	c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionOutputFetched)
	return c != nil && (c.Status == metav1.ConditionTrue || c.Reason == "GivenUp" || c.Reason == "Incomplete")
}

// settled returns an errMoving while anything is still in progress.
func settled(e Evidence) error {
	var errs []error
	moving := func(format string, args ...any) { errs = append(errs, errMoving{fmt.Sprintf(format, args...)}) }
	for _, s := range e.Sent {
		job, found := e.Objects[s.UID]
		switch {
		case s.Deleted && found:
			moving("%s is being deleted", s.Trial.Name)
		case found && !s.Deleted && (!job.Status.Phase.Terminal() || job.Status.ObservedGeneration != job.Generation):
			moving("%s is %s", s.Trial.Name, job.Status.Phase)
		case found && !s.Deleted && s.Trial.Shape.Again && job.Status.Rerun != job.Rerun():
			moving("%s is to run again", s.Trial.Name)
		case found && !s.Deleted && len(s.spec().Leaves) > 0 && !fetched(job):
			moving("the output of %s is to be fetched", s.Trial.Name)
		}
	}
	for _, ad := range e.Ads {
		if ad.alive() {
			moving("job %s", ad)
		}
	}
	return errors.Join(errs...)
}
