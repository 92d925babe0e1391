package crosscheck

import (
	"maps"
	"strings"
	"time"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// comparison holds what is known about one run: its rows on one side, its ads on the other.
type comparison struct {
	run       ledger.Run
	scope     scope                    // which procs are compared
	made      int                      // procs from this number on are not there yet: their factory has not made them
	extent    Extent                   // how far HTCondor was asked about them
	recent    bool                     // only procs of which something may be new are compared; the others are present
	rows      map[int]ledger.Proc      // no ad seen yet
	unchanged map[int]condor.JobStatus // the same, for rows that say only that the job is open and in that state
	observed  map[int]Observation
	doubt     Doubt    // whether its missing jobs are lost
	unread    []string // jobs that exist but whose ads cannot be fetched or read
	present   bool     // HTCondor has some proc that is open, as its row says
	applied   bool     // observations are being written, or have been
	failed    error    // what could not be done about this run
	takesBack bool     // an observation says of a job that had ended that it goes on

	// The schedd receives a cluster's files together and then marks its procs one by one. If it is killed in between,
	// some procs run and the others never will.
	asked    int                 // number of procs with rows
	arrived  bool                // files of some proc arrived
	spooling bool                // some proc waits in the queue for its files
	stuck    bool                // some proc waits in the queue for files that will never arrive
	unstaged map[int]Observation // procs that left the queue because their files never arrived
	neverRan bool                // unstaged holds the complete cluster
}

// scope is which procs of a run are compared.
type scope int

const (
	unconfirmed scope = iota // those of which HTCondor has not confirmed the end
	everything               // ended ones, too
	calledLost               // only those that were called lost
)

// full reports whether ended procs are compared.
func (k *comparison) full() bool { return k.scope != unconfirmed }

// runKey identifies a run by what its ads carry. A cluster id alone is reused when a schedd is set up from scratch.
type runKey struct {
	cluster int
	uid     string
	attempt int
}

// keyOf returns the key of a run.
func keyOf(run ledger.Run) runKey { return runKey{run.Cluster, run.UID, run.Attempt} }

// keyOfJob returns the key of the run that an ad names.
func keyOfJob(j condor.Job) runKey { return runKey{j.Cluster, j.Tag.UID, j.Tag.Attempt} }

// comparisons holds those of one check.
type comparisons map[runKey]*comparison

func newComparisons(runs []ledger.Run, s scope, m made) comparisons {
	all := make(comparisons, len(runs))
	for _, run := range runs {
		all[keyOf(run)] = &comparison{
			run:      run,
			scope:    s,
			made:     m.of(run),
			rows:     map[int]ledger.Proc{},
			observed: map[int]Observation{},
		}
	}
	return all
}

// of returns the comparison that an ad belongs to, or nil if nobody asked about its run.
func (all comparisons) of(j condor.Job) *comparison {
	return all[keyOfJob(j)]
}

// seen reports whether the ads of all procs have been seen.
func (all comparisons) seen() bool {
	for _, k := range all {
		if k.unseen() > 0 {
			return false
		}
	}
	return true
}

// unseen returns the number of procs whose ads have not been seen yet.
func (k *comparison) unseen() int { return len(k.rows) + len(k.unchanged) }

// quiet reports whether there is nothing to write except that HTCondor was asked.
func (k *comparison) quiet() bool {
	return k.present && len(k.observed) == 0 && len(k.unstaged) == 0 && !k.stuck && !k.run.Confirmed &&
		k.run.Ended.IsZero()
}

// wants reports whether a job was asked about and has not been seen yet.
func (k *comparison) wants(j condor.Job) bool {
	_, row := k.rows[j.Number()]
	_, unchanged := k.unchanged[j.Number()]
	return row || unchanged
}

// needsReason reports whether a job cannot be judged without HTCondor's reasons: because it was removed, ended without
// an output, or is held and was not at the last check, or was held for another reason. The job's owner decides how long
// reasons are, so they are requested only when they are new; htcd knows its own.
func (k *comparison) needsReason(j condor.Job) bool {
	if !NeedsReason(j) || !k.wants(j) {
		return false
	}
	known := HeldAsBefore(k.rows[j.Number()], j) &&
		time.Unix(j.EnteredCurrentStatus, 0).Before(k.run.Checked.Add(-Settling))
	return !j.Held() || k.full() || !known
}

// NeedsReason reports whether a job of which nothing is known cannot be judged without HTCondor's reasons.
func NeedsReason(j condor.Job) bool {
	return !j.Reasoned && !j.HeldByPool() && (j.Status == condor.Removed || j.Held() || j.MayLack())
}

// HeldAsBefore reports whether the row says that the job is held with the same code.
func HeldAsBefore(p ledger.Proc, j condor.Job) bool {
	return p.Status == ledger.StatusOpen && p.JobStatus == int(condor.Held) && p.Reason == reasonHeld &&
		strings.Contains(p.Message, holdCode(j))
}

// take compares one ad that the named tool showed.
func (k *comparison) take(j condor.Job, tool string, at time.Time) {
	if !k.wants(j) {
		return
	}
	p := k.rows[j.Number()]
	was, unchanged := k.unchanged[j.Number()]
	delete(k.rows, j.Number())
	delete(k.unchanged, j.Number())
	switch {
	case j.Unread:
		k.unread, k.present = append(k.unread, j.ID()), true
		k.arrived = true // for all that is known: it may have run
	case NeverRan(j):
		if k.unstaged == nil {
			k.unstaged = map[int]Observation{}
		}
		o := Ad(j, at)
		o = o.After(p)
		o.evidence = Evidence(tool, j)
		k.unstaged[j.Number()] = o
	case j.Stuck(k.run.Procs, at):
		k.stuck, k.spooling = true, true
	default:
		if j.Spooled() || !j.Spooling() {
			k.arrived = true
		} else {
			k.spooling = true
		}
		o := Ad(j, at)
		if !j.Reasoned && o.hold != "" && !o.byPool {
			o.hold = p.Message // unchanged: see needsReason
		}
		if o.told = p.Stderr; k.full() {
			o.read = &p
		}
		changes := !unchanged || !o.Repeats(was)
		if !unchanged {
			var is ledger.Proc
			is, changes = o.Apply(p)
			k.takesBack = k.takesBack || changes && p.Status != ledger.StatusOpen && is.Status == ledger.StatusOpen
		}
		switch {
		case changes:
			o.evidence = Evidence(tool, j)
			k.observed[j.Number()] = o
		case unchanged:
			k.present = true
		}
	}
}

// judgeUnstaged decides about procs whose files never arrived. If that is the complete cluster, it is sent again; if
// others ran, these procs have failed, because sending the cluster again would run the others twice. While files may
// still arrive, or there is no trace of others, a later check decides.
func (k *comparison) judgeUnstaged() {
	if len(k.unstaged) == 0 || !k.arrived && (k.spooling || k.unseen() > 0) {
		return
	}
	if !k.arrived && k.asked >= k.run.Procs {
		k.neverRan = true
		return
	}
	maps.Copy(k.observed, k.unstaged)
}

// miss records the procs that neither queue nor history showed.
func (k *comparison) miss(at time.Time) {
	o := Absence(k.run.Stop, k.doubt, at)
	for proc, p := range k.rows {
		if _, changed := o.Apply(p); changed {
			k.observed[proc] = o
		}
	}
	for proc := range k.unchanged {
		k.observed[proc] = o
	}
}

// sinceMark reports whether any proc of this run that left the queue did so after the mark: the run was checked or sent
// since.
func (k *comparison) sinceMark(m Mark) bool {
	for _, p := range k.rows {
		if p.Absent > 0 {
			return false
		}
	}
	return !k.run.Checked.Before(m.At) || k.run.Submitted.After(m.At)
}
