//go:build kueue

package kueue

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

const image = "localhost/kueue:lab"

// bench is a test's namespace, with a queue that has quota for two cores.
type bench struct{ *trial.Bench }

func newBench(t *testing.T) bench {
	t.Helper()
	b := bench{trial.New(t)}
	require.NoError(t, installed(b))
	b.ApplyText(fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 2}]}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team}
spec: {clusterQueue: %[1]s}
`, b.Namespace))
	t.Cleanup(func() { // its namespace goes, too
		_, err := b.Lab.Run(
			context.WithoutCancel(t.Context()),
			"kubectl",
			"delete",
			"clusterqueue",
			b.Namespace,
			"--wait=false",
		)
		require.NoError(t, err)
	})
	return b
}

var (
	once       sync.Once
	installing error
)

// installed installs Kueue with its own manifests, and htcd with deploy/components/kueue, once for all tests.
func installed(b bench) error {
	once.Do(func() { installing = install(b) })
	return installing
}

func install(b bench) error {
	ctx := b.T.Context()
	c, clone, err := b.Cache()
	if err != nil {
		return err
	}
	kueue, err := c.Kueue(ctx, filepath.Join(clone, "test", "parts", "kueue", trial.PeerRelease()))
	if err != nil {
		return err
	}
	if err := parts.LoadProgram(ctx, b.Lab, image, filepath.Join(kueue, "bin", "kueue"), "/manager"); err != nil {
		return err
	}
	if err := apply(
		b,
		"with-kueue",
		filepath.Join(clone, "deploy", "components", "kueue"),
		"resources: [../overlay]\ncomponents: [%q]\n",
	); err != nil {
		return err
	}
	if err := rolledOut(b, parts.PodNamespace, "htcd"); err != nil {
		return err
	}
	if _, err := b.Lab.Run(ctx, "kubectl", "get", "crd", "workloads.kueue.x-k8s.io"); err != nil {
		b.Script("before", "exit 0\n", queued) // there is no Kueue that it could wait for
		b.Ended("before")
	}
	if err := apply(b, "kueue", filepath.Join(kueue, "config", "default"), `resources: [%q]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: kueue-controller-manager, namespace: kueue-system}
    spec:
      template:
        spec:
          containers:
          - {name: manager, image: "localhost/kueue:lab", imagePullPolicy: IfNotPresent, resources: {$patch: replace, requests: {cpu: 50m, memory: 64Mi}}}
# With these no pod can be made, nor htcd's be labelled, while Kueue is away.
- patch: |
    apiVersion: admissionregistration.k8s.io/v1
    kind: MutatingWebhookConfiguration
    metadata: {name: kueue-mutating-webhook-configuration}
    webhooks: [{name: mpod.kb.io, $patch: delete}, {name: mdeployment.kb.io, $patch: delete}]
- patch: |
    apiVersion: admissionregistration.k8s.io/v1
    kind: ValidatingWebhookConfiguration
    metadata: {name: kueue-validating-webhook-configuration}
    webhooks: [{name: vpod.kb.io, $patch: delete}, {name: vdeployment.kb.io, $patch: delete}]
`); err != nil {
		return err
	}
	if err := rolledOut(b, "kueue-system", manager); err != nil {
		return err
	}
	// A manager that is rolled out does not serve its webhooks yet.
	b.Eventually(func() bool {
		_, err = b.Lab.RunInput(ctx, shared, "kubectl", "apply", "-f", "-")
		return err == nil
	}, func() string { return fmt.Sprint("Kueue takes no objects: ", err) })
	// htcd looks for it twice a minute.
	logs := []string{"-n", parts.PodNamespace, "logs", "deployment/htcd"}
	b.Eventually(func() bool {
		said, err := b.Lab.Run(ctx, "kubectl", logs...)
		return err == nil && strings.Contains(said, "what names a queue of Kueue's waits for it")
	}, func() string { return b.Kubectl(logs...) })
	return nil
}

const manager = "kueue-controller-manager"

// shared is what the queues of all tests name.
const shared = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 1000
`

// apply applies a kustomization that names one directory.
func apply(b bench, name, path, kustomization string) error {
	dir := b.Lab.Path("node", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(
		filepath.Join(dir, "kustomization.yaml"),
		fmt.Appendf(nil, kustomization, path),
		0o600,
	); err != nil {
		return err
	}
	_, err = b.Lab.Run(b.T.Context(), "kubectl", "apply", "--server-side", "--force-conflicts", "-k", dir)
	return err
}

func rolledOut(b bench, namespace, deployment string) error {
	_, err := b.Lab.Run(
		b.T.Context(),
		"kubectl",
		"-n",
		namespace,
		"rollout",
		"status",
		"deployment/"+deployment,
		"--timeout=3m",
	)
	if err != nil {
		said, _ := b.Lab.Run(b.T.Context(), "kubectl", "-n", namespace, "describe", "pods")
		return fmt.Errorf("%w\n%s", err, said)
	}
	return nil
}

// queued has an HTCJob wait in the test's queue.
func queued(job *v1alpha1.HTCJob) {
	job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "team"}
}

func urgent(job *v1alpha1.HTCJob) { job.Labels["kueue.x-k8s.io/priority-class"] = "urgent" }

// workload is what a test reads of one.
type workload struct {
	Metadata metav1.ObjectMeta
	Spec     struct{ PodSets []struct{ Count int } }
	Status   struct {
		Conditions      []metav1.Condition
		Admission       map[string]any
		ReclaimablePods []struct{ Count int }
	}
}

// workload returns the only Workload of an HTCJob, nil if there is none.
func (b bench) workload(job string) *workload {
	b.T.Helper()
	return b.workloadOf(b.Get(job).UID)
}

// workloadOf is workload of an object of either kind.
func (b bench) workloadOf(uid types.UID) *workload {
	b.T.Helper()
	var list struct{ Items []workload }
	out := b.Kubectl("get", "workloads", "-l", "kueue.x-k8s.io/job-uid="+string(uid), "-o", "json")
	require.NoError(b.T, json.Unmarshal([]byte(out), &list))
	if len(list.Items) == 0 {
		return nil
	}
	require.Len(b.T, list.Items, 1)
	return &list.Items[0]
}

// is waits for a condition of an HTCJob's Workload.
func (b bench) is(job, condition, reason string) {
	b.T.Helper()
	b.Eventually(func() bool {
		w := b.workload(job)
		if w == nil {
			return false
		}
		c := meta.FindStatusCondition(w.Status.Conditions, condition)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason
	}, func() string {
		return fmt.Sprintf(
			"%s never was %s, %s:\n%s",
			job,
			condition,
			reason,
			b.Kubectl("get", "workloads,htcjobs", "-o", "yaml"),
		)
	})
}

// waits waits until an HTCJob waits for quota, and none of its jobs is in HTCondor.
func (b bench) waits(name string) *v1alpha1.HTCJob {
	b.T.Helper()
	job := b.Until(name, "waiting", func(job *v1alpha1.HTCJob) bool {
		return job.Status.Phase == v1alpha1.PhaseSuspended && job.Status.Reason == "QuotaAwaited"
	})
	b.Eventually(
		func() bool { return len(b.Queued(trial.Tagged(job))) == 0 },
		func() string { return name + " is in HTCondor" },
	)
	return job
}

// runs waits until some of an HTCJob's jobs run.
func (b bench) runs(name string) *v1alpha1.HTCJob {
	b.T.Helper()
	b.Eventually(
		func() bool { return len(b.Condor("condor_q", trial.Tagged(b.Get(name))+" && JobStatus == 2")) > 0 },
		func() string {
			return name + " does not run:\n" + b.Kubectl("describe", "htcjobs,workloads")
		},
	)
	return b.Get(name)
}
