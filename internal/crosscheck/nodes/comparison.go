package nodes

import (
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// comparison holds what is known about one DAG: the rows of its nodes on one side, ads on the other.
type comparison struct {
	dag
	accounts  []string            // the Owners that its jobs may have
	asked     time.Time           // when HTCondor was last asked about everything; zero: not known
	waiting   ledger.NodeSet      // no job of them was seen before
	unchanged map[int]seen        // no ad seen yet, of rows that say only that the job is open and in that state
	rows      map[int]ledger.Node // the same, for the other rows whose end HTCondor has not confirmed
	heard     map[int][]word
	full      bool             // nodes whose end is confirmed are compared, too
	doubtful  crosscheck.Doubt // whether its missing nodes are lost
	unread    []string         // jobs that exist but whose ads cannot be fetched or read
	failed    error            // why nothing more is written about this DAG
	repaired  []crosscheck.Alike
}

// seen is what an unchanged row says.
type seen struct {
	cluster int
	status  condor.JobStatus
}

// key identifies a DAG by what the ads of its nodes carry.
type key struct {
	uid string
	dag int
}

func keyOf(run ledger.Run) key { return key{run.UID, run.Attempt} }

// comparisons holds those of one check.
type comparisons map[key]*comparison

// of returns that of the DAG that an ad names, nil if nobody asked about it.
func (all comparisons) of(j condor.Job) *comparison { return all[key{j.Node.UID, j.Node.DAG}] }

// hear compares an ad.
func (all comparisons) hear(j condor.Job, queued bool, at time.Time) error {
	if j.Unread {
		all.doubt(j)
		return nil
	}
	k := all.of(j)
	number := j.Node.Number
	if k == nil || j.Proc != k.run.NodeProc(number) {
		return nil
	}
	p, row := k.rows[number]
	was, unchanged := k.unchanged[number]
	switch {
	case unchanged && was.cluster == j.Cluster:
		return k.repeat(j, was.status, queued, at)
	case !k.owns(j):
		return nil
	case row && p.Cluster == j.Cluster:
		return k.compare(j, p, queued, at)
	case row, unchanged, queued, k.waiting.Has(number):
		return k.add(j, queued, at)
	}
	return nil // an entry of the history about a node whose end is confirmed
}

// owns reports whether a job is the DAG's, and not somebody else's with its tag. That of a cluster that HTCondor has
// shown before is.
func (k *comparison) owns(j condor.Job) bool {
	number := j.Node.Number
	if was, unchanged := k.unchanged[number]; unchanged && was.cluster == j.Cluster {
		return true
	}
	if p, row := k.rows[number]; row && p.Cluster == j.Cluster && !p.Claimed {
		return true
	}
	return slices.Contains(k.accounts, j.Owner)
}

// hearer returns hear for the queue's ads, or for the history's.
func (all comparisons) hearer(queued bool, at time.Time) func(condor.Job) error {
	return func(j condor.Job) error { return all.hear(j, queued, at) }
}

// repeat compares an ad with an unchanged row.
func (k *comparison) repeat(j condor.Job, was condor.JobStatus, queued bool, at time.Time) error {
	if o := crosscheck.Ad(j, at); !o.Repeats(was) {
		return k.add(j, queued, at)
	}
	delete(k.unchanged, j.Node.Number)
	return nil
}

// compare compares an ad with another row.
func (k *comparison) compare(j condor.Job, p ledger.Node, queued bool, at time.Time) error {
	long := time.Unix(j.EnteredCurrentStatus, 0).Before(k.asked.Add(-crosscheck.Settling))
	if j.Held() && long && crosscheck.HeldAsBefore(p.Proc, j) { // reasons are requested only when they are new
		delete(k.rows, j.Node.Number)
		return nil
	}
	return k.add(j, queued, at)
}

// add notes what an ad says, to be applied when the row is read again.
func (k *comparison) add(j condor.Job, queued bool, at time.Time) error {
	if crosscheck.NeedsReason(j) {
		return schedd.ErrReasons
	}
	number := j.Node.Number
	left := j.LeftByDAG() && k.run.Stop == ""
	if left && !k.ended() { // how DAGMan ended says more
		delete(k.rows, number)
		delete(k.unchanged, number)
		return nil
	}
	if left = left && k.ran(); left {
		j = k.over(j)
	}
	w := word{cluster: j.Cluster, left: left, says: crosscheck.Ad(j, at)}
	if p, row := k.rows[number]; row && p.Cluster == j.Cluster {
		if k.full && queued {
			w.says = w.says.After(p.Proc)
		}
		delete(k.rows, number)
	}
	if k.full {
		w.evidence = evidence(j, queued)
	}
	if was, unchanged := k.unchanged[number]; unchanged && was.cluster == j.Cluster {
		delete(k.unchanged, number)
	}
	if k.heard == nil {
		k.heard = map[int][]word{}
	}
	k.heard[number] = append(k.heard[number], w)
	return nil
}

// doubt takes note of a job whose ad cannot be read: it is present. Its tag may be what cannot be read: then it may be
// any DAG's.
func (all comparisons) doubt(j condor.Job) {
	if k := all.of(j); k != nil {
		if k.owns(j) {
			k.doubt(j)
		}
		return
	}
	for _, k := range all {
		if slices.Contains(k.accounts, j.Owner) {
			k.doubt(j)
		}
	}
}

func (k *comparison) doubt(j condor.Job) {
	k.unread = append(k.unread, j.ID())
	for number, was := range k.unchanged {
		if was.cluster == j.Cluster && j.Proc == k.run.NodeProc(number) {
			delete(k.unchanged, number)
		}
	}
	for number, p := range k.rows {
		if p.Cluster == j.Cluster && j.Proc == p.Proc.Proc {
			delete(k.rows, number)
		}
	}
}

// missing returns the numbers of the nodes that neither queue nor history showed.
func (k *comparison) missing() (numbers []int) {
	for number := range k.unchanged {
		numbers = append(numbers, number)
	}
	for number := range k.rows {
		numbers = append(numbers, number)
	}
	return numbers
}

// seen reports whether the history has nothing more to say.
func (all comparisons) seen() bool {
	for _, k := range all {
		if k.unseen() {
			return false
		}
	}
	return true
}

// unseen reports whether the history may have something to say.
func (k *comparison) unseen() bool { return len(k.unchanged)+len(k.rows) > 0 || k.waits() }

// waits reports whether there were nodes of which no job had been seen.
func (k *comparison) waits() bool { return !k.waiting.Empty() }

// leftNoTrace reports whether earlier answers did not show a job, or whether one that was never seen is certainly gone
// unless the history has it.
func (k *comparison) leftNoTrace() bool {
	for _, p := range k.rows {
		if p.Absent > 0 {
			return true
		}
	}
	return k.ended() && k.waits()
}
