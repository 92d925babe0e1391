package daemon

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestServeLetsRequestsInProgressBeAnswered(t *testing.T) {
	for name, tt := range map[string]struct {
		grace time.Duration
		fails bool
	}{
		"a request that ends within the grace is answered": {grace: 10 * time.Second},
		"one that does not is cut off, with an error":      {grace: time.Millisecond, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			begun, end := make(chan struct{}), make(chan struct{})
			handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(begun); <-end })
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			ctx, stop := context.WithCancel(context.Background())
			served := make(chan error)
			go func() { served <- serve(ctx, &http.Server{Handler: handler}, listener, tt.grace) }()
			answered := make(chan error)
			go func() {
				answer, err := http.Get("http://" + listener.Addr().String())
				if err == nil {
					err = answer.Body.Close()
				}
				answered <- err
			}()
			<-begun
			stop()
			if tt.fails {
				require.Error(t, <-served)
				close(end)
				require.Error(t, <-answered)
				return
			}
			require.Eventually(t, func() bool { // it has stopped listening
				c, err := net.Dial("tcp", listener.Addr().String())
				if err == nil {
					_ = c.Close()
				}
				return err != nil
			}, 10*time.Second, time.Millisecond)
			close(end)
			require.NoError(t, <-answered)
			require.NoError(t, <-served)
		})
	}
}
