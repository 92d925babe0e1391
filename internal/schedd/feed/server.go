package feed

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

const (
	// What is answered at once; what comes beyond it is refused, and the client asks HTCondor.
	maxAnswers = 16
	maxStreams = 64

	maxHeader  = 256 << 10 // a constraint names up to 4,000 jobs
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	writeTime  = 30 * time.Second // for a part of an answer
	beatEvery  = 2 * time.Second
	gatherTime = 20 * time.Millisecond // in which changes are told together
	sayEvery   = time.Hour             // that a client is not known
	maxSaid    = 100                   // names of clients that are not known, in this time

	markHeader = "Htcd-Feed-Mark"
)

// Paths of the server. All are GET.
const (
	statePath   = "/v1/state"   // State
	jobsPath    = "/v1/jobs"    // constraint, attributes, limit, after: ads of jobs in the queue
	leftPath    = "/v1/left"    // the same, and since: of those that have left it
	changesPath = "/v1/changes" // after: a stream of Event, a line each
)

// Event is a line of the stream: jobs whose state has changed, up to a mark. One without jobs is a heartbeat.
type Event struct {
	State
	Changed []string `json:"changed,omitempty"` // "cluster.proc", or "cluster.-1": all jobs of that
	// Missed: it is not known what has changed after the client's mark.
	Missed bool `json:"missed,omitempty"`
}

// Clients are whose jobs each client may see, by the common name of its certificate.
type Clients map[string]Owners

// NewServer returns a server for clients with a certificate, which the listener's TLS checks. Every answer is
// read-only.
func NewServer(m *Mirror, clients Clients, log zerolog.Logger) *http.Server {
	s := &server{
		mirror:  m,
		clients: clients,
		log:     log,
		answers: make(chan struct{}, maxAnswers),
		streams: make(chan struct{}, maxStreams),
		said:    map[string]time.Time{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+statePath, s.allowed(s.answers, s.state))
	mux.HandleFunc(
		"GET "+jobsPath,
		s.allowed(s.answers, func(w http.ResponseWriter, r *http.Request, o Owners) { s.answer(w, r, o, false) }),
	)
	mux.HandleFunc(
		"GET "+leftPath,
		s.allowed(s.answers, func(w http.ResponseWriter, r *http.Request, o Owners) { s.answer(w, r, o, true) }),
	)
	mux.HandleFunc("GET "+changesPath, s.allowed(s.streams, s.changes))
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: stdlog.New(io.Discard, "", 0), // anybody on the network can cause such errors; see allowed
	}
}

type server struct {
	mirror  *Mirror
	clients Clients
	log     zerolog.Logger

	answers, streams chan struct{} // one element for each that is being answered

	mu   sync.Mutex
	said map[string]time.Time // when the log has said that a client is not known, by its name
}

// allowed answers the clients that are known, so many at once.
func (s *server) allowed(room chan struct{}, answer func(http.ResponseWriter, *http.Request, Owners)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "a client certificate is required", http.StatusForbidden)
			return
		}
		name := r.TLS.PeerCertificates[0].Subject.CommonName
		owners, known := s.clients[name]
		if !known {
			s.refused(name, r.RemoteAddr)
			http.Error(
				w,
				fmt.Sprintf(
					"--allow of htcd feed does not name %q, which is the common name of your certificate",
					name,
				),
				http.StatusForbidden,
			)
			return
		}
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			answer(w, r, owners)
		default:
			http.Error(w, "htcd feed answers too many already", http.StatusTooManyRequests)
		}
	}
}

// refused says that a client is not known, of each name once an hour: a client asks again every second.
func (s *server) refused(name, address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(s.said) >= maxSaid {
		maps.DeleteFunc(s.said, func(_ string, at time.Time) bool { return now.Sub(at) >= sayEvery })
	}
	if at, was := s.said[name]; was && now.Sub(at) < sayEvery || !was && len(s.said) >= maxSaid {
		return
	}
	s.said[name] = now
	s.log.Warn().
		Str("client", name).
		Str("address", address).
		Msg("a client whose certificate is good, but that --allow does not name; of this name no more for an hour")
}

func (s *server) state(w http.ResponseWriter, _ *http.Request, _ Owners) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.mirror.State()) // the client has gone
}

// question reads the parameters of a request; one that is not known is an error, as it would be ignored otherwise.
func question(values url.Values, left bool) (q Asked, err error) {
	q.Left = left
	for key := range values {
		value := values.Get(key)
		switch key {
		case "constraint":
			q.Constraint = value
		case "attributes":
			q.Attributes = value
		case "limit":
			if q.Limit, err = strconv.Atoi(value); err != nil || q.Limit < 0 {
				return q, fmt.Errorf("limit %q: want a number", value)
			}
		case "since":
			if !left {
				return q, errors.New("since: only jobs that have left the queue have an order; use after")
			}
			q.Since = value
		case "after":
			if q.After, err = ParseMark(value); err != nil {
				return q, fmt.Errorf("after: %w", err)
			}
		default:
			return q, fmt.Errorf("%q: want constraint, attributes, limit, since or after", key)
		}
	}
	return q, nil
}

// answer sends ads as condor_q -json does: an array.
func (s *server) answer(w http.ResponseWriter, r *http.Request, owners Owners, left bool) {
	q, err := question(r.URL.Query(), left)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q.Owners = owners
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(markHeader, s.mirror.State().Mark)
	out := http.NewResponseController(w)
	before := "[\n"
	err = s.mirror.Answer(r.Context(), q, func(ad []byte) error {
		// A connection that cannot have one fails when it is written to.
		_ = out.SetWriteDeadline(time.Now().Add(writeTime))
		_, err := w.Write(append(append([]byte(before), ad...), '\n'))
		before = ",\n"
		return err
	})
	switch {
	case err == nil && before == "[\n":
		_, _ = io.WriteString(w, "[\n]\n")
	case err == nil:
		_, _ = io.WriteString(w, "]\n")
	case before != "[\n": // the client finds an array that is not closed
		panic(http.ErrAbortHandler)
	case errors.Is(err, errTooOld):
		http.Error(w, err.Error(), http.StatusGone)
	case errors.Is(err, errRefused):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// changes streams events. The jobs are those of all owners that are mirrored: a number tells nothing.
func (s *server) changes(w http.ResponseWriter, r *http.Request, _ Owners) {
	q, err := question(r.URL.Query(), false)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, to := http.NewResponseController(w), json.NewEncoder(w)
	after := q.After
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for first := true; ; first = false {
		changed, now, more, known := s.mirror.Changes(after)
		if first || len(changed) > 0 || !known {
			if err := s.tell(out, to, Event{Changed: changed, Missed: !known}); err != nil {
				return
			}
		}
		after = now
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			if err := s.tell(out, to, Event{}); err != nil {
				return
			}
		case <-more:
			time.Sleep(gatherTime)
		}
	}
}

func (s *server) tell(out *http.ResponseController, to *json.Encoder, e Event) error {
	e.State = s.mirror.State()
	_ = out.SetWriteDeadline(time.Now().Add(writeTime))
	return errors.Join(to.Encode(e), out.Flush())
}
