package security

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// noted gives an HTCJob the Secret notes as the credential note.
func noted(job *v1alpha1.HTCJob) {
	job.Spec.Credentials = []v1alpha1.Credential{
		{Name: "note", SecretKeyRef: v1alpha1.KeyRef{Name: "notes", Key: "text"}, As: v1alpha1.PlainFile},
	}
}

func TestCredentialsAreServedToTheirRunAlone(t *testing.T) {
	b := trial.New(t)
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1",
		"kind":       "Secret",
		"metadata":   map[string]any{"name": "notes", "labels": map[string]string{"htc.cern.ch/jobs": "true"}},
		"stringData": map[string]string{"text": "a-secret-word"},
	})
	require.NoError(t, err)
	b.ApplyText(string(text))
	world, err := parts.Open(b.Lab)
	require.NoError(t, err)
	client, err := parts.ReceiverClient(world)
	require.NoError(t, err)

	ask := func(client *http.Client, scheme, uid, token string) (int, string) {
		request, err := http.NewRequestWithContext(
			t.Context(),
			http.MethodGet,
			fmt.Sprintf("%s://127.0.0.1:%d/credentials/%s/1", scheme, world.Ports.Receiver, uid),
			nil,
		)
		require.NoError(t, err)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(request)
		require.NoError(t, err)
		defer answer.Body.Close()
		said, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(said)
	}

	b.Create("mine", "cat \"$HTC_CREDENTIALS/note\" >/dev/null; sleep 1000\n", noted)
	b.Create("other", "sleep 1000\n", noted)
	mine, other := b.Phase("mine", v1alpha1.PhaseRunning), b.Phase("other", v1alpha1.PhaseRunning)
	own := tokensOf(b, mine)
	require.Len(t, own, 2)
	status, said := ask(client, "https", string(mine.UID), own[1])
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, said, "note YS1zZWNyZXQtd29yZA==\nend\n")
	for name, c := range map[string]struct {
		uid, token string
		want       int
	}{
		"without a token":         {string(mine.UID), "", http.StatusUnauthorized},
		"another run's token":     {string(mine.UID), tokensOf(b, other)[1], http.StatusForbidden},
		"the callbacks' token":    {string(mine.UID), own[0], http.StatusForbidden},
		"for another run":         {string(other.UID), own[1], http.StatusForbidden},
		"a run that is not":       {"00000000-0000-0000-0000-000000000000", own[1], http.StatusNotFound},
		"another path, with dots": {string(mine.UID) + "/../" + string(other.UID), own[1], http.StatusNotFound},
	} {
		status, said := ask(client, "https", c.uid, c.token)
		require.Equal(t, c.want, status, name)
		require.NotContains(t, said, "YS1zZWNyZXQtd29yZA")
	}
	status, _ = ask(http.DefaultClient, "http", string(mine.UID), own[1])
	require.Equal(t, http.StatusBadRequest, status, "plain HTTP")
	require.Equal(t, http.StatusForbidden, post(b, own[1], "mine", mine.Status.JobID[0], 0), "it ends no job")

	// Nobody else sees it: not in the ad, in arguments or environments outside of the script's container, in htcd's
	// log.
	ad, err := b.Lab.Run(t.Context(), "condor_q", "-l", mine.Status.JobID[0])
	require.NoError(t, err)
	seen, err := b.Lab.RunAs(
		t.Context(),
		"root",
		"sh",
		"-c",
		"cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'",
	)
	require.NoError(t, err)
	log, err := os.ReadFile(b.Lab.Log("htcd"))
	require.NoError(t, err)
	for where, text := range map[string]string{"ad": ad, "processes": seen, "log": string(log)} {
		for _, secret := range []string{"a-secret-word", "YS1zZWNyZXQtd29yZA", own[0], own[1]} {
			require.NotContains(t, text, secret, where)
		}
	}

	_, err = b.Lab.RunAs(t.Context(), "robot", "condor_rm", mine.Status.JobID[0])
	require.NoError(t, err)
	b.Ended("mine")
	b.Eventually(func() bool {
		status, _ = ask(client, "https", string(mine.UID), own[1])
		return status == http.StatusGone
	}, func() string { return fmt.Sprintf("the run is over, and the answer is %d", status) })
	b.Kubectl("delete", "htcjob", "other", "--timeout="+trial.Patience.String())
}
