package workflow

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/output/push"
)

// Where the nodes of a step push is written with the intent, so that it does not depend on later edits: the path of a
// destination is the directory of a node's output, and these stand for its numbers.
const (
	sequencePlace = "{sequence}"
	itemPlace     = "{item}"
	namePlace     = "{name}"
)

// destinations lists to where the steps of a DAG push.
func (p plannedDAG) destinations() (all []ledger.Destination) {
	for _, i := range p.steps {
		step := p.graph.Steps[i]
		if step.Push == nil {
			continue
		}
		jobid := p.graph.JobID(graph.Node{Step: i, Sequence: graph.AllSequences})
		switch {
		case p.graph.Listed() && !step.Final:
			jobid = namePlace
		case !step.All:
			jobid = strings.TrimSuffix(p.graph.JobID(graph.Node{Step: i}), "0") + sequencePlace
		}
		dir, tag := string(step.Name)+"/"+jobid, tagOf(step.StepWork)
		if step.Indexed {
			dir, tag = dir+"/"+itemPlace, tag+"-"+itemPlace
		}
		all = append(all, ledger.Destination{Number: i, Path: dir, Artifact: reference(step.Push.Artifact, jobid, tag)})
	}
	return all
}

// fill puts the numbers of a node into a destination's path or artifact.
func fill(text string, at ledger.Place) string {
	return strings.NewReplacer(
		sequencePlace,
		strconv.Itoa(at.Sequence),
		itemPlace,
		strconv.Itoa(at.Item),
		namePlace,
		at.Label,
	).Replace(
		text,
	)
}

// dags are what package outputpush pushes: the DAGs of the newest attempt of each workflow.
type dags struct{}

func (dags) runs(tx *ledger.Tx, key string) ([]ledger.Run, error) {
	namespace, name, _ := strings.Cut(key, "/")
	runs, err := tx.Runs(ledger.RunFilter{Kind: ledger.Workflows, Namespace: namespace, Name: name})
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	newest := runs[len(runs)-1].UID // an older object of this name may be left
	var own []ledger.Run
	for _, run := range runs {
		if run.UID == newest {
			own = append(own, run)
		}
	}
	own, _ = Attempt(own, 0)
	return own, nil
}

// Next implements push.Subject. Of several DAGs that with the lowest step comes first, as a pass goes by their numbers.
func (d dags) Next(tx *ledger.Tx, key string, from int) (item push.Item, err error) {
	runs, err := d.runs(tx, key)
	if err != nil {
		return item, err
	}
	found := false
	for _, run := range runs {
		w, n, err := tx.NextNodePush(run.UID, run.Attempt, from)
		if errors.Is(err, ledger.ErrNotFound) || err == nil && found && item.Number <= w.Number {
			continue
		}
		if err != nil {
			return item, err
		}
		at, err := storedAs(run)
		if err != nil {
			return item, err
		}
		item, found = push.Item{
			Written: w, Run: run, Reference: fill(w.Artifact, n.Place), What: "the output of " + fill(w.Path, n.Place),
			At: at, Dir: fill(w.Path, n.Place), Owner: run.UID,
		}, true
		item.Path = ""
	}
	if !found {
		return item, ledger.ErrNotFound
	}
	return item, nil
}

// Unpushed implements push.Subject.
func (dags) Unpushed(tx *ledger.Tx) ([]ledger.Run, error) { return tx.UnpushedDAGs() }

// Wanted implements push.Subject.
func (d dags) Wanted(tx *ledger.Tx, run ledger.Run) (bool, error) {
	runs, err := d.runs(tx, keyOf(run))
	for _, now := range runs {
		if now.UID == run.UID && now.Attempt == run.Attempt {
			return true, err
		}
	}
	return false, err
}

// registryCredentials returns those of the step of an item, as they are now.
func (c *Controller) registryCredentials(ctx context.Context, item push.Item) ([][]byte, error) {
	w := c.Get(keyOf(item.Run))
	if w == nil || string(w.UID) != item.Run.UID || w.DeletionTimestamp != nil || w.SpecHash() != item.Run.SpecHash {
		return nil, push.ErrGone
	}
	return c.stepLogins(ctx, w, item.Number)
}

// stepLogins returns the credentials of a step for registries.
func (c *Controller) stepLogins(ctx context.Context, w *v1alpha1.HTCWorkflow, step int) ([][]byte, error) {
	g, err := graph.New(w.Spec)
	if err != nil {
		return nil, err
	}
	return inputs.DockerConfigs(ctx, c.JobSecrets, stepJob(w, g, step))
}

// gatherPushes counts what a DAG pushes.
func gatherPushes(tx *ledger.Tx, s *Situation, run ledger.Run) error {
	n, err := tx.Pushes(run.UID, run.Attempt)
	s.Pushes.Any = s.Pushes.Any || n.Any
	s.Pushes.Unpushed += n.Unpushed
	s.Pushes.Pushed += n.Pushed
	s.Pushes.NotPushed += n.NotPushed
	if n.Note != "" {
		s.Pushes.Note = n.Note
	}
	return err
}

// pushedCondition says how many artifacts of the newest attempt have been pushed. A workflow that makes none has no
// such condition.
func (s Situation) pushedCondition(set lifecycle.SetCondition, status *v1alpha1.HTCWorkflowStatus, v lifecycle.View) {
	n := s.Pushes
	if s.newest() == nil || !n.Any {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionOutputsPushed)
		return
	}
	const here = "artifacts are pushed when the output of their nodes is here"
	var waits *lifecycle.Blocker
	switch {
	case n.Unpushed > 0:
	case !s.over():
		waits = &lifecycle.Blocker{Reason: "NotEnded", Message: here}
	case s.Unfetched:
		waits = &lifecycle.Blocker{Reason: "Fetching", Message: here}
	}
	v.PushedCondition(set, n, waits, "no node of a step with push has succeeded")
}
