//go:build !releases

package e2e

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// dockerConfig is a .dockerconfigjson with a login for the lab's registry, and one for another.
func dockerConfig(registry, password string) string {
	login := base64.StdEncoding.EncodeToString([]byte(parts.RegistryUser + ":" + password))
	return fmt.Sprintf(
		`{"auths": {%q: {"auth": %q}, "registry.example.org": {"auth": "b3RoZXI6bG9naW4="}}}`,
		registry,
		login,
	)
}

func image(name string) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.Script.Image = name }
}

func TestAPrivateImageIsFetchedWithALogin(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	world, err := parts.Open(b.Lab)
	require.NoError(t, err)
	host := fmt.Sprintf("localhost:%d", world.Ports.Registry)
	private := image("docker://" + host + "/centos")
	jobSecret(b, "regcred", ".dockerconfigjson", dockerConfig(host, parts.RegistryPassword))
	jobSecret(b, "wrong", ".dockerconfigjson", dockerConfig(host, "wrong"))
	jobSecret(b, "another", ".dockerconfigjson", dockerConfig("another.example.org", parts.RegistryPassword))
	jobSecret(b, "notes", "text", "hello")

	const source = "echo \"$HTC_CREDENTIALS\"; find . -maxdepth 3 -type f ! -path '*/rootfs-*' | xargs grep -l '\"a[u]ths\"'; echo looked\n"
	b.Create("with", source, private, credentials("login regcred .dockerconfigjson Registry"))
	b.Create(
		"both",
		"cat \"$HTC_CREDENTIALS\"/*; ls \"$HTC_CREDENTIALS\"",
		private,
		credentials("login regcred .dockerconfigjson Registry", "note notes text File"),
	)
	b.Create("without", "exit 0", private)
	b.Create("no-file", "exit 0", image("/no/such/image"))
	b.Create("own", "exit 255")
	b.Create("wrong", "exit 0", private, credentials("login wrong .dockerconfigjson Registry"))
	b.Create("another", "exit 0", private, credentials("login another .dockerconfigjson Registry"))
	b.Create(
		"elsewhere",
		"exit 0",
		image("docker://registry.example.org/private/centos"),
		credentials("login regcred .dockerconfigjson Registry"),
	)
	b.Create("path", "exit 0", image("/cvmfs/images/centos"), credentials("login regcred .dockerconfigjson Registry"))

	job := b.Fetched("with")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, b.File(job, 0, "_condor_stderr"))
	require.Equal(t, "\nlooked\n", b.Output(job, 0), "the script has no login")
	require.ElementsMatch(t, []string{"_condor_stdout", "_condor_stderr"}, b.Files(job, 0))
	ads, err := b.Lab.Run(t.Context(), "condor_history", "-l", job.Status.JobID[0])
	require.NoError(t, err)
	require.NotContains(
		t,
		ads,
		base64.StdEncoding.EncodeToString([]byte(parts.RegistryUser+":"+parts.RegistryPassword)),
	)
	require.Equal(t, "hellonote\n", b.Output(b.Fetched("both"), 0))

	require.Equal(t, v1alpha1.PhaseFailed, b.Fetched("without").Status.Phase)
	require.Equal(t, "ImageMissing", b.Fetched("no-file").Status.Failures[0].Reason)
	job = b.Fetched("own")
	require.Equal(t, "ExitCode", job.Status.Failures[0].Reason)
	require.EqualValues(t, 255, *job.Status.Failures[0].ExitCode, "the script's own")
	job = b.Fetched("wrong")
	require.Equal(t, "ImageMissing", job.Status.Failures[0].Reason)
	require.Nil(t, job.Status.Failures[0].ExitCode)
	said := b.File(job, 0, "_condor_stderr")
	require.Contains(t, said, "/centos could not be fetched with the credential login")
	require.NotContains(t, said, "wrong")

	waits := b.Until(
		"another",
		"waiting",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == "CredentialUnusable" },
	)
	require.Contains(
		t,
		b.Condition(waits, v1alpha1.ConditionInputsReady).Message,
		"has no login for the registry "+host,
	)
	for name, words := range map[string]string{"elsewhere": "registry.example.org, the registry of script.image, is not one that", "path": "a script.image of a registry, and there are none"} {
		refused := b.Ended(name)
		require.Equal(t, "Refused", refused.Status.Reason)
		require.Contains(t, b.Condition(refused, v1alpha1.ConditionFailed).Message, words)
	}
}
