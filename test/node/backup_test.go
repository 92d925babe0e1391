//go:build node

package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// The CronJob of deploy/components/backup copies the ledger of the htcd that works beside it, and whoever follows
// docs/day2.md has the copy in its place.
func TestTheCronJobBacksUpTheLedgerAndACopyIsRestored(t *testing.T) {
	b := newBench(t)
	b.Script("before", "echo said\n")
	b.reads("before", "said\n")
	htcd, err := b.client.AppsV1().Deployments(parts.PodNamespace).Get(t.Context(), "htcd", metav1.GetOptions{})
	require.NoError(t, err)
	dir, copies := t.TempDir(), b.Lab.Path("htcd", "backup")
	deploy, err := filepath.Rel(dir, deployDir(t))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(copies, 0o777))
	for name, text := range map[string]string{"kustomization.yaml": fmt.Sprintf(`apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: %s
resources: [volume.yaml, deployment.yaml]
components: [%q]
patches:
- target: {kind: CronJob}
  patch: |
    - {op: replace, path: /spec/jobTemplate/spec/template/spec/containers/0/image, value: %q}
`, parts.PodNamespace, deploy+"/components/backup", htcd.Spec.Template.Spec.Containers[0].Image), "volume.yaml": fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: htcd-backup}
spec:
  capacity: {storage: 100Gi}
  accessModes: [ReadWriteOnce]
  claimRef: {namespace: %s, name: htcd-backup}
  local: {path: %q}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}]}}
`, parts.PodNamespace, copies, parts.NodeName), "deployment.yaml": `# Whose claim is copied. It is there already, so it is not applied.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: htcd
  annotations: {config.kubernetes.io/local-config: "true"}
spec: {template: {spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: htcd}}]}}}
`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Cleanup(func() {
		_, err := b.Lab.Run(
			context.WithoutCancel(t.Context()),
			"kubectl",
			"-n",
			parts.PodNamespace,
			"delete",
			"--ignore-not-found",
			"job/now",
			"job/restore",
			"cronjob/htcd-backup",
			"pvc/htcd-backup",
			"pv/htcd-backup",
		)
		require.NoError(t, err)
	})
	b.htcd("apply", "-k", dir)
	b.htcd("create", "job", "--from=cronjob/htcd-backup", "now")
	b.htcd("wait", "--for=condition=Complete", "job/now", "--timeout="+trial.Patience.String())
	require.Contains(t, b.htcd("logs", "job/now"), "/backup/htcjobs-")

	b.Script("after", "exit 0\n")
	after := b.Ended("after")
	for _, block := range trial.Blocks(t, filepath.Join(deployDir(t), "..", "docs", "day2.md")) {
		if strings.Contains(block.Text, "job/restore") {
			out, err := b.follow(block.Text)
			require.NoError(t, err, out)
			require.Contains(t, out, " is now /data/sqlite/htcjobs.db\n")
		}
	}
	require.FileExists(t, b.Lab.Ledger()+".replaced")
	b.leader(1, "")
	b.reads("before", "said\n")
	b.Script("later", "exit 0\n")
	require.EqualValues(t, 1, b.Ended("later").Status.Succeeded)
	require.Equal(t, after.Status.JobID, b.Get("after").Status.JobID)
	require.Len(t, b.Ads(fmt.Sprintf("HTCJobNamespace == %q", b.Namespace)), 3, "nothing was sent again")
}
