package feed

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// patience is far longer than anything here takes.
const patience = time.Minute

// authority signs certificates of a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	pair := a.sign("authority", true)
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

func (a *authority) sign(name string, isCA bool) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(
			time.Now().UnixNano(),
		), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     isCA, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	text, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	require.NoError(a.t, err)
	leaf, err := x509.ParseCertificate(text)
	require.NoError(a.t, err)
	return tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key, Leaf: leaf}
}

// line is a server of a site's mirror, and a client.
type line struct {
	*site
	*Client
	authority *authority
	server    *httptest.Server
	said      bytes.Buffer // the server's log

	mu       sync.Mutex
	now      time.Time
	problems []string
}

func newLine(t *testing.T) *line {
	t.Helper()
	l := &line{site: newSite(t, head+sent(1, 2)), authority: newAuthority(t), now: time.Unix(1000, 0)}
	s := NewServer(l.Mirror, Clients{"htcd": {"robot": true}, "other": {"alice": true}}, zerolog.New(&l.said))
	l.server = httptest.NewUnstartedServer(s.Handler)
	roots := x509.NewCertPool()
	roots.AddCert(l.authority.cert)
	l.server.TLS = &tls.Config{
		Certificates: []tls.Certificate{l.authority.sign("server", false)},
		ClientCAs:    roots,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS13,
	}
	l.server.StartTLS()
	t.Cleanup(l.server.Close)
	l.Client = l.as("htcd")
	return l
}

func (l *line) as(name string) *Client {
	roots := x509.NewCertPool()
	roots.AddCert(l.authority.cert)
	return &Client{
		URL:  l.server.URL,
		TLS:  &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{l.authority.sign(name, false)}},
		Now:  func() time.Time { l.mu.Lock(); defer l.mu.Unlock(); return l.now },
		Told: func(problem string) { l.mu.Lock(); defer l.mu.Unlock(); l.problems = append(l.problems, problem) },
	}
}

// event is what the server would say now.
func (l *line) event() Event { return Event{State: l.Mirror.State()} }

func TestAFeedIsUsedOnlyWhileItIsRight(t *testing.T) {
	l := newLine(t)
	require.ErrorContains(t, l.Usable(), "does not answer")
	l.hear(l.event())
	require.ErrorContains(t, l.Usable(), "HTCondor has not said yet")
	l.held("jobs", 1795686446, nil)
	require.ErrorContains(t, l.Usable(), "a queue of 2026-11-26T09:47:25Z")
	l.held("jobs", 1795686445, nil)
	require.NoError(t, l.Usable())
	l.held("jobs", 1795686445, []string{"1.0 is Idle, and not Running"})
	l.held("DAGs", 1795686445, nil)
	require.ErrorContains(t, l.Usable(), "1.0 is Idle", "of others nothing is wrong")
	l.held("jobs", 1795686445, nil)
	require.NoError(t, l.Usable())
	l.held("jobs", 1795686445, []string{"1.0 is Idle, and not Running"})
	l.now = l.now.Add(doubted)
	later := l.event()
	later.Now = l.now.Unix()
	l.hear(later)
	require.NoError(t, l.Usable(), "those jobs have gone, and nobody asks about them any more")
	l.now = l.now.Add(-doubted)
	l.held("jobs", 1795686445, nil)
	l.hear(l.event())

	for change, says := range map[string]func(*Event){
		"cannot read the schedd's files: gone": func(e *Event) { e.Problem = "gone" },
		"60 seconds behind":                    func(e *Event) { e.Behind = 60 },
		"comes 2m0s late":                      func(e *Event) { e.Now -= 120 },
		"its clock is wrong":                   func(e *Event) { e.Now += 120 },
		"an older state (1795686445.1.5)":      func(e *Event) { e.Mark = "1795686445.1.5" },
		"a queue of 1970":                      func(e *Event) { e.Mark = "1.1.5" },
	} {
		e := l.event()
		says(&e)
		l.hear(e)
		require.ErrorContains(t, l.Usable(), change)
		l.hear(l.event())
		require.NoError(t, l.Usable(), change)
	}
	l.now = l.now.Add(silent + time.Second)
	require.ErrorContains(t, l.Usable(), "does not answer")
}

func TestAClientAsksAsHTCondorsToolsAreAsked(t *testing.T) {
	l := newLine(t)
	l.site.add(l.log, "103 1.1 JobStatus 5\n103 1.1 HoldReasonCode 1\n103 1.1 HoldReason \"by hand\"\n")
	l.site.add(l.history, leftAd(2, "3")+leftAd(3, "4"))
	l.hear(l.event())
	jobs := schedd.New(schedd.Options{BinDir: "/nonexistent"}).From(l.Ask)
	id := schedd.Identity{Endpoint: schedd.Endpoint{Schedd: "s"}}
	seen := map[string]condor.JobStatus{}
	reasons := map[string]string{}
	hear := func(j condor.Job) error {
		if j.Held() && !j.Reasoned {
			return schedd.ErrReasons
		}
		seen[j.ID()], reasons[j.ID()] = j.Status, j.HoldReason
		return nil
	}
	require.NoError(t, jobs.Query(t.Context(), id, schedd.Query{Where: condor.ClusterConstraint(1)}, hear))
	require.Equal(t, map[string]condor.JobStatus{"1.0": condor.Idle, "1.1": condor.Held}, seen)
	require.Equal(t, "by hand", reasons["1.1"])
	clear(seen)
	require.NoError(
		t,
		jobs.Query(
			t.Context(),
			id,
			schedd.Query{
				Where:   condor.ClusterConstraint(1),
				Changed: &schedd.Period{From: 900, Age: time.Minute, Most: 10},
			},
			hear,
		),
	)
	require.Len(t, seen, 2, "a job without a date is always among them")
	require.ErrorIs(
		t,
		jobs.Query(t.Context(), id, schedd.Query{Changed: &schedd.Period{From: 900, Most: 1}}, hear),
		schedd.ErrTooMany,
	)
	clear(seen)
	require.NoError(
		t,
		jobs.Query(
			t.Context(),
			id,
			schedd.Query{
				Where: "true",
				Left:  &schedd.HistoryBounds{Since: "2.0", Enough: func() bool { return false }},
			},
			hear,
		),
	)
	require.Equal(t, map[string]condor.JobStatus{"3.0": condor.Completed}, seen)
	clear(seen)
	require.NoError(
		t,
		jobs.Query(t.Context(), id, schedd.Query{Where: "true", Left: &schedd.HistoryBounds{Limit: 1}}, hear),
	)
	require.Len(t, seen, 1)

	require.ErrorIs(t, jobs.Query(t.Context(), id, schedd.Query{Where: `regexp("a", Owner)`}, hear), schedd.ErrMirror)
	l.hear(Event{State: State{Mark: "1795686445.9.9"}})
	require.ErrorIs(
		t,
		jobs.Query(t.Context(), id, schedd.Query{}, hear),
		schedd.ErrMirror,
		"an answer from before what was heard",
	)
}

func TestAServerAnswersOnlyWhomItKnowsAndOnlyQuestions(t *testing.T) {
	l := newLine(t)
	body, err := l.Ask(t.Context(), schedd.Question{})
	require.Error(t, err, "no event was heard, so no mark is known")
	require.Nil(t, body)
	l.hear(l.event())
	body, err = l.Ask(t.Context(), schedd.Question{Attributes: "ProcId"})
	require.NoError(t, err)
	text, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, "[\n{\"ProcId\": 0}\n,\n{\"ProcId\": 1}\n]\n", string(text))

	other := l.as("other")
	other.hear(l.event())
	body, err = other.Ask(t.Context(), schedd.Question{})
	require.NoError(t, err)
	text, err = io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, "[\n]\n", string(text), "jobs of another account")

	for range 3 {
		_, err = l.as("stranger").State(t.Context())
		require.ErrorContains(t, err, `--allow of htcd feed does not name "stranger"`)
	}
	_, err = l.as("another").State(t.Context())
	require.Error(t, err)
	require.Equal(t, 1, strings.Count(l.said.String(), `"client":"stranger"`), "it comes again every second")
	require.Equal(t, 2, strings.Count(l.said.String(), "\n"))
	forged := l.as("htcd")
	forged.TLS.Certificates = []tls.Certificate{newAuthority(t).sign("htcd", false)}
	_, err = forged.State(t.Context())
	require.Error(t, err)
	_, err = l.as("htcd").State(t.Context())
	require.NoError(t, err)

	for path, code := range map[string]int{
		"/v1/jobs?limit=x": 400, "/v1/jobs?since=1.0": 400, "/v1/jobs?after=1": 400, "/v1/jobs?what=1": 400, "/v1/jobs?constraint=(": 400,
		"/v1/jobs?after=1795686445.0.0": 410, "/v1/left?after=7.0.0": 410, "/": 404,
	} {
		answer, err := l.client().Get(l.URL + path)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, code, answer.StatusCode, path)
	}
	answer, err := l.client().Post(l.URL+"/v1/jobs", "text/plain", strings.NewReader("x"))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode)
}

func TestTheStreamHintsAtWhatHasChangedAndComesBack(t *testing.T) {
	l := newLine(t)
	l.held("jobs", 1795686445, nil)
	ctx, stop := context.WithCancel(t.Context())
	hints := make(chan struct{}, 100)
	ended := make(chan struct{})
	go func() { defer close(ended); l.Client.Run(ctx, func() { hints <- struct{}{} }) }()
	defer func() { stop(); <-ended }()
	hinted := func() {
		t.Helper()
		select {
		case <-hints:
		case <-time.After(patience):
			t.Fatal("no hint")
		}
	}
	hinted() // at the beginning
	l.site.add(l.log, "103 1.0 JobStatus 2\n")
	hinted()
	l.server.CloseClientConnections()
	hinted() // it has come back
	require.NoError(t, os.Remove(l.log))
	l.poll()
	require.Eventually(t, func() bool { return l.Usable() != nil }, patience, 10*time.Millisecond)
	l.write(l.log, strings.Replace(head, "107 1", "107 2", 1)+sent(1, 1))
	l.poll()
	require.Eventually(t, func() bool { return l.Usable() == nil }, patience, 10*time.Millisecond)
}
