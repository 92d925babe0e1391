package security

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// Nobody has given the receiver a certificate: htcd's own authority signs one. htcd's flags affect all tests: this one
// runs alone.
func TestJobsCallBackByACertificateThatHTCdMakes(t *testing.T) {
	b := trial.New(t)
	world, err := parts.Open(b.Lab)
	require.NoError(t, err)
	htcd := b.Lab.Part("htcd")
	t.Cleanup(func() { require.NoError(t, htcd.Restart(context.WithoutCancel(t.Context()))) })
	restart := func() {
		require.NoError(
			t,
			htcd.Restart(
				t.Context(),
				"--tls-cert=",
				"--tls-key=",
				"--callback-ca=",
				"--callback-deadline=2s",
				"--reconcile-schedule=@every 5s",
				fmt.Sprintf("--callback-url=https://127.0.0.1:%d/cloudevents", world.Ports.Receiver),
			),
		)
	}
	restart()
	file := b.Lab.Path("htcd", "data", "tls", "authority.pem")
	first, err := os.ReadFile(file)
	require.NoError(t, err)

	// ends runs a job whose htcd is restarted meanwhile, and returns what reported its end.
	ends := func(name string, meanwhile func()) string {
		runs := name + "-of-" + b.Namespace
		b.Create(name, "touch "+runs+"\nuntil [ -e go ]; do sleep 0.2; done\nexit 3\n")
		var scratch string
		b.Eventually(func() bool {
			scratch = b.ScratchWith(runs)
			return scratch != ""
		}, func() string { return name + " never ran" })
		meanwhile()
		restart()
		require.NoError(t, os.WriteFile(filepath.Join(scratch, "go"), nil, 0o644))
		job := b.Phase(name, v1alpha1.PhaseFailed)
		require.EqualValues(t, 3, *job.Status.ExitCode)
		return b.Source(job)
	}
	require.Equal(t, "callback", ends("kept", func() {}))
	is, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, first, is)

	require.Equal(
		t,
		"crosscheck",
		ends("refused", func() { require.NoError(t, os.Remove(file)) }),
		"that htcd has another key",
	)
	is, err = os.ReadFile(file)
	require.NoError(t, err)
	require.NotEqual(t, first, is)
	require.Equal(t, "callback", ends("again", func() {}))
}
