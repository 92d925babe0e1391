package schedd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// ScheddName returns the schedd that new jobs of this identity go to if nobody names another: Options.Schedd, else what
// Options.Command says, else the configuration's SCHEDD_HOST, else the schedd on this machine. An answer from one of
// the last three is kept for a while, see usual.
func (c *Client) ScheddName(ctx context.Context, id Identity) (string, error) {
	host, err := c.scheddHost(ctx, id)
	if host != "" || err != nil {
		return host, err
	}
	here, err := c.config(ctx, id, "FULL_HOSTNAME")
	if err != nil {
		return "", err
	}
	name, err := c.config(ctx, id, "SCHEDD_NAME")
	switch {
	case err != nil:
		return "", err
	case name == "" && here == "":
		return "", &condor.Error{Command: "condor_config_val", Stderr: "neither SCHEDD_HOST nor FULL_HOSTNAME is set"}
	case name == "":
		return here, nil
	case name == here || strings.Contains(strings.TrimSuffix(name, "@"), "@"):
		return name, nil
	}
	// This is how a schedd with its own name announces itself.
	return strings.TrimSuffix(name, "@") + "@" + here, nil
}

// scheddHost is like ScheddName, but returns "" for the schedd on this machine.
func (c *Client) scheddHost(ctx context.Context, id Identity) (string, error) {
	if c.o.Schedd != "" {
		return c.o.Schedd, nil
	}
	return c.usual.get(ctx, id, time.Now(), func() (string, error) {
		if c.o.Command != "" {
			return c.site(ctx, id)
		}
		return c.config(ctx, id, "SCHEDD_HOST")
	})
}

const (
	// askAgain is how long an answer is valid. A site's command asks a service of the site; every condor_* tool asks
	// CERN's, so an occasional question is no load.
	askAgain = 5 * time.Minute
	// doubted is how long it is valid at least, even if the schedd that it named does not answer.
	doubted = 20 * time.Second
	// unused is how long it is remembered of an identity that does not ask any more: one with a new token is another.
	unused = 24 * time.Hour
)

// usual remembers each identity's usual schedd: a site may give every account its own.
type usual struct {
	mu sync.Mutex
	m  map[Identity]*answer // by Identity.Who
}

type answer struct {
	sem  chan struct{} // held while asking
	host string
	have bool
	till time.Time // when to ask again
	last time.Time // when it was last asked
}

func (u *usual) of(id Identity, now time.Time) *answer {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.m[id.Who()]
	if a == nil {
		if u.m == nil {
			u.m = map[Identity]*answer{}
		}
		maps.DeleteFunc(u.m, func(_ Identity, other *answer) bool { return other.isUnused(now) })
		a = &answer{sem: make(chan struct{}, 1), last: now}
		u.m[id.Who()] = a
	}
	return a
}

// isUnused reports whether nobody has asked for it for long.
func (a *answer) isUnused(now time.Time) bool {
	select {
	case a.sem <- struct{}{}:
		defer func() { <-a.sem }()
		return now.Sub(a.last) > unused
	default: // it is being asked
		return false
	}
}

// get returns the valid answer, or asks. An error changes nothing if there is an earlier answer: an old one is better
// than none.
func (u *usual) get(ctx context.Context, id Identity, now time.Time, ask func() (string, error)) (string, error) {
	a := u.of(id, now)
	select {
	case a.sem <- struct{}{}:
		defer func() { <-a.sem }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if a.have && now.Before(a.till) {
		return a.host, nil
	}
	host, err := ask()
	a.last = now
	switch {
	case err == nil:
		a.host, a.have, a.till = host, true, now.Add(askAgain)
	case a.have:
		a.till = now.Add(doubted)
	default:
		return "", err
	}
	return a.host, nil
}

// doubt is called when a schedd did not answer: if it is the usual one, the site may have chosen another by now.
func (u *usual) doubt(id Identity) {
	u.mu.Lock()
	a := u.m[id.Who()]
	u.mu.Unlock()
	if a == nil {
		return // it was never asked for
	}
	select {
	case a.sem <- struct{}{}:
		if id.Endpoint.Collector == "" && (id.Endpoint.Schedd == "" || id.Endpoint.Schedd == a.host) {
			a.till = a.last.Add(doubted)
		}
		<-a.sem
	default: // it is being asked
	}
}

// site asks the site's command.
func (c *Client) site(ctx context.Context, id Identity) (string, error) {
	words := strings.Fields(c.o.Command)
	var out bytes.Buffer
	err := c.run(
		ctx,
		command{name: words[0], args: words[1:], id: id.Who(), timeout: c.o.Timeout, read: tool.Output(&out)},
	)
	if err == nil {
		var name string
		if name, err = namedSchedd(out.String()); err == nil {
			return name, nil
		}
		err = &condor.Error{Command: words[0], Stderr: err.Error()}
	}
	var e *condor.Error
	if errors.As(err, &e) {
		e.Kind = condor.Unreachable // its words are not HTCondor's, and without it no schedd can be asked
	}
	return "", err
}

// scheddName matches valid names of schedds.
// IsScheddName reports whether a text can be the name of a schedd.
func IsScheddName(text string) bool { return scheddName.MatchString(text) }

var scheddName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.@-]*[A-Za-z0-9])?$`)

// namedSchedd reads the schedd's name from the output of a site's command, which may be
//
//	bigbird10.cern.ch                                        the name and nothing else
//	SCHEDD_HOST = bigbird10.cern.ch                          HTCondor's configuration, other lines beside it
//	export _condor_SCHEDD_HOST="bigbird10.cern.ch"; ...      for a shell, other variables beside it
//	{"currentschedd": "bigbird10.cern.ch", ...}              CERN's myschedd show -j
func namedSchedd(out string) (string, error) {
	name := strings.TrimSpace(out)
	if strings.HasPrefix(name, "{") {
		var said struct {
			CurrentSchedd string `json:"currentschedd"`
		}
		if err := json.Unmarshal([]byte(name), &said); err != nil {
			return "", fmt.Errorf("its JSON cannot be read: %w", err)
		}
		name = said.CurrentSchedd
	}
	for _, line := range strings.FieldsFunc(out, func(r rune) bool { return r == '\n' || r == ';' }) {
		key, value, set := strings.Cut(line, "=")
		key = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(key), "export "))
		if set && (strings.EqualFold(key, "SCHEDD_HOST") || strings.EqualFold(key, "_condor_SCHEDD_HOST")) {
			name = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	if !scheddName.MatchString(name) {
		return "", fmt.Errorf(
			"expected the schedd's name, or SCHEDD_HOST=name, found %q",
			condor.Clip(strings.TrimSpace(out)),
		)
	}
	return name, nil
}

// config reads a setting of HTCondor's configuration; "" if it is not set.
func (c *Client) config(ctx context.Context, id Identity, setting string) (string, error) {
	var out bytes.Buffer
	err := c.run(ctx, command{
		name: "condor_config_val", args: []string{setting}, id: id.Who(), timeout: c.o.Timeout, read: tool.Output(&out),
		answers: func(e *condor.Error) bool { return e.ExitCode == 1 && strings.HasPrefix(e.Stderr, "Not defined: ") },
	})
	return strings.TrimSpace(out.String()), err
}
