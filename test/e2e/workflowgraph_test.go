package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestJobsOfTwoTablesArePaired(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.ApplyText(
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: runs}\ndata: {runs.csv: \"FILE,SEED\\na,1\\nb,1\\na,2\\n\"}\n",
	)
	f := flowIn(b, "paired", `
  steps:
  - name: sim
    forEach: {itemsFrom: {configMapKeyRef: {name: runs, key: runs.csv}}}
    job: {script: {image: centos, command: sh, args: ["{{item.SEED}}"], source: "echo $FILE $1 > made"}}
  - name: merge
    forEach: {items: [{FILE: b}, {FILE: a}]}
    needs: [{step: sim, by: [FILE]}]
    pull: [{from: sim, path: made}]
    job: {script: {image: centos, command: sh, source: "cat job_0/*/made > all"}}
  - name: check
    forEach: {count: 2}
    needs: [{step: merge, by: [HTCPROCID]}]
    pull: [{from: merge, path: all}]
    job: {script: {image: centos, command: sh, source: "cat all"}}
`)
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, "%+v", w.Status.Failures)
	require.Equal(t, v1alpha1.NodeCounts{Total: 7, Done: 7}, w.Status.Nodes)
	require.Equal(t, "b 1\n", f.output(w, "check/job_0/0", "_condor_stdout"))
	require.Equal(t, "a 1\na 2\n", f.output(w, "check/job_0/1", "_condor_stdout"))
}

func TestAGraphOfNodesRunsInItsOrderAndFinallyIsToldWhatFailed(t *testing.T) {
	t.Parallel()
	c := commands{trial.New(t)}
	f := flowIn(c.Bench, "listed", `
  steps:
  - name: fit
    pull: [{from: join, path: sum}]
    job: {script: {image: centos, command: sh, source: "cat */sum; echo $REGION > fit; exit $END"}, environment: {END: "0"}}
  - name: join
    pull: [{from: fit, path: fit}]
    job: {script: {image: centos, command: sh, source: "cat */fit > sum"}}
  graph:
    nodes:
    - {name: west, step: fit, variables: {REGION: w}}
    - {name: east, step: fit, variables: {REGION: e}}
    - {name: both, step: join}
    - {name: again, step: fit, variables: {REGION: all, END: "3"}}
    - {name: never, step: join}
    edges:
    - {parents: [west, east], children: [both]}
    - {parents: [both], children: [again]}
    - {parents: [again, west], children: [never]}
  throttle: {together: [{steps: [fit, join], maxJobs: 2}]}
  finally:
    name: report
    job: {script: {image: centos, command: sh, source: "echo $HTC_OUTCOME $HTC_FAILED_COUNT $HTC_FAILED"}}
`)
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase)
	require.Equal(t, v1alpha1.NodeCounts{Total: 6, Done: 4, Failed: 1, Futile: 1}, w.Status.Nodes)
	require.Equal(t, "fit/again", w.Status.Failures[0].Node)
	require.Equal(t, "e\nw\n", f.output(w, "fit/again", "_condor_stdout"))
	require.Equal(t, "Failed 1 fit/again\n", c.ends(0, "logs", "listed", "--step", "report"))
	require.Equal(t, "e\nw\n", c.ends(0, "logs", "listed", "--node", "again"))
}

func TestAStepRunsWhateverBecameOfWhatItNeeds(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	f := flowIn(b, "whatever", `
  sequences: {items: [{END: "0"}, {END: "7"}]}
  steps:
  - name: make
    job: {script: {image: centos, command: sh, source: "exit $END"}}
  - name: use
    job: {script: {image: centos, command: sh, source: "echo used > made"}}
  - name: tidy
    needs: [{step: use, outcome: Any}]
    pull: [{from: use, path: made}]
    job: {script: {image: centos, command: sh, source: "cat made || echo nothing"}}
  - name: part
    forEach: {count: 3}
    maxFailures: 1
    needs: [use]
    job: {script: {image: centos, command: sh, source: "test $1 != 1 && echo $1 > made"}}
  - name: show
    pull: [{from: part, path: made}]
    job: {script: {image: centos, command: sh, source: "cat job_0/*/made"}}
`)
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseFailed, w.Status.Phase)
	require.Equal(
		t,
		v1alpha1.NodeCounts{Total: 14, Done: 7, Failed: 2, Futile: 5},
		w.Status.Nodes,
		"%+v",
		w.Status.Failures,
	)
	require.Equal(
		t,
		v1alpha1.SequenceCounts{Total: 2, Succeeded: 1, Failed: 1},
		w.Status.Sequences,
		"one of three parts may fail",
	)
	require.Equal(t, "0\n2\n", f.output(w, "show/job_0", "_condor_stdout"))
	require.Equal(t, "used\n", f.output(w, "tidy/job_0", "_condor_stdout"))
	require.Equal(t, "nothing\n", f.output(w, "tidy/job_1", "_condor_stdout"))
}
