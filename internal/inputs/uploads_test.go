package inputs

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs/uploads"
	"htc.cern.ch/htcd/internal/schedd/submit"
)

func TestAnUploadIsStagedAsALinkAndTakesNoRoom(t *testing.T) {
	w := newWorld(t)
	name := fmt.Sprintf("%s%x", uploads.Prefix, sha256.Sum256([]byte("content")))
	path, err := w.uploads.Path("physics", name)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte("content"), 0o600))
	job := needs(v1alpha1.Input{Name: "data", Upload: name}, v1alpha1.Input{Name: "also", Upload: name})
	require.NoError(t, Rules{}.Check(job))
	ready, err := w.bringer().Resolve(t.Context(), job, 3)
	require.NoError(t, err)
	require.EqualValues(t, 14, ready.bytes, "it counts as an input")
	require.EqualValues(t, 1, ready.Needs().Files, "the list of what is staged")
	dir := t.TempDir()
	digest, err := ready.Stage(dir)
	require.NoError(t, err)
	again, err := Staged(dir)
	require.NoError(t, err)
	require.Equal(t, digest, again)
	one, err := os.Stat(path)
	require.NoError(t, err)
	for _, in := range []string{"data", "also"} {
		other, err := os.Stat(filepath.Join(dir, submit.InputsDir, "shared", in))
		require.NoError(t, err)
		require.True(t, os.SameFile(one, other))
	}

	require.NoError(t, os.Remove(path))
	_, err = ready.Stage(dir)
	require.ErrorContains(t, err, "there is no upload "+name)
	require.ErrorContains(t, Rules{}.Check(needs(v1alpha1.Input{Name: "data", Upload: "../x"})), "64 digits")
}
