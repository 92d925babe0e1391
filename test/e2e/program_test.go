package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestAProgramOfOnesOwnRunsAsItIs(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.ApplyText(`apiVersion: v1
kind: ConfigMap
metadata: {name: programs}
data: {count.sh: "#!/bin/sh\necho $# $*\n"}
---
apiVersion: htc.cern.ch/v1alpha1
kind: HTCJob
metadata: {name: own}
spec:
  script: {image: centos, executable: count.sh, args: ["{{proc}}", a b], queue: 2}
  inputs: [{name: count.sh, configMapKeyRef: {name: programs, key: count.sh}}]
---
apiVersion: htc.cern.ch/v1alpha1
kind: HTCJob
metadata: {name: of-the-image}
spec: {script: {image: centos, executable: /bin/echo, args: [hello]}}
`)
	flow := flowIn(b, "made", `
  steps:
  - name: make
    job:
      script: {image: centos, command: bash, source: "printf '#!/bin/sh\necho made $1\n' > tool"}
      outputs: [{path: tool}]
  - name: use
    pull: [{from: make, path: tool}]
    job: {script: {image: centos, executable: tool, args: ["{{item.jobid}}"]}}
`)
	job := b.Ended("own")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, "%+v", job.Status.Failures)
	require.Equal(t, "2 1 a b\n", b.Output(job, 1))
	require.NotContains(t, b.Files(job, 1), "script")
	job = b.Ended("of-the-image")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, "%+v", job.Status.Failures)
	require.Equal(t, "hello\n", b.Output(job, 0))
	w := flow.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, "%+v", w.Status.Failures)
	require.Equal(t, "made job_0\n", flow.output(w, "use/job_0", "_condor_stdout"))
	top := commands{b}.ends(0, "top", "made")
	require.Contains(t, top, "step make: jobs: 1, running: 0, ended: 1\n")
	require.Contains(t, top, "step use: jobs: 1, running: 0, ended: 1\n")
}
