package job

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/kube/site"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func submitted(job *v1alpha1.HTCJob) metav1.Condition {
	return *meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionSubmitted)
}

func TestHTCJobsWaitForRoomInTheirNamespaceOldestFirst(t *testing.T) {
	w := newWorld(t)
	w.Site.MaxOpen = 3
	begun := w.clock
	created := func(after time.Duration) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) { job.CreationTimestamp = metav1.NewTime(begun.Add(after)) }
	}
	w.apply(htcjob("running", queueOf(2)))
	large := w.apply(htcjob("large", queueOf(3), created(time.Second)))
	small := w.apply(htcjob("small", created(2*time.Second)))
	for _, job := range []*v1alpha1.HTCJob{large, small} {
		require.Equal(t, v1alpha1.PhasePending, job.Status.Phase)
		require.Equal(t, metav1.ConditionFalse, submitted(job).Status)
		require.Equal(t, "NamespaceLimit", submitted(job).Reason)
		require.Contains(
			t,
			submitted(job).Message,
			"2 of 3 jobs of namespace default open (--max-open-per-namespace), ",
		)
		require.Empty(t, job.Finalizers, "it can be deleted at once")
	}
	require.Contains(t, w.events, "Warning NamespaceLimit: "+submitted(small).Message)
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit))

	require.NoError(t, w.ends("running", 0, 0))
	w.crosscheck()
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit), "one has room now, but it is not the oldest that waits")
	require.NoError(t, w.ends("running", 1, 0))
	require.Equal(t, 1, w.schedd.Calls(scheddtest.Submit), "HTCondor has not confirmed that it has ended")
	w.crosscheck()
	require.Equal(t, v1alpha1.PhaseIdle, w.job("large").Status.Phase)
	require.Equal(t, v1alpha1.PhasePending, w.job("small").Status.Phase)
	w.delete("large")
	require.Equal(t, v1alpha1.PhaseIdle, w.job("small").Status.Phase, "deleting makes room, too")
}

func TestOneThatIsDeletedWhileItWaitsHoldsUpNobody(t *testing.T) {
	w := newWorld(t)
	w.Site.MaxOpen = 2
	w.apply(htcjob("a", queueOf(1)))
	w.apply(htcjob("b", queueOf(2)))
	w.apply(htcjob("c", queueOf(1)))
	require.Equal(t, v1alpha1.PhasePending, w.job("c").Status.Phase)
	w.delete("b")
	require.Equal(t, v1alpha1.PhaseIdle, w.job("c").Status.Phase)
}

func TestAChangedSpecWaitsForRoomAndSaysSo(t *testing.T) {
	w := newWorld(t)
	w.Site.MaxOpen = 1
	w.apply(htcjob("again"))
	require.NoError(t, w.ends("again", 0, 0))
	w.apply(htcjob("other"))
	first := w.job("again").DeepCopy()
	first.Generation, first.Spec.Script.Source = 2, "true\n"
	waits := w.apply(first)
	require.Equal(t, "NamespaceLimit", submitted(waits).Reason)
	require.NoError(t, w.ends("other", 0, 0))
	w.crosscheck()
	require.EqualValues(t, 2, w.job("again").Status.Attempt)
	require.Equal(t, metav1.ConditionTrue, submitted(w.job("again")).Status)
}

func TestOneThatCanNeverFitIsRefused(t *testing.T) {
	for name, site := range map[string]site.Site{
		"--max-queue": {MaxQueue: 3}, "--max-open-per-namespace": {MaxOpen: 3},
	} {
		w := newWorld(t)
		w.Site.MaxQueue, w.Site.MaxOpen = site.MaxQueue, site.MaxOpen
		require.Equal(t, v1alpha1.PhaseIdle, w.apply(htcjob("fits", queueOf(3))).Status.Phase)
		refused := w.apply(htcjob("large", queueOf(4)))
		require.Equal(t, v1alpha1.PhaseFailed, refused.Status.Phase)
		require.Contains(t, submitted(refused).Message, name)
	}
}

func TestAnImageThatIsNotAllowedIsRefused(t *testing.T) {
	w := newWorld(t)
	w.Site.ImageRegistry, w.Site.AllowImages = "registry.test", []string{"docker://registry.test/physics/*"}
	refused := w.apply(htcjob("centos"))
	require.Equal(t, v1alpha1.PhaseFailed, refused.Status.Phase)
	require.Contains(t, submitted(refused).Message, "image docker://registry.test/centos is not among those")
	require.Contains(t, submitted(refused).Message, "docker://registry.test/physics/*")
	image := func(job *v1alpha1.HTCJob) { job.Spec.Script.Image = "physics/root" }
	require.Equal(t, v1alpha1.PhaseIdle, w.apply(htcjob("root", image)).Status.Phase)
}

func TestThoseThatWaitAreNotWrittenAtEachEnd(t *testing.T) {
	w := newWorld(t)
	w.Site.MaxOpen = 1
	const waiting = 100
	w.apply(htcjob("0"))
	for i := range waiting {
		w.apply(htcjob(strconv.Itoa(i+1), func(job *v1alpha1.HTCJob) {
			job.CreationTimestamp = metav1.NewTime(w.clock.Add(time.Duration(i) * time.Second))
		}))
	}
	last := w.job(strconv.Itoa(waiting))
	require.Contains(
		t,
		submitted(last).Message,
		"1 of 1 jobs of namespace default open (--max-open-per-namespace), 99 HTCJobs before this one",
	)
	before := w.writes
	for i := range 10 {
		require.NoError(t, w.ends(strconv.Itoa(i), 0, 0))
		w.crosscheck()
		require.Equal(t, v1alpha1.PhaseIdle, w.job(strconv.Itoa(i+1)).Status.Phase)
	}
	require.LessOrEqual(t, w.writes-before, 10*5, "of the one that has ended and the one that was sent")
	require.Equal(t, last, w.job(last.Name))
}

func TestThoseThatWaitedBeforeARestartKeepTheirPlaces(t *testing.T) {
	w := newWorld(t)
	w.Site.MaxOpen = 2
	w.apply(htcjob("first", queueOf(2)))
	created := func(after time.Duration) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) { job.CreationTimestamp = metav1.NewTime(w.clock.Add(after)) }
	}
	w.apply(htcjob("large", queueOf(2), created(time.Second)))
	w.apply(htcjob("small", created(2*time.Second)))
	w.restart()
	w.recallLine()
	w.schedd.Complete(w.run("first").Cluster, 0, 0)
	require.NoError(t, w.Crosscheck(t.Context()))
	w.settle()
	require.Equal(
		t,
		v1alpha1.PhasePending,
		w.job("small").Status.Phase,
		"there is room for it, but the large one was here before",
	)
}

func TestAPoolsCoresAreSharedAndCounted(t *testing.T) {
	pools := cluster{"grid": {Limits: &v1alpha1.PoolLimits{Cores: new(int32(10)), MaxIdle: new(int32(100))}}}
	w := newWorld(t, withPools(pools))
	cores := func(n int64) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) {
			job.Spec.Resources = &v1alpha1.Resources{CPUs: resource.NewQuantity(n, resource.DecimalSI)}
		}
	}
	require.Equal(t, v1alpha1.PhaseIdle, w.apply(htcjob("two", inGrid, queueOf(2), cores(4))).Status.Phase)
	waits := w.apply(htcjob("one", inGrid, cores(3)))
	require.Equal(t, "PoolLimit", submitted(waits).Reason)
	require.Contains(t, submitted(waits).Message, "pool grid: 8 of 10 cores in use (limits.cores), this HTCJob is next")
	require.Contains(
		t,
		submitted(w.apply(htcjob("unsaid", inGrid))).Message,
		"limits.cores counts what jobs ask for, in pool grid: write resources.cpus",
	)
	require.Contains(
		t,
		submitted(w.apply(htcjob("large", inGrid, queueOf(3), cores(4)))).Message,
		"queue 3 asks for 12 cores, which is more than the 10",
	)
	require.Contains(
		t,
		submitted(w.apply(htcjob("many", inGrid, queueOf(10_000), cores(1)))).Message,
		"queue 10000 is more than the 100 jobs that may wait for a slot in pool grid (limits.maxIdle): make it several HTCJobs",
	)

	w.restart()
	w.recallLine()
	w.settle()
	require.Equal(t, v1alpha1.PhasePending, w.job("one").Status.Phase)
	require.NoError(t, w.ends("two", 0, 0))
	w.crosscheck()
	w.later(time.Minute)
	require.Equal(t, v1alpha1.PhaseIdle, w.job("one").Status.Phase)
}

func TestOneWhoseJobsRunAgainInPartWaitsForRoomForThese(t *testing.T) {
	for name, interrupt := range map[string]func(*world){
		"":          func(*world) {},
		"restarted": func(w *world) { w.restart(); w.recallLine(); w.settle() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithOutput(t, withPools(cluster{"grid": {Limits: &v1alpha1.PoolLimits{MaxOpen: new(int32(4))}}}))
			w.apply(htcjob("one", inGrid, queueOf(4)))
			w.completed(1, 0, 5, 0, 0)
			w.crosscheck()
			w.apply(htcjob("two", inGrid, queueOf(4)))
			w.again("one", "a", "failed")
			interrupt(w)
			for range 3 {
				w.later(20 * time.Minute)
			}
			require.Equal(
				t,
				"pool grid: 4 of 4 jobs open (limits.maxOpen), this HTCJob is next",
				submitted(w.job("one")).Message,
			)
			require.NoError(t, w.ends("two", 0, 0))
			w.crosscheck()
			w.later(time.Minute)
			require.Equal(t, []int32{1, 3, 0}, counts(w.job("one")))
		})
	}
}
