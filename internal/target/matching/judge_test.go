package matching

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/internal/schedd"
)

// pool has two machines of 8 CPUs and 32 GiB, the first of which is full, and one of 64 CPUs and 16 GiB that has 4
// left.
var pool = Slots{
	{Machine: "a", Whole: schedd.Size{CPUs: 8, Memory: 32 << 10, Disk: 100 << 20}},
	{
		Machine: "b",
		Whole:   schedd.Size{CPUs: 8, Memory: 32 << 10, Disk: 100 << 20},
		Free:    schedd.Size{CPUs: 2, Memory: 20 << 10, Disk: 50 << 20},
	},
	{
		Machine: "c",
		Whole:   schedd.Size{CPUs: 64, Memory: 16 << 10, Disk: 100 << 20},
		Free:    schedd.Size{CPUs: 4, Memory: 1 << 10, Disk: 90 << 20},
	},
}

func TestJudge(t *testing.T) {
	gib := func(n int64) schedd.Size { return schedd.Size{CPUs: 1, Memory: n << 10} }
	for name, c := range map[string]struct {
		need     schedd.Size
		slots    Slots
		analysis *schedd.Analysis
		want     Verdict
	}{
		"more memory than any machine has": {gib(500), pool, nil,
			Verdict{metav1.ConditionFalse, ReasonNoMachine, "0 of 3 machines have 500 GiB (largest 32 GiB)"}},
		"more CPUs": {schedd.Size{CPUs: 128}, pool, nil,
			Verdict{metav1.ConditionFalse, ReasonNoMachine, "0 of 3 machines have 128 CPUs (largest 64 CPUs)"}},
		"GPUs where there are none": {schedd.Size{GPUs: 1}, pool[:1], nil,
			Verdict{metav1.ConditionFalse, ReasonNoMachine, "0 of 1 machine has 1 GPU (largest 0 GPUs)"}},
		"more disk": {schedd.Size{Disk: 1 << 30}, pool, nil,
			Verdict{metav1.ConditionFalse, ReasonNoMachine, "0 of 3 machines have 1 TiB of disk (largest 100 GiB of disk)"}},
		"much of two things that no machine has together": {schedd.Size{CPUs: 32, Memory: 20 << 10}, pool, nil,
			Verdict{metav1.ConditionFalse, ReasonNoMachine, "0 of 3 machines have all of what the job asks for: 32 CPUs, 20 GiB"}},
		"no machines at all": {gib(1), nil, nil, Verdict{metav1.ConditionFalse, ReasonNoMachine, "the pool has no machines"}},
		"a size that only busy machines have": {gib(30), pool, nil,
			Verdict{metav1.ConditionTrue, ReasonAllBusy, "machines match, all busy: 2 of 3 machines are large enough, and none of them has room now"}},
		"a size for which there is room": {gib(20), pool, &schedd.Analysis{Slots: 2, Steps: []schedd.Step{{Condition: `Arch == "X86_64"`, Slots: 2}}},
			Verdict{metav1.ConditionTrue, ReasonRoom, "1 of 3 machines have room now: HTCondor decides by priorities and quotas, in its next cycle at the earliest"}},
		"a requirement that none meets": {gib(20), pool, &schedd.Analysis{Slots: 2, Rejects: 2, Steps: []schedd.Step{
			{Condition: "TARGET.Memory >= RequestMemory"}, {Condition: "[0] && [1]"}, {Condition: "TARGET.HasFPGA"}}},
			Verdict{metav1.ConditionFalse, ReasonNoneMeets, "no machine that is large enough (there are 2) meets TARGET.HasFPGA now"}},
		"machines that refuse it": {gib(20), pool, &schedd.Analysis{Slots: 2, Refused: 2},
			Verdict{metav1.ConditionFalse, ReasonRefused, "machines that are large enough (there are 2) do not take the job, by their own requirements"}},
		"busy machines, by what is left of them": {gib(30), pool, &schedd.Analysis{Slots: 2, Rejects: 2, Steps: []schedd.Step{{Condition: "TARGET.Memory >= RequestMemory"}}},
			Verdict{metav1.ConditionTrue, ReasonAllBusy, "machines match, all busy: 2 of 3 machines are large enough, and none of them has room now"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Judge(c.need, c.slots, c.analysis)) })
	}
}

func TestASampleHasMachinesWithRoomFirst(t *testing.T) {
	need := schedd.Size{CPUs: 1, Memory: 10 << 10}
	require.Equal(t, []string{"b", "a", "c"}, pool.sample(need, 10))
	require.Equal(t, []string{"b"}, pool.sample(need, 1))
	require.Equal(t, []string{"c"}, pool.sample(schedd.Size{CPUs: 9}, 10))
}

func TestSlotsOfOneSizeAreOneKind(t *testing.T) {
	kinds := append(
		pool,
		schedd.Slot{
			Machine: "b",
			Whole:   schedd.Size{CPUs: 8, Memory: 32<<10 + 3},
			Free:    schedd.Size{CPUs: 8, Memory: 32 << 10},
		},
	).Kinds()
	require.Len(t, kinds, 2)
	require.Equal(
		t,
		Kind{
			Size:     schedd.Size{CPUs: 64, Memory: 16 << 10},
			Machines: 1,
			Slots:    1,
			Free:     pool[2].Free,
			Largest:  pool[2].Free,
		},
		kinds[0],
	)
	require.Equal(t, Kind{
		Size: schedd.Size{CPUs: 8, Memory: 32 << 10}, Machines: 2, Slots: 3, Idle: 1,
		Free: schedd.Size{CPUs: 10, Memory: 52 << 10, Disk: 50 << 20}, Largest: schedd.Size{CPUs: 8, Memory: 32 << 10},
	}, kinds[1])
}
