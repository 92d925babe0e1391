package jobcredentials

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/inputs/jobsecrets"
)

// world has one run, u/1, whose state and Secrets a test changes.
type world struct {
	run     Run
	secrets map[string]string // by name/key
	err     error             // of the runs
	asked   int
	step    int // that was asked for
}

func (w *world) CredentialsOfStep(ctx context.Context, uid string, attempt, step int) (Run, error) {
	w.step = step
	return w.CredentialsOf(ctx, uid, attempt)
}

func (w *world) CredentialsOf(_ context.Context, uid string, attempt int) (Run, error) {
	w.asked++
	if w.err != nil {
		return Run{}, w.err
	}
	if uid != "u" || attempt != 1 {
		return Run{}, ErrUnknownRun
	}
	return w.run, nil
}

func (w *world) Read(_ context.Context, namespace, name, key string, _ int) ([]byte, error) {
	value, ok := w.secrets[name+"/"+key]
	if !ok || namespace != "physics" {
		return nil, &jobsecrets.Unusable{Reason: jobsecrets.ReasonNotFound, Message: "there is none"}
	}
	return []byte(value), nil
}

func newWorld() *world {
	return &world{
		run: Run{Namespace: "physics", CallbackHash: []byte("hash"), Active: true, Credentials: []Credential{
			{
				Name:   "eos",
				Secret: "eos",
				Key:    "keytab",
				Kind:   PlainFile,
			}, {Name: "wlcg", Secret: "wlcg", Key: "token", Kind: BearerToken},
		}},
		secrets: map[string]string{"eos/keytab": "\x00keytab\n", "wlcg/token": "token-one"},
	}
}

func ask(h http.Handler, method, path, token string) (int, string) {
	request := httptest.NewRequest(method, path, nil)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

func TestARunGetsItsOwnCredentials(t *testing.T) {
	w := newWorld()
	h := NewHandler(w, w, zerolog.Nop())
	now := time.Now()
	h.now = func() time.Time { return now }
	token := Token([]byte("hash"))

	status, text := ask(h, "GET", "/credentials/u/1", token)
	require.Equal(t, http.StatusOK, status)
	lines := strings.Split(text, "\n")
	first := strings.Fields(lines[0])
	require.Equal(t, []string{"htcd1", "30"}, first[:2])
	require.Equal(t, "eos "+base64.StdEncoding.EncodeToString([]byte("\x00keytab\n")), lines[1])
	require.Equal(t, []string{"wlcg " + base64.StdEncoding.EncodeToString([]byte("token-one")), "end", ""}, lines[2:])

	for range 100 {
		status, text = ask(h, "GET", "/credentials/u/1?have="+first[2], token)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, lines[0]+"\nend\n", text)
	}
	require.Equal(t, 1, w.asked)

	w.secrets["wlcg/token"] = "token-two"
	now = now.Add(again)
	_, text = ask(h, "GET", "/credentials/u/1?have="+first[2], token)
	require.Contains(t, text, base64.StdEncoding.EncodeToString([]byte("token-two")))
	require.NotContains(t, text, first[2])

	delete(w.secrets, "wlcg/token") // the job keeps the one it has
	now = now.Add(again)
	_, text = ask(h, "GET", "/credentials/u/1", token)
	require.NotContains(t, text, "wlcg")
	require.Contains(t, text, "eos ")

	delete(w.secrets, "eos/keytab")
	now = now.Add(again)
	status, _ = ask(h, "GET", "/credentials/u/1", token)
	require.Equal(t, http.StatusServiceUnavailable, status)
}

func TestNobodyElseGetsThem(t *testing.T) {
	token := Token([]byte("hash"))
	for name, c := range map[string]struct {
		method, path, token string
		change              func(*world)
		want                int
	}{
		"no token":              {"GET", "/credentials/u/1", "", nil, http.StatusUnauthorized},
		"another token":         {"GET", "/credentials/u/1", Token([]byte("other")), nil, http.StatusForbidden},
		"the hash":              {"GET", "/credentials/u/1", "hash", nil, http.StatusForbidden},
		"another run":           {"GET", "/credentials/v/1", token, nil, http.StatusNotFound},
		"another attempt":       {"GET", "/credentials/u/2", token, nil, http.StatusNotFound},
		"no attempt":            {"GET", "/credentials/u/", token, nil, http.StatusNotFound},
		"nothing":               {"GET", "/credentials/", token, nil, http.StatusNotFound},
		"a number like another": {"GET", "/credentials/u/-1", token, nil, http.StatusNotFound},
		"a POST":                {"POST", "/credentials/u/1", token, nil, http.StatusMethodNotAllowed},
		"after the end":         {"GET", "/credentials/u/1", token, func(w *world) { w.run.Active = false }, http.StatusGone},
		"a run without a token": {"GET", "/credentials/u/1", Token(nil), func(w *world) { w.run.CallbackHash = nil }, http.StatusNotFound},
		"the ledger fails":      {"GET", "/credentials/u/1", token, func(w *world) { w.err = errors.New("secret words") }, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			if c.change != nil {
				c.change(w)
			}
			status, text := ask(NewHandler(w, w, zerolog.Nop()), c.method, c.path, c.token)
			require.Equal(t, c.want, status)
			require.NotContains(t, text, "token-one")
			require.NotContains(t, text, "secret words")
		})
	}
}

func TestTheMoreJobsTheLessOftenTheyAsk(t *testing.T) {
	for _, jobs := range []int{100, 30_000, 100_000, 300_000, 100} {
		var p pace
		now := time.Unix(1_800_000_000, 0)
		var interval time.Duration
		for range 6 { // periods, in each of which every job asks once
			period := max(interval, shortest)
			for i := range jobs {
				interval = p.next(now.Add(period * time.Duration(i) / time.Duration(jobs)))
			}
			now = now.Add(period)
		}
		interval = p.next(now)
		require.InDelta(
			t,
			max(30, float64(jobs)/1000),
			interval.Seconds(),
			max(30, float64(jobs)/1000)/5,
			"%d jobs",
			jobs,
		)
	}
	// After a pause of htcd's the old number says nothing.
	p := pace{began: time.Unix(0, 0), asked: 1_000_000, interval: time.Minute}
	require.Equal(t, time.Minute, p.next(time.Unix(1000, 0)))
	require.Equal(t, shortest, p.next(time.Unix(1060, 0)))
}

func TestAJobPulls(t *testing.T) {
	w := newWorld()
	server := httptest.NewTLSServer(NewHandler(w, w, zerolog.Nop()))
	t.Cleanup(server.Close)
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	var out bytes.Buffer
	pull := func(url, token string) error {
		out.Reset()
		return Pull(t.Context(), url, token, roots, 10*time.Second, &out)
	}
	require.NoError(t, pull(server.URL+"/credentials/u/1", Token([]byte("hash"))))
	require.True(t, strings.HasSuffix(out.String(), "\nend\n"))
	require.ErrorContains(t, pull(server.URL+"/credentials/u/1", "wrong"), "403")
	require.Empty(t, out.String())
	require.ErrorContains(
		t,
		pull(strings.Replace(server.URL, "https", "http", 1)+"/credentials/u/1", "x"),
		"not an https URL",
	)
	require.ErrorContains(
		t,
		Pull(t.Context(), server.URL+"/credentials/u/1", "x", nil, 10*time.Second, &out),
		"certificate",
	)
}

func TestWhatCannotBeUsedIsNotSent(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	ended := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp": 1799999999}`)) + ".x"
	for content, c := range map[string]struct {
		kind   Kind
		reason string
	}{
		"":           {PlainFile, ReasonUnusable},
		"no proxy":   {X509Proxy, ReasonUnusable},
		"an opaque":  {BearerToken, ""},
		ended:        {BearerToken, ReasonEnded},
		ended + "\n": {PlainFile, ""},
	} {
		w := newWorld()
		w.secrets["s/k"] = content
		_, err := Credential{Name: "n", Secret: "s", Key: "k", Kind: c.kind}.Read(t.Context(), w, "physics", now)
		if c.reason == "" {
			require.NoError(t, err)
			continue
		}
		e, ok := errors.AsType[*jobsecrets.Unusable](err)
		require.True(t, ok, "%s %s", content, c.kind)
		require.Equal(t, c.reason, e.Reason)
	}
}

func BenchmarkAQuestionThatIsAnsweredUnchanged(b *testing.B) {
	w := newWorld()
	h := NewHandler(w, w, zerolog.Nop())
	token := Token([]byte("hash"))
	_, text := ask(h, "GET", "/credentials/u/1", token)
	for b.Loop() {
		ask(h, "GET", "/credentials/u/1?have="+strings.Fields(text)[2], token)
	}
}

func TestEachStepOfAWorkflowAsksWithItsOwnToken(t *testing.T) {
	w := newWorld()
	h := NewHandler(w, w, zerolog.Nop())
	hash := []byte("hash")
	for _, c := range []struct {
		path, token string
		status      int
	}{
		{"/credentials/u/1/3", StepToken(hash, 3), http.StatusOK},
		{"/credentials/u/1/3", StepToken(hash, 2), http.StatusForbidden},
		{"/credentials/u/1/3", Token(hash), http.StatusForbidden},
		{"/credentials/u/1", StepToken(hash, 3), http.StatusForbidden},
		{"/credentials/u/1/-1", Token(hash), http.StatusNotFound},
		{"/credentials/u/1/x", Token(hash), http.StatusNotFound},
		{"/credentials/u/1/3/4", StepToken(hash, 3), http.StatusNotFound},
	} {
		status, _ := ask(h, "GET", c.path, c.token)
		require.Equal(t, c.status, status, c.path)
	}
	require.Equal(t, 3, w.step)
	require.Equal(t, "https://h/credentials/u/1/3", StepURL("https://h/cloudevents", "u", 1, 3))
	require.Empty(t, StepURL("http://h/cloudevents", "u", 1, 3))
}
