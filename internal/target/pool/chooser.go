package pool

import (
	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// Chooser chooses pools of HTCJobs, and finds those of runs again.
type Chooser struct {
	Known Known
	Rules Rules
}

// New returns the pool that an attempt of an HTCJob is sent by that begins now.
func (c Chooser) New(job *v1alpha1.HTCJob) (Pool, error) {
	p, err := Choose(job, c.Known)
	if err != nil || p.None() {
		return p, err
	}
	return p, Check(p.Name, p.Spec, c.Rules)
}

// Same returns the pool that a run is sent by again, as it was when the attempt began, unless that can no longer be
// used.
func (c Chooser) Same(tx *ledger.Tx, job *v1alpha1.HTCJob, run ledger.Run) (Pool, error) {
	if run.SpecHash != job.SpecHash() || run.Pool != "" && run.PoolSpec == "" {
		return c.New(job)
	}
	return c.Began(tx, job, run)
}

// Began returns the pool that a run was sent by, as it was when the attempt began, unless that can no longer be used.
func (c Chooser) Began(tx *ledger.Tx, job *v1alpha1.HTCJob, run ledger.Run) (Pool, error) {
	p, err := recorded(tx, run)
	if err == nil && Check(p.Name, p.Spec, c.Rules) != nil {
		return c.New(job)
	}
	return p, err
}

// Lost is New for an attempt that the ledger has lost: by the status, if that names a pool that still exists.
func (c Chooser) Lost(job *v1alpha1.HTCJob) (Pool, error) {
	if e := job.Status.Effective; e != nil {
		if p, there := present(e.Pool, c.Known); there {
			return p, nil
		}
	}
	return c.New(job)
}

// Presumed returns the pool that an HTCJob was sent by, or will be, as far as that is known without the ledger.
func (c Chooser) Presumed(job *v1alpha1.HTCJob) Pool {
	if job.Status.Active > 0 {
		if job.Status.Effective == nil {
			return Pool{}
		}
		if p, there := present(job.Status.Effective.Pool, c.Known); there {
			return p
		}
	}
	p, _ := Choose(job, c.Known) // while none can be used, the flags are as good a guess as any
	return p
}

// KeepOf returns how long the pool of a run keeps HTCJobs: as the pool is now, or if there is none of that name, as it
// was.
func (c Chooser) KeepOf(tx *ledger.Tx, run ledger.Run) (*v1alpha1.PoolKeep, error) {
	p, there := present(run.Pool, c.Known)
	if there || run.Ended.IsZero() {
		return p.Spec.Keep, nil
	}
	p, err := recorded(tx, run)
	return p.Spec.Keep, err
}

// recorded returns the pool that a run was sent by, as it was then; htcd's flags if that is not known.
func recorded(tx *ledger.Tx, run ledger.Run) (Pool, error) {
	if run.Pool == "" || run.PoolSpec == "" {
		return Pool{}, nil
	}
	spec, err := tx.PoolSpec(run.PoolSpec)
	if err != nil {
		return Pool{}, err
	}
	return read(run.Pool, spec)
}

// Record writes down the pool's spec for the runs that are sent by it.
func (p Pool) Record(tx *ledger.Tx) error {
	if p.None() {
		return nil
	}
	return tx.KeepPoolSpec(p.Snapshot())
}

// Sends adds the pool to a run's row, with what holds for it.
func (p Pool) Sends(run ledger.Run, e *v1alpha1.Effective) ledger.Run {
	run.Pool, run.Effective = p.Name, Write(e)
	run.PoolSpec, _ = p.Snapshot()
	return run
}
