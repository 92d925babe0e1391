package security

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// A job's account may edit its ad, and with it the place where condor_transfer_data writes the output.
func TestAnEditedAdDoesNotWriteElsewhere(t *testing.T) {
	b := trial.New(t)
	elsewhere := b.Lab.Path("htcd", "data", "staging", "planted-"+b.Namespace)
	b.Script(
		"edited",
		"while [ ! -f go ]; do sleep 0.2; test $SECONDS -lt 20 || break; done; echo secret; echo more > file\n",
		trial.Queue(2),
	)
	job := b.Phase("edited", v1alpha1.PhaseRunning)
	edit := func(attribute, value string) {
		_, err := b.Lab.RunAs(t.Context(), "robot", "condor_qedit", "-constraint", trial.Tagged(job), attribute, value)
		require.NoError(t, err)
	}
	for _, name := range []string{"Out", "SUBMIT_Out", "SUBMIT_Err"} {
		edit(name, fmt.Sprintf("%q", elsewhere+"-"+name))
	}
	remaps := fmt.Sprintf(`"file=%s-remapped;_condor_stdout=%s-stream"`, elsewhere, elsewhere)
	edit("TransferOutputRemaps", remaps)
	edit("SUBMIT_TransferOutputRemaps", remaps)
	edit("SUBMIT_Iwd", fmt.Sprintf("%q", filepath.Dir(elsewhere)))
	edit("SUBMIT_UserLog", fmt.Sprintf("%q", elsewhere+"-log"))

	b.Until("edited", "ended", func(job *v1alpha1.HTCJob) bool { return job.Status.Phase.Terminal() })
	job = b.Fetched("edited")
	require.Equal(t, "more\n", b.File(job, 0, "file"))
	files, err := os.ReadDir(filepath.Join(b.Kept(job), "1"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	require.FileExists(t, filepath.Join(b.Kept(job), "1", "file"))
	planted, err := filepath.Glob(elsewhere + "*")
	require.NoError(t, err)
	require.Empty(t, planted)
}
