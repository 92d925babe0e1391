package token

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"htc.cern.ch/htcd/internal/schedd/private"
)

// Token is one that HTCondor's tools can be pointed at.
type Token struct {
	Dir     string    // SEC_TOKEN_DIRECTORY: it holds this token and nothing else
	Subject string    // whose it says to be
	Expires time.Time // zero: never
}

// Options says where the tokens are kept.
type Options struct {
	Dir string // should be memory-backed; made with mode 0700
	Now func() time.Time
}

// unused is how long a token stays that nobody asks for any more, because its Secret has another or is gone: longer
// than any command that was begun with it.
const unused = time.Hour

// Keeper writes tokens down. All methods may be called concurrently.
type Keeper struct {
	o   Options
	key [32]byte // names the directories

	mu      sync.Mutex
	dir     *private.Dir // made at the first token
	entries map[string]*entry
}

type entry struct{ expires, asked time.Time }

// New returns a keeper. It starts nothing; Close it to remove its tokens.
func New(o Options) *Keeper {
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &Keeper{o: o, entries: map[string]*entry{}}
	_, _ = rand.Read(k.key[:]) // never fails
	return k
}

// Token returns where a token is. Line ends and blanks around it do not belong to it. Errors are *Error.
func (k *Keeper) Token(text string) (Token, error) {
	text = strings.TrimSpace(text)
	c, err := parse(text)
	if err != nil {
		return Token{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Now()
	k.forget(now)
	if ended(c.expires, now) {
		return Token{}, &Error{Expired, fmt.Sprintf("the token of %s ended at %s: put a new one into the secret",
			c.subject, c.expires.UTC().Format(time.RFC3339))}
	}
	if k.dir == nil {
		if k.dir, err = private.Make(k.o.Dir); err != nil {
			return Token{}, &Error{Unknown, "ticket directory: " + err.Error()}
		}
	}
	id := k.id(text)
	dir := k.dir.Path(id)
	if err := write(dir, text); err != nil {
		return Token{}, &Error{Unknown, "token directory: " + err.Error()}
	}
	k.entries[id] = &entry{c.expires, now}
	return Token{dir, c.subject, c.expires}, nil
}

func ended(expires, now time.Time) bool { return !expires.IsZero() && !now.Before(expires) }

// id names a token without giving anything of it away: the key is random.
func (k *Keeper) id(text string) string {
	h := hmac.New(sha256.New, k.key[:])
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Forget removes the tokens that have ended, and those that nobody asks for any more.
func (k *Keeper) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forget(k.o.Now())
}

func (k *Keeper) forget(now time.Time) {
	for id, e := range k.entries {
		if ended(e.expires, now) || now.Sub(e.asked) > unused {
			_ = os.RemoveAll(k.dir.Path(id))
			delete(k.entries, id)
		}
	}
}

// write puts a token into its directory where it is not there yet; somebody may have emptied that. No tool ever reads
// half of it.
func write(dir, text string) error {
	file := filepath.Join(dir, "token")
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	next := dir + ".new"
	if err := os.WriteFile(next, []byte(text+"\n"), 0o600); err != nil {
		_ = os.Remove(next)
		return err
	}
	return os.Rename(next, file)
}

// Close removes every token. None may be in use.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	dir := k.dir
	k.dir, k.entries = nil, map[string]*entry{}
	return dir.Remove()
}
