package token

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// made returns a token with this header and payload, as condor_token_create prints it.
func made(header, payload string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(header)) + "." + encode([]byte(payload)) + "." + encode([]byte("signed, of course"))
}

const header = `{"alg":"HS256","kid":"POOL"}`

func of(subject string, exp int64) string {
	return made(header, fmt.Sprintf(`{"exp":%d,"iat":1799999000,"iss":"lab.htcd","jti":"1","sub":%q}`, exp, subject))
}

// bench is a keeper whose clock the test controls.
type bench struct {
	*Keeper
	now time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{now: time.Unix(1_800_000_000, 0)}
	b.Keeper = New(Options{Dir: filepath.Join(t.TempDir(), "tickets"), Now: func() time.Time { return b.now }})
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

func TestATokenLiesAloneWhereNobodyElseLooks(t *testing.T) {
	b := newBench(t)
	text := of("alice@lab.htcd", 1_800_000_600)
	got, err := b.Token(text + "\r\n")
	require.NoError(t, err)
	require.Equal(t, "alice@lab.htcd", got.Whose)
	require.Equal(t, b.now.Add(10*time.Minute), got.Expires)
	for dir := got.Dir; dir != filepath.Dir(b.o.Dir); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.ModeDir|0o700, info.Mode())
	}
	files, err := os.ReadDir(got.Dir)
	require.NoError(t, err)
	require.Len(t, files, 1)
	info, err := files[0].Info()
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	written, err := os.ReadFile(filepath.Join(got.Dir, files[0].Name()))
	require.NoError(t, err)
	require.Equal(t, text+"\n", string(written))

	again, err := b.Token(text)
	require.NoError(t, err)
	require.Equal(t, got, again)
	other, err := b.Token(of("bob@lab.htcd", 1_800_000_600))
	require.NoError(t, err)
	require.NotEqual(t, got.Dir, other.Dir)
}

func TestATokenWithoutAnEndHasNone(t *testing.T) {
	got, err := newBench(t).Token(made(header, `{"iss":"lab.htcd","sub":"alice@lab.htcd"}`))
	require.NoError(t, err)
	require.Zero(t, got.Expires)
}

func TestAnEmptiedDirectoryIsNoticed(t *testing.T) {
	b := newBench(t)
	got, err := b.Token(of("alice@lab.htcd", 1_800_000_600))
	require.NoError(t, err)
	for _, gone := range []string{filepath.Join(got.Dir, "token"), b.o.Dir} {
		require.NoError(t, os.RemoveAll(gone))
		_, err = b.Token(of("alice@lab.htcd", 1_800_000_600))
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(got.Dir, "token"))
	}
}

func TestATokenGoesWhenItHasEndedOrNobodyAsksForIt(t *testing.T) {
	b := newBench(t)
	short, err := b.Token(of("alice@lab.htcd", 1_800_000_600))
	require.NoError(t, err)
	long, err := b.Token(of("bob@lab.htcd", 1_900_000_000))
	require.NoError(t, err)

	b.now = b.now.Add(10 * time.Minute)
	_, err = b.Token(of("alice@lab.htcd", 1_800_000_600))
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "TokenExpired", e.Kind.String())
	require.Contains(t, e.Message, "the token of alice@lab.htcd ended at 2027-01-15T08:10:00Z")
	require.NoDirExists(t, short.Dir)
	require.DirExists(t, long.Dir)

	b.now = b.now.Add(unused)
	b.Forget()
	require.NoDirExists(t, long.Dir)
	kept, err := b.Token(of("alice@lab.htcd", 1_900_000_000))
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.NoDirExists(t, kept.Dir)
}

func TestTokensThatCannotWorkAreRefusedWithoutBeingShown(t *testing.T) {
	b := newBench(t)
	good := of("alice@lab.htcd", 1_900_000_000)
	parts := strings.Split(good, ".")
	for name, c := range map[string]struct{ text, words string }{
		"nothing":                   {"", "three parts"},
		"a word":                    {"hushhush", "three parts"},
		"a token and something":     {good + " x", "one line"},
		"two tokens":                {good + "\n" + good, "one line"},
		"a token without signature": {parts[0] + "." + parts[1] + ".", "signature is not base64url"},
		"a header of something":     {"hush!." + parts[1] + "." + parts[2], "header is not base64url"},
		"a payload with padding":    {parts[0] + "." + parts[1] + "==." + parts[2], "payload is not base64url"},
		"a payload that is no JSON": {made(header, `{"sub":hush`), "payload is not the JSON"},
		"a payload that is a list":  {made(header, `["hush"]`), "payload is not the JSON"},
		"a sub that is a number":    {made(header, `{"iss":"i","sub":7}`), "payload is not the JSON"},
		"no kid":                    {made(`{"alg":"HS256"}`, `{"iss":"i","sub":"hush@d"}`), "no kid"},
		"no issuer":                 {made(header, `{"sub":"hush@d"}`), "no iss"},
		"no subject":                {made(header, `{"iss":"i"}`), "no sub"},
		"a subject of two lines":    {made(header, `{"iss":"i","sub":"hush\nhush"}`), "its sub is not"},
		"a subject without end":     {of(strings.Repeat("hush", 100), 1_900_000_000), "its sub is not"},
		"an end of words":           {made(header, `{"iss":"i","sub":"a@d","exp":"hush"}`), "payload is not the JSON"},
		"an end beyond all":         {made(header, `{"iss":"i","sub":"a@d","exp":1e300}`), "its exp is not"},
		"an end before all":         {made(header, `{"iss":"i","sub":"a@d","exp":-1}`), "its exp is not"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.Token(c.text)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "InvalidCredential", e.Kind.String())
			require.ErrorContains(t, err, c.words)
			require.NotContains(t, err.Error(), "hush")
		})
	}
	_, err := os.Stat(b.o.Dir)
	require.ErrorIs(t, err, os.ErrNotExist, "nothing was written")
}

// scitoken returns the token of an issuer that is not the pool.
func scitoken(claims string) string {
	return made(
		`{"alg":"ES256","kid":"key"}`,
		`{"iss":"https://issuer.example.org/x","sub":"0b1c","exp":1800000600`+claims+`}`,
	)
}

func TestATokenOfAnotherIssuerIsASciToken(t *testing.T) {
	b := newBench(t)
	got, err := b.Token(scitoken(`,"aud":["https://a","https://b"],"scope":"compute.read"`))
	require.NoError(t, err)
	require.Equal(t, "0b1c by https://issuer.example.org/x", got.Whose)
	require.Equal(
		t,
		`iss "https://issuer.example.org/x", sub "0b1c", aud ["https://a","https://b"], scope "compute.read"`,
		got.Claims,
	)
	require.FileExists(t, got.File)
	require.Equal(t, b.now.Add(10*time.Minute), got.Expires)
	got, err = b.Token(scitoken(`,"aud":"` + strings.Repeat("a", 1000) + `"`))
	require.NoError(t, err)
	require.Contains(t, got.Claims, "a long aud, no scope")
	got, err = b.Token(made(`{}`, `{"iss":"https://i","sub":"a","exp":1800000600}`))
	require.NoError(t, err, "an issuer may have one key, without a name")
	require.NotEmpty(t, got.Claims)
	b.now = b.now.Add(10 * time.Minute)
	_, err = b.Token(scitoken(""))
	require.ErrorContains(t, err, "the token of 0b1c by https://issuer.example.org/x ended at 2027-01-15T08:10:00Z")
}

func TestSciTokensThatCannotWorkAreRefusedWithoutBeingShown(t *testing.T) {
	for name, c := range map[string]struct{ text, words string }{
		"no subject":       {made(`{}`, `{"iss":"https://i","exp":1900000000}`), "no sub"},
		"odd subject":      {made(`{}`, `{"iss":"https://i","exp":1900000000,"sub":"hush hush"}`), "its sub is not"},
		"odd issuer":       {made(`{}`, `{"iss":"https://hush\nhush","exp":1900000000,"sub":"a"}`), "its iss is not"},
		"no expiry":        {made(`{}`, `{"iss":"https://i","sub":"a"}`), "no exp"},
		"too long":         {scitoken(`,"x":"` + strings.Repeat("hush", 4000) + `"`), "HTCondor reads at most 16000"},
		"an end of nobody": {made(`{}`, `{"iss":"https://i","sub":"a","exp":1e300}`), "its exp is not"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newBench(t).Token(c.text)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, Invalid, e.Kind)
			require.ErrorContains(t, err, c.words)
			require.NotContains(t, err.Error(), "hush")
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(of("alice@lab.htcd", 1_900_000_000))
	f.Add(made(`{}`, `{}`))
	f.Add(scitoken(`,"aud":["a"],"scope":7`))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parse(text)
		require.True(t, err != nil || c.Subject != "")
	})
}
