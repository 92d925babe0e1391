package krb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/schedd/private"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// Ticket is a usable credential cache.
type Ticket struct {
	CCache  string    // path of the cache file
	Expires time.Time // end of the ticket-granting ticket
}

// Options says where the tools and the caches are.
type Options struct {
	BinDir     string        // directory of kinit; empty: found in PATH
	Krb5Config string        // KRB5_CONFIG; empty: /etc/krb5.conf
	Realms     []string      // that accounts may be of; empty: those that krb5.conf names
	Dir        string        // for the caches; should be memory-backed; created with mode 0700
	Lifetime   time.Duration // requested; 0: krb5.conf's or the KDC's default
	Renewable  time.Duration // requested; 0: krb5.conf's default
	Timeout    time.Duration // for each kinit; 0: 15 s (a silent KDC would take 27 s)
	Now        func() time.Time
}

const (
	defaultTimeout = 15 * time.Second

	// minLeft is the validity a ticket must have left to be handed out: the longest command that begins with it should
	// also end with it.
	minLeft = 2 * time.Minute

	// The pauses after a refusal, or without a KDC, before the next kinit with the same credential. A KDC may lock an
	// account after a few wrong passwords within half an hour or so: each further time the same one is refused, the
	// pause quadruples.
	pauseRefused     = time.Minute
	pauseRefusedMost = time.Hour
	pauseUnreachable = 10 * time.Second
)

// Keeper hands out tickets. All methods may be called concurrently.
type Keeper struct {
	o   Options
	key [32]byte // names the caches

	mu      sync.Mutex
	dir     *private.Dir // created with the first ticket
	entries map[string]*entry
}

// entry is one identity's cache. The holder of sem may read and write the rest.
type entry struct {
	sem    chan struct{}
	path   string
	times  times
	have   bool
	failed *Error        // of the last try, while it is returned instead of trying again
	until  time.Time     // no kinit before this
	pause  time.Duration // after the last wrong password; 0: none was refused
}

// New returns a keeper. It starts nothing; Close it to remove its caches.
func New(o Options) *Keeper {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &Keeper{o: o, entries: map[string]*entry{}}
	_, _ = rand.Read(k.key[:]) // never fails
	return k
}

// Ticket returns a cache that is valid for at least some minutes. Errors are *Error, or the context's.
//
//  1. A ticket in the first two thirds of its lifetime is returned as it is.
//  2. An older one is renewed, or fetched again if that is refused.
//  3. If no KDC answers, the present ticket is returned while it is valid.
//  4. No KDC is asked about an account of a realm that is not allowed.
//  5. After a failure the same credential is not tried again for a while, and a wrong password less and less often.
func (k *Keeper) Ticket(ctx context.Context, cred Credential) (Ticket, error) {
	cred, err := cred.normalize()
	if err != nil {
		return Ticket{}, err
	}
	e, err := k.entry(cred)
	if err != nil {
		return Ticket{}, err
	}
	select {
	case e.sem <- struct{}{}:
		defer func() { <-e.sem }()
	case <-ctx.Done():
		return Ticket{}, ctx.Err()
	}

	now := k.o.Now()
	if e.have {
		// Somebody may have emptied the directory.
		if _, err := os.Stat(e.path); err != nil {
			e.have, e.until = false, time.Time{}
		}
	}
	usable := e.have && now.Add(minLeft).Before(e.times.end)
	fresh := usable && now.Before(e.times.start.Add(e.times.end.Sub(e.times.start)*2/3))
	switch {
	case fresh:
		return e.ticket(), nil
	case now.Before(e.until) && usable && e.failed.Kind.passing():
		return e.ticket(), nil
	case now.Before(e.until):
		return Ticket{}, e.failed
	}

	if refused := k.refuse(cred); refused != nil {
		if usable && refused.Kind.passing() {
			return e.ticket(), nil
		}
		return Ticket{}, refused
	}
	if usable && now.Before(e.times.renewTill) && k.renew(ctx, e) == nil {
		return e.ticket(), nil
	}
	failure := k.fetch(ctx, e, cred)
	if failure == nil {
		return e.ticket(), nil
	}
	if ctx.Err() != nil {
		return Ticket{}, ctx.Err()
	}
	e.failed, e.until = failure, now.Add(pauseRefused)
	if failure.Kind == BadPassword {
		e.pause = min(max(pauseRefused, 4*e.pause), pauseRefusedMost)
		e.until = now.Add(e.pause)
	}
	if failure.Kind.passing() {
		e.until = now.Add(pauseUnreachable)
		if usable {
			return e.ticket(), nil
		}
	}
	return Ticket{}, failure
}

func (e *entry) ticket() Ticket { return Ticket{CCache: e.path, Expires: e.times.end} }

// renew requests the same ticket with a later expiry. It renews a copy, because kinit empties the file first.
func (k *Keeper) renew(ctx context.Context, e *entry) error {
	next := e.path + ".new"
	b, err := contentOf(e.path)
	if err == nil {
		err = os.WriteFile(next, b, 0o600)
	}
	if err != nil {
		return err
	}
	if err := k.kinit(ctx, next, "", "-R"); err != nil {
		return err
	}
	before := e.times.end
	if err := e.adopt(next); err != nil {
		return err
	}
	if !e.times.end.After(before) {
		return errors.New("the renewed ticket ends no later")
	}
	return nil
}

// fetch gets a new ticket with the password or keytab.
func (k *Keeper) fetch(ctx context.Context, e *entry, cred Credential) *Error {
	next := e.path + ".new"
	var args []string
	if k.o.Lifetime > 0 {
		args = append(args, "-l", seconds(k.o.Lifetime))
	}
	if k.o.Renewable > 0 {
		args = append(args, "-r", seconds(k.o.Renewable))
	}
	stdin := cred.Password + "\n"
	if len(cred.Keytab) > 0 {
		keytab := e.path + ".keytab"
		defer os.Remove(keytab)
		if err := os.WriteFile(keytab, cred.Keytab, 0o600); err != nil {
			return &Error{Unknown, "keytab: " + err.Error()}
		}
		stdin, args = "", append(args, "-k", "-t", "FILE:"+keytab)
	}
	err := k.kinit(ctx, next, stdin, append(args, cred.Username)...)
	var f *tool.Failure
	switch {
	case errors.As(err, &f):
		return explain(f, cred)
	case err == nil:
		err = e.adopt(next)
	}
	if err != nil {
		return &Error{Unknown, err.Error()}
	}
	return nil
}

// kinit runs kinit into the cache file, which is removed if kinit fails.
func (k *Keeper) kinit(ctx context.Context, cache, stdin string, args ...string) error {
	var env []string
	if k.o.Krb5Config != "" {
		env = []string{"KRB5_CONFIG=" + k.o.Krb5Config}
	}
	err := tool.Run(ctx, tool.Command{
		Name: "kinit", BinDir: k.o.BinDir, Args: append([]string{"-c", "FILE:" + cache}, args...),
		Env: env, Stdin: stdin, Timeout: k.o.Timeout,
	})
	if err != nil {
		_ = os.Remove(cache)
	}
	return err
}

// adopt moves a new cache into place, atomically for every reader.
func (e *entry) adopt(next string) error {
	t, err := readCache(next)
	if err == nil {
		err = os.Rename(next, e.path)
	}
	if err != nil {
		_ = os.Remove(next)
		return err
	}
	e.times, e.have, e.failed, e.until, e.pause = t, true, nil, time.Time{}, 0
	return nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int64(d/time.Second)) }

// entry finds or makes a credential's entry, and drops entries whose ticket has expired.
func (k *Keeper) entry(cred Credential) (*entry, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.open(); err != nil {
		return nil, &Error{Unknown, "ticket directory: " + err.Error()}
	}
	id := cred.id(k.key[:])
	e := k.entries[id]
	if e != nil {
		return e, nil
	}
	for old, e := range k.entries {
		select {
		case e.sem <- struct{}{}:
			if !k.o.Now().Before(e.times.end) && !k.o.Now().Before(e.until.Add(e.pause)) {
				_ = os.Remove(e.path)
				delete(k.entries, old)
			}
			<-e.sem
		default: // in use
		}
	}
	e = &entry{sem: make(chan struct{}, 1), path: k.dir.Path(id)}
	k.entries[id] = e
	return e, nil
}

// open creates the keeper's own directory. The caller holds k.mu.
func (k *Keeper) open() (err error) {
	if k.dir == nil {
		k.dir, err = private.Make(k.o.Dir)
	}
	return err
}

// Close removes every cache. No ticket may be in use.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	dir := k.dir
	k.dir, k.entries = nil, map[string]*entry{}
	return dir.Remove()
}
