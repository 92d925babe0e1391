package ports

import (
	"context"
	"net"
	"sync"
	"time"
)

// pause is how long nothing is accepted after a failure.
const pause = 100 * time.Millisecond

// Accept has serve handle each connection of a listener until ctx ends, closes them all then, and waits for their ends.
func Accept(ctx context.Context, l net.Listener, serve func(ctx context.Context, conn net.Conn)) {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		conn, err := l.Accept()
		if err != nil && ctx.Err() != nil {
			return
		}
		if err != nil { // too many open files, say
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		serving.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
			serve(ctx, conn)
		})
	}
}
