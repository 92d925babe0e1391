// Package krb keeps Kerberos tickets: one credential cache per identity, fetched
// with kinit and renewed well before its end.
package krb

import (
	"context"
	"time"
)

// Credential is what the operator's Secret holds: a user name and one of the others.
type Credential struct {
	Username string // a principal; without @REALM the default realm of krb5.conf
	Password string
	Keytab   []byte
}

// Ticket is a usable credential cache.
type Ticket struct {
	CCache  string    // path of the cache file
	Expires time.Time // end of the ticket-granting ticket
}

// Options says where the tools are and where the caches live.
type Options struct {
	BinDir     string        // directory of kinit; empty: found in PATH
	Krb5Config string        // KRB5_CONFIG; empty: /etc/krb5.conf
	Dir        string        // for the caches; should be memory-backed; made with mode 0700
	Lifetime   time.Duration // asked for; 0: the KDC's or krb5.conf's default
	Renewable  time.Duration // asked for; 0: krb5.conf's default
	Timeout    time.Duration // for each kinit; 0: 15 s
	Now        func() time.Time
}

// Kind says why there is no ticket.
type Kind int

// The kinds of failure.
const (
	Unknown          Kind = iota
	Invalid               // the credential itself is incomplete or malformed
	BadPassword           // the KDC refuses the password or the keytab's key
	UnknownPrincipal      // the KDC does not know the user name
	Expired               // the account or its password has expired, or is locked
	KDCUnreachable        // no KDC answered in time
)

var kindNames = [...]string{"Unknown", "InvalidCredential", "BadPassword", "UnknownPrincipal", "AccountExpired", "KDCUnreachable"}

// String is a CamelCase word, fit for a condition's reason.
func (k Kind) String() string { return kindNames[k] }

// Error says why there is no ticket. It never holds a secret.
type Error struct {
	Kind    Kind
	Message string
}

func (e *Error) Error() string { return e.Message }

// Keeper hands out tickets. All methods may be called concurrently.
type Keeper struct{ o Options }

// New returns a keeper. It starts nothing.
func New(o Options) *Keeper { return &Keeper{o: o} }

// Ticket returns a cache that is valid for a while yet. Errors are *Error.
func (k *Keeper) Ticket(ctx context.Context, cred Credential) (Ticket, error) {
	return Ticket{}, nil
}
