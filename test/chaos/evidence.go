package chaos

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
)

const attributes = "ClusterId,ProcId,JobStatus,LastJobStatus,ExitBySignal,ExitCode,NumJobStarts,RemoveReason,HoldReason,HTCJobUID,HTCJobAttempt,HTCJobProc,HTCJobLauncher," +
	"HTCWorkflowUID,HTCWorkflowDAG,HTCNode"

// inBoth ends a statement of SQL with the run's namespaces.
func (p *Player) inBoth(query string) string {
	return fmt.Sprintf("%s IN ('%s', '%s')", query, p.Namespace, p.Own)
}

// gather collects what all parts say about the HTCJobs of the run; it changes nothing.
func (p *Player) gather(ctx context.Context) (Evidence, error) {
	e := Evidence{Objects: map[string]v1alpha1.HTCJob{}}
	for _, namespace := range p.namespaces() {
		list, err := p.Jobs.HTCJobs(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return e, err
		}
		for _, job := range list.Items {
			e.Objects[string(job.UID)] = job
		}
	}
	var err error
	if e.Ads, err = p.ads(ctx); err != nil {
		return e, err
	}
	err = rows(
		ctx,
		p.Lab,
		&e.Runs,
		p.inBoth(`SELECT uid, attempt, generation, state, cluster FROM runs WHERE namespace`),
	)
	if err != nil {
		return e, err
	}
	err = rows(ctx, p.Lab, &e.Rows, p.inBoth(
		`SELECT r.uid, r.attempt, p.proc, p.status, p.reason, p.source FROM runs r JOIN htcjobs p ON p.run = r.id WHERE r.namespace`,
	))
	if err != nil {
		return e, err
	}
	staged, err := p.Lab.RunAs(ctx, "root", "ls", p.data()+"/staging") // on a volume visible only inside the lab
	e.Staged = strings.Fields(staged)
	return e, err
}

// wholeArchive runs tar, again if something changed meanwhile: htcd may be dropping the output of earlier attempts.
const wholeArchive = `cd "$1" && mkdir -p "$2" && for try in 1 2 3 4 5 6 7 8 9 10; do
	tar -c -f "$3" "$2" 2>/dev/null && cat "$3" && rm "$3" && exit
	sleep 1
done
tar -c "$2"`

// kept reads all files that htcd has fetched for the HTCJobs (store out) or HTCWorkflows (store workflows) of the run.
// Names are unique in it.
func (p *Player) kept(ctx context.Context, store string) (map[string]string, error) {
	files := map[string]string{}
	for _, namespace := range p.namespaces() {
		of, err := keptOf(ctx, p.Lab, store, namespace)
		if err != nil {
			return nil, err
		}
		maps.Copy(files, of)
	}
	return files, nil
}

func keptOf(ctx context.Context, l *lab.Lab, store, namespace string) (map[string]string, error) {
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

// schedds are the arguments by which the tools ask each.
var schedds = [][]string{nil, {"-name", parts.Schedd2Name}}

func (p *Player) query() []string {
	constraint := fmt.Sprintf("stringListMember(HTCJobNamespace, %q)", strings.Join(p.namespaces(), ","))
	return []string{"-constraint", constraint, "-json", "-attributes", attributes}
}

// factories asks for those that are in a queue, until all that they have made have left it.
func (p *Player) factories(ctx context.Context) (all []Ad, err error) {
	for _, at := range schedds {
		some, err := ask(
			ctx,
			p.Lab,
			true,
			"condor_q",
			slices.Concat(at, []string{"-allusers", "-factory"}, p.query())...)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// ads asks the queue first: jobs that leave it in between are then in both, and the history counts.
func (p *Player) ads(ctx context.Context) ([]Ad, error) {
	query := p.query()
	var queue, history []Ad
	for _, at := range schedds {
		queued, err := ask(ctx, p.Lab, true, "condor_q", slices.Concat(at, []string{"-allusers"}, query)...)
		if err != nil {
			return nil, err
		}
		left, err := ask(ctx, p.Lab, false, "condor_history", slices.Concat(at, query)...)
		if err != nil {
			return nil, err
		}
		queue, history = append(queue, queued...), append(history, left...)
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
		case found && hour(job.Status.Conditions):
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
