package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// SendOptions are what to send, where to and for how long.
type SendOptions struct {
	URL       string // http or https
	TokenFile string // holds the run's token
	CAFile    string // PEM file of the only authorities to trust; empty: the system's
	Callback  Callback
	Deadline  time.Duration // for everything, default 60 s
}

const (
	defaultDeadline = 60 * time.Second
	attemptTime     = 15 * time.Second // for one request
	firstWait       = 500 * time.Millisecond
	longestWait     = 10 * time.Second
	maxAnswer       = 512 // bytes of an answer that are read for its reason
)

// ErrInvalid marks an error in the arguments of Send; nothing was sent.
var ErrInvalid = errors.New("invalid")

// RefusedError is the receiver's final refusal.
type RefusedError struct {
	Status int    // of HTTP
	Reason string // the receiver's words
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the receiver refused the event: %d %s: %s", e.Status, http.StatusText(e.Status), e.Reason)
}

// Send posts the event of a callback until the receiver has recorded it: again, with growing pauses or as Retry-After
// asks, after network errors, 5xx and 429, until the deadline. The error is ErrInvalid, a *RefusedError, or that of the
// last try. No error contains the token.
func Send(ctx context.Context, o SendOptions) error {
	s := newSender()
	if o.CAFile != "" {
		roots, err := Roots(o.CAFile)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		s.client.Transport = transport
	}
	return s.send(ctx, o)
}

type sender struct {
	client *http.Client
	now    func() time.Time
	wait   func(context.Context, time.Duration) error
}

func newSender() *sender {
	return &sender{
		client: &http.Client{
			Timeout: attemptTime,
			// A redirect would carry the token to an unintended place.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		now:  time.Now,
		wait: wait,
	}
}

func (s *sender) send(ctx context.Context, o SendOptions) error {
	if o.Deadline <= 0 {
		o.Deadline = defaultDeadline
	}
	token, body, err := s.prepare(o)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	ctx, cancel := context.WithTimeout(ctx, o.Deadline)
	defer cancel()
	deadline := s.now().Add(o.Deadline)
	for try := 0; ; try++ {
		after, err := s.post(ctx, o.URL, token, body)
		if err == nil {
			return nil
		}
		if _, final := errors.AsType[*RefusedError](err); final {
			return err
		}
		pause := max(backoff(try), after)
		if left := deadline.Sub(s.now()); pause >= left {
			return fmt.Errorf("gave up after %d tries in %s: %w", try+1, o.Deadline, err)
		}
		if ended := s.wait(ctx, pause); ended != nil {
			return fmt.Errorf("%w, after: %w", ended, err)
		}
	}
}

// prepare makes everything that is the same in each try. The event keeps its id, so that a receiver can recognise it.
func (s *sender) prepare(o SendOptions) (token string, body []byte, err error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", nil, fmt.Errorf("URL %q is not one of http or https", o.URL)
	}
	if err := o.Callback.check(); err != nil {
		return "", nil, err
	}
	content, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return "", nil, fmt.Errorf("read token: %w", err)
	}
	token = strings.TrimSpace(string(content))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", nil, fmt.Errorf("token file %s does not hold a token", o.TokenFile)
	}
	body, err = encode(o.Callback, s.now())
	return token, body, err
}

// post tries once. after is the pause that the receiver asked for.
func (s *sender) post(ctx context.Context, to, token string, body []byte) (after time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/cloudevents+json")
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := s.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return 0, nil
	}
	reason := strings.ReplaceAll(strings.TrimSpace(string(text)), token, "(token)") // a proxy may echo it
	refused := &RefusedError{Status: answer.StatusCode, Reason: strconv.Quote(reason)}
	if answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests {
		return retryAfter(answer.Header, s.now()), fmt.Errorf("the receiver answered %d %s: %s",
			answer.StatusCode, http.StatusText(answer.StatusCode), refused.Reason)
	}
	if to := answer.Header.Get("Location"); to != "" {
		refused.Reason = fmt.Sprintf("it is at %q, and redirects are not followed", to)
	}
	return 0, refused
}

// backoff doubles from try to try, less a random part of up to a half, so that the thousand jobs that met one outage do
// not return together.
func backoff(try int) time.Duration {
	pause := min(firstWait<<min(try, 10), longestWait)
	return pause - rand.N(pause/2) // #nosec G404 -- spreads the tries over time, protects nothing
}

// retryAfter reads that header, in seconds or as a date; 0 when there is none.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 3600)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
