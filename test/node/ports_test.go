//go:build node

package node

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestAServiceLeadsToAPortOfARunningJob(t *testing.T) {
	b := newBench(t)
	dir := t.TempDir()
	component, err := filepath.Abs("../../deploy/components/ports")
	require.NoError(t, err)
	component, err = filepath.Rel(dir, component)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), fmt.Appendf(nil, `namespace: %s
components: [%s]
images: [{name: htcd, newName: localhost/htcd, newTag: dev}]
`, b.Namespace, component), 0o600))
	b.Kubectl("apply", "-k", dir)

	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	b.Create("web",
		fmt.Sprintf("echo hello > index.html; exec /bin/busybox httpd -f -p 127.0.0.1:%d", port),
		trial.Unpacked,
		func(job *v1alpha1.HTCJob) {
			job.Spec.Ports, job.Spec.Suspend = []v1alpha1.JobPort{{Port: int32(port)}}, true //nolint:gosec // a port
		})
	page := func() (string, error) {
		text, err := b.client.CoreV1().Services(b.Namespace).
			ProxyGet("http", "web", fmt.Sprint(port), "index.html", nil).DoRaw(t.Context())
		return string(text), err
	}
	explained := func() string { return b.Kubectl("describe", "htcjobs,services,pods") }
	b.Eventually(func() bool {
		_, _ = page() // the Pod may not have been ready
		return len(b.Kubectl("get", "events", "--field-selector=reason=PortNotReached", "-o", "name")) > 0
	}, explained)
	b.Kubectl("patch", "htcjob", "web", "--type=merge", "-p", `{"spec": {"suspend": false}}`)
	var text string
	b.Eventually(func() bool { text, err = page(); return err == nil }, explained)
	require.Equal(t, "hello\n", text)

	b.Kubectl("patch", "htcjob", "web", "--type=merge", "-p", `{"spec": {"activeDeadlineSeconds": 1}}`)
	b.Eventually(func() bool {
		_, err := b.client.CoreV1().Services(b.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, explained)
}
