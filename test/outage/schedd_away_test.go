package outage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestAScheddThatIsDownIsWaitedFor(t *testing.T) {
	o := begin(t)
	wait, end := o.Gate()
	o.Create("running", wait+"exit 0\n", trial.Queue(2))
	o.Create("deleted", "sleep 1000\n")
	o.running("running")
	o.running("deleted")

	o.do(o.part("schedd").Stop)
	end()
	names := []string{"running"}
	for i := range 6 {
		name := fmt.Sprintf("waiting-%d", i)
		names = append(names, name)
		o.Create(name, "exit 0\n", trial.Queue(int32(i%3+1)))
	}
	require.NoError(t, o.Jobs.Delete(t.Context(), "deleted", metav1.DeleteOptions{}))
	for _, name := range names[1:] {
		said := o.says(name, v1alpha1.ConditionBackendReachable, "Unreachable")
		require.Regexp(
			t,
			`the collector \S+ has no record of schedd `+usual+`: it is stopped, or it has another name; it answered last at 20`,
			said,
		)
		require.Equal(t, "Unreachable", o.column(name))
	}
	o.metric(fmt.Sprintf("htcd_schedd_reachable{schedd=%q}", usual), "0")
	o.metric(`htcd_schedd_reachable{schedd="usual"}`, "") // it has a name
	o.Eventually(func() bool {
		return strings.Contains(
			o.says("deleted", v1alpha1.ConditionBackendReachable, "Unreachable"),
			v1alpha1.AbandonAnnotation,
		)
	}, func() string { return o.Kubectl("describe", "htcjob", "deleted") })

	o.do(o.part("schedd").Start)
	o.succeeded(names...)
	o.gone()
}

// The hung schedd accepts connections but never answers: commands wait for htcd's own deadline.
func TestAHungScheddHoldsUpNothingElse(t *testing.T) {
	o := begin(t, "--command-timeout=15s") // condor_q itself gives up after 20 s
	wait, end := o.Gate()
	o.Create("running", wait+"exit 0\n")
	o.running("running")

	o.do(o.part("schedd").Freeze)
	end()
	var names []string
	for i := range 6 { // more than there are submitters
		names = append(names, fmt.Sprintf("waiting-%d", i))
		o.Create(names[i], "exit 0\n")
	}
	require.Equal(t, v1alpha1.PhaseSucceeded, o.Ended("running").Status.Phase, "its callback needs no schedd")
	for _, name := range names {
		o.says(name, v1alpha1.ConditionBackendReachable, "Timeout")
	}
	require.Equal(t, "frozen", o.state("schedd"))

	o.do(o.part("schedd").Thaw)
	o.succeeded(append(names, "running")...)
	o.gone()
}
