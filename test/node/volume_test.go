//go:build node

package node

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// The lab's volume is as large as the machine's disk. Output is also fetched to a volume of the shipped claim's size,
// with the shipped settings.
func TestOutputIsFetchedToAVolumeOfTheShippedSize(t *testing.T) {
	b := newBench(t)
	size := resource.MustParse(b.htcd("get", "pvc", "htcd", "-o", "jsonpath={.spec.resources.requests.storage}"))
	data := b.Lab.Path("htcd", "data")
	scale(t, b.Lab, "0")
	run(t, b.Lab, "mount", "-t", "tmpfs", "-o", "size="+strconv.FormatInt(size.Value(), 10), "tmpfs", data)
	t.Cleanup(func() {
		scale(t, b.Lab, "0")
		run(t, b.Lab, "umount", data)
		scale(t, b.Lab, "1")
	})
	scale(t, b.Lab, "1")
	pod := b.leader(1, "")
	require.Contains(
		t,
		b.htcd(
			"get",
			"--raw",
			fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8080/proxy/metrics", parts.PodNamespace, pod.Name),
		),
		fmt.Sprintf("\nhtcd_volume_size_bytes %g\n", float64(size.Value())),
	)
	b.Script("talks", "echo on a small volume; head -c 20000000 /dev/zero > big\n")
	require.EqualValues(t, 1, b.Ended("talks").Status.Succeeded)
	b.reads("talks", "on a small volume\n")
	require.Contains(t, b.htcd("exec", "deploy/htcd", "--", "htcd", "doctor"), "ok       volume")
	b.Kubectl("delete", "htcjob", "talks", "--timeout="+trial.Patience.String())
}

// scale waits until the Deployment has exactly this number of pods, all of them ready.
func scale(t *testing.T, l *lab.Lab, replicas string) {
	t.Helper()
	for _, args := range [][]string{
		{"scale", "deployment/htcd", "--replicas=" + replicas},
		{"rollout", "status", "deployment/htcd", "--timeout=" + trial.Patience.String()},
	} {
		_, err := l.Run(
			context.WithoutCancel(t.Context()),
			"kubectl",
			append([]string{"-n", parts.PodNamespace}, args...)...)
		require.NoError(t, err)
	}
	if replicas == "0" {
		_, err := l.Run(context.WithoutCancel(t.Context()), "kubectl", "-n", parts.PodNamespace,
			"wait", "--for=delete", "pod", "-l", "app.kubernetes.io/name=htcd", "--timeout="+trial.Patience.String())
		require.NoError(t, err)
	}
}

// run runs a command as root in the lab's namespaces.
func run(t *testing.T, l *lab.Lab, name string, args ...string) {
	t.Helper()
	_, err := l.RunAs(context.WithoutCancel(t.Context()), "root", name, args...)
	require.NoError(t, err)
}
