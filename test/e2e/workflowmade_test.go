package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestTheJobsOfAStepAreThoseOfATableThatAJobWrites(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Create("probe", "printf '[{\"FILE\": \"c\"}]' > t.json")
	f := flowIn(b, "made", `
  steps:
  - name: split
    forEach: {count: 2}
    job: {script: {image: centos, command: sh, source: "printf 'FILE,SEED\\n%s,1\\n%s,2\\n' $1 $1 > t.csv"}}
  - name: sim
    forEach: {itemsFrom: {step: split, path: t.csv}}
    retries: 1
    job: {script: {image: centos, command: sh, source: "echo $FILE $SEED $HTC_RETRY > made; test $HTC_RETRY = 1"}}
  - name: probed
    needs: [split]
    forEach: {itemsFrom: {jobRef: {name: probe, path: t.json}}}
    job: {script: {image: centos, command: sh, source: "echo $FILE > found"}}
  - name: merge
    needs: [sim, probed]
    pull: [{from: sim, path: made}, {from: probed, path: found}]
    job: {script: {image: centos, command: sh, source: "cat job_0/*/found job_0/*/made"}}
`)
	none := flowIn(b, "none", `
  steps:
  - name: split
    job: {script: {image: centos, command: sh, source: "echo FILE > t.csv; echo a,b >> t.csv"}}
  - name: sim
    forEach: {itemsFrom: {step: split, path: t.csv}}
    job: {script: {image: centos, command: sh, source: "exit 0"}}
  finally:
    name: report
    job: {script: {image: centos, command: sh, source: "echo $HTC_OUTCOME"}}
`)
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, "%+v", w.Status)
	require.Equal(t, v1alpha1.NodeCounts{Total: 8, Done: 8}, w.Status.Nodes)
	require.Equal(t, "c\n0 1 1\n0 2 1\n1 1 1\n1 2 1\n", f.output(w, "merge/job_0", "_condor_stdout"))

	w = none.ended()
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase)
	require.Contains(t, meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionFailed).Message,
		"the items of the step sim: t.csv of split/job_0: line 2: expected 1 fields (FILE), found 2")
	require.Equal(t, "Failed\n", none.output(w, "report/all", "_condor_stdout"))
}
