package daemon

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// An htcd of another uid may have left any of them.
func TestTheDoctorLooksAtEachDirectoryInWhichHtcdWrites(t *testing.T) {
	o := Options{Data: "/data", TicketDir: t.TempDir(), Kubeconfig: "/nonexistent"}
	proofs := o.proofs()
	t.Cleanup(func() { require.NoError(t, proofs.Close()) })
	looked := o.patient(proofs).Volume.Further
	for _, dir := range []string{"staging", "out", "workflows", "uploads", "following", "ssh", "tls"} {
		require.Contains(t, looked, filepath.Join("/data", dir))
	}
}
