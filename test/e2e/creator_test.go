package e2e

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// The lab has deploy/components/creator.
func TestTheAdsSayWhoHasCreatedAnHTCJobAndNobodyCanForgeIt(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	const strange = `eve"$(HOME) of ü`
	for _, user := range []string{"alice", strange} {
		b.Kubectl("create", "rolebinding", "user-"+user[:3], "--clusterrole=htcjob-user", "--user="+user)
	}
	create := func(user, name string) *v1alpha1.HTCJob {
		manifest := `{"apiVersion": "htc.cern.ch/v1alpha1", "kind": "HTCJob", "metadata": {"name": "` + name + `", "annotations": {"htc.cern.ch/creator": "root"}},
			"spec": {"script": {"image": "centos", "command": "bash", "source": "sleep 3"}}}`
		_, err := b.Lab.RunInput(t.Context(), manifest, "kubectl", "-n", b.Namespace, "--as="+user, "create", "-f", "-")
		require.NoError(t, err)
		return b.Get(name)
	}
	create(strange, "strange")
	require.Equal(t, "alice", create("alice", "plain").Annotations[v1alpha1.CreatorAnnotation])
	b.Kubectl("--as=alice", "annotate", "--overwrite", "htcjob", "plain", v1alpha1.CreatorAnnotation+"=root")
	b.Kubectl("--as=alice", "annotate", "--overwrite", "htcjob", "plain", v1alpha1.CreatorAnnotation+"-")
	b.Kubectl("annotate", "--overwrite", "htcjob", "strange", v1alpha1.CreatorAnnotation+"=root")
	require.Equal(t, "alice", b.Get("plain").Annotations[v1alpha1.CreatorAnnotation])
	require.Equal(t, strange, b.Get("strange").Annotations[v1alpha1.CreatorAnnotation])
	require.Contains(t, b.Ads(trial.Tagged(b.Ended("plain")), "HTCJobCreator")[0], " alice")
	require.Contains(t, b.Ads(trial.Tagged(b.Ended("strange")), "HTCJobCreator")[0], " eve__(HOME) of ü")

	// How long they had cores stands in a metric.
	world, err := parts.Open(b.Lab)
	require.NoError(t, err)
	series := regexp.MustCompile(`htcd_core_seconds_total\{namespace="(?:` + b.Namespace + `|_other)"\} [1-9]`)
	b.Eventually(func() bool {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", world.Ports.Health))
		require.NoError(t, err)
		defer answer.Body.Close()
		page, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return series.Match(page)
	}, func() string { return "no core seconds of this namespace" })
}
