package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// guard decides who is answered. Everybody on this machine can connect to the port, and every page that the browser
// shows can make it send requests there. So a request must
//
//   - name this server, by its address or localhost (a name that was rebound to loopback is another Host);
//   - come from a page of this server, as far as the browser says where it comes from;
//   - lie below a path that nobody else knows, with the cookie of that path. Cookies are the same for all ports of a
//     host: another server on this machine gets those of path /, but not those of a path that it cannot name.
//
// The cookie is given once, to the first who shows the token in the address that was printed.
type guard struct {
	hosts []string // with the port
	base  string   // the path, /SECRET

	mu     sync.Mutex
	token  string // empty once it was used
	cookie string
}

const cookieName = "htcd-ui"

func newGuard(address *net.TCPAddr) *guard {
	_, port, _ := net.SplitHostPort(address.String())
	return &guard{
		hosts: []string{address.String(), net.JoinHostPort("localhost", port)},
		base:  "/" + secret(), token: secret(), cookie: secret(),
	}
}

// secret is one of 256 bits.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// address is what to open, once.
func (g *guard) address() string {
	return "http://" + g.hosts[0] + "/?" + url.Values{"token": {g.token}}.Encode()
}

// policy allows nothing but what this server sends. The name of the Trusted Types policy is that of app.js.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types htcd"

func harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, forms would be sent with Origin: null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// refused says why a request is not answered, whoever sends it; empty if it may be.
func (g *guard) refused(r *http.Request) string {
	known := false
	for _, host := range g.hosts {
		known = known || r.Host == host
	}
	if !known {
		return "this server answers only as " + strings.Join(g.hosts, " or ")
	}
	origin, given := r.Header["Origin"]
	if given && (len(origin) != 1 || origin[0] != "http://"+r.Host) ||
		!given && r.Method != http.MethodGet && r.Method != http.MethodHead {
		return "the request comes from another page"
	}
	return ""
}

// elsewhere reports whether the browser says that a page of somebody else asks.
func elsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// wrap answers only those that may be.
func (g *guard) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		harden(w.Header())
		if why := g.refused(r); why != "" {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		if r.URL.Path == "/" {
			g.enter(w, r)
			return
		}
		path, below := strings.CutPrefix(r.URL.Path, g.base+"/")
		if !below || !g.known(r) || elsewhere(r) {
			http.Error(w, notYours, http.StatusForbidden)
			return
		}
		inner := r.Clone(r.Context())
		inner.URL.Path, inner.URL.RawPath = "/"+path, ""
		next.ServeHTTP(w, inner)
	})
}

const notYours = "htcd ui shows its pages to the browser that first opened the address that it printed. To use another one, end it and start it again."

// enter takes the token. The answer is a page and no redirect: a browser that came here by a link elsewhere would
// follow that without the cookie, which is SameSite=Strict.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || !g.take(r.URL.Query().Get("token")) {
		http.Error(w, notYours, http.StatusForbidden)
		return
	}
	http.SetCookie(
		w,
		&http.Cookie{
			Name:     cookieName,
			Value:    g.cookie,
			Path:     g.base + "/",
			HttpOnly: true,
			SameSite: http.SameSiteStrictMode,
		},
	)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(
		[]byte(
			`<!doctype html><html lang="en"><title>htcd</title><meta http-equiv="refresh" content="0;url=` + g.base + `/"><p><a href="` + g.base + `/">htcd</a></p></html>`,
		),
	)
}

// take reports whether this is the token, for the first time.
func (g *guard) take(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.token == "" || !same(token, g.token) {
		return false
	}
	g.token = ""
	return true
}

func (g *guard) known(r *http.Request) bool {
	c, err := r.Cookie(cookieName)
	return err == nil && same(c.Value, g.cookie)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
