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

	port, portOfNode := free(t), free(t)
	const serve = "echo %s > index.html; exec /bin/busybox httpd -f -p 127.0.0.1:%d"
	b.Create("web", fmt.Sprintf(serve, "job", port), trial.Unpacked, func(job *v1alpha1.HTCJob) {
		job.Spec.Ports, job.Spec.Suspend = []v1alpha1.JobPort{{Port: port}}, true
	})
	page := func(port v1alpha1.PortNumber) (string, error) {
		text, err := b.client.CoreV1().Services(b.Namespace).
			ProxyGet("http", "web", fmt.Sprint(port), "index.html", nil).DoRaw(t.Context())
		return string(text), err
	}
	explained := func() string { return b.Kubectl("describe", "htcjobs,htcworkflows,services,pods") }
	told := func(kind, reason string) bool {
		selector := "--field-selector=involvedObject.kind=" + kind + ",reason=" + reason
		return len(b.Kubectl("get", "events", selector, "-o", "name")) > 0
	}
	b.Eventually(func() bool {
		_, _ = page(port) // the Pod may not have been ready
		return told(v1alpha1.Kind, "PortNotReached")
	}, explained)

	// It gets the Service when the HTCJob has ended.
	b.ApplyText(fmt.Sprintf(`
apiVersion: htc.cern.ch/v1alpha1
kind: HTCWorkflow
metadata: {name: web}
spec:
  ports: [{port: %d, step: serve}, {port: 1, step: server}]
  steps: [{name: serve, job: {script: {image: /opt/image/busybox, command: sh, source: %q}}}]
`, portOfNode, fmt.Sprintf(serve, "node", portOfNode)))
	b.Kubectl("patch", "htcjob", "web", "--type=merge", "-p", `{"spec": {"suspend": false}}`)
	var text string
	b.Eventually(func() bool { text, err = page(port); return err == nil }, explained)
	require.Equal(t, "job\n", text)
	b.Eventually(func() bool {
		return told(v1alpha1.WorkflowKind, "PortInvalid") && told(v1alpha1.WorkflowKind, "ServiceNameTaken")
	}, explained)

	const end = `{"spec": {"activeDeadlineSeconds": 1}}`
	b.Kubectl("patch", "htcjob", "web", "--type=merge", "-p", end)
	b.Eventually(func() bool { text, err = page(portOfNode); return err == nil }, explained)
	require.Equal(t, "node\n", text)

	b.Kubectl("patch", "htcworkflow", "web", "--type=merge", "-p", end)
	b.Eventually(func() bool {
		_, err := b.client.CoreV1().Services(b.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, explained)
}

// free is a port on which nothing listens.
func free(t *testing.T) v1alpha1.PortNumber {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return v1alpha1.PortNumber(l.Addr().(*net.TCPAddr).Port)
}
