package jobcredentials

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"htc.cern.ch/htcd/internal/notify/places"
)

// Path is the beginning of the paths that are served.
const Path = "/credentials/"

// Run is what is known of a run.
type Run struct {
	Namespace    string
	CallbackHash []byte // of its token for callbacks
	Active       bool   // its jobs may still need credentials
	Credentials  []Credential
}

// ErrUnknownRun is the error for a run that does not exist.
var ErrUnknownRun = errors.New("no such run")

// Runs knows the runs.
type Runs interface {
	// CredentialsOf returns a run, or ErrUnknownRun. Any other error asks the job to try again.
	CredentialsOf(ctx context.Context, uid string, attempt int) (Run, error)
	// CredentialsOfStep does the same for a step of a workflow's DAG.
	CredentialsOfStep(ctx context.Context, uid string, attempt, step int) (Run, error)
}

const (
	again         = 10 * time.Second // how long an answer about a run is used again
	maxConcurrent = 256              // questions that are answered at once
	timeout       = 15 * time.Second
)

// Handler answers the questions of jobs.
type Handler struct {
	runs    Runs
	secrets Secrets
	places  *places.Places
	pace    pace
	now     func() time.Time
	log     zerolog.Logger

	mu    sync.Mutex
	known map[place]known
	swept time.Time
}

// known is a run with the digest of its credentials.
type known struct {
	run    Run
	token  string
	digest string // empty: not known
	asked  time.Time
}

// NewHandler returns the handler for Path.
func NewHandler(runs Runs, secrets Secrets, log zerolog.Logger) *Handler {
	return &Handler{
		runs: runs, secrets: secrets, places: places.New(maxConcurrent), now: time.Now,
		log: log.With().Str("component", "credentials").Logger(), known: map[place]known{},
	}
}

// refusal is any answer but 200.
type refusal struct {
	status int
	reason string
}

// ServeHTTP answers as the package comment lists.
func (h *Handler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	answer, refused := h.answer(request)
	if refused == nil {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = w.Write([]byte(answer)) // a job that went away asks again
		return
	}
	switch refused.status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "10")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodGet)
	}
	h.log.Debug().Str(
		"from",
		request.RemoteAddr,
	).Int(
		"status",
		refused.status,
	).Str(
		"reason",
		refused.reason,
	).Msg(
		"credentials not sent",
	)
	http.Error(w, refused.reason, refused.status)
}

func (h *Handler) answer(request *http.Request) (string, *refusal) {
	if request.Method != http.MethodGet {
		return "", &refusal{http.StatusMethodNotAllowed, "credentials are asked for with GET"}
	}
	at, found := placeOf(strings.TrimPrefix(request.URL.Path, Path))
	if !found {
		return "", &refusal{http.StatusNotFound, ErrUnknownRun.Error()}
	}
	scheme, token, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", &refusal{http.StatusUnauthorized, "the header Authorization: Bearer TOKEN is missing"}
	}
	free, ok := h.places.Take(request.RemoteAddr)
	if !ok {
		return "", &refusal{http.StatusServiceUnavailable, "too many questions at once, try again"}
	}
	defer free()
	ctx, cancel := context.WithTimeout(request.Context(), timeout)
	defer cancel()
	k, err := h.lookUp(ctx, at)
	switch {
	case errors.Is(err, ErrUnknownRun):
		return "", &refusal{http.StatusNotFound, ErrUnknownRun.Error()}
	case err != nil:
		h.log.Warn().Err(err).Str("uid", at.uid).Msg("a run cannot be looked up")
		return "", &refusal{http.StatusServiceUnavailable, "the run cannot be looked up, try again"}
	case subtle.ConstantTimeCompare([]byte(k.token), []byte(token)) != 1:
		return "", &refusal{http.StatusForbidden, "the token is not this run's"}
	case !k.run.Active:
		return "", &refusal{http.StatusGone, "the run is over"}
	}
	seconds := int(h.pace.next(h.now()).Seconds())
	if have := request.URL.Query().Get("have"); have != "" && have == k.digest {
		return fmt.Sprintf("htcd1 %d %s\nend\n", seconds, k.digest), nil
	}
	lines, err := h.lines(ctx, k.run)
	if err != nil {
		return "", &refusal{http.StatusServiceUnavailable, "the credentials cannot be read, try again"}
	}
	// It identifies the answer to whoever has the token, and says nothing to others.
	k.digest = hex.EncodeToString(keyed([]byte(k.token), lines))[:32]
	h.remember(at, k)
	if request.URL.Query().Get("have") == k.digest {
		lines = ""
	}
	return fmt.Sprintf("htcd1 %d %s\n%send\n", seconds, k.digest, lines), nil
}

// lines returns the credentials that can be read; an error if there is none.
func (h *Handler) lines(ctx context.Context, run Run) (string, error) {
	var b strings.Builder
	var errs []error
	for _, c := range run.Credentials {
		content, err := c.Read(ctx, h.secrets, run.Namespace, h.now())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		b.WriteString(c.Name + " " + base64.StdEncoding.EncodeToString(content) + "\n")
	}
	if b.Len() == 0 {
		return "", errors.Join(errs...)
	}
	return b.String(), nil
}

// lookUp returns what is known of a run, as it was up to 10 s ago.
func (h *Handler) lookUp(ctx context.Context, at place) (known, error) {
	h.mu.Lock()
	k, ok := h.known[at]
	h.mu.Unlock()
	if ok && h.now().Sub(k.asked) < again {
		return k, nil
	}
	run, err := at.ask(ctx, h.runs)
	if err != nil {
		return known{}, err
	}
	if len(run.CallbackHash) == 0 { // lost with the ledger: anybody could derive the token of no hash
		return known{}, ErrUnknownRun
	}
	k = known{run: run, token: at.token(run.CallbackHash), asked: h.now()}
	h.remember(at, k)
	return k, nil
}

// remember also forgets what is too old to be used.
func (h *Handler) remember(at place, k known) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.now(); now.Sub(h.swept) >= again {
		for id, old := range h.known {
			if now.Sub(old.asked) >= again {
				delete(h.known, id)
			}
		}
		h.swept = now
	}
	h.known[at] = k
}
