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

// An htcd that leads and may not list HTCJobs does not blame another for that.
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
	go func() { _ = o.part("htcd").Start(context.WithoutCancel(t.Context())) }() // it is not ready before the end
	said := o.readyz("HTCJobs cannot be listed: ")
	require.Contains(t, said, "forbidden")
	patch(t.Context(), rules)
	o.readyz("ready")
}

// readyz waits until /readyz begins with these words, and returns all that it says.
func (o outage) readyz(words string) (said string) {
	o.T.Helper()
	world, err := parts.Open(o.Lab)
	require.NoError(o.T, err)
	o.Eventually(func() bool {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", world.Ports.Health))
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		said = string(text)
		return err == nil && strings.HasPrefix(said, words) && (answer.StatusCode == http.StatusOK) == (words == "ready")
	}, func() string { return "readyz says: " + said })
	return said
}
