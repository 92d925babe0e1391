package outage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func input(in v1alpha1.Input) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.Inputs = append(job.Spec.Inputs, in) }
}

func madeBy(name, of, proc string) func(*v1alpha1.HTCJob) {
	return input(
		v1alpha1.Input{Name: name, JobRef: &v1alpha1.JobRef{Name: of, Path: name, Proc: new(intstr.FromString(proc))}},
	)
}

// Each step of a chain has the output of the one before, although htcd is killed between every two, and in the middle
// of them.
func TestAChainRunsThroughWhileHtcdIsKilled(t *testing.T) {
	o := begin(t)
	restart := func() {
		o.killHtcd()
		o.do(o.part("htcd").Start)
	}
	o.Kubectl("create", "configmap", "fit", "--from-literal=k=first")
	o.Create("merge", "cat fit.root/0 fit.root/1 fit.root/2\n", madeBy("fit.root", "fit", "All"))
	o.Create(
		"fit",
		"cat k hist.root > fit.root; echo >> fit.root\n",
		trial.Queue(3),
		madeBy("hist.root", "prep", "Same"),
		input(v1alpha1.Input{Name: "k", ConfigMapKeyRef: &v1alpha1.KeyRef{Name: "fit", Key: "k"}}),
	)
	restart()
	o.Create("prep", "echo \" histogram $1\" > hist.root\n", trial.Queue(3))
	for i, name := range []string{"prep", "fit", "merge"} {
		o.Until(name, "begun", func(job *v1alpha1.HTCJob) bool { return job.Status.Attempt > 0 })
		restart()
		o.Until(name, "submitted", func(job *v1alpha1.HTCJob) bool { return len(job.Status.JobID) > 0 })
		if name == "fit" {
			o.Kubectl("patch", "configmap", "fit", "--patch", `{"data":{"k":"second"}}`)
		}
		o.Ended(name)
		if i < 2 {
			restart()
		}
	}
	merge := o.Fetched("merge")
	require.Equal(t, "first histogram 0\n\nfirst histogram 1\n\nfirst histogram 2\n\n", o.Output(merge, 0))
	for _, name := range []string{"prep", "fit", "merge"} {
		o.once(o.Get(name))
	}
	o.gone()
}

// A submission that is interrupted is sent again with what was read first, whatever the ConfigMap holds by then. Only
// what was staged counts: if that is lost, and nothing was sent, the digest is another.
func TestAnInterruptedSubmissionKeepsItsInputs(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("staging lost %t", lost), func(t *testing.T) {
			o := begin(t)
			o.Create("before", "exit 0\n") // no intent is recorded for a schedd that has never answered
			o.Fetched("before")
			o.Kubectl("create", "configmap", "fit", "--from-literal=k=first")
			o.do(o.part("schedd").Freeze)
			job := o.Create(
				"one",
				"cat k\n",
				input(v1alpha1.Input{Name: "k", ConfigMapKeyRef: &v1alpha1.KeyRef{Name: "fit", Key: "k"}}),
			)
			row := func() string {
				return o.SQL(fmt.Sprintf("SELECT state || ' ' || inputsDigest FROM runs WHERE uid = '%s'", job.UID))
			}
			o.Eventually(func() bool { return row() != "" }, func() string { return "no intent" })
			first := row()
			require.Regexp(t, `^Intent sha256:`, first)
			o.killHtcd()
			o.do(o.part("schedd").Thaw)
			o.Kubectl("patch", "configmap", "fit", "--patch", `{"data":{"k":"second"}}`)
			if lost {
				_, err := o.Lab.RunAs(
					t.Context(),
					"root",
					"rm",
					"-rf",
					o.Lab.Path("htcd", "data", "staging", string(job.UID)+"-1"),
				)
				require.NoError(t, err)
			}
			o.do(o.part("htcd").Start)
			ended := o.Fetched("one")
			want := "first"
			if lost {
				want = "second"
			}
			require.Equal(t, want, o.Output(ended, 0))
			require.Equal(t, !lost, "Intent "+ended.Status.InputsDigest == first)
			require.Equal(t, "Submitted "+ended.Status.InputsDigest, row())
			o.once(ended)
			o.gone()
		})
	}
}
