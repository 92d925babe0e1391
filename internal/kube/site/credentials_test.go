package site

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/internal/target/pool"
)

func TestALoginServesTheRegistryOfTheImageOrArtifacts(t *testing.T) {
	allowed, err := artifact.ParseRegistries([]string{"a.example.org"})
	require.NoError(t, err)
	s := Site{Inputs: inputs.Rules{Registries: allowed}}
	job := &v1alpha1.HTCJob{
		Spec: v1alpha1.HTCJobSpec{Credentials: []v1alpha1.Credential{{Name: "login", As: v1alpha1.Registry}}},
	}
	for image, words := range map[string]string{
		"a.example.org/g/i:v1":   "",
		"oras://a.example.org/i": "",
		"b.example.org/i":        "b.example.org, the registry of script.image, is not one that",
		"centos":                 "docker.io, the registry of script.image, is not one that",
		"/cvmfs/i":               "and there are none",
		"library://a.org/i":      "and there are none",
	} {
		job.Spec.Script.Image = image
		err := s.checkLogin(job)
		if words == "" {
			require.NoError(t, err, image)
			require.Len(t, s.CredentialsOf(job, pool.Pool{}), 1)
			continue
		}
		require.ErrorContains(t, err, words)
		require.Equal(t, condor.Refused, condor.KindOf(err))
		require.Empty(t, s.CredentialsOf(job, pool.Pool{}), "the node gets none")
	}
	job.Spec.Inputs = []v1alpha1.Input{{Name: "a", Artifact: "a.example.org/g/m:v1"}}
	require.NoError(t, s.checkLogin(job), "it is for the artifact")
}

func TestTheCopiesOfCredentialsAreBounded(t *testing.T) {
	s := Site{MaxInput: 1 << 20}
	some := []submit.Credential{{Name: "a", Content: string(make([]byte, 1<<10))}}
	require.NoError(t, s.fitCredentials(some, 1024))
	require.ErrorContains(t, s.fitCredentials(some, 1025), "--max-input")
	require.NoError(t, Site{}.fitCredentials(some, 100_000))
}
