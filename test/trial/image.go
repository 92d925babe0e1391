package trial

import (
	"os"
	"os/exec"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab/cache"
)

// Image unpacks one of cache.Images into a directory of the lab until the test's end. Jobs can name the directory as
// their image. Its packages are those of HTCondor 23's Debian, whose snakemake has the option --cluster.
func (b *Bench) Image(name string) (dir string) {
	b.T.Helper()
	c, err := cache.Default(b.T.Logf)
	require.NoError(b.T, err)
	debian, err := c.DebianRoot(b.T.Context(), cache.DefaultCondor)
	require.NoError(b.T, err)
	layer, err := c.Image(b.T.Context(), debian, name, cache.Images[name])
	require.NoError(b.T, err)
	dir = b.Lab.Path(name + "-" + b.Namespace)
	b.T.Cleanup(func() { require.NoError(b.T, os.RemoveAll(dir)) })
	require.NoError(b.T, os.MkdirAll(dir, 0o755))
	out, err := exec.CommandContext(b.T.Context(), "tar", "-xzf", layer, "-C", dir).CombinedOutput()
	require.NoError(b.T, err, string(out))
	return dir
}
