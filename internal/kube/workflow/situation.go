package workflow

import (
	"cmp"
	"slices"
	"time"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/kube/graph"
	"htc.cern.ch/htcd/internal/kube/lifecycle"
	"htc.cern.ch/htcd/internal/ledger"
)

// Situation is everything known about one workflow when a decision is made.
type Situation struct {
	Workflow *v1alpha1.HTCWorkflow
	Graph    *graph.Graph // of the spec; nil: it cannot be sent as it is
	Attempt  int          // number of the newest; 0: none was ever begun
	DAGs     []DAG        // of that attempt, the newest last
	Failures []ledger.Node
	Rules    []ledger.RuleState // those of that attempt that were looked at
	Measured measured
	Repeat   repetition
	Released bool // our finalizer was removed from this version of it: the cache does not show that yet
	Orphans  bool // the ledger has runs of an older object of this name
	// the newest DAG is an intent that HTCondor does not have open, though the status tells of an end
	Sought    bool
	Keep      *v1alpha1.PoolKeep // of the pool it was sent by; nil: none
	Unfetched bool               // some output has not been fetched yet
	Result    *string            // what spec.result names; nil: there is none yet
	Pushes    ledger.PushCounts  // of all DAGs
	Quota     *lifecycle.Quota   // the word of a quota outside of htcd; nil: it is subject to none
	Now       time.Time
}

// DAG is one of them.
type DAG struct {
	Run       ledger.Run
	Job       *ledger.Proc  // DAGMan's; nil: the cluster is not known
	Held      []ledger.Node // the first node that is held, if any is
	Steps     []ledger.StepCounts
	Sequences ledger.SequenceCounts
	Repeats   bool   // steps of sequences that an earlier one of the same level has run
	Aborted   bool   // a node has failed with one of its step's abortExitCodes
	Returns   *int32 // with what the workflow then ends; nil: the step does not say
	Settled   bool   // HTCondor has confirmed how each node ended
}

// open returns how many of its nodes may still run, or have not been settled.
func (d DAG) open() (n int) {
	for _, s := range d.Steps {
		n += s.Active
	}
	return n
}

// waiting returns how many of its nodes HTCondor has no job of yet.
func (d DAG) waiting() (n int) {
	for _, s := range d.Steps {
		n += s.Active - s.Idle - s.Running - s.Held
	}
	return n
}

// failed returns how many of its nodes have failed by themselves.
func (d DAG) failed() (n int) {
	for _, s := range d.Steps {
		n += s.Failed
	}
	return n
}

// settled reports whether HTCondor has confirmed its end, and that of each of its nodes.
func (d DAG) settled() bool {
	switch d.Run.State {
	case ledger.Submitted:
		return d.Run.Confirmed && d.Settled
	case ledger.Intent:
		return false
	}
	return true
}

// stopped reports whether nothing but finally may come after a DAG. One may have ended by itself before htcd could
// remove what was left of it.
func (s Situation) stopped(d DAG) bool {
	stop := d.Run.Stop
	return d.Aborted || d.removed() || stop == crosscheck.StopDeadline || stop == crosscheck.StopAborted ||
		stop == "" && s.failsAll(d)
}

// removed reports whether somebody else has removed it from HTCondor.
func (d DAG) removed() bool {
	return d.Job != nil && d.Job.Status == ledger.StatusFailed && d.Job.Reason == crosscheck.ReasonRemoved
}

// suspended reports whether spec.suspend, or a quota, has ended it: then everything is sent again.
func (d DAG) suspended() bool {
	return d.Run.State == ledger.Removed || d.Run.Stop == crosscheck.StopSuspended && d.settled()
}

// newest returns the DAG that was begun last; nil: none.
func (s Situation) newest() *DAG {
	if len(s.DAGs) == 0 {
		return nil
	}
	return &s.DAGs[len(s.DAGs)-1]
}

// runs returns the rows of the attempt's DAGs.
func (s Situation) runs() (all []ledger.Run) {
	for _, d := range s.DAGs {
		all = append(all, d.Run)
	}
	return all
}

// changed reports whether the newest attempt was made from another spec than the present one, or is to be repeated.
func (s Situation) changed() bool {
	run, again := s.DAGs[0].Run, s.Workflow.Rerun()
	return again != "" && again != run.Rerun || run.SpecHash != s.Workflow.SpecHash()
}

// level returns that of a DAG of the present spec, -1 if it has none of its steps.
func (s Situation) level(d DAG) int {
	if s.Graph == nil || len(d.Steps) == 0 || d.Steps[0].Number >= len(s.Graph.Steps) {
		return -1
	}
	return s.Graph.Steps[d.Steps[0].Number].Level
}

// final reports whether a level is that of finally.
func (s Situation) final(level int) bool { return s.Graph.Steps[s.Graph.Levels[level][0]].Final }

// total returns how many sequences there are, as far as that is known.
func (s Situation) total() int {
	for _, n := range s.sequences() {
		if n != (ledger.SequenceCounts{}) {
			return n.Active + n.Succeeded + n.Failed
		}
	}
	return begunAtFirst(s.Workflow, s.Workflow.Sequences())
}

// wanted returns how many sequences must succeed.
func (s Situation) wanted() int {
	counts := s.sequences()
	for i, d := range s.DAGs {
		if s.finishedByRule(d) {
			return counts[s.levelAt(i)].Succeeded
		}
	}
	if spec := s.Workflow.Spec.Sequences; spec != nil {
		return cmp.Or(valueOf(spec.Complete), valueOf(spec.Completions), s.total())
	}
	return s.total()
}

// sequences counts those of each level that was sent. What is repeated has left the earlier DAG of its level.
func (s Situation) sequences() (all []ledger.SequenceCounts) {
	for _, d := range s.DAGs {
		if !d.Repeats || len(all) == 0 {
			all = append(all, ledger.SequenceCounts{})
		}
		n := &all[len(all)-1]
		n.Active, n.Succeeded, n.Failed = n.Active+d.Sequences.Active, n.Succeeded+d.Sequences.Succeeded,
			n.Failed+d.Sequences.Failed
	}
	return all
}

// levelAt returns the place in sequences of the level of a DAG.
func (s Situation) levelAt(i int) (at int) {
	for _, d := range s.DAGs[1 : i+1] {
		if !d.Repeats {
			at++
		}
	}
	return at
}

// lastOfSequences returns the last level that has steps of sequences, -1 if there is none.
func (s Situation) lastOfSequences() int {
	last := -1
	for _, step := range s.Graph.Steps {
		if !step.All {
			last = max(last, step.Level)
		}
	}
	return last
}

// left returns in how many sequences nothing has failed so far.
func (s Situation) left() int {
	for _, n := range slices.Backward(s.sequences()) {
		if n != (ledger.SequenceCounts{}) {
			return n.Succeeded + n.Active
		}
	}
	return max(s.total(), 1)
}

// succeeded returns how many sequences have succeeded in all their steps.
func (s Situation) succeeded() int {
	last := s.lastOfSequences()
	if last < 0 {
		return 0
	}
	n := 0
	for _, d := range s.DAGs {
		if s.level(d) == last {
			n += d.Sequences.Succeeded
		}
	}
	return n
}

// failedSteps returns the steps for all sequences of which more nodes have failed than may, or one is futile.
func (s Situation) failedSteps() (failed []int) {
	for _, d := range s.DAGs {
		for _, step := range d.Steps {
			if step.Number >= len(s.Graph.Steps) {
				continue
			}
			if is := s.Graph.Steps[step.Number]; is.All && (step.Failed > is.MayFail() || step.Futile > 0) {
				failed = append(failed, step.Number)
			}
		}
	}
	return failed
}

// returns is what the workflow ends with, as a node has ended everything; nil: none has, or its step does not say.
func (s Situation) returns() *int32 {
	for _, d := range s.DAGs {
		if d.Returns != nil {
			return d.Returns
		}
	}
	return nil
}

// afterRefusal returns the level of finally if a level before it was refused after others had been sent. What an
// earlier htcd has called ended stays so.
func (s Situation) afterRefusal() (level int, is bool) {
	before := s
	before.DAGs = s.DAGs[:len(s.DAGs)-1]
	if status := s.Workflow.Status; len(before.DAGs) == 0 ||
		status.Phase.Terminal() && int(status.Attempt) == s.Attempt {
		return 0, false
	}
	refused, is := before.next()
	last := len(s.Graph.Levels) - 1
	return last, is && !s.final(refused) && s.final(last)
}

// refused returns the DAG of an attempt that was refused; nil: none.
func (s Situation) refused() *DAG {
	for i := range s.DAGs {
		if s.DAGs[i].Run.State == ledger.Refused {
			return &s.DAGs[i]
		}
	}
	return nil
}

// next returns the level that comes after the newest DAG, which has ended.
func (s Situation) next() (level int, is bool) {
	if s.Graph == nil || s.changed() {
		return 0, false
	}
	if s.repeating() || len(s.further()) > 0 {
		return s.level(*s.newest()), true
	}
	if s.newest().Run.State == ledger.Refused {
		return s.afterRefusal()
	}
	stopped := false
	for _, d := range s.DAGs {
		stopped = stopped || s.stopped(d)
	}
	futile := s.Graph.FutileSteps(graph.Outcome{Sequences: make([]int, min(s.left(), 1)), Failed: s.failedSteps()})
	for level := s.level(*s.newest()) + 1; level < len(s.Graph.Levels); level++ {
		if s.final(level) {
			return level, true
		}
		for _, step := range s.Graph.Levels[level] {
			if !stopped && !futile[step] && (s.Graph.Steps[step].All || s.left() > 0) {
				return level, true
			}
		}
	}
	return 0, false
}
