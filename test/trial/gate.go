package trial

import (
	"fmt"
	"net"
	"sync"

	"github.com/stretchr/testify/require"
)

// Gate returns a line of a bash script that waits until open is called, or the test ends.
func (b *Bench) Gate() (wait string, open func()) {
	b.T.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b.T, err)
	opened := make(chan struct{})
	open = sync.OnceFunc(func() { close(opened) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				<-opened
				conn.Close()
			}()
		}
	}()
	b.T.Cleanup(func() {
		open()
		l.Close()
	})
	return fmt.Sprintf("read _ </dev/tcp/127.0.0.1/%d || true; ", l.Addr().(*net.TCPAddr).Port), open
}
