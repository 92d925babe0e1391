package chaos

import (
	"fmt"
	"slices"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// JudgeWorkflows compares every HTCWorkflow, node by node, with what HTCondor says about it.
func JudgeWorkflows(e WorkflowEvidence) []Finding {
	var findings []Finding
	mine := map[string]bool{}
	for _, s := range e.Sent {
		mine[s.UID] = true
		findings = append(findings, (&workflowTrialOf{SentWorkflow: s, e: e}).judge()...)
	}
	for _, r := range e.Runs {
		if !mine[r.UID] {
			findings = append(
				findings,
				Finding{LeftOver, r.UID, "none of the trials", fmt.Sprintf("run of DAG %d", r.Attempt)},
			)
		}
	}
	for _, ad := range slices.Concat(e.Ads, e.Made) {
		if !mine[ad.UID] && !mine[ad.Workflow] {
			findings = append(findings, Finding{LeftOver, ad.UID + ad.Workflow, "none of the trials", ad.String()})
		}
	}
	return findings
}

// workflowTrialOf is one HTCWorkflow as the rules are applied to it.
type workflowTrialOf struct {
	SentWorkflow
	e        WorkflowEvidence
	findings []Finding
}

func (t *workflowTrialOf) find(f Fault, format string, args ...any) {
	t.findings = append(t.findings, Finding{f, t.Trial.Name, t.Trial.Shape.Name, fmt.Sprintf(format, args...)})
}

func (t *workflowTrialOf) judge() []Finding {
	t.doubled()
	t.left()
	if t.Deleted {
		t.gone()
		return t.findings
	}
	w, found := t.e.Objects[t.UID]
	switch {
	case !found:
		t.find(Lost, "the object is gone though nobody deleted it")
		return t.findings
	case hour(w.Status.Conditions):
		return t.findings
	case !w.Status.Phase.Terminal():
		t.find(
			Lost,
			"never ended: phase %s, attempt %d, %+v, %+v",
			w.Status.Phase,
			w.Status.Attempt,
			w.Status.Nodes,
			w.Status.Conditions,
		)
		return t.findings
	case w.Status.ObservedGeneration != w.Generation:
		t.find(Lost, "generation %d was never run; the status speaks of %d", w.Generation, w.Status.ObservedGeneration)
		return t.findings
	}
	t.compare(w)
	return t.findings
}

// doubled checks that each DAG is one cluster, and each node of it is one, too; and that there are no more DAGs than
// attempts need.
func (t *workflowTrialOf) doubled() {
	dags, nodes, ran := map[int][]int{}, map[[2]int][]string{}, map[[2]int]int{}
	for _, ad := range t.e.Ads {
		switch {
		case ad.UID == t.UID && !ad.halfSpooled() && !slices.Contains(dags[ad.Attempt], ad.ClusterID):
			dags[ad.Attempt] = append(dags[ad.Attempt], ad.ClusterID)
		case ad.Workflow == t.UID:
			node := [2]int{ad.DAG, ad.Node}
			nodes[node] = append(nodes[node], ad.String())
			if ad.done() || ad.NumJobStarts > 0 {
				ran[node]++
			}
		}
	}
	for dag, clusters := range dags {
		if len(clusters) > 1 {
			t.find(Doubled, "DAG %d is clusters %v", dag, clusters)
		}
	}
	for node, n := range ran {
		if n > 1 {
			t.find(Doubled, "node %d of DAG %d ran as\n\t%s", node[1], node[0], strings.Join(nodes[node], "\n\t"))
		}
	}
	most := t.Trial.Shape.Flow.levels()
	switch {
	case t.Trial.Shape.Paused:
		most *= 2
	case t.Edited:
		most += t.Trial.Shape.Edited.levels()
	}
	if len(dags) > most {
		t.find(Doubled, "%d DAGs instead of at most %d: %v", len(dags), most, dags)
	}
}

// levels returns how many DAGs an attempt has.
func (f Flow) levels() int {
	n := 0
	for i, s := range f.Steps {
		if i == 0 || s.Name == finallyStep || s.All || s.Table {
			n++
		}
	}
	return n + f.Repeats
}

// left checks that nothing is left in the queue, nor staged.
func (t *workflowTrialOf) left() {
	for _, ad := range t.e.Ads {
		if ad.Queued && (ad.UID == t.UID || ad.Workflow == t.UID) {
			t.find(LeftOver, "job %s", ad)
		}
	}
	for _, ad := range t.e.Made {
		if ad.Workflow == t.UID {
			t.find(LeftOver, "factory %s", ad)
		}
	}
	for _, dir := range t.e.Staged {
		if strings.HasPrefix(dir, t.UID) {
			t.find(LeftOver, "staged directory %s", dir)
		}
	}
}

// gone checks that nothing of a deleted HTCWorkflow remains.
func (t *workflowTrialOf) gone() {
	if w, found := t.e.Objects[t.UID]; found {
		t.find(LeftOver, "the object: finalizers %v, %+v", w.Finalizers, w.Status.Conditions)
	}
	for _, r := range t.e.Runs {
		if r.UID == t.UID {
			t.find(LeftOver, "run of DAG %d, %s", r.Attempt, r.State)
		}
	}
	for _, n := range t.e.Nodes {
		if n.UID == t.UID {
			t.find(LeftOver, "row of node %d of DAG %d", n.Node, n.DAG)
		}
	}
	for file := range t.e.Kept {
		if strings.HasPrefix(file, t.Trial.Name+"/") {
			t.find(LeftOver, "file %s", file)
		}
	}
}

// tally counts nodes as the status does.
type tally struct{ Total, Done, Failed, Futile int32 }

func tallyOf(n v1alpha1.NodeCounts) tally { return tally{n.Total, n.Done, n.Failed, n.Futile} }

// compare checks the rows and the object against the ads, node by node, and the ads against what the scripts do.
func (t *workflowTrialOf) compare(w v1alpha1.HTCWorkflow) {
	flow, rows := t.flow(), t.rowsOf(w)
	var all tally
	var failures []string
	for _, s := range flow.Steps {
		var step tally
		for _, n := range flow.nodes(s) {
			step.Total++
			row, found := rows[[3]any{string(s.Name), n.Sequence, n.Item}]
			switch end := flow.Differs[n.name()]; {
			case end.Futile || end.Stopped:
				step.Futile++
				t.never(n, end, row, found)
			case !found && !t.forgotten():
				t.find(Lost, "%s has no row", n.name())
			default:
				if end.Code == 0 {
					step.Done++
				} else {
					step.Failed++
					failures = append(failures, n.name())
				}
				if found {
					t.ended(w, n, end, row)
				} else if end.Code == 0 {
					t.kept(w, n)
				}
			}
		}
		if i := slices.IndexFunc(
			w.Status.Steps,
			func(is v1alpha1.StepStatus) bool { return is.Name == s.Name },
		); i < 0 {
			t.find(Wrong, "status.steps lacks %s", s.Name)
		} else if is := tallyOf(w.Status.Steps[i].NodeCounts); is != step {
			t.find(Wrong, "status.steps says of %s %+v instead of %+v", s.Name, is, step)
		}
		all = tally{all.Total + step.Total, all.Done + step.Done, all.Failed + step.Failed, all.Futile + step.Futile}
	}
	n := w.Status.Nodes
	if tallyOf(n) != all || n.Running+n.Idle+n.Held != 0 {
		t.find(Wrong, "status.nodes is %+v instead of %+v", n, all)
	}
	sequences := v1alpha1.SequenceCounts{
		Total:     int32(flow.Sequences),
		Succeeded: int32(flow.Succeeded),
		Failed:    int32(flow.Sequences - flow.Succeeded),
	}
	if w.Status.Phase != flow.Phase || w.Status.Sequences != sequences {
		t.find(
			Wrong,
			"%s with sequences %+v instead of %s with %+v",
			w.Status.Phase,
			w.Status.Sequences,
			flow.Phase,
			sequences,
		)
	}
	if code := w.Status.ExitCode; flow.Ends != nil && (code == nil || *code != *flow.Ends) {
		t.find(Wrong, "status.exitCode is %v instead of %d", code, *flow.Ends)
	}
	var said []string
	for _, f := range w.Status.Failures {
		said = append(said, f.Node)
	}
	slices.Sort(said)
	slices.Sort(failures)
	if !slices.Equal(said, failures) {
		t.find(Wrong, "status.failures has %v instead of %v", said, failures)
	}
}

// forgotten reports whether the ledger has no rows of it: what had ended before a ledger was lost, with its output
// here, stays as its status says.
func (t *workflowTrialOf) forgotten() bool {
	return t.e.LedgerLost && !slices.ContainsFunc(t.e.Runs, func(r Run) bool { return r.UID == t.UID })
}

// rowsOf returns the ledger's nodes of the last attempt by step, sequence and number.
func (t *workflowTrialOf) rowsOf(w v1alpha1.HTCWorkflow) map[[3]any]NodeRow {
	dags, rows := map[int]bool{}, map[[3]any]NodeRow{}
	for _, r := range t.e.Runs {
		if r.UID == t.UID && slices.Contains(w.Status.JobID, fmt.Sprintf("%d.0", r.Cluster)) {
			dags[r.Attempt] = true
		}
	}
	if len(dags) != len(w.Status.JobID) && !t.forgotten() {
		t.find(Wrong, "status.jobid is %v, the ledger's DAGs are %v", w.Status.JobID, dags)
	}
	for _, n := range t.e.Nodes {
		if n.UID != t.UID || !dags[n.DAG] {
			continue
		}
		key := [3]any{n.Step, n.Sequence, n.Item}
		if other, twice := rows[key]; twice {
			t.find(Doubled, "%v is in DAGs %d and %d", key, other.DAG, n.DAG)
		}
		rows[key] = n
	}
	return rows
}

// adsOf returns the jobs of a node. One that did not run again has its job in an earlier DAG.
func (t *workflowTrialOf) adsOf(row NodeRow) (of []Ad) {
	for _, ad := range t.e.Ads {
		own := ad.DAG == row.DAG && ad.Node == row.Node
		if ad.Workflow == t.UID && (own || row.Source == ledger.SourceCarried && ad.ClusterID == row.Cluster) {
			of = append(of, ad)
		}
	}
	return of
}

// never checks a node that must not have ended by itself.
func (t *workflowTrialOf) never(n FlowNode, end End, row NodeRow, found bool) {
	if !found {
		return
	}
	ads := t.adsOf(row)
	if row.Status != rowFutile && !(end.Stopped && row.Status == rowFailed) || end.Futile && len(ads) > 0 {
		t.find(Wrong, "%s must be %+v, but is %+v; jobs %v", n.name(), end, row, ads)
	}
	for _, ad := range ads {
		if ad.done() {
			t.find(Wrong, "%s must be %+v, but job %s", n.name(), end, ad)
		}
	}
}

// ended checks a node that must have run to its end.
func (t *workflowTrialOf) ended(w v1alpha1.HTCWorkflow, n FlowNode, end End, row NodeRow) {
	var done []Ad
	for _, ad := range t.adsOf(row) {
		if ad.done() {
			done = append(done, ad)
		} else if t.unremembered(ad) {
			ad.JobStatus = completed
			done = append(done, ad)
		}
	}
	if len(done) == 0 && t.toldOnly(end, row) {
		return
	}
	if len(done) == 0 {
		t.find(Lost, "%s never ran to its end: %+v; jobs %v", n.name(), row, t.adsOf(row))
		return
	}
	ad := done[len(done)-1]
	code := ad.ExitCode
	if code == nil || *code != end.Code || row.Status != ad.status(0) || row.Cluster != ad.ClusterID {
		t.find(Wrong, "%s must exit with %d, is %+v; job %s", n.name(), end.Code, row, ad)
	}
	if end.Code == 0 {
		t.kept(w, n)
	}
}

// unremembered reports whether a job was removed because its DAG had run to its end: DAGMan knew its end, and the
// schedd had forgotten it when it was killed.
func (t *workflowTrialOf) unremembered(ad Ad) bool {
	return strings.HasPrefix(ad.RemoveReason, "removed because <OtherJobRemoveRequirements") &&
		slices.ContainsFunc(t.e.Ads, func(of Ad) bool {
			return of.UID == t.UID && of.Attempt == ad.DAG && of.JobStatus == completed
		})
}

// toldOnly reports whether a node has failed as only its callback has told: HTCondor had lost that end with its schedd,
// and htcd, which had begun to remove everything, has removed the job when it ran again.
func (t *workflowTrialOf) toldOnly(end End, row NodeRow) bool {
	ads := t.adsOf(row)
	return t.flow().aborts() && end.Code != 0 && row.Status == rowFailed && row.ExitCode != nil &&
		*row.ExitCode == end.Code &&
		len(ads) == 1 && ads[0].ClusterID == row.Cluster &&
		ads[0].JobStatus == removed &&
		ads[0].NumJobStarts > 0
}

// kept checks the file "ran": one line of the node itself, and each other one as the node that has written it has kept
// it.
func (t *workflowTrialOf) kept(w v1alpha1.HTCWorkflow, n FlowNode) {
	if t.e.Kept == nil {
		return
	}
	lines, found := t.lines(w, n.name())
	if !found {
		t.find(Lost, "the output of %s", n.name())
		return
	}
	flow, last := t.flow(), len(lines)-1
	if len(lines) != n.Step.Lines || flow.nameOf(lines[last]) != n.name() {
		t.find(Wrong, "%s has left %q", n.name(), lines)
		return
	}
	for _, line := range lines[:last] {
		from, found := t.lines(w, flow.nameOf(line))
		if !found || from[len(from)-1] != line {
			t.find(Doubled, "%s has got %q, but what is kept of that node is %q", n.name(), line, from)
		}
	}
}

func (t *workflowTrialOf) lines(w v1alpha1.HTCWorkflow, node string) ([]string, bool) {
	text, found := t.e.Kept[fmt.Sprintf("%s/%d/%s/ran", t.Trial.Name, w.Status.Attempt, node)]
	return strings.Split(strings.TrimSpace(text), "\n"), found
}
