package kube

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/jobcredentials"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
)

func TestWhereJobsAskForTheirCredentials(t *testing.T) {
	job := &v1alpha1.HTCJob{}
	job.UID = "u-1"
	for callback, want := range map[string]string{
		"https://htcd.example.org/cloudevents":        "https://htcd.example.org/credentials/u-1/3",
		"https://htcd.example.org:8443/x/cloudevents": "https://htcd.example.org:8443/x/credentials/u-1/3",
		"https://htcd.example.org":                    "https://htcd.example.org/credentials/u-1/3",
		"http://htcd.example.org/cloudevents":         "",
		"":                                            "",
	} {
		require.Equal(t, want, pullURL(callback, job, 3), callback)
	}
}

func TestTheCopiesOfCredentialsAreBounded(t *testing.T) {
	s := Site{MaxInput: 1 << 20}
	some := []schedd.Credential{{Name: "a", Content: string(make([]byte, 1<<10))}}
	require.NoError(t, s.fitCredentials(some, 1024))
	require.ErrorContains(t, s.fitCredentials(some, 1025), "--max-input")
	require.NoError(t, Site{}.fitCredentials(some, 100_000))
}

func TestOnlyAnActiveRunHasCredentials(t *testing.T) {
	w := newWorld(t)
	_, err := w.CredentialsOf(context.Background(), "nobody", 1)
	require.ErrorIs(t, err, jobcredentials.ErrUnknownRun)
}
