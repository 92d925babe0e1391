package recovery

import (
	"cmp"
	"slices"
	"time"

	"htc.cern.ch/htcd/internal/schedd"
)

// Verdict is what became of an attempt.
type Verdict int

// The verdicts.
const (
	Absent      Verdict = iota
	Whole               // some proc is spooled, or ran already: this is the run's cluster
	Spooling            // files may still be arriving
	HalfSpooled         // files stopped arriving: it will never run
)

// Finding is what the schedd has of an attempt.
type Finding struct {
	Verdict  Verdict
	Cluster  schedd.Cluster
	QDate    int64  // when the schedd took the oldest of its jobs, 0 when no ad says so
	SpecHash string // of the spec it was sent with, "" when no ad says so
}

// Since is when the cluster was submitted: start time and deadlines count from there, however long nobody knew of it. The
// schedd's clock may be ahead of ours.
func (f Finding) Since(now time.Time) time.Time {
	if sent := time.Unix(f.QDate, 0); f.QDate > 0 && sent.Before(now) {
		return sent
	}
	return now
}

// Judge says what the jobs found under one tag amount to. One proc that is spooled, or ended, stands for its cluster: it may have
// begun to run, and so the cluster cannot be sent again. Should the schedd have been killed before it had marked the others as
// spooled, the cross-check deals with them. With more than one cluster the whole one counts, the oldest first.
func Judge(queued, left []schedd.Job, now time.Time) Finding {
	clusters := map[int]*Finding{}
	for _, j := range slices.Concat(queued, left) {
		f := clusters[j.Cluster]
		if f == nil {
			f = &Finding{Cluster: schedd.Cluster{ID: j.Cluster}, Verdict: Spooling}
			clusters[j.Cluster] = f
		}
		f.Cluster.Procs = max(f.Cluster.Procs, j.Proc+1)
		if j.QDate > 0 && (f.QDate == 0 || j.QDate < f.QDate) {
			f.QDate = j.QDate
		}
		f.SpecHash = cmp.Or(f.SpecHash, j.Tag.SpecHash)
		if j.Spooled() || !j.Spooling() {
			f.Verdict = Whole
		}
	}
	for _, j := range queued {
		f := clusters[j.Cluster]
		if f.Verdict == Spooling && now.Sub(time.Unix(j.QDate, 0)) > schedd.SpoolTime(f.Cluster.Procs) {
			f.Verdict = HalfSpooled
		}
	}
	found := Finding{}
	rank := map[Verdict]int{Absent: 0, HalfSpooled: 1, Spooling: 2, Whole: 3}
	for _, f := range clusters {
		if order := cmp.Compare(rank[f.Verdict], rank[found.Verdict]); order > 0 || order == 0 && f.Cluster.ID < found.Cluster.ID {
			found = *f
		}
	}
	return found
}
