package notify

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/notify/places"
)

const (
	// mostConnections are open at once. With TLS, the longest header and a body that lacks its last byte all of them
	// took 220 MB, measured as the process's peak. 8,000 jobs that end at once behind one address get through, on a
	// busy machine within 50 s.
	mostConnections = 2048
	// grace is how long a connection is safe from newer ones of its own client: a job's event has come by then, even
	// from far away.
	grace = time.Second
)

// Unanswered says why a connection ended without an answer.
type Unanswered string

// The reasons, as in the metrics.
const (
	Displaced Unanswered = "displaced"  // there were too many, and its client had most of them
	Refused   Unanswered = "refused"    // there were too many, and its client had as many as any, just as new
	NoRequest Unanswered = "no_request" // no request came: the TLS handshake failed, the header took too long, or it was a probe
)

// Reasons are all of them.
var Reasons = []Unanswered{Displaced, Refused, NoRequest}

// Limit returns a listener that has a limited number of connections open at once; ended hears of those that ended
// without an answer. It accepts at any time. When there are too many, the client with most connections that wait, for a
// handshake, a header or a body, loses the one that has waited longest. So a client gets all that nobody else wants, as
// a site may whose nodes share one address, and however many connections others have, there is room for a client with
// fewer.
func Limit(l net.Listener, ended func(Unanswered)) net.Listener {
	return &limited{Listener: l, most: mostConnections, now: time.Now, ended: ended, waiting: map[string]*list.List{}}
}

type limited struct {
	net.Listener
	most  int
	now   func() time.Time
	ended func(Unanswered)

	mu      sync.Mutex
	open    int
	waiting map[string]*list.List // *connection, by client, the oldest first; only clients that have some
}

// connection is one that the listener has accepted. The listener's mutex guards its fields.
type connection struct {
	net.Conn
	of     *limited
	client string

	since  time.Time     // it waits
	place  *list.Element // among those of its client that wait; nil: it does not wait
	asked  bool          // a request has come
	closed bool
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		plain, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: plain, of: l, client: places.Client(plain.RemoteAddr().String())}
		displaced, accepted := l.admit(c)
		if displaced != nil {
			l.ended(Displaced)
			_ = displaced.Conn.Close() // whoever serves it learns of it by an error
		}
		if accepted {
			return c, nil
		}
		l.ended(Refused)
		_ = plain.Close() // nothing was said
	}
}

// admit makes room for a new connection, and returns the one that has to go for it.
func (l *limited) admit(c *connection) (displaced *connection, accepted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		if displaced = l.choose(c.client); displaced == nil {
			return nil, false
		}
		l.forget(displaced)
	}
	l.open++
	l.wait(c)
	return displaced, true
}

// choose returns the connection to displace for a new one of that client; nil: none.
//
//  1. Another client that has more, with the new one counted, loses the one that has waited longest.
//  2. If none has more, the client loses its own, if that has waited for a while.
//  3. If it has none, nobody has more than one: whoever has waited longest loses it, if for a while.
func (l *limited) choose(newcomer string) *connection {
	var most, own *list.List
	for client, those := range l.waiting {
		switch {
		case client == newcomer:
			own = those
		case most == nil || those.Len() > most.Len() ||
			those.Len() == most.Len() && first(those).since.Before(first(most).since):
			most = those
		}
	}
	if own == nil {
		own = list.New()
	}
	if most != nil && most.Len() > own.Len()+1 {
		return first(most)
	}
	if own.Len() > 0 {
		most = own
	}
	if most == nil || l.now().Sub(first(most).since) < grace {
		return nil
	}
	return first(most)
}

func first(those *list.List) *connection { return those.Front().Value.(*connection) }

func (l *limited) wait(c *connection) {
	if l.waiting[c.client] == nil {
		l.waiting[c.client] = list.New()
	}
	c.since = l.now()
	c.place = l.waiting[c.client].PushBack(c)
}

func (l *limited) unwait(c *connection) {
	if c.place == nil {
		return
	}
	those := l.waiting[c.client]
	those.Remove(c.place)
	if c.place = nil; those.Len() == 0 {
		delete(l.waiting, c.client)
	}
}

// forget is for a connection that is closed.
func (l *limited) forget(c *connection) {
	c.closed = true
	l.open--
	l.unwait(c)
}

// Close is called by whoever serves it; a displaced one is closed already.
func (c *connection) Close() error {
	c.of.mu.Lock()
	silent := !c.closed && !c.asked
	if !c.closed {
		c.of.forget(c)
	}
	c.of.mu.Unlock()
	if silent {
		c.of.ended(NoRequest)
	}
	return c.Conn.Close()
}

// CloseWrite lets the server leave the client time to read an answer that it gets before its request was read.
func (c *connection) CloseWrite() error { return closeWrite(c.Conn) }

// key is that of the connection in a request's context.
type key struct{}

// within remembers the connection for its requests.
func within(ctx context.Context, c net.Conn) context.Context {
	for {
		switch outer := c.(type) {
		case *tls.Conn:
			c = outer.NetConn()
		case *undecided:
			c = outer.Conn
		case *connection:
			return context.WithValue(ctx, key{}, outer)
		default:
			return ctx
		}
	}
}

// asking notes for each request that one has come.
func asking(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if c, ok := request.Context().Value(key{}).(*connection); ok {
			c.of.mu.Lock()
			c.asked = true
			c.of.mu.Unlock()
		}
		h.ServeHTTP(w, request)
	})
}

// hold keeps the connection of a request that is whole from being displaced until it is released.
func hold(ctx context.Context) (release func()) {
	c, ok := ctx.Value(key{}).(*connection)
	if !ok {
		return func() {}
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.unwait(c)
	return func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		if !c.closed {
			c.of.wait(c)
		}
	}
}

// Holding keeps the connections of h's requests from being displaced while it answers: h limits how many it answers,
// and reads no body.
func Holding(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		defer hold(request.Context())()
		h.ServeHTTP(w, request)
	})
}
