package notify

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"htc.cern.ch/htcd/internal/notify/places"
	"htc.cern.ch/htcd/internal/schedd/plaintext"
)

// Recorder records callbacks. The receiver calls it from many goroutines at once.
type Recorder interface {
	// Record returns nil only when the callback is durable, even if it contained nothing new. tokenHash is Hash of the
	// token that came with it, to be compared with Match. ErrUnknownJob and ErrForbidden are final; any other error
	// asks the sender to try again, as for a run that is still being recorded.
	Record(ctx context.Context, c Callback, tokenHash []byte) error
}

var (
	// ErrUnknownJob: there is no such job.
	ErrUnknownJob = errors.New("no such job")
	// ErrForbidden: the token is not that of the job's run.
	ErrForbidden = errors.New("the token is not this job's")
)

// Path is where the receiver accepts events.
const Path = "/cloudevents"

// maxBody is the largest event, in bytes: MaxStderr and MaxResults with an escape for each character, and 2 KiB of
// names and numbers are 18 KiB.
const maxBody = 20 << 10

// Options configure a receiver; a zero field means its default.
type Options struct {
	MaxConcurrent int           // events given to the Recorder at once, default 1024; more are answered 503
	Timeout       time.Duration // for the Recorder, default 20 s
	// Answered hears of every answer: its HTTP status, and how long it took. nil: nobody asks.
	Answered func(status int, took time.Duration)
}

func (o Options) withDefaults() Options {
	if o.MaxConcurrent == 0 {
		o.MaxConcurrent = 1024
	}
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second
	}
	return o
}

type receiver struct {
	recorder Recorder
	options  Options
	places   *places.Places
	log      zerolog.Logger
}

// NewReceiver returns the handler that takes events at Path and gives them to r.
func NewReceiver(r Recorder, o Options, log zerolog.Logger) http.Handler {
	o = o.withDefaults()
	return &receiver{
		recorder: r,
		options:  o,
		places:   places.New(o.MaxConcurrent),
		log:      log.With().Str("component", "notify").Logger(),
	}
}

// ServeHTTP answers as the package comment lists.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	began := time.Now()
	refused := r.receive(w, request)
	if r.options.Answered != nil {
		r.options.Answered(refused.code(), time.Since(began))
	}
	if refused == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if refused.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	r.log.Debug().Str(
		"from",
		request.RemoteAddr,
	).Int(
		"status",
		refused.status,
	).Str(
		"reason",
		plaintext.Line(refused.reason),
	).Msg(
		"callback refused",
	)
	http.Error(w, refused.reason, refused.status)
}

// refusal is any answer but 204.
type refusal struct {
	status int
	reason string // for the sender, which must learn no more
}

// code is the status of the answer; that of no refusal is 204.
func (r *refusal) code() int {
	if r == nil {
		return http.StatusNoContent
	}
	return r.status
}

// receive makes the cheapest check first: address, form of the token, size, event, and only then the Recorder.
func (r *receiver) receive(w http.ResponseWriter, request *http.Request) *refusal {
	token, refused := screen(w.Header(), request)
	if refused != nil {
		w.Header().Set("Connection", "close") // what else comes is not worth waiting for
		return refused
	}
	body := bytes.NewBuffer(
		make([]byte, 0, max(request.ContentLength, 0)+bytes.MinRead),
	) // it grows only where no length is declared
	if _, err := body.ReadFrom(http.MaxBytesReader(w, request.Body, maxBody)); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return tooLarge
		}
		return &refusal{http.StatusBadRequest, "the event did not come whole"}
	}
	callback, err := decode(request.Header, body.Bytes())
	if errors.Is(err, errMediaType) {
		return &refusal{http.StatusUnsupportedMediaType, err.Error()}
	}
	if err != nil {
		return &refusal{http.StatusBadRequest, err.Error()}
	}
	free, ok := r.places.Take(request.RemoteAddr)
	if !ok {
		return &refusal{http.StatusServiceUnavailable, "too many events at once, try again"}
	}
	defer free()
	defer hold(request.Context())()
	return r.record(request.Context(), callback, Hash(token))
}

var tooLarge = &refusal{http.StatusRequestEntityTooLarge, "the event is too large"}

// screen returns the token of a request whose body is worth reading.
func screen(answer http.Header, request *http.Request) (token string, refused *refusal) {
	if request.URL.Path != Path {
		return "", &refusal{http.StatusNotFound, "events are taken at " + Path}
	}
	if request.Method != http.MethodPost {
		answer.Set("Allow", http.MethodPost)
		return "", &refusal{http.StatusMethodNotAllowed, "an event is sent with POST"}
	}
	token, ok := bearer(request.Header)
	if !ok {
		answer.Set("WWW-Authenticate", "Bearer")
		return "", &refusal{
			http.StatusUnauthorized,
			"there is no header Authorization: Bearer TOKEN with the token of a run",
		}
	}
	if request.ContentLength > maxBody {
		return "", tooLarge
	}
	return token, nil
}

func (r *receiver) record(ctx context.Context, c Callback, tokenHash []byte) *refusal {
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	err := r.recorder.Record(ctx, c, tokenHash)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUnknownJob):
		return &refusal{http.StatusNotFound, ErrUnknownJob.Error()}
	case errors.Is(err, ErrForbidden):
		return &refusal{http.StatusForbidden, ErrForbidden.Error()}
	}
	r.log.Warn().Err(err).Str("job", c.Namespace+"/"+c.Name).Str("jobid", c.JobID).Msg("callback not recorded")
	return &refusal{http.StatusServiceUnavailable, "the event could not be recorded, try again"}
}

func bearer(header http.Header) (token string, ok bool) {
	scheme, token, _ := strings.Cut(header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, strings.EqualFold(scheme, "Bearer") && wellFormed(token)
}
