package job

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/pool"
)

// cluster is a pool.Known.
type cluster map[string]v1alpha1.HTCPoolSpec

func (c cluster) Get(name string) *v1alpha1.HTCPool {
	spec, there := c[name]
	if !there {
		return nil
	}
	return &v1alpha1.HTCPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

func (c cluster) Default() *v1alpha1.HTCPool {
	for name, spec := range c {
		if spec.Default {
			return c.Get(name)
		}
	}
	return nil
}

func (cluster) Labels(string) (labels.Set, bool) { return nil, true }

func withPools(c cluster) func(*Options) { return func(o *Options) { o.Pools = c } }

func inGrid(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{Name: "grid"} }

func within(seconds int64) v1alpha1.HTCPoolSpec {
	return v1alpha1.HTCPoolSpec{Defaults: &v1alpha1.PoolDefaults{ActiveDeadlineSeconds: &seconds}}
}

func TestAnHTCJobGoesOnWhenItsPoolAppears(t *testing.T) {
	pools := cluster{}
	w := newWorld(t, withPools(pools))
	job := w.apply(htcjob("one", inGrid))
	require.Equal(t, pool.ReasonMissing, job.Status.Reason)
	require.Equal(t, v1alpha1.PhasePending, job.Status.Phase)
	require.Empty(t, w.schedd.Jobs())
	pools["grid"] = within(9)
	w.PoolChanged(nil, pools.Get("grid"))
	w.settle()
	job = w.job("one")
	require.Equal(t, v1alpha1.PhaseIdle, job.Status.Phase)
	require.Equal(t, "grid", job.Status.Effective.Pool)
	require.Equal(t, "grid", w.schedd.Jobs()[0].Tag.Pool)

	delete(pools, "grid")
	w.PoolChanged(gridWithin(9), nil)
	w.later(10 * time.Second)
	require.Contains(t, w.run("one").Message, "9 seconds have passed since the submission (a default of HTCPool grid)")
}

func gridWithin(seconds int64) *v1alpha1.HTCPool {
	return cluster{"grid": within(seconds)}.Get("grid")
}

func TestAnInterruptedSubmissionIsSentWithThePoolAsItWas(t *testing.T) {
	pools := cluster{"grid": within(100)}
	w := newWorld(t, withPools(pools))
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken})
	w.apply(htcjob("one", inGrid))
	pools["grid"] = within(1)
	w.restart()
	for range 3 {
		w.later(5 * time.Second)
	}
	job := w.job("one")
	require.Equal(t, v1alpha1.PhaseIdle, job.Status.Phase)
	require.EqualValues(t, 100, *job.Status.Effective.ActiveDeadlineSeconds)
	require.Equal(t, "grid", w.schedd.Jobs()[0].Tag.Pool)
}

func TestALostLedgerLearnsThePoolAgain(t *testing.T) {
	for name, forget := range map[string]func(*v1alpha1.HTCJob){
		"from the status": func(*v1alpha1.HTCJob) {},
		"from the ads":    func(job *v1alpha1.HTCJob) { job.Status = v1alpha1.HTCJobStatus{Phase: v1alpha1.PhasePending} },
	} {
		t.Run(name, func(t *testing.T) {
			pools := cluster{"grid": {Default: true}, "other": {}}
			w := newWorld(t, withPools(pools))
			w.apply(htcjob("one"))
			require.NoError(t, w.book.Write(t.Context(), func(tx *ledger.Tx) error { return tx.DeleteRuns("uid-one") }))
			pools["grid"], pools["other"] = v1alpha1.HTCPoolSpec{}, v1alpha1.HTCPoolSpec{Default: true}
			job := w.job("one").DeepCopy()
			forget(job)
			w.write(job)
			w.restart()
			w.settle()
			require.Equal(t, "grid", w.run("one").Pool)
			require.Equal(t, "grid", w.job("one").Status.Effective.Pool)
			require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))
		})
	}
}

func TestTheCommonAccountOfAPoolIsUsedAlsoWhereTheNamespaceHasOne(t *testing.T) {
	w := newWorld(t, withPools(cluster{"grid": {Account: &v1alpha1.PoolAccount{From: v1alpha1.AccountCommon}}}))
	w.accounts["default"] = "own"
	w.apply(htcjob("common", inGrid))
	w.apply(htcjob("own"))
	owners := map[string]string{}
	for _, j := range w.schedd.Jobs() {
		owners[j.Tag.Name] = j.Owner
	}
	require.NotEqual(t, owners["own"], owners["common"])
	require.Equal(t, "-", w.run("common").Secret)
	w.delete("common")
	w.later(time.Minute)
	require.Nil(t, w.job("common"), "it is removed as the account that it was sent with")
}
