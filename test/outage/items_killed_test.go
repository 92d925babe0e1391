package outage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// The table belongs to the attempt: whenever htcd is killed, and whatever becomes of the ConfigMap meanwhile, the jobs
// get the rows that were read first.
func TestHtcdKilledWhileItSendsATableSendsNoOther(t *testing.T) {
	o := begin(t)
	const rows = 40
	table := "SEED\n"
	for seed := range rows {
		table += fmt.Sprintln(100 + seed)
	}
	write := func(table string) {
		o.Kubectl("patch", "configmap", "points", "-p", fmt.Sprintf(`{"data":{"csv":%q}}`, table))
	}
	o.Kubectl("create", "configmap", "points")
	from := func(job *v1alpha1.HTCJob) {
		job.Spec.ItemsFrom = &v1alpha1.ItemsFrom{ConfigMapKeyRef: v1alpha1.KeyRef{Name: "points", Key: "csv"}}
	}
	var names []string
	for _, after := range []time.Duration{0, 100, 300} {
		write(table)
		name := fmt.Sprintf("table-%d", after)
		names = append(names, name)
		job := o.Create(name, "echo $SEED\n", from, trial.Unpacked)
		o.staged(job, 1)
		time.Sleep(after * time.Millisecond) // the moment matters
		o.killHtcd()
		write("OTHER\n1\n2\n")
		o.do(o.part("htcd").Start)
	}
	for _, name := range names {
		job := o.Fetched(name)
		require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
		require.Len(t, job.Status.JobID, rows)
		for _, proc := range []int{0, 1, rows - 1} {
			require.Equal(t, fmt.Sprint(100+proc), strings.TrimSpace(o.Output(job, proc)), "%s, job %d", name, proc)
		}
		o.once(job)
	}
	o.gone()
}
