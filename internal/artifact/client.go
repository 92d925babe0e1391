package artifact

import (
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

const (
	answerWithin = 15 * time.Second
	pauseAfter   = 30 * time.Second // before a registry that failed to answer is asked again
)

// client asks registries, and leaves those alone for a moment that do not answer.
type client struct {
	allowed Registries
	client  *http.Client
	now     func() time.Time

	mu    *sync.Mutex
	quiet map[asked]outage
}

type outage struct {
	until time.Time
	err   *Unusable
}

// newClient returns a client that waits so long for the answer to a request after that has been sent.
func newClient(allowed Registries, toAnswer time.Duration) client {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.DialContext = (&net.Dialer{Timeout: answerWithin}).DialContext
	base.TLSHandshakeTimeout, base.ResponseHeaderTimeout = answerWithin, toAnswer
	base.MaxIdleConnsPerHost, base.DisableCompression = ofRegistry, true
	return client{
		allowed: allowed, now: time.Now, mu: &sync.Mutex{}, quiet: map[asked]outage{},
		client: &http.Client{Transport: transport{allowed, base}},
	}
}

func (c client) repository(ref registry.Reference, dockerConfigs [][]byte) (*remote.Repository, error) {
	asker := &auth.Client{Client: c.client, Cache: auth.NewSingleContextCache()}
	asker.SetUserAgent("htcd")
	for _, config := range dockerConfigs {
		given, err := loginFor(config, ref)
		if err != nil { // its text may hold part of a password
			return nil, unusable(ReasonForbidden, "the credentials for the registry are no .dockerconfigjson")
		}
		if given != auth.EmptyCredential {
			asker.Credential = auth.StaticCredential(ref.Host(), given)
			break
		}
	}
	plain, _ := c.allowed.plain(ref.Host())
	return &remote.Repository{Client: asker, Reference: ref, PlainHTTP: plain, MaxMetadataBytes: maxManifest}, nil
}

// asked is a namespace and a registry: what it answers to one may have to do with what that one asks for.
type asked struct{ namespace, registry string }

// rests returns the error for which a registry is left alone by a namespace at present, if it is.
func (c client) rests(namespace, registry string) error {
	at := asked{namespace, registry}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, is := c.quiet[at]; is {
		if c.now().Before(o.until) {
			return o.err
		}
		delete(c.quiet, at)
	}
	return nil
}

// noted has a namespace leave a registry alone that does not answer.
func (c client) noted(namespace, registry string, why *Unusable) *Unusable {
	if why.silent {
		c.mu.Lock()
		defer c.mu.Unlock()
		maps.DeleteFunc(c.quiet, func(_ asked, o outage) bool { return !c.now().Before(o.until) })
		c.quiet[asked{namespace, registry}] = outage{c.now().Add(pauseAfter), why}
	}
	return why
}
