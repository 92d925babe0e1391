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

// Token is a token in a directory that HTCondor's tools can use.
type Token struct {
	Dir     string    // for SEC_TOKEN_DIRECTORY: it contains only this token
	File    string    // for SCITOKENS_FILE: the token
	Whose   string    // the identity it claims, for people
	Claims  string    // of a SciToken, for people; empty: it is an IDTOKEN
	Expires time.Time // zero: never
}

const fileName = "token"

// Options are the settings of a Keeper.
type Options struct {
	Dir string // should be in memory; created with mode 0700
	Now func() time.Time
}

// unused is how long a token is kept after its last use, when its Secret has another or is gone. It is longer than any
// command that was started with it.
const unused = time.Hour

// Keeper writes tokens to files. It is safe for concurrent use.
type Keeper struct {
	o   Options
	key [32]byte // names the directories

	mu      sync.Mutex
	dir     *private.Dir // created for the first token
	entries map[string]*entry
}

type entry struct{ expires, asked time.Time }

// New returns a Keeper. Close it to remove its tokens.
func New(o Options) *Keeper {
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &Keeper{o: o, entries: map[string]*entry{}}
	_, _ = rand.Read(k.key[:]) // never fails
	return k
}

// Token returns where a token is, without white space around it. Errors are *Error.
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
	if ended(c.expires(), now) {
		return Token{}, &Error{Expired, fmt.Sprintf("the token of %s ended at %s: put a new one into the secret",
			c.whose(), c.expires().UTC().Format(time.RFC3339))}
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
	k.entries[id] = &entry{c.expires(), now}
	t := Token{Dir: dir, File: filepath.Join(dir, fileName), Whose: c.whose(), Expires: c.expires()}
	if c.isSciToken() {
		t.Claims = c.String()
	}
	return t, nil
}

func ended(expires, now time.Time) bool { return !expires.IsZero() && !now.Before(expires) }

// id names a token without revealing anything about it: the key is random.
func (k *Keeper) id(text string) string {
	h := hmac.New(sha256.New, k.key[:])
	h.Write([]byte(text))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Forget removes tokens that have expired or are no longer used.
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

// write puts a token into its directory unless it is there already; somebody may have emptied the directory. Tools
// never see an incomplete file.
func write(dir, text string) error {
	file := filepath.Join(dir, fileName)
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

// Close removes all tokens, none of which may be in use.
func (k *Keeper) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	dir := k.dir
	k.dir, k.entries = nil, map[string]*entry{}
	return dir.Remove()
}
