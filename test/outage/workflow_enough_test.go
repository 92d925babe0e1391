package outage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// While the shadow of its job does nothing, HTCondor cannot know that a node has ended, as during a long transfer of
// its output.
func TestEnoughHaveSucceededOnlyOnceHTCondorSaysSo(t *testing.T) {
	o := begin(t)
	wait, end := o.Gate()
	until := o.ruled("enough", "sequences: {count: 3, complete: 1}", wait+"echo kept")
	w := until("running", func(s v1alpha1.HTCWorkflowStatus) bool { return s.Nodes.Running == 3 })
	first := fmt.Sprintf("HTCWorkflowUID =?= %q && HTCNode == 0", w.UID)
	var id string
	o.Eventually(func() bool {
		jobs := o.Condor("condor_q", first+" && JobCurrentStartExecutingDate > 0")
		if len(jobs) == 1 {
			id = jobs[0]
		}
		return id != ""
	}, func() string { return "the first node never ran" })
	signal := func(name string) {
		_, err := o.Lab.RunAs(t.Context(), "root", "pkill", "-"+name, "-f", "condor_shadow .*"+id+" ")
		require.NoError(t, err)
	}
	signal("STOP")
	end()
	told := fmt.Sprintf(
		`SELECT count(*) FROM nodes n JOIN runs r ON r.id = n.run WHERE r.uid = '%s' AND n.status = 4 AND n.source = 'callback'
		AND strftime('%%s', 'now') - n.changed / 1000 > 15`,
		w.UID,
	)
	o.Eventually(func() bool { return o.SQL(told) == "1" }, func() string { return "no callback came: " + o.log() })
	require.Equal(t, "", o.SQL(fmt.Sprintf("SELECT stop FROM runs WHERE uid = '%s'", w.UID)))
	signal("CONT")
	w = until("ended", func(s v1alpha1.HTCWorkflowStatus) bool { return s.Phase.Terminal() })
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 3, Done: 1, Futile: 2}, w.Status.Nodes)
}
