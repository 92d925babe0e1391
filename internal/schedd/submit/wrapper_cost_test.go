package submit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/programtest"
)

// Each costs a node some milliseconds, and there are jobs that do less.
func TestAJobThatDoesNothingStartsFewPrograms(t *testing.T) {
	for shell, argv := range shells(t) {
		if shell == "busybox" {
			continue // has them built in
		}
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			tools := map[string]string{"apptainer": fakeApptainer, "sh": ""}
			for _, tool := range []string{
				"date", "sed", "tail", "grep", "mkdir", "rm", "chmod", "sleep", "cat", "mv", "cp", "tr", "curl", "stat", "find", "od", "readlink",
			} {
				path, err := exec.LookPath(tool)
				require.NoError(t, err)
				tools[tool] = "#!/bin/sh\necho " + tool + " >>\"${_CONDOR_SCRATCH_DIR}/../started\"\nexec " + path + " \"$@\"\n"
			}
			s := node(t, receive(t).description("true\n"), tools)
			s.shell = argv
			require.NoError(t, os.Remove(filepath.Join(s.dir, FileSubmit))) // it stays at the schedd
			code, _, stderr := s.run(t)
			require.Zero(t, code, stderr)
			started, err := os.ReadFile(filepath.Join(s.dir, "..", "started"))
			require.NoError(t, err)
			require.Equal(t, "mkdir rm grep cp grep curl rm", strings.Join(strings.Fields(string(started)), " "))
		})
	}
}

func TestWhatAScriptMakesOfItsOwnFileComesBackOnlyIfItIsNamed(t *testing.T) {
	const source = "echo '# changed' >>\"$0\"\n"
	for list, comesBack := range map[string]bool{"": false, "TransferOutput = \"script\"\n": true} {
		s := node(
			t,
			receive(t).description(source),
			map[string]string{"apptainer": fakeApptainer, "sh": "", "curl": ""},
		)
		programtest.Write(t, filepath.Join(s.dir, ".job.ad"), "ClusterId = 77\n"+list)
		code, _, stderr := s.run(t)
		require.Zero(t, code, stderr)
		text, err := os.ReadFile(filepath.Join(s.dir, "script"))
		require.NoError(t, err)
		require.Equal(t, comesBack, string(text) == source+"# changed\n", list)
	}
}
