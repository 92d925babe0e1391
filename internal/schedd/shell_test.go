package schedd

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// HTCondor's set-up of a shell runs what it is asked for as: eval ${SSH_ORIGINAL_COMMAND}.
func TestWordsReachTheContainerAsTheyAre(t *testing.T) {
	words := []string{"sh", "-c", "a  b\n\t* $(id) `id` $HOME \\ \" ' ; & | ~ ü", ""}
	command := JoinCommand(words, "xterm")
	require.NotContains(t, command, "  ")
	require.NotContains(t, command, "\n")
	// Of what is run, only the first lines: what remains are the words.
	shell := exec.CommandContext(
		t.Context(),
		"bash",
		"-c",
		`exec() { shift 4; eval "$(printf '%s\n' "$1" | sed '/^refuse()/,$d')"; for w; do printf '[%s]' "$w"; done; printf '%s' "$terminal"; }; eval ${SSH_ORIGINAL_COMMAND}`,
	)
	shell.Dir = t.TempDir() // with a file that * would match
	require.NoError(t, os.WriteFile(filepath.Join(shell.Dir, "file"), nil, 0o600))
	shell.Env = []string{"PATH=/usr/bin:/bin", "SSH_ORIGINAL_COMMAND=" + command}
	out, err := shell.Output()
	require.NoError(t, err)
	require.Equal(t, "[sh][-c]["+words[2]+"][]xterm", string(out))
}

func TestAJobWithoutAStarterIsNotJoined(t *testing.T) {
	shell := exec.CommandContext(t.Context(), "bash", "-c", "eval ${SSH_ORIGINAL_COMMAND}")
	shell.Env = []string{"PATH=/usr/bin:/bin", "SSH_ORIGINAL_COMMAND=" + JoinCommand([]string{"echo", "outside"}, "")}
	out, err := shell.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 125, shell.ProcessState.ExitCode(), "%s", out)
	require.Contains(t, string(out), "htcd: the job's condor_starter is not to be found")
	require.NotContains(t, string(out), "outside")
}
