//go:build node

package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// bench is a test's namespace and htcd's Deployment, which all tests share.
type bench struct {
	*trial.Bench
	client kubernetes.Interface
}

func newBench(t *testing.T) bench {
	t.Helper()
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	return bench{trial.New(t), client}
}

// htcd runs kubectl in htcd's namespace.
func (b bench) htcd(args ...string) string {
	b.T.Helper()
	out, err := b.Lab.Run(b.T.Context(), "kubectl", append([]string{"-n", parts.PodNamespace}, args...)...)
	require.NoError(b.T, err)
	return out
}

// pods returns htcd's pods that are not being deleted.
func (b bench) pods() (all []corev1.Pod) {
	b.T.Helper()
	list, err := b.client.CoreV1().Pods(
		parts.PodNamespace,
	).List(
		b.T.Context(),
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=htcd"},
	)
	require.NoError(b.T, err)
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			all = append(all, pod)
		}
	}
	return all
}

func ready(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// leader waits until there are n pods, all of them ready, of which one holds the Lease that is not other, and returns
// that one.
func (b bench) leader(n int, other string) corev1.Pod {
	b.T.Helper()
	var leader corev1.Pod
	b.Eventually(func() bool {
		lease, err := b.client.CoordinationV1().
			Leases(parts.PodNamespace).
			Get(b.T.Context(), "htcd", metav1.GetOptions{})
		require.NoError(b.T, err)
		pods := b.pods()
		leader = corev1.Pod{}
		for _, pod := range pods {
			if !ready(pod) {
				return false
			}
			if strings.Contains(*lease.Spec.HolderIdentity, string(pod.UID)) {
				leader = pod
			}
		}
		return len(pods) == n && leader.Name != "" && leader.Name != other
	}, func() string { return b.htcd("describe", "pods") })
	return leader
}

// process returns the pid, on the host, of htcd in a pod.
func (b bench) process(pod corev1.Pod) int {
	b.T.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	require.NoError(b.T, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), b.Lab.Cgroup()) ||
			!strings.Contains(string(text), "pod"+string(pod.UID)) {
			continue
		}
		if program, err := os.Readlink(filepath.Join(filepath.Dir(file), "exe")); err == nil &&
			strings.HasSuffix(program, "/usr/bin/htcd") {
			var pid int
			_, err := fmt.Sscanf(file, "/proc/%d/cgroup", &pid)
			require.NoError(b.T, err)
			return pid
		}
	}
	require.FailNow(b.T, "htcd runs nowhere", pod.Name)
	return 0
}

func TestExamplesRunThroughThePod(t *testing.T) {
	for _, c := range []struct {
		file, name        string
		succeeded, failed int32
	}{
		{"retcode/zero.yaml", "zero", 1, 0},
		{"retcode/notzero.yaml", "notzero", 0, 1},
		{"queue.yaml", "queue", 3, 0},
		{"command/python.yaml", "python", 1, 0},
		{"resources.yaml", "resources", 1, 0},
		{"retries.yaml", "retries", 1, 0},
		{"logspod.yaml", "logspod", 2, 0},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Apply(c.file)
			job := b.Ended(c.name)
			require.EqualValues(
				t,
				[]int32{0, c.succeeded, c.failed},
				[]int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed},
			)
			require.Equal(t, v1alpha1.JobIDs(int(job.Status.ClusterID), job.Queue()), job.Status.JobID)
		})
	}
}

// A callback passes nginx, configured by the Ingress, and the Service to reach the ready pod. Nothing else of htcd can
// be reached that way.
func TestCallbacksComeThroughTheIngressAndTheService(t *testing.T) {
	b := newBench(t)
	calls := func() int {
		text, err := os.ReadFile(b.Lab.Log("ingress"))
		require.NoError(t, err)
		return strings.Count(string(text), `"POST /cloudevents HTTP/1.1" 204`)
	}
	before := calls()
	b.Script("calls", "exit 0\n", trial.Queue(2))
	b.Ended("calls")
	require.GreaterOrEqual(t, calls(), before+2)

	ask := func(path string) string {
		out, err := b.Lab.RunAs(
			t.Context(),
			"robot",
			"curl",
			"-s",
			"-o",
			"/dev/null",
			"-w",
			"%{http_code}",
			"http://htcd.example.org"+path,
		)
		require.NoError(t, err)
		return out
	}
	require.Equal(t, "405", ask("/cloudevents"), "a GET of what takes POSTs")
	for _, path := range []string{"/", "/readyz", "/metrics", "/cloudevents/x"} {
		require.Equal(t, "404", ask(path), path)
	}
}

func TestThePodHasNoMoreRightsThanItNeeds(t *testing.T) {
	b := newBench(t)
	pod := b.leader(1, "")
	proc := fmt.Sprintf("/proc/%d/", b.process(pod))
	text, err := os.ReadFile(proc + "status")
	require.NoError(t, err)
	status := string(text)
	for _, line := range []string{"Uid:\t10001\t10001\t10001\t10001", "Gid:\t10001\t10001\t10001\t10001", "Groups:\t10001",
		"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
		require.Contains(t, status, line)
	}

	mounts, err := os.ReadFile(proc + "mountinfo")
	require.NoError(t, err)
	at := map[string]string{}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		at[f[4]] = line
	}
	require.Contains(t, at["/"], " ro,", "the image is read-only")
	require.Contains(t, at["/etc/htcd"], " ro,")
	require.Contains(t, at["/tickets"], " - tmpfs ", "tickets are in memory")

	require.Eventually(t, func() bool {
		tickets, err := filepath.Glob(proc + "root/tickets/htcd/*")
		return err == nil && len(tickets) > 0
	}, trial.Patience, trial.Patience/500)
	ledger, err := os.Stat(b.Lab.Ledger())
	require.NoError(t, err, "the ledger is on the volume")
	require.Zero(t, ledger.Mode()&0o002)
}

func TestProbesAreAnswered(t *testing.T) {
	b := newBench(t)
	pod := b.leader(1, "")
	for path, answer := range map[string]string{"healthz": "ok\n", "readyz": "ready\n"} {
		require.Equal(
			t,
			answer,
			b.htcd(
				"get",
				"--raw",
				fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8080/proxy/%s", parts.PodNamespace, pod.Name, path),
			),
		)
	}
	require.NotContains(t, b.htcd("get", "events"), "Liveness probe failed")
}

// The apiserver itself connects through the Service htcd-output to the pod; each has made its own certificate.
func TestOutputIsReadThroughTheApiserver(t *testing.T) {
	b := newBench(t)
	b.Script("talks", "echo out of the pod\n")
	b.Until("talks", "fetched", func(job *v1alpha1.HTCJob) bool {
		return meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionOutputFetched)
	})
	require.Equal(t, "out of the pod\n",
		b.Kubectl("get", "--raw", "/apis/output.htc.cern.ch/v1alpha1/namespaces/"+b.Namespace+"/htcjobs/talks/log"))
	out, err := b.Lab.Run(t.Context(), "kubectl", "htcjob", "logs", "talks", "-n", b.Namespace)
	require.NoError(t, err)
	require.Equal(t, "out of the pod\n", out)
}

func TestReconcileByHandInThePod(t *testing.T) {
	b := newBench(t)
	b.Script("edited", "exit 0\n")
	job := b.Ended("edited")
	var report struct {
		Differences []struct {
			Name, Was, Is string
			Repaired      bool
		}
	}
	// htcd's own pass of the minute may be the one that repairs it: then it is edited again.
	b.Eventually(func() bool {
		b.SQL(
			fmt.Sprintf(
				"UPDATE htcjobs SET status = 7 WHERE htcjobName = 'edited' AND jobId = '%s'",
				job.Status.JobID[0],
			),
		)
		out := b.htcd(
			"exec",
			"deploy/htcd",
			"--",
			"htcd",
			"reconcile",
			"--once",
			"--namespace",
			b.Namespace,
			"-o",
			"json",
		)
		require.NoError(t, json.Unmarshal([]byte(out), &report), out)
		return len(report.Differences) > 0
	}, func() string { return "reconcile --once repairs nothing" })
	require.Equal(t, "edited", report.Differences[0].Name)
	require.True(t, report.Differences[0].Repaired)
	require.Contains(
		t,
		b.htcd("exec", "deploy/htcd", "--", "htcd", "reconcile", "--once", "--namespace", b.Namespace),
		"nothing differs",
	)
}
