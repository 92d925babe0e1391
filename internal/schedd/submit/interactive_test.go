package submit

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// sleepless has sleeps that note themselves and are over at once.
var sleepless = map[string]string{
	"apptainer": fakeApptainer,
	"sleep":     "#!/bin/sh\necho \"$1\" >>\"$_CONDOR_SCRATCH_DIR/../slept\"\n",
	"sh":        "",
}

func (s scratch) slept(t *testing.T) string {
	text, err := os.ReadFile(filepath.Join(s.dir, "../slept"))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(t, err)
	return string(text)
}

func TestAnInteractiveJobRunsNoScriptAndEndsBySignal(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			to := receive(t)
			d := description()
			d.Interactive, d.CallbackURL, d.Source = 3600, to.URL, "echo ran >ran\n"
			s := node(t, d, sleepless)
			s.shell = shell
			cmd := s.command()
			err := cmd.Run()
			require.Error(t, err)
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			require.True(t, status.Signaled(), "%v", cmd.ProcessState)
			require.Equal(t, condor.InteractiveSignal, status.Signal())
			require.Equal(t, "3600\n", s.slept(t))
			require.NoFileExists(t, filepath.Join(s.dir, "ran"))
			require.Empty(t, to.events, "its end is HTCondor's to tell")
		})
	}
}

func TestAnInteractiveJobWhoseWaitSomebodyEndsHasSucceeded(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			to := receive(t)
			d := description()
			d.Interactive, d.CallbackURL, d.JobOptions.SuccessCodes = 3600, to.URL, []int{7, 8}
			tools := map[string]string{
				"apptainer": fakeApptainer, "sh": "", "curl": "",
				"sleep": "#!/bin/sh\necho mine >left\nkill -TERM $$\n",
			}
			s := node(t, d, tools)
			s.shell = shell
			code, _, errs := s.run(t)
			require.Equal(t, 7, code, errs)
			require.FileExists(t, filepath.Join(s.dir, "left"))
			require.Len(t, to.events, 1, errs)

			// HTCondor asks the wrapper, which asks the container.
			d.CallbackURL = ""
			tools["sleep"] = "#!/bin/sh\nkill -TERM $PPID\nwhile :; do :; done\n"
			s = node(t, d, tools)
			s.shell = shell
			cmd := s.command()
			require.Error(t, cmd.Run())
			require.Equal(t, condor.InteractiveSignal, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
		})
	}
}

func TestAnInteractiveJobWithoutAContainerIsNoEndOfItsTime(t *testing.T) {
	d := description()
	d.Interactive = 3600
	code, _, errs := node(t, d, map[string]string{"apptainer": "#!/bin/sh\necho no such image >&2\nexit 255\n"}).run(t)
	require.Equal(t, 255, code)
	require.Contains(t, errs, "no such image")
}

func TestTheContainerOfAFailedScriptStays(t *testing.T) {
	for name, shell := range shells(t) {
		t.Run(name, func(t *testing.T) {
			for source, want := range map[string]struct {
				code  int
				slept string
			}{
				"exit 3\n":      {3, "600\n"},
				"exit 0\n":      {0, ""},
				"exit 7\n":      {7, ""},
				"kill -9 $$\n":  {137, "600\n"},
				"echo $* >args": {0, ""},
			} {
				d := description()
				d.Command, d.KeepOnFailure, d.Source, d.JobOptions.SuccessCodes = "sh", 600, source, []int{0, 7}
				s := node(t, d, sleepless)
				s.shell = shell
				code, _, errs := s.run(t)
				require.Equal(t, want.code, code, source)
				require.Equal(t, want.slept, s.slept(t), source)
				require.Equal(t, want.slept != "", strings.Contains(errs, "its container stays for 600 s"), errs)
			}
		})
	}
}

func TestAnInteractiveJobHasFailedAsSuch(t *testing.T) {
	signalled := true
	signal := int(condor.InteractiveSignal)
	o := condor.Job{Status: condor.Completed, ExitBySignal: &signalled, ExitSignal: &signal}.Outcome()
	require.Equal(t, condor.OutcomeFailed, o.State)
	require.Equal(t, condor.ReasonInteractive, o.Reason)
	require.Nil(t, o.Signal)
}

func TestAnInteractiveJobIsNotTriedAgain(t *testing.T) {
	d := description()
	d.Interactive, d.JobOptions.Retries = 60, new(2)
	_, err := d.Render()
	require.ErrorContains(t, err, "spec.interactive: max_retries")
	d.JobOptions.Retries = new(0)
	_, err = d.Render()
	require.NoError(t, err)
}
