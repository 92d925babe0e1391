package schedd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/programtest"
)

// produces makes condor_submit ask a site's program for the jobs' credential, as SEC_CREDENTIAL_PRODUCER does.
func (b *bench) produces(program string) {
	b.t.Helper()
	usual, err := os.ReadFile(b.world.Lab.Path("condor", "client.conf"))
	require.NoError(b.t, err)
	config := filepath.Join(b.t.TempDir(), "client.conf")
	require.NoError(
		b.t,
		os.WriteFile(
			config,
			fmt.Appendf(usual, "SEC_CREDENTIAL_PRODUCER = %s\nCREDD_HOST = $(SCHEDD_HOST)\n", program),
			0o600,
		),
	)
	o := b.options()
	o.CondorConfig = config
	b.Client = schedd.New(o)
}

// producer is such a program; it returns the ticket that it is called with.
func producer(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "producer")
	programtest.Write(t, program, "#!/bin/sh\ncat \"${KRB5CCNAME#FILE:}\"\n")
	return program
}

func TestAJobHasTheTicketOfItsAccountWhereTheSiteProvidesForThat(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]string{
		"asked for":     "MY.SendCredential = True\n",
		"not asked for": "", // condor_submit asks the program for every submission and sends the credential along
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.produces(producer(t))
			b.d.Options = options
			b.d.Source = `test -s "${KRB5CCNAME#FILE:}" && test "${KRB5CCNAME%/*}" = "FILE:$_CONDOR_SCRATCH_DIR"`
			b.submit()
			jobs := b.until("ended", func(j condor.Job) bool { return j.Done() })
			require.Equal(t, condor.OutcomeSucceeded, jobs[0].Outcome().State, "%+v", jobs[0])
		})
	}
}

func TestWithoutTheSitesProgramNothingIsSentAndItSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.produces("/usr/bin/not-in-this-image")
	_, err := b.send()
	require.ErrorContains(t, err, "condor_submit: Failed to process job credential requests")
	require.ErrorContains(t, err, "/usr/bin/not-in-this-image")
	require.Equal(t, condor.Unknown, condor.KindOf(err), "it is tried again")
	require.Empty(t, b.jobs())
}
