package daemon

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// serve answers on the listener until ctx ends. Then it takes no more connections and gives the requests in progress
// the grace time to be answered; it is an error to cut one off after that.
func serve(ctx context.Context, server *http.Server, listener net.Listener, grace time.Duration) error {
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(bound)
	if err != nil {
		err = errors.Join(errors.New("requests were still in progress when the grace time ended"), server.Close())
	}
	<-served // http.ErrServerClosed, by Shutdown
	return err
}
