package security

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// tokenOf returns the callbacks' token of a job that is in the queue, from the schedd's spool.
func tokenOf(b *trial.Bench, job *v1alpha1.HTCJob) string {
	b.T.Helper()
	return tokensOf(b, job)[0]
}

// tokensOf returns all tokens of such a job's run: that of the callbacks, and that of credentials if it has any.
func tokensOf(b *trial.Bench, job *v1alpha1.HTCJob) []string {
	b.T.Helper()
	text, err := os.ReadFile(filepath.Join(spooled(b, job), "token"))
	require.NoError(b.T, err)
	return strings.Fields(string(text))
}

// spooled returns the directory in which the schedd keeps the files of an HTCJob's first job.
func spooled(b *trial.Bench, job *v1alpha1.HTCJob) string {
	b.T.Helper()
	cluster := job.Status.ClusterID
	require.NotZero(b.T, cluster)
	return b.Lab.Path(
		"condor",
		"spool",
		fmt.Sprint(cluster%10000),
		"0",
		fmt.Sprintf("cluster%d.proc0.subproc0", cluster),
	)
}

// post sends a callback as a job would and returns the answer's status.
func post(b *trial.Bench, token, name, jobid string, retcode int) int {
	b.T.Helper()
	world, err := parts.Open(b.Lab)
	require.NoError(b.T, err)
	client, err := parts.ReceiverClient(world)
	require.NoError(b.T, err)
	return postTo(b, client, fmt.Sprintf("https://127.0.0.1:%d", world.Ports.Receiver), token, name, jobid, retcode)
}

func postTo(b *trial.Bench, client *http.Client, url, token, name, jobid string, retcode int) int {
	b.T.Helper()
	event, err := json.Marshal(map[string]any{
		"specversion":     "1.0",
		"type":            "ch.cern.htc.job.ended",
		"source":          "/job",
		"id":              "1",
		"datacontenttype": "application/json",
		"data":            map[string]any{"name": name, "namespace": b.Namespace, "jobid": jobid, "retcode": retcode},
	})
	require.NoError(b.T, err)
	request, err := http.NewRequestWithContext(
		b.T.Context(),
		http.MethodPost,
		url+"/cloudevents",
		bytes.NewReader(event),
	)
	require.NoError(b.T, err)
	request.Header.Set("Content-Type", "application/cloudevents+json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	require.NoError(b.T, err)
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(b.T, err)
	require.NoError(b.T, answer.Body.Close())
	return answer.StatusCode
}

// verdicts returns everything recorded about how jobs of the namespace ended, in the ledger and in the objects.
func verdicts(b *trial.Bench) string {
	b.T.Helper()
	rows := b.SQL(fmt.Sprintf(
		`SELECT htcjobName, jobId, status, exitCode, exitSignal, h.reason, h.changed, attempt, ended, quote(tokenHash)
		FROM htcjobs h JOIN runs r ON h.run = r.id WHERE namespace = '%s' ORDER BY htcjobName, jobId`, b.Namespace))
	list, err := b.Jobs.List(b.T.Context(), metav1.ListOptions{})
	require.NoError(b.T, err)
	for i := range list.Items {
		job := &list.Items[i]
		s := job.Status
		failures, err := json.Marshal(s.Failures)
		require.NoError(b.T, err)
		rows += fmt.Sprintln(
			job.Name,
			s.Phase,
			s.Attempt,
			s.JobID,
			s.Active,
			s.Succeeded,
			s.Failed,
			string(failures),
			s.CompletionTime,
		)
	}
	return rows
}

// The job left the queue and the history before HTCondor was asked about it, so only its own report of its end is
// known. The next attempt waits for nothing else.
func TestWhatAJobSaysOfItsEndStandsWhereHTCondorHasForgottenIt(t *testing.T) {
	b := trial.New(t)
	ctx := t.Context()
	b.Create("forgotten", "sleep 1000\n")
	job := b.Phase("forgotten", v1alpha1.PhaseRunning)
	require.Equal(t, http.StatusNoContent, post(b, tokenOf(b, job), "forgotten", job.Status.JobID[0], 3))
	b.Phase("forgotten", v1alpha1.PhaseFailed)

	htcd := b.Lab.Part("htcd")
	require.NoError(t, htcd.Stop(ctx))
	t.Cleanup(func() { require.NoError(t, htcd.Start(context.WithoutCancel(ctx))) })
	_, err := b.Lab.RunAs(ctx, "robot", "condor_rm", job.Status.JobID[0])
	require.NoError(t, err)
	b.Eventually(
		func() bool { return len(b.Condor("condor_history", trial.Tagged(job))) == 1 },
		func() string { return "still in the queue" },
	)
	require.NoError(t, os.Truncate(b.Lab.Path("condor", "spool", "history"), 0))
	b.Kubectl("annotate", "htcjob", "forgotten", v1alpha1.RerunAnnotation+"=once")
	require.NoError(t, htcd.Start(ctx))

	b.Until("forgotten", "told as it said", func(job *v1alpha1.HTCJob) bool { return job.Status.Attempt == 2 })
	said := b.SQL(
		fmt.Sprintf(
			"SELECT status, exitCode, source FROM htcjobs h JOIN runs r ON h.run = r.id WHERE uid = '%s' AND attempt = 1",
			job.UID,
		),
	)
	require.Equal(t, "7|3|crosscheck", said)
}

func TestForgedReplayedCrossedAndLateCallbacksChangeNothing(t *testing.T) {
	b := trial.New(t)
	for _, name := range []string{"real", "other"} {
		b.Create(name, "sleep 1000\n")
	}
	wait, open := b.Gate()
	b.Create("ended", wait+"exit 3\n")
	b.Create("again", wait+"exit 4\n")
	old, late := tokenOf(
		b,
		b.Phase("again", v1alpha1.PhaseRunning),
	), tokenOf(
		b,
		b.Phase("ended", v1alpha1.PhaseRunning),
	)
	open()
	first := b.Ended("again")
	first.Spec.Script.Source = "sleep 1000\n"
	_, err := b.Jobs.Update(t.Context(), first, metav1.UpdateOptions{})
	require.NoError(t, err)
	running := func(job *v1alpha1.HTCJob) bool { return job.Status.Phase == v1alpha1.PhaseRunning }
	real, other, ended := b.Until("real", "running", running), b.Until("other", "running", running), b.Ended("ended")
	second := b.Until(
		"again",
		"running again",
		func(job *v1alpha1.HTCJob) bool { return running(job) && job.Status.Attempt == 2 },
	)
	for _, job := range []*v1alpha1.HTCJob{ended, first} { // so that HTCondor's own report does not interfere
		b.Eventually(func() bool {
			return b.SQL(fmt.Sprintf("SELECT confirmed FROM runs WHERE uid = '%s' AND attempt = 1", job.UID)) == "1"
		}, func() string { return "never confirmed" })
	}

	token := tokenOf(b, real)
	guess := base64.RawURLEncoding.EncodeToString(sha256.New().Sum(nil))
	hash := sha256.Sum256([]byte(token)) // which the ledger has
	id := func(job *v1alpha1.HTCJob) string { return job.Status.JobID[0] }
	before := verdicts(b)
	for name, c := range map[string]struct {
		token, name, jobid string
		retcode, want      int
	}{
		"without a token":                              {"", "real", id(real), 0, http.StatusUnauthorized},
		"with a guessed token":                         {guess, "real", id(real), 0, http.StatusForbidden},
		"with the beginning of the token":              {token[:42], "real", id(real), 0, http.StatusUnauthorized},
		"with the hash from the ledger, as hex":        {hex.EncodeToString(hash[:]), "real", id(real), 0, http.StatusUnauthorized},
		"with the hash from the ledger, as the token":  {base64.RawURLEncoding.EncodeToString(hash[:]), "real", id(real), 0, http.StatusForbidden},
		"with the token of another run":                {tokenOf(b, other), "real", id(real), 0, http.StatusForbidden},
		"for another HTCJob":                           {token, "other", id(other), 0, http.StatusForbidden},
		"for another HTCJob under this one's name":     {token, "real", id(other), 0, http.StatusNotFound},
		"for this one's job under another's name":      {token, "other", id(real), 0, http.StatusNotFound},
		"for a proc that there is none":                {token, "real", strings.TrimSuffix(id(real), "0") + "1", 0, http.StatusNotFound},
		"for an HTCJob that there is none":             {token, "nobody", id(real), 0, http.StatusNotFound},
		"for the second attempt with the first's":      {old, "again", id(second), 0, http.StatusForbidden},
		"replayed after the end":                       {late, "ended", id(ended), 3, http.StatusNoContent},
		"after the end, with another return code":      {late, "ended", id(ended), 0, http.StatusNoContent},
		"of the first attempt while the second runs":   {old, "again", id(first), 0, http.StatusNoContent},
		"with a return code that no shell has":         {token, "real", id(real), 256, http.StatusBadRequest},
		"with a job id that ends in another statement": {token, "real", "1.0'; DROP TABLE htcjobs", 0, http.StatusBadRequest},
	} {
		require.Equal(t, c.want, post(b, c.token, c.name, c.jobid, c.retcode), name)
	}
	// If anything was accepted, it shows in the objects after a moment.
	b.Kubectl("annotate", "htcjob", "--all", "looked=at")
	require.Never(t, func() bool { return verdicts(b) != before }, 3*time.Second, 500*time.Millisecond, before)

	b.Kubectl("delete", "htcjob", "real", "--timeout="+trial.Patience.String())
	require.Equal(t, http.StatusNotFound, post(b, token, "real", id(real), 0))
	_, err = b.Jobs.Get(t.Context(), "real", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	require.NotContains(t, verdicts(b), "real")
}

// htcd's flags affect all tests: this one runs alone.
func TestTheReceiverSpeaksHTTPSWithItsCertificateAndNothingElse(t *testing.T) {
	b := trial.New(t)
	world, err := parts.Open(b.Lab)
	require.NoError(t, err)
	b.Create("real", "sleep 1000\n")
	real := b.Phase("real", v1alpha1.PhaseRunning)
	token := tokenOf(b, real)
	require.Equal(t, http.StatusNoContent, post(b, token, "real", real.Status.JobID[0], 7))
	failed := b.Phase("real", v1alpha1.PhaseFailed)
	require.EqualValues(t, 7, *failed.Status.Failures[0].ExitCode)

	address := fmt.Sprintf("127.0.0.1:%d", world.Ports.Receiver)
	require.Equal(
		t,
		http.StatusBadRequest,
		postTo(b, http.DefaultClient, "http://"+address, token, "real", real.Status.JobID[0], 0),
		"plain HTTP",
	)
	_, err = http.Get("https://" + address)
	require.ErrorContains(t, err, "certificate", "it is of no authority that this machine trusts")

	b.Create("shipped", "exit 4\n") // the authority's certificate is sent with the job
	require.Equal(t, "callback", b.Source(b.Phase("shipped", v1alpha1.PhaseFailed)))

	htcd := b.Lab.Part("htcd")
	require.NoError(t, htcd.Restart(t.Context(), "--callback-ca="))
	t.Cleanup(func() { require.NoError(t, htcd.Restart(context.WithoutCancel(t.Context()))) })
	trusted := b.Lab.Path("condor", "trusted.crt") // by the execute node
	require.NoError(t, os.Link(parts.ReceiverCA(world), trusted))
	t.Cleanup(func() { require.NoError(t, os.Remove(trusted)) })
	b.Create("trusting", "exit 5\n")
	require.Equal(t, "callback", b.Source(b.Phase("trusting", v1alpha1.PhaseFailed)))
}
