package schedd

import (
	"cmp"
	"context"
	"time"
)

// Options locates HTCondor's tools and the schedd they talk to.
type Options struct {
	BinDir       string // directory of condor_submit etc.; empty: found in PATH
	CondorConfig string // CONDOR_CONFIG; empty: HTCondor's default places
	Krb5Config   string // KRB5_CONFIG; empty: /etc/krb5.conf
	Pool         string // -pool, where the schedd is looked up; empty: COLLECTOR_HOST of the configuration
	Schedd       string // -name; empty: from Command, else SCHEDD_HOST of the configuration, or the local one
	// a site's command, words split at white space, that prints the schedd to use; empty: none
	Command string
	Timeout time.Duration // for each command; 0: 60 s. A submit gets 20 ms more per proc
	// Ran is called at the end of every command; err is what run returns. May be nil.
	Ran func(command string, took time.Duration, err error)
}

// defaultTimeout is the deadline of a command if Options has none. condor_q and condor_rm give up on a dead schedd
// after 20 s by themselves, condor_submit not even after 300 s.
const defaultTimeout = 60 * time.Second

// Identity is the account of a command and its destination. It has a ticket, an IDTOKEN or a SciToken.
type Identity struct {
	CCache   string // path of a Kerberos credential cache; empty: none
	Tokens   string // directory with an IDTOKEN and nothing else; empty: none
	SciToken string // path of a token whose issuer is not the pool; empty: none
	Claims   string // what that token says about itself, for people
	Endpoint Endpoint
}

// At returns the identity for commands at that endpoint.
func (id Identity) At(e Endpoint) Identity {
	id.Endpoint = e
	return id
}

// Who returns the identity without a destination: the key for what is remembered about an account.
func (id Identity) Who() Identity { return id.At(Endpoint{}) }

// Client talks to schedds through HTCondor's command-line tools. All methods may be called concurrently.
type Client struct {
	o         Options
	usual     usual
	longLines longLines
	mirror    Mirror // nil: HTCondor's tools are asked
}

// New returns a client. It starts nothing.
func New(o Options) *Client {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	return &Client{o: o}
}

// target returns the part of a command line that names the schedd. It is the same for every tool, and contains a name
// if there is one: without it condor_q ignores -pool and asks any schedd it finds, and condor_history reads a local
// file.
func (c *Client) target(ctx context.Context, id Identity) ([]string, error) {
	name := id.Endpoint.Schedd
	if name == "" {
		var err error
		if name, err = c.scheddHost(ctx, id); name == "" || err != nil {
			return nil, err
		}
	}
	args := []string{"-name", name}
	if pool := c.pool(id); pool != "" {
		args = append(args, "-pool", pool)
	}
	return args, nil
}

// pool returns the collector to ask; empty: the configuration's.
func (c *Client) pool(id Identity) string { return cmp.Or(id.Endpoint.Collector, c.o.Pool) }
