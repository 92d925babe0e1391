package recovery

import (
	"cmp"
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// Verdict says what became of an attempt.
type Verdict int

// The verdicts.
const (
	Absent      Verdict = iota
	Whole               // some proc is spooled or has run already: this is the run's cluster
	Spooling            // files may still be arriving
	HalfSpooled         // files stopped arriving: it will never run
)

// Finding describes what the schedd has of an attempt.
type Finding struct {
	Verdict  Verdict
	Cluster  condor.Cluster
	QDate    int64       // when the schedd accepted the oldest of its jobs; 0 if no ad says so
	SpecHash string      // of the spec it was sent with; "" if no ad says so
	Pool     string      // name of the HTCPool it was sent by; "" if no ad says so
	Nodes    string      // hash of which nodes it has, of a DAG; "" if no ad says so
	Repeats  string      // which sequences a DAG repeats, by which rules; "" if no ad says so
	Stop     string      // why htcd removed it, one of crosscheck's stops; "" if no ad says so
	Numbers  []int       // of its jobs, if they are not their procs'; none if no ad says so
	Made     bool        // a factory makes its jobs
	Launcher *condor.Job // the cluster is only that of a factory's launcher: none of the jobs was seen; nil: it is not
}

// Since returns when the cluster was submitted, but not later than now, since the schedd's clock may be ahead of ours.
// Start time and deadlines count from there, however late the cluster is found.
func (f Finding) Since(now time.Time) time.Time {
	if sent := time.Unix(f.QDate, 0); f.QDate > 0 && sent.Before(now) {
		return sent
	}
	return now
}

// Judge reaches a verdict on the jobs found under one tag. A single proc that is spooled or ended makes its cluster
// whole: it may have begun to run, so the cluster cannot be sent again. If the schedd was killed before it marked the
// others as spooled, the cross-check deals with them; what has been removed of it for that reason still counts as a
// part of it. Of several clusters a whole one counts first, then the oldest. The launcher of a factory counts where
// none of the jobs was seen.
func Judge(queued, left, unstaged []condor.Job, now time.Time) Finding {
	clusters := map[int]*Finding{}
	isLauncher := func(j condor.Job) bool { return j.Launcher }
	if slices.ContainsFunc(slices.Concat(queued, left), func(j condor.Job) bool { return !j.Launcher }) {
		queued, left = slices.DeleteFunc(
			slices.Clone(queued),
			isLauncher,
		), slices.DeleteFunc(
			slices.Clone(left),
			isLauncher,
		)
	}
	for _, j := range slices.Concat(queued, left) {
		f := clusters[j.Cluster]
		if f == nil {
			f = &Finding{Cluster: condor.Cluster{ID: j.Cluster}, Verdict: Spooling}
			clusters[j.Cluster] = f
		}
		f.has(j)
		if j.QDate > 0 && (f.QDate == 0 || j.QDate < f.QDate) {
			f.QDate = j.QDate
		}
		f.SpecHash, f.Pool = cmp.Or(f.SpecHash, j.Tag.SpecHash), cmp.Or(f.Pool, j.Tag.Pool)
		f.Nodes, f.Stop = cmp.Or(f.Nodes, j.Tag.Nodes), cmp.Or(f.Stop, crosscheck.StopOf(j))
		f.Repeats = cmp.Or(f.Repeats, j.Tag.Repeats)
		if j.Spooled() || !j.Spooling() {
			f.Verdict = Whole
		}
	}
	for _, j := range unstaged {
		if f := clusters[j.Cluster]; f != nil {
			f.has(j)
		}
	}
	for _, j := range queued {
		f := clusters[j.Cluster]
		if f.Verdict == Spooling && j.Stuck(f.Cluster.Procs, now) {
			f.Verdict = HalfSpooled
		}
	}
	found := Finding{}
	rank := map[Verdict]int{Absent: 0, HalfSpooled: 1, Spooling: 2, Whole: 3}
	for _, f := range clusters {
		if order := cmp.Compare(rank[f.Verdict], rank[found.Verdict]); order > 0 ||
			order == 0 && f.Cluster.ID < found.Cluster.ID {
			found = *f
		}
	}
	return found
}

// has counts a job of the cluster.
func (f *Finding) has(j condor.Job) {
	f.Cluster.Procs = max(f.Cluster.Procs, j.Proc+1, j.Made)
	f.Made = f.Made || j.Made > 0
	if j.Launcher {
		f.Launcher, f.Made = &j, true
	}
	if j.Own != nil {
		f.Numbers = append(f.Numbers, *j.Own)
	}
}
