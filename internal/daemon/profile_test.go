package daemon

import (
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

func TestProfilesAreServedOnLoopbackUnlessAHostIsNamed(t *testing.T) {
	for address, want := range map[string]string{":6060": "127.0.0.1:6060", "10.0.0.1:6060": "10.0.0.1:6060", "0.0.0.0:6060": "0.0.0.0:6060"} {
		require.Equal(t, want, loopback(address))
	}
}

func TestNobodyServesProfilesUnasked(t *testing.T) {
	d := &daemon{log: zerolog.Nop()}
	stop, err := d.profiles()
	require.NoError(t, err)
	require.NoError(t, stop())
	d.o.PprofListen = "127.0.0.1:http-but-misspelt"
	_, err = d.profiles()
	require.ErrorContains(t, err, "--pprof-listen")
}
