package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// WorkflowEvidence is everything found after all had settled.
type WorkflowEvidence struct {
	Sent    []SentWorkflow
	Objects map[string]v1alpha1.HTCWorkflow // by UID
	Ads     []Ad                            // of DAGs and of nodes
	Made    []Ad                            // of factories of nodes that are in a queue
	Runs    []Run
	Nodes   []NodeRow
	Staged  []string
	// Kept has the contents of the files that htcd has fetched, by NAME/ATTEMPT/STEP/JOBID[/NUMBER]/FILE.
	Kept map[string]string
	// LedgerLost: htcd has lost its ledger meanwhile.
	LedgerLost bool
}

// NodeRow is a row of the ledger's table nodes.
type NodeRow struct {
	UID      string `json:"uid"`
	DAG      int    `json:"dag"`
	Node     int    `json:"node"`
	Step     string `json:"step"`
	Sequence int    `json:"sequence"`
	Item     int    `json:"item"`
	Cluster  int    `json:"cluster"`
	Status   int    `json:"status"`
	ExitCode *int   `json:"exitCode"`
	Reason   string `json:"reason"`
	Source   string `json:"source"`
}

const rowFutile = 8

func (e WorkflowEvidence) shapes() (names []string) {
	for _, s := range e.Sent {
		names = append(names, s.Trial.Shape.Name)
	}
	return names
}

// gather collects what all parts say about the HTCWorkflows; it changes nothing.
func (p *workflowPlayer) gather(ctx context.Context) (WorkflowEvidence, error) {
	e := WorkflowEvidence{Objects: map[string]v1alpha1.HTCWorkflow{}}
	for _, namespace := range p.namespaces() {
		list, err := p.Jobs.Workflows(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return e, err
		}
		for _, w := range list.Items {
			e.Objects[string(w.UID)] = w
		}
	}
	var err error
	if e.Ads, err = p.ads(ctx); err != nil {
		return e, err
	}
	if e.Made, err = p.factories(ctx); err != nil {
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
	err = rows(ctx, p.Lab, &e.Nodes, p.inBoth(
		`SELECT r.uid, r.attempt AS dag, n.node, s.name AS step, n.sequence, n.item, n.cluster, n.status, n.exitCode, n.reason, n.source
		FROM runs r JOIN nodes n ON n.run = r.id JOIN steps s ON s.run = r.id AND s.step = n.step WHERE r.namespace`,
	))
	if err != nil {
		return e, err
	}
	staged, err := p.sh(ctx, `ls "$1/staging"`, p.data())
	e.Staged = strings.Fields(staged)
	p.mu.Lock()
	defer p.mu.Unlock()
	e.Sent, e.LedgerLost = append(e.Sent, p.sent...), p.done[htcdLane+" "+doForget] > 0
	return e, err
}

// settledWorkflows returns an errMoving while anything is still in progress.
func settledWorkflows(e WorkflowEvidence) error {
	var errs []error
	moving := func(format string, args ...any) { errs = append(errs, errMoving{fmt.Sprintf(format, args...)}) }
	for _, s := range e.Sent {
		w, found := e.Objects[s.UID]
		fetched := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionOutputFetched)
		switch {
		case !found:
		case s.Deleted:
			moving("%s is being deleted", s.Trial.Name)
		case hour(w.Status.Conditions):
		case !w.Status.Phase.Terminal() || w.Status.ObservedGeneration != w.Generation:
			moving("%s is %s", s.Trial.Name, w.Status.Phase)
		case fetched == nil || fetched.Status != metav1.ConditionTrue:
			moving("the output of %s is to be fetched", s.Trial.Name)
		}
	}
	for _, ad := range e.Ads {
		if ad.Queued {
			moving("job %s", ad)
		}
	}
	for _, ad := range e.Made {
		moving("factory %s", ad)
	}
	return errors.Join(errs...)
}
