package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// keptPool is an HTCPool of one test.
type keptPool struct {
	b    *trial.Bench
	name string
}

func testPool(b *trial.Bench, suffix, spec string) keptPool {
	b.T.Helper()
	return keptPool{b, b.Pool(suffix, "{"+spec+"}")}
}

func (p keptPool) edit(spec string) {
	p.b.T.Helper()
	p.b.EditPool(p.name, spec)
}

// until waits until the pool satisfies a condition.
func (p keptPool) until(is func(*v1alpha1.HTCPool) bool) {
	p.b.T.Helper()
	p.b.Eventually(func() bool {
		var pool v1alpha1.HTCPool
		require.NoError(p.b.T, json.Unmarshal([]byte(p.b.Kubectl("get", "htcpool", p.name, "-o", "json")), &pool))
		return is(&pool)
	}, func() string {
		return "the pool never was as expected:\n" + p.b.Kubectl("get", "htcpool", p.name, "-o", "yaml")
	})
}

// by sends an HTCJob by the pool.
func (p keptPool) by(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{Name: p.name} }

func hasReason(pool *v1alpha1.HTCPool, kind string, is metav1.ConditionStatus, reason string) bool {
	c := meta.FindStatusCondition(pool.Status.Conditions, kind)
	return c != nil && c.Status == is && c.Reason == reason && c.ObservedGeneration == pool.Generation
}

func TestASuspendedPoolHoldsWhatWaitsAndReleasesOnlyThat(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	grid := testPool(b, "grid", "state: Online, limits: {maxHeld: 3}")
	nowhere := func(job *v1alpha1.HTCJob) { job.Spec.Requirements = "Memory > 99999999" }
	b.Script("waits", "exit 0\n", grid.by, nowhere, trial.Queue(3), func(job *v1alpha1.HTCJob) {
		job.Spec.HeldDeadlineSeconds, job.Spec.HTCOpts = new(
			int64(3),
		), "periodic_release = true\nperiodic_remove = JobStatus == 5\n"
	})
	b.Script("theirs", "exit 0\n", grid.by, nowhere)
	b.Script("runs", "sleep 600\n", grid.by)
	b.Script("elsewhere", "exit 0\n", nowhere)
	theirs := b.Until("theirs", "idle in HTCondor", func(job *v1alpha1.HTCJob) bool { return job.Status.Idle == 1 })
	_, err := b.Lab.Run(t.Context(), "condor_hold", "-constraint", trial.Tagged(theirs), "-reason", "by hand")
	require.NoError(t, err)
	waits := b.Phase("waits", v1alpha1.PhaseIdle)
	b.Phase("theirs", v1alpha1.PhaseHeld)
	b.Phase("runs", v1alpha1.PhaseRunning)
	b.Phase("elsewhere", v1alpha1.PhaseIdle)
	grid.until(func(p *v1alpha1.HTCPool) bool {
		s := p.Status
		return s.Idle == 3 && s.Running == 1 && s.Held == 1 && s.Open == 5 && s.Namespaces[0].Name == b.Namespace &&
			s.Namespaces[0].Open == 5 &&
			s.ObservedGeneration == p.Generation &&
			hasReason(p, v1alpha1.PoolAccepting, metav1.ConditionTrue, "Accepting") &&
			hasReason(p, v1alpha1.PoolReachable, metav1.ConditionTrue, "Answered")
	})

	const ours = " && JobStatus == 5 && HoldReasonCode == 1 && HoldReasonSubCode == 7284"
	all := func(constraint string) func() bool {
		return func() bool { return len(b.Condor("condor_q", trial.Tagged(waits)+constraint)) == 3 }
	}
	queue := func() string {
		return strings.Join(
			b.Condor(
				"condor_q",
				"HTCPool == \""+grid.name+"\"",
				"JobStatus",
				"HoldReasonCode",
				"HoldReasonSubCode",
				"HoldReason",
				"EnteredCurrentStatus",
			),
			"\n",
		)
	}
	grid.edit(`{"state":"Suspended"}`)
	b.Eventually(all(ours), queue)
	job := b.Until(
		"waits",
		"held by the pool",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Held == 3 && job.Status.Reason == "PoolSuspended" },
	)
	require.Contains(t, b.Condition(job, v1alpha1.ConditionHeld).Message, "HTCPool "+grid.name+" is suspended")
	grid.until(func(p *v1alpha1.HTCPool) bool {
		return p.Status.Held == 4 && p.Status.Idle == 0 &&
			hasReason(p, v1alpha1.PoolAccepting, metav1.ConditionFalse, "Suspended")
	})
	// Neither the deadline nor what the user wrote counts this hold, however long it takes.
	b.Eventually(all(ours+" && time() - EnteredCurrentStatus > 12"), queue)

	// What somebody releases is held again.
	held := b.Condor("condor_q", trial.Tagged(waits)+ours, "NumHolds")
	_, err = b.Lab.Run(t.Context(), "condor_release", "-constraint", trial.Tagged(waits))
	require.NoError(t, err)
	b.Eventually(all(ours+" && NumHolds >= 2"), queue)
	require.Len(t, held, 3)

	grid.edit(`{"state":"Draining"}`)
	b.Eventually(all(" && JobStatus == 1"), queue)
	require.Len(
		t,
		b.Condor("condor_q", trial.Tagged(theirs)+" && JobStatus == 5 && HoldReasonSubCode == 0"),
		1,
		queue(),
	)
	grid.until(func(p *v1alpha1.HTCPool) bool {
		return p.Status.Idle == 3 && hasReason(p, v1alpha1.PoolAccepting, metav1.ConditionFalse, "Draining")
	})
	require.Equal(t, v1alpha1.PhaseRunning, b.Get("runs").Status.Phase)

	grid.edit(`{"state":"Suspended"}`)
	b.Eventually(all(ours), queue)
	b.Kubectl("delete", "htcpool", grid.name)
	b.Eventually(all(" && JobStatus == 1"), queue)
	require.Equal(t, v1alpha1.PhaseIdle, b.Get("elsewhere").Status.Phase, "it was never held")
}

func TestKubectlGetHTCPoolsShowsTheColumns(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	first := testPool(b, "first", "limits: {maxOpen: 1000}")
	first.until(func(p *v1alpha1.HTCPool) bool {
		return hasReason(p, v1alpha1.PoolAccepting, metav1.ConditionTrue, "Accepting") &&
			meta.FindStatusCondition(p.Status.Conditions, v1alpha1.PoolDefault) == nil
	})
	lines := strings.Split(b.Kubectl("get", "htcpools", first.name), "\n")
	require.Equal(
		t,
		strings.Fields("NAME STATE IDLE RUNNING HELD OPEN MAX WAITING ACCEPTING AGE"),
		strings.Fields(lines[0]),
	)
	require.Equal(
		t,
		[]string{first.name, "Online", "0", "0", "0", "0", "1000", "0", "Accepting"},
		strings.Fields(lines[1])[:9],
	)
}

// The lab has three machines of 8 cores, among which its negotiator takes the emptiest unless jobs prefer others.
func TestPackLeavesAWholeMachineFree(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	cores := func(n int64, p keptPool) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) {
			p.by(job)
			job.Spec.HTCOpts = "+JobDescription = \"on three machines\"\n"
			job.Spec.Requirements = "TARGET.SlotTypeID == 2 || TARGET.SlotTypeID == -2"
			job.Spec.Resources = &v1alpha1.Resources{
				CPUs:   resource.NewQuantity(n, resource.DecimalSI),
				Memory: new(resource.MustParse("64Mi")),
				Disk:   new(resource.MustParse("1Mi")),
			}
		}
	}
	free := func() string {
		out, err := b.Lab.Run(
			t.Context(),
			"condor_status",
			"-constraint",
			"SlotTypeID == 2 && PartitionableSlot",
			"-af",
			"Cpus",
		)
		require.NoError(t, err)
		return strings.Join(slices.Sorted(strings.FieldsSeq(out)), " ")
	}
	for _, c := range []struct{ placement, free, rank string }{
		{"Any", "4 6 6", "0"}, {"Pack", "0 8 8", "- TARGET.Cpus"}, {"Spread", "4 6 6", "+ TARGET.Cpus"},
	} {
		p := testPool(b, strings.ToLower(c.placement), "placement: "+c.placement)
		b.Eventually(
			func() bool { return free() == "8 8 8" },
			func() string { return "the machines are in use: " + free() },
		)
		for i := range 4 {
			name := fmt.Sprintf("%s-%d", strings.ToLower(c.placement), i)
			b.Script(name, "sleep 600\n", cores(2, p))
			job := b.Phase(name, v1alpha1.PhaseRunning)
			rank, err := b.Lab.Run(
				t.Context(),
				"condor_q",
				"-allusers",
				"-constraint",
				trial.Tagged(job),
				"-af:r",
				"Rank",
			)
			require.NoError(t, err)
			require.Contains(t, rank, c.rank)
		}
		b.Eventually(func() bool { return free() == c.free }, func() string { return c.placement + " left " + free() })
		whole := strings.ToLower(c.placement) + "-whole"
		b.Script(whole, "sleep 600\n", cores(8, p))
		if c.placement == "Pack" {
			b.Phase(whole, v1alpha1.PhaseRunning)
		} else {
			b.Phase(whole, v1alpha1.PhaseIdle)
			require.NotContains(t, free(), "8")
		}
		b.Kubectl("delete", "htcjobs", "--all")
	}
}
