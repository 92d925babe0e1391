package ui

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/a-h/templ"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
)

//go:embed assets
var assets embed.FS

// Options are what the page is made from.
type Options struct {
	Server     string // the apiserver's address, for people
	Namespaces []string
	Client     *v1alpha1.Client
	// Events lists those of a namespace.
	Events func(ctx context.Context, namespace string, o metav1.ListOptions) (*corev1.EventList, error)
	// Table returns what is in a key of a ConfigMap.
	Table func(ctx context.Context, namespace string, of v1alpha1.KeyRef) ([]byte, error)
	// Output asks output.htc.cern.ch. Its errors are in words for people.
	Output func(ctx context.Context, namespace, resource, name, what string, parameters url.Values) (*http.Response,
		error)
}

// Server shows the page.
type Server struct {
	o        Options
	guard    *guard
	listener net.Listener
	store    *store
	listings listings
	boot     string // tells pages of an earlier Server
}

// New returns a Server on a listener of a loopback address.
func New(o Options, listener net.Listener) (*Server, error) {
	address, is := listener.Addr().(*net.TCPAddr)
	if !is || !address.IP.IsLoopback() {
		return nil, errors.New("the page is shown on a loopback address only")
	}
	return &Server{o: o, guard: newGuard(address), listener: listener, store: newStore(), boot: secret()}, nil
}

// Address is what to open in a browser. It works once.
func (s *Server) Address() string { return s.guard.address() }

// Run answers until ctx ends. ready is called when the first page can be shown.
func (s *Server) Run(ctx context.Context, ready func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := watch(ctx, s.o.Client, s.o.Namespaces, s.store); err != nil {
		return err
	}
	server := &http.Server{
		Handler:           s.guard.wrap(s.routes()),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	ready()
	err := server.Serve(s.listener)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.list(jobs))
	mux.HandleFunc("GET /workflows", s.list(workflows))
	mux.HandleFunc("GET /pools", s.list(pools))
	mux.HandleFunc("GET /live/list/{kind}", s.liveList)
	mux.HandleFunc("GET /assets/{file}", asset)
	whole, live := s.detail(jobs, s.showJob)
	mux.HandleFunc("GET /htcjob/{namespace}/{name}", whole)
	mux.HandleFunc("GET /live/htcjob/{namespace}/{name}", live)
	whole, live = s.detail(workflows, s.showWorkflow)
	mux.HandleFunc("GET /htcworkflow/{namespace}/{name}", whole)
	mux.HandleFunc("GET /live/htcworkflow/{namespace}/{name}", live)
	whole, live = s.detail(pools, s.showPool)
	mux.HandleFunc("GET /pool/{name}", whole)
	mux.HandleFunc("GET /live/pool/{name}", live)
	mux.HandleFunc("GET /log/{kind}/{namespace}/{name}", s.log)
	mux.HandleFunc("GET /logtext/{kind}/{namespace}/{name}", s.logText)
	mux.HandleFunc("GET /file/{kind}/{namespace}/{name}", s.file)
	mux.HandleFunc("GET /archive/{kind}/{namespace}/{name}", s.archive)
	mux.HandleFunc("POST /do", s.do)
	return mux
}

// asset serves an embedded file.
func asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	text, err := fs.ReadFile(assets, "assets/"+name)
	if kind, served := assetKinds[path.Ext(name)]; err == nil && served {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(text)
		return
	}
	http.NotFound(w, r)
}

var assetKinds = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// moment is a time for people, who are on this machine.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// page is what the layout needs.
type page struct {
	base
	Title, Server string
	// where its main part is sent again when it has changed; empty: it is not, or its script does that itself
	Live string
	Tabs []tab
	main templ.Component
}

// base is before the path of each link: a part of it is the secret by which the browser is known.
type base string

func (b base) to(path string) templ.SafeURL { return templ.SafeURL(string(b) + path) }

type tab struct {
	Name, Link string
	Current    bool
}

// page sends a whole page.
func (s *Server) page(w http.ResponseWriter, r *http.Request, p page, current kind) {
	p.base, p.Server = s.base(), s.o.Server
	for _, k := range []struct {
		kind
		link string
	}{{jobs, "/"}, {workflows, "/workflows"}, {pools, "/pools"}} {
		p.Tabs = append(p.Tabs, tab{headings[k.kind], k.link, k.kind == current})
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = p.whole().Render(r.Context(), w) // the browser may have gone
}

func (s *Server) base() base { return base(s.guard.base) }

// fragment is a part of a page.
func fragment(ctx context.Context, c templ.Component) string {
	var b strings.Builder
	_ = c.Render(ctx, &b) // only a writer fails
	return b.String()
}
