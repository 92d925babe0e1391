package notify

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

const secret = "YS10b2tlbi10aGF0LW5vYm9keS1tYXktc2VlLWF0LWE"

func options(t *testing.T, url string) SendOptions {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	return SendOptions{
		URL:       url,
		TokenFile: file,
		Callback:  Callback{Name: "zero", Namespace: "physics", JobID: "100.0", Retcode: 3},
	}
}

// fakeTime is a sender whose clock moves by its waits only, and the waits.
func fakeTime() (*sender, *[]time.Duration) {
	var waits []time.Duration
	s, now := newSender(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s.now = func() time.Time { return now }
	s.wait = func(_ context.Context, d time.Duration) error {
		now, waits = now.Add(d), append(waits, d)
		return nil
	}
	return s, &waits
}

func TestWhatIsSentIsReceived(t *testing.T) {
	var got Callback
	var hash []byte
	address := serve(t, NewReceiver(recorderFunc(func(_ context.Context, c Callback, h []byte) error {
		got, hash = c, h
		return nil
	}), Options{}, zerolog.Nop()))
	o := options(t, "http://"+address+Path)
	require.NoError(t, Send(context.Background(), o))
	require.Equal(t, o.Callback, got)
	require.True(t, Match(Hash(secret), hash))
}

func TestAnswersDecideWhetherToTryAgain(t *testing.T) {
	again := func(status int, retryAfter string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", retryAfter)
			http.Error(w, "because of "+secret+"\x1b[31m", status)
		}
	}
	taken := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, tt := range map[string]struct {
		answers  []http.HandlerFunc // the last is repeated
		tries    int
		minWaits []time.Duration
		want     string
	}{
		"taken at once":                {answers: []http.HandlerFunc{taken}, tries: 1},
		"503, then taken":              {answers: []http.HandlerFunc{again(503, ""), taken}, tries: 2, minWaits: []time.Duration{250 * time.Millisecond}},
		"429 with Retry-After":         {answers: []http.HandlerFunc{again(429, "7"), taken}, tries: 2, minWaits: []time.Duration{7 * time.Second}},
		"Retry-After as a date":        {answers: []http.HandlerFunc{again(503, "Fri, 20 Nov 2026 12:00:09 GMT"), taken}, tries: 2, minWaits: []time.Duration{9 * time.Second}},
		"a connection that breaks":     {answers: []http.HandlerFunc{hangUp, taken}, tries: 2, minWaits: []time.Duration{0}},
		"the pauses grow":              {answers: []http.HandlerFunc{again(500, ""), again(502, ""), again(504, ""), taken}, tries: 4, minWaits: []time.Duration{250e6, 500e6, 1e9}},
		"400 is final":                 {answers: []http.HandlerFunc{again(400, "")}, tries: 1, want: "refused the event: 400 Bad Request"},
		"403 is final":                 {answers: []http.HandlerFunc{again(403, "")}, tries: 1, want: "refused the event: 403 Forbidden"},
		"404 is final":                 {answers: []http.HandlerFunc{again(404, "")}, tries: 1, want: "refused the event: 404 Not Found"},
		"a wait beyond the deadline":   {answers: []http.HandlerFunc{again(503, "61")}, tries: 1, want: "gave up after 1 tries in 1m0s: the receiver answered 503"},
		"no end of 503 meets the end":  {answers: []http.HandlerFunc{again(503, "20")}, tries: 3, want: "gave up after 3 tries"},
		"a redirect is not followed":   {answers: []http.HandlerFunc{http.RedirectHandler("https://elsewhere/x", http.StatusPermanentRedirect).ServeHTTP}, tries: 1, want: `it is at "https://elsewhere/x"`},
		"success of another kind: 202": {answers: []http.HandlerFunc{again(202, "")}, tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			var bodies []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				bodies = append(bodies, string(body))
				tries++
				tt.answers[min(tries, len(tt.answers))-1](w, r)
			}))
			defer server.Close()
			s, waits := fakeTime()
			err := s.send(context.Background(), options(t, server.URL))
			if tt.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.want)
				require.NotContains(t, err.Error(), secret)
				require.NotContains(t, err.Error(), "\x1b")
			}
			require.Equal(t, tt.tries, tries)
			for i, least := range tt.minWaits {
				require.GreaterOrEqual(t, (*waits)[i], least)
			}
			for _, body := range bodies {
				require.Equal(t, bodies[0], body, "the same event each time")
			}
		})
	}
}

func TestNobodyListeningIsTriedUntilTheDeadline(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	s, waits := fakeTime()
	err := s.send(context.Background(), options(t, server.URL))
	require.ErrorContains(t, err, "gave up after")
	require.ErrorContains(t, err, "connection refused")
	require.Greater(t, len(*waits), 5)
	var sum time.Duration
	for _, d := range *waits {
		sum += d
	}
	require.LessOrEqual(t, sum, time.Minute)
}

func TestTheEndOfTheContextEndsTheWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		cancel()
	}))
	defer server.Close()
	require.ErrorIs(t, Send(ctx, options(t, server.URL)), context.Canceled)
}

func TestWhatCannotBeSentIsInvalid(t *testing.T) {
	for name, change := range map[string]func(*SendOptions){
		"no URL":                            func(o *SendOptions) { o.URL = "" },
		"a URL that is no web address":      func(o *SendOptions) { o.URL = "ftp://host/" },
		"no name":                           func(o *SendOptions) { o.Callback.Name = "" },
		"a name no HTCJob may have so long": func(o *SendOptions) { o.Callback.Name = strings.Repeat("a", 254) },
		"no namespace":                      func(o *SendOptions) { o.Callback.Namespace = "" },
		"a job id without a proc":           func(o *SendOptions) { o.Callback.JobID = "100" },
		"a return code no shell can give":   func(o *SendOptions) { o.Callback.Retcode = 256 },
		"no token file":                     func(o *SendOptions) { o.TokenFile = "" },
		"a token file that is not there":    func(o *SendOptions) { o.TokenFile += ".not" },
		"an empty token file":               func(o *SendOptions) { overwrite(t, o.TokenFile, " \n") },
		"a token file that holds two lines": func(o *SendOptions) { overwrite(t, o.TokenFile, secret+"\n"+secret) },
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, "http://127.0.0.1:1/")
			change(&o)
			err := Send(context.Background(), o)
			require.ErrorIs(t, err, ErrInvalid)
			require.NotContains(t, err.Error(), secret)
		})
	}
}

func overwrite(t *testing.T, file, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
}

func TestHTTPSIsSpoken(t *testing.T) {
	server := httptest.NewTLSServer(
		NewReceiver(
			recorderFunc(func(context.Context, Callback, []byte) error { return nil }),
			Options{},
			zerolog.Nop(),
		),
	)
	defer server.Close()
	s, _ := fakeTime()
	s.client.Transport = server.Client().Transport
	require.NoError(t, s.send(context.Background(), options(t, server.URL+Path)))
}
