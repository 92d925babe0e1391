package outage

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab/parts"
)

// A leading htcd that may not list HTCJobs says so, and does not blame another.
func TestReadyzSaysThatHTCJobsCannotBeListed(t *testing.T) {
	o := begin(t)
	rules := o.Kubectl("get", "clusterrole", "htcd", "-o", "jsonpath={.rules}")
	patch := func(ctx context.Context, rules string) {
		_, err := o.Lab.Run(ctx, "kubectl", "patch", "clusterrole", "htcd", "--type=merge", "-p", `{"rules":`+rules+`}`)
		require.NoError(t, err)
	}
	t.Cleanup(func() { patch(context.WithoutCancel(t.Context()), rules) })
	o.do(o.part("htcd").Stop)
	patch(t.Context(), "[]")
	go func() { _ = o.part("htcd").Start(context.WithoutCancel(t.Context())) }() // it is not ready until the end
	said := o.readyz("HTCJobs cannot be listed: ")
	require.Contains(t, said, "forbidden")
	_, metrics := o.health("metrics")
	require.Contains(t, metrics, "\nhtcd_htcjobs_watched 0\n")
	patch(t.Context(), rules)
	o.readyz("ready")
	_, metrics = o.health("metrics")
	require.Contains(t, metrics, "\nhtcd_htcjobs_watched 1\n")
}

// readyz waits until /readyz begins with these words, and returns its complete text.
func (o outage) readyz(words string) (said string) {
	o.T.Helper()
	o.Eventually(func() bool {
		var code int
		code, said = o.health("readyz")
		return strings.HasPrefix(said, words) && (code == http.StatusOK) == (words == "ready")
	}, func() string { return "readyz says: " + said })
	return said
}

// health returns htcd's answer at --health-listen, if there is one.
func (o outage) health(path string) (code int, text string) {
	o.T.Helper()
	world, err := parts.Open(o.Lab)
	require.NoError(o.T, err)
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/%s", world.Ports.Health, path))
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, ""
	}
	return answer.StatusCode, string(read)
}
