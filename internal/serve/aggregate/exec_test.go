package aggregate

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
)

// shells lets one user run commands, which echo.
type shells struct {
	user authenticationv1.UserInfo
	c    Command
	size Size
	err  error
}

func (s *shells) Authorize(_ context.Context, user authenticationv1.UserInfo, q Query) error {
	if s.user = user; user.Username != "anna" {
		return apierrors.NewForbidden(
			GroupVersion.WithResource("htcjobs/exec").GroupResource(),
			q.Name,
			errors.New("no"),
		)
	}
	return nil
}

func (s *shells) Begin(_ context.Context, c Command) (func(context.Context, Streams) error, error) {
	s.c = c
	return func(_ context.Context, streams Streams) error {
		if c.TTY {
			s.size = <-streams.Sizes
		}
		if streams.Stdin != nil {
			if _, err := io.Copy(streams.Stdout, streams.Stdin); err != nil {
				return err
			}
		}
		if streams.Stderr != nil {
			_, _ = io.WriteString(streams.Stderr, "err\n")
		}
		return s.err
	}, nil
}

type oneSize struct{ given bool }

func (o *oneSize) Next() *remotecommand.TerminalSize {
	if o.given {
		return nil
	}
	o.given = true
	return &remotecommand.TerminalSize{Width: 101, Height: 37}
}

func TestCommandsAreRunAsByKubectl(t *testing.T) {
	s := &shells{}
	proxy := &FrontProxy{}
	proxy.trust.Store(
		&trust{
			users:  []string{"X-Remote-User"},
			groups: []string{"X-Remote-Group"},
			extras: []string{"X-Remote-Extra-"},
		},
	)
	mux := http.NewServeMux()
	serveExec(mux, s, proxy, zerolog.Nop())
	server := httptest.NewServer(mux)
	defer server.Close()
	run := func(user, parameters string, streams remotecommand.StreamOptions) (out, errs string, err error) {
		config := &rest.Config{Host: server.URL, WrapTransport: nil}
		headers := http.Header{
			"X-Remote-User":                      {user},
			"X-Remote-Group":                     {"a", "b"},
			"X-Remote-Extra-Example.org%2Fscope": {"x"},
		}
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for name, values := range headers {
				r.Header[name] = values
			}
			mux.ServeHTTP(w, r)
		}))
		defer front.Close()
		config.Host = front.URL
		executor, err := remotecommand.NewWebSocketExecutor(
			config,
			"GET",
			front.URL+"/apis/output.htc.cern.ch/v1alpha1/namespaces/ns/htcjobs/one/exec?"+parameters,
		)
		require.NoError(t, err)
		var o, e strings.Builder
		if streams.Stdout = &o; !streams.Tty {
			streams.Stderr = &e
		}
		err = executor.StreamWithContext(t.Context(), streams)
		return o.String(), e.String(), err
	}
	words := "command=cat&command=" + url.QueryEscape("a  'b'\n")
	out, errs, err := run(
		"anna",
		words+"&proc=3&stdin=true",
		remotecommand.StreamOptions{Stdin: strings.NewReader("hello")},
	)
	require.NoError(t, err)
	require.Equal(t, "hello", out)
	require.Equal(t, "err\n", errs)
	require.Equal(t, []string{"cat", "a  'b'\n"}, s.c.Words)
	require.Equal(t, [3]string{"ns", "one", "anna"}, [3]string{s.c.Namespace, s.c.Name, s.c.User})
	require.Equal(t, 3, s.c.Proc)
	require.Equal(t, []string{"a", "b"}, s.user.Groups)
	require.Equal(t, map[string]authenticationv1.ExtraValue{"example.org/scope": {"x"}}, s.user.Extra)

	s.err = ExitError{7}
	_, _, err = run(
		"anna",
		words+"&stdin=true&tty=true",
		remotecommand.StreamOptions{Stdin: strings.NewReader(""), Tty: true, TerminalSizeQueue: &oneSize{}},
	)
	exit := utilexec.CodeExitError{}
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 7, exit.Code)
	require.Equal(t, Size{101, 37}, s.size)

	s.err = errors.New("the node has gone")
	_, _, err = run("anna", words, remotecommand.StreamOptions{})
	require.ErrorContains(t, err, "the node has gone")

	for parameters, says := range map[string]string{
		"":                     "want a command",
		"command=":             "want a command",
		words + "&proc=-1":     "proc",
		words + "&tty=perhaps": "tty",
		words + "&container=x": "there is no parameter",
		"command=" + strings.Repeat("x", mostWords): "at most",
	} {
		_, _, err = run("anna", parameters, remotecommand.StreamOptions{})
		require.ErrorContains(t, err, says, parameters[:min(len(parameters), 40)])
	}
	_, _, err = run("eve", words, remotecommand.StreamOptions{})
	require.ErrorContains(t, err, "forbidden")
	response, err := http.Get(server.URL + "/apis/output.htc.cern.ch/v1alpha1/namespaces/ns/htcjobs/one/exec?" + words)
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, response.StatusCode, "nobody")
	require.NoError(t, response.Body.Close())
}
