package ports

import (
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTwoLabsHavePortsOfTheirOwnAndCanListenOnThem(t *testing.T) {
	dir := t.TempDir()
	one, err := Take(dir)
	require.NoError(t, err)
	other, err := Take(dir)
	require.NoError(t, err)
	require.NotEqual(t, one.Base, other.Base)
	for range 2 { // a part may be stopped and started again
		for port := one.Base; port < one.Base+size; port++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			require.NoError(t, err)
			require.NoError(t, l.Close())
		}
	}
}
