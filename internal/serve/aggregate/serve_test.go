package aggregate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// authority signs certificates of clients.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	PEM         string
}

func newAuthority(t *testing.T) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "authority"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{t, certificate, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

func (a *authority) client(name string, use x509.ExtKeyUsage) []tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{use},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(a.t, err)
	return []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
}

// source returns fixed answers.
type source struct {
	log   func(Query) (*Answer, error)
	asked []Query
	full  error // of Place
	held  atomic.Int32
}

func (s *source) Place(Query) (func(), error) {
	if s.full != nil {
		return nil, s.full
	}
	s.held.Add(1)
	return func() { s.held.Add(-1) }, nil
}

func (s *source) Log(_ context.Context, q Query) (*Answer, error) {
	s.asked = append(s.asked, q)
	return s.log(q)
}

func (s *source) Archive(ctx context.Context, q Query) (*Answer, error) { return s.Log(ctx, q) }

func (s *source) Procs(ctx context.Context, q Query) (*Answer, error) { return s.Log(ctx, q) }

func (s *source) Attempts(ctx context.Context, q Query) (*Answer, error) { return s.Log(ctx, q) }

func (s *source) NodeLog(ctx context.Context, q Query) (*Answer, error) { return s.Log(ctx, q) }

func (s *source) Nodes(ctx context.Context, q Query) (*Answer, error) { return s.Log(ctx, q) }

func (s *source) NodeArchive(ctx context.Context, q Query) (*Answer, error) { return s.Log(ctx, q) }

func (s *source) NodeUsage(ctx context.Context, q Query) (*Answer, error) { return s.Log(ctx, q) }
func (s *source) NodeFiles(ctx context.Context, q Query) (*Answer, error) { return s.Log(ctx, q) }

func (s *source) Files(ctx context.Context, q Query) (*Answer, error) { return s.Log(ctx, q) }

func (s *source) Usage(ctx context.Context, q Query) (*Answer, error) { return s.Log(ctx, q) }

func (s *source) History(ctx context.Context, q Query) (*Answer, error) { return s.Log(ctx, q) }

func says(text string, err error) func(Query) (*Answer, error) {
	return func(Query) (*Answer, error) {
		return &Answer{Attempt: 2, Offset: 7, Close: func() {}, Write: func(_ context.Context, w io.Writer) error {
			_, _ = io.WriteString(w, text)
			return err
		}}, nil
	}
}

// served is a running server, with a client.
func served(
	t *testing.T,
	s *source,
	data map[string]string,
) (get func(path string, with []tls.Certificate, headers ...string) (*http.Response, string, error),
	kube *fake.Clientset) {
	certificate, err := NewCertificate("here")
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	kube = fake.NewClientset(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: proxyNamespace, Name: proxyName}, Data: data},
	)
	proxy := &FrontProxy{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- proxy.Run(ctx, kube) }()
	go func() { ended <- Server{certificate, proxy, s, nil, zerolog.Nop(), nil}.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	})
	require.Eventually(
		t,
		func() bool { return proxy.trust.Load() != nil || data["requestheader-client-ca-file"] == "" },
		5*time.Second,
		time.Millisecond,
	)

	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificate.PEM))
	return func(path string, with []tls.Certificate, headers ...string) (*http.Response, string, error) {
		transport := &http.Transport{
			ForceAttemptHTTP2: true,
			TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: "htcd-output.here.svc", Certificates: with},
		}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(
			t.Context(),
			http.MethodGet,
			"https://"+listener.Addr().String()+path,
			nil,
		)
		require.NoError(t, err)
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		// the apiserver follows no redirect
		asIs := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		response, err := (&http.Client{Transport: transport, CheckRedirect: asIs}).Do(request)
		if err != nil {
			return nil, "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return response, string(body), err
	}, kube
}

const logPath = "/apis/output.htc.cern.ch/v1alpha1/namespaces/ns/htcjobs/zero/log"

func TestOnlyTheFrontProxyIsAnswered(t *testing.T) {
	right, wrong := newAuthority(t), newAuthority(t)
	s := &source{log: says("hello\n", nil)}
	get, kube := served(t, s, map[string]string{
		"client-ca-file":               wrong.PEM,
		"requestheader-client-ca-file": right.PEM,
		"requestheader-allowed-names":  `["front-proxy-client"]`,
	})
	_, body, err := get(logPath, right.client("front-proxy-client", x509.ExtKeyUsageClientAuth))
	require.NoError(t, err)
	require.Equal(t, "hello\n", body)

	for name, with := range map[string][]tls.Certificate{
		"nobody":                            nil,
		"a client of another authority":     wrong.client("front-proxy-client", x509.ExtKeyUsageClientAuth),
		"another client of the authority":   right.client("kubelet", x509.ExtKeyUsageClientAuth),
		"a server of the authority":         right.client("front-proxy-client", x509.ExtKeyUsageServerAuth),
		"one who signs for itself":          {{Certificate: [][]byte{right.certificate.Raw}, PrivateKey: wrong.key}},
		"the user of a kubeconfig's own CA": wrong.client("admin", x509.ExtKeyUsageClientAuth),
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{logPath, "/apis", "/"} {
				_, _, err := get(path, with)
				require.Error(t, err, path)
			}
		})
	}
	require.Len(t, s.asked, 1)

	// The apiserver gets another authority, and then no names.
	change := func(data map[string]string) {
		_, err := kube.CoreV1().ConfigMaps(proxyNamespace).Update(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: proxyNamespace,
				Name:      proxyName,
			},
			Data: data,
		}, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	answered := func(with []tls.Certificate) func() bool {
		return func() bool { _, _, err := get(logPath, with); return err == nil }
	}
	change(
		map[string]string{
			"requestheader-client-ca-file": wrong.PEM,
			"requestheader-allowed-names":  `["front-proxy-client"]`,
		},
	)
	require.Eventually(
		t,
		answered(wrong.client("front-proxy-client", x509.ExtKeyUsageClientAuth)),
		5*time.Second,
		10*time.Millisecond,
	)
	require.False(t, answered(right.client("front-proxy-client", x509.ExtKeyUsageClientAuth))())
	change(map[string]string{"requestheader-client-ca-file": wrong.PEM})
	require.Eventually(t, answered(wrong.client("any", x509.ExtKeyUsageClientAuth)), 5*time.Second, 10*time.Millisecond)
	change(map[string]string{"requestheader-client-ca-file": "nonsense"})
	require.Eventually(
		t,
		func() bool { return !answered(wrong.client("any", x509.ExtKeyUsageClientAuth))() },
		5*time.Second,
		10*time.Millisecond,
	)
}

func TestWithoutTheConfigMapNobodyIsAnswered(t *testing.T) {
	a := newAuthority(t)
	get, _ := served(t, &source{log: says("", nil)}, nil)
	_, _, err := get(logPath, a.client("front-proxy-client", x509.ExtKeyUsageClientAuth))
	require.Error(t, err)
}

func TestAnswers(t *testing.T) {
	a := newAuthority(t)
	s := &source{}
	get, _ := served(t, s, map[string]string{
		"requestheader-client-ca-file": a.PEM, "requestheader-username-headers": `["X-Remote-User","X-Person"]`,
	})
	proxy := a.client("any", x509.ExtKeyUsageClientAuth)

	s.log = says("text", nil)
	response, body, err := get(
		logPath+"?proc=3&stream=stderr&follow=true&tailLines=5&offset=9&attempt=1",
		proxy,
		"X-Person",
		"anna",
	)
	require.NoError(t, err)
	require.Equal(t, "text", body)
	require.Equal(
		t,
		[]string{"2", "7"},
		[]string{response.Header.Get(HeaderAttempt), response.Header.Get(HeaderOffset)},
	)
	require.Equal(
		t,
		Query{
			Resource:  "htcjobs",
			Namespace: "ns",
			Name:      "zero",
			User:      "anna",
			Proc:      3,
			Attempt:   1,
			Stderr:    true,
			Follow:    true,
			TailLines: 5,
			Offset:    9,
		},
		s.asked[0],
	)
	_, _, err = get(logPath+"/archive?from=4", proxy)
	require.NoError(t, err)
	require.Equal(
		t,
		Query{Resource: "htcjobs", Namespace: "ns", Name: "zero", Proc: 4, TailLines: -1, AllProcs: true},
		s.asked[1],
	)

	nodesPath := strings.Replace(logPath, "htcjobs", "htcworkflows", 1)
	_, _, err = get(nodesPath+"?step=fit&sequence=17&index=2&tailLines=5", proxy)
	require.NoError(t, err)
	require.Equal(
		t,
		Query{
			Resource:  "htcworkflows",
			Namespace: "ns",
			Name:      "zero",
			Node:      Place{Step: "fit", Sequence: 17, Index: 2},
			TailLines: 5,
			AllProcs:  true,
		},
		s.asked[2],
	)
	_, _, err = get(nodesPath+"?step=plot&sequence=all", proxy)
	require.NoError(t, err)
	require.Equal(t, Place{Step: "plot", Sequence: AllSequences}, s.asked[3].Node)
	_, _, err = get(nodesPath+"/nodes?state=failed&step=fit&after=3.1000&attempt=2", proxy)
	require.NoError(t, err)
	require.Equal(
		t,
		Query{
			Resource:  "htcworkflows",
			Namespace: "ns",
			Name:      "zero",
			Node:      Place{Step: "fit"},
			State:     NodeFailed,
			After:     NodeKey{3, 1000},
			Attempt:   2,
			TailLines: -1,
			AllProcs:  true,
		},
		s.asked[4],
	)

	s.log = says("half", errors.New("broken"))
	_, _, err = get(logPath, proxy)
	require.Error(t, err, "an interrupted answer must not look complete")

	asked := len(s.asked)
	for name, c := range map[string]struct {
		path string
		log  error
		code int
		want string
	}{
		"a source's own refusal":        {logPath, apierrors.NewConflict(GroupVersion.WithResource("htcjobs").GroupResource(), "zero", errors.New("it waits")), 409, "it waits"},
		"trouble of htcd":               {logPath, errors.New("disk"), 500, "disk"},
		"too many at once":              {logPath, apierrors.NewTooManyRequests("many", 5), 429, "many"},
		"a parameter that is not there": {logPath + "?tail=3", nil, 400, `no parameter \"tail\"`},
		"another stream":                {logPath + "?stream=stdin", nil, 400, "want stdout or stderr"},
		"a job before the first":        {logPath + "?proc=-1", nil, 400, "proc"},
		"a log's parameter of archives": {logPath + "/archive?follow=true", nil, 400, "follow"},
		"another state of nodes":        {nodesPath + "/nodes?state=lost", nil, 400, "want one of"},
		"an odd place in a list":        {nodesPath + "/nodes?after=3", nil, 400, "two numbers with a dot between"},
		"an odd sequence":               {nodesPath + "?step=fit&sequence=-1", nil, 400, "sequence"},
		"a job of a workflow":           {nodesPath + "?proc=1", nil, 400, "proc"},
		"another subresource":           {strings.Replace(logPath, "/log", "/exec", 1), nil, 404, "htcd serves the output"},
		"the HTCJob itself":             {strings.TrimSuffix(logPath, "/log"), nil, 404, "htcd serves the output"},
		"escaped dots as the name":      {strings.Replace(logPath, "zero", "%2e%2e", 1), nil, 404, "htcd serves the output"},
		"escaped dots below the log":    {logPath + "/%2e%2e", nil, 404, "htcd serves the output"},
		"dots below the log":            {logPath + "/../log", nil, 404, "htcd serves the output"},
		"no name":                       {strings.Replace(logPath, "zero", "", 1), nil, 404, "htcd serves the output"},
		"an escaped slash in the name":  {strings.Replace(logPath, "zero", "ze%2fro", 1), nil, 404, "htcd serves the output"},
		"a slash at the end":            {logPath + "/", nil, 404, "htcd serves the output"},
	} {
		t.Run(name, func(t *testing.T) {
			s.log = func(Query) (*Answer, error) { return nil, c.log }
			response, body, err := get(c.path, proxy)
			require.NoError(t, err)
			require.Equal(t, c.code, response.StatusCode, body)
			var status metav1.Status
			require.NoError(t, json.Unmarshal([]byte(body), &status))
			require.Equal(
				t,
				[]string{"Status", "v1", "Failure"},
				[]string{status.Kind, status.APIVersion, status.Status},
			)
			require.EqualValues(t, c.code, status.Code)
			require.Contains(t, body, c.want)
		})
	}
	require.Len(t, s.asked, asked+3)
}

func TestAnAnswerHasAPlaceUntilItsEnd(t *testing.T) {
	a := newAuthority(t)
	s := &source{}
	get, _ := served(t, s, map[string]string{"requestheader-client-ca-file": a.PEM})
	proxy := a.client("any", x509.ExtKeyUsageClientAuth)
	s.log = func(Query) (*Answer, error) {
		return &Answer{Close: func() {}, Write: func(_ context.Context, w io.Writer) error {
			_, err := io.WriteString(w, strconv.Itoa(int(s.held.Load())))
			return err
		}}, nil
	}
	for _, path := range []string{logPath, logPath + "/archive", logPath + "/procs"} {
		_, body, err := get(path, proxy)
		require.NoError(t, err)
		require.Equal(t, "1", body)
		require.Eventually(t, func() bool { return s.held.Load() == 0 }, 5*time.Second, time.Millisecond)
	}
	asked := len(s.asked)
	s.full = apierrors.NewTooManyRequests("full", 5)
	response, _, err := get(logPath+"/archive", proxy)
	require.NoError(t, err)
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
	require.Equal(t, "5", response.Header.Get("Retry-After"))
	require.Len(t, s.asked, asked)
}

func TestDiscoveryNamesTheSubresourceAlone(t *testing.T) {
	a := newAuthority(t)
	get, _ := served(t, &source{}, map[string]string{"requestheader-client-ca-file": a.PEM})
	for path, want := range map[string]string{
		"/apis":                             `"name":"output.htc.cern.ch"`,
		"/apis/output.htc.cern.ch":          `"groupVersion":"output.htc.cern.ch/v1alpha1"`,
		"/apis/output.htc.cern.ch/v1alpha1": `"resources":[{"name":"htcjobs/log","singularName":"","namespaced":true,"kind":"HTCJobLog","verbs":["get"]},{"name":"htcjobs/exec","singularName":"","namespaced":true,"kind":"HTCJobExec","verbs":["create","get"]},{"name":"htcworkflows/log","singularName":"","namespaced":true,"kind":"HTCWorkflowLog","verbs":["get"]},{"name":"htcworkflows/exec","singularName":"","namespaced":true,"kind":"HTCWorkflowExec","verbs":["create","get"]}]`,
		"/openapi/v2":                       `"swagger":"2.0"`,
		"/openapi/v3":                       `"paths":{}`,
	} {
		response, body, err := get(path, a.client("any", x509.ExtKeyUsageClientAuth))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Contains(t, body, want)
	}
}

func TestAFileOfAnArchiveIsAPathInTheJobsDirectory(t *testing.T) {
	for file, good := range map[string]bool{"a": true, "plots/a.png": true, "": false, "/etc/passwd": false, "a/../../b": false} {
		q, err := parse(url.Values{"file": {file}}, []string{"proc", "file"})
		require.Equal(t, good, err == nil, "%q: %v", file, err)
		require.Equal(t, file, q.File)
	}
}

func TestWhereAnAttemptStandsIsSaidInAParameter(t *testing.T) {
	key := PastKey{time.Date(2026, 11, 20, 12, 0, 0, 345e6, time.UTC), "u/1", 3}
	back, err := parsePastKey(key.String())
	require.NoError(t, err)
	require.Equal(t, key, back)
	for _, text := range []string{"", "1", "2026-11-20T12:00:00Z", "2026-11-20T12:00:00Z/3", "2026-11-20T12:00:00Z/x/u"} {
		_, err := parsePastKey(text)
		require.Error(t, err, text)
	}
	for _, query := range []string{"since=yesterday", "failed=perhaps", "limit=0", "before=x", "proc=1"} {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		_, err = parse(values, []string{"since", "user", "failed", "before", "limit"})
		require.Error(t, err, query)
	}
}
