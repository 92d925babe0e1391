//go:build node

package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/test/lab/parts"
)

// The CronJob of deploy/components/backup copies the ledger of the htcd that works beside it.
func TestTheCronJobBacksUpTheLedger(t *testing.T) {
	b := newBench(t)
	htcd, err := b.client.AppsV1().Deployments(parts.PodNamespace).Get(t.Context(), "htcd", metav1.GetOptions{})
	require.NoError(t, err)
	dir := t.TempDir()
	deploy, err := filepath.Rel(dir, deployDir(t))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: %s
components: [%q]
patches:
- target: {kind: PersistentVolumeClaim}
  patch: '{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: htcd-backup}, $patch: delete}'
- target: {kind: CronJob}
  patch: |
    - {op: replace, path: /spec/jobTemplate/spec/template/spec/volumes/1, value: {name: backup, emptyDir: {}}}
    - {op: replace, path: /spec/jobTemplate/spec/template/spec/containers/0/image, value: %q}
`, parts.PodNamespace, deploy+"/components/backup", htcd.Spec.Template.Spec.Containers[0].Image), 0o600))
	t.Cleanup(func() {
		_, err := b.Lab.Run(context.WithoutCancel(t.Context()), "kubectl", "-n", parts.PodNamespace, "delete", "--ignore-not-found", "job/now", "cronjob/htcd-backup")
		require.NoError(t, err)
	})
	b.htcd("apply", "-k", dir)
	b.htcd("create", "job", "--from=cronjob/htcd-backup", "now")
	b.htcd("wait", "--for=condition=Complete", "job/now", "--timeout=120s")
	require.Contains(t, b.htcd("logs", "job/now"), "/backup/htcjobs-")
}
