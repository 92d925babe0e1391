package ui

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyTheBrowserThatShowedTheTokenIsAnswered(t *testing.T) {
	g := newGuard(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711})
	token := strings.TrimPrefix(g.address(), "http://127.0.0.1:4711/?token=")
	asked := 0
	served := g.wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked++
		require.Equal(t, "/htcjob/ns/name", r.URL.Path)
	}))
	send := func(method, target string, change ...func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, target, nil)
		r.Host = "127.0.0.1:4711"
		for _, c := range change {
			c(r)
		}
		w := httptest.NewRecorder()
		served.ServeHTTP(w, r)
		require.Equal(t, policy, w.Header().Get("Content-Security-Policy"))
		return w
	}
	require.Equal(t, http.StatusForbidden, send("GET", "/").Code)
	require.Equal(t, http.StatusForbidden, send("GET", "/?token=guess").Code)
	require.Equal(t, http.StatusForbidden, send("POST", "/?token="+token).Code)
	require.Equal(
		t,
		http.StatusForbidden,
		send("GET", "/?token="+token, func(r *http.Request) { r.Host = "evil.example:4711" }).Code,
		"and the token is not used up",
	)
	entered := send("GET", "/?token="+token, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
	require.Equal(t, http.StatusOK, entered.Code, "a link in another page may lead here")
	require.Equal(t, http.StatusForbidden, send("GET", "/?token="+token).Code, "once")
	require.Equal(t, http.StatusForbidden, send("GET", "/?token=").Code)
	cookie := entered.Result().Cookies()[0]
	require.Equal(t, g.base+"/", cookie.Path, "servers on other ports get the cookies of all paths that they can name")
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.True(t, cookie.HttpOnly)

	page := g.base + "/htcjob/ns/name"
	with := func(r *http.Request) { r.AddCookie(cookie) }
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	mine := header("Origin", "http://127.0.0.1:4711")
	for what, c := range map[string]struct {
		method, target string
		change         []func(*http.Request)
		answered       bool
	}{
		"a page":                                  {"GET", page, []func(*http.Request){with}, true},
		"a page by the name localhost":            {"GET", page, []func(*http.Request){with, host("localhost:4711")}, true},
		"a page that the browser says is ours":    {"GET", page, []func(*http.Request){with, header("Sec-Fetch-Site", "same-origin")}, true},
		"a form of ours":                          {"POST", page, []func(*http.Request){with, mine}, true},
		"no cookie":                               {"GET", page, nil, false},
		"a wrong cookie":                          {"GET", page, []func(*http.Request){header("Cookie", cookieName+"=guess")}, false},
		"another path":                            {"GET", "/guess/htcjob/ns/name", []func(*http.Request){with}, false},
		"a name that was rebound to loopback":     {"GET", page, []func(*http.Request){with, host("evil.example:4711")}, false},
		"another port":                            {"GET", page, []func(*http.Request){with, host("127.0.0.1:4712")}, false},
		"no port":                                 {"GET", page, []func(*http.Request){with, host("127.0.0.1")}, false},
		"a script of another page":                {"GET", page, []func(*http.Request){with, header("Origin", "http://evil.example")}, false},
		"a script of another port":                {"GET", page, []func(*http.Request){with, header("Origin", "http://127.0.0.1:4712")}, false},
		"an image in another page":                {"GET", page, []func(*http.Request){with, header("Sec-Fetch-Site", "cross-site")}, false},
		"an image in a page of another port":      {"GET", page, []func(*http.Request){with, header("Sec-Fetch-Site", "same-site")}, false},
		"a form of another page":                  {"POST", page, []func(*http.Request){with, header("Origin", "http://evil.example")}, false},
		"a form of a page that says not which":    {"POST", page, []func(*http.Request){with, header("Origin", "null")}, false},
		"a form without an origin":                {"POST", page, []func(*http.Request){with}, false},
		"a form to the other name of this server": {"POST", page, []func(*http.Request){with, mine, host("localhost:4711")}, false},
	} {
		t.Run(what, func(t *testing.T) {
			before := asked
			code := send(c.method, c.target, c.change...).Code
			require.Equal(t, c.answered, asked > before)
			require.Equal(t, c.answered, code == http.StatusOK)
		})
	}
}

func TestThePageIsShownOnLoopbackOnly(t *testing.T) {
	listener, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	defer listener.Close()
	_, err = New(Options{}, listener)
	require.ErrorContains(t, err, "loopback")
}
