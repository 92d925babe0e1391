package schedd_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	idtoken "htc.cern.ch/htcd/internal/schedd/token"
	"htc.cern.ch/htcd/test/lab/parts"
)

// alices returns a token for alice, signed by the pool.
func alices(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(os.Getenv(tokenVariable))
	require.NoError(t, err)
	return string(text)
}

// forged returns a token that the pool has not signed.
func forged(issuer, key string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode(fmt.Appendf(nil, `{"alg":"HS256","kid":%q}`, key)) + "." +
		encode(fmt.Appendf(nil, `{"iat":1700000000,"iss":%q,"sub":"alice@%s"}`, issuer, parts.Domain)) + "." + encode(make([]byte, 32))
}

// show makes the bench authenticate with a token.
func (b *bench) show(text string) {
	b.t.Helper()
	k := idtoken.New(idtoken.Options{Dir: b.t.TempDir()})
	b.t.Cleanup(func() { require.NoError(b.t, k.Close()) })
	t, err := k.Token(text)
	require.NoError(b.t, err)
	b.id = schedd.Identity{Tokens: t.Dir}
}

func TestWhoComesWithATokenIsServedAsWhoseItIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.show(alices(t))
	account, err := b.Account(t.Context(), b.id)
	require.NoError(t, err)
	require.Equal(t, "alice", account)
	b.d.Source = "echo mine"
	cluster := b.submit()
	jobs := b.until("ended", func(j schedd.Job) bool { return j.Done() })
	require.Equal(t, "alice", jobs[0].Owner)

	dir := t.TempDir()
	out := filepath.Join(dir, strconv.Itoa(jobs[0].Proc))
	require.NoError(t, os.Mkdir(out, 0o700))
	procs := schedd.Procs{Tag: b.d.Tag, Cluster: cluster.ID, Numbers: []int{0}}
	require.NoError(t, b.Transfer(t.Context(), b.id, procs, dir), "where it may write nothing else it can still read its token")
	written, err := os.ReadFile(filepath.Join(out, schedd.Stdout))
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(written))
	require.NoError(t, b.Release(t.Context(), b.id, procs))
	require.NoError(t, b.Remove(t.Context(), b.id, b.d.Tag.Constraint(), "enough"))
	require.Eventually(t, func() bool { return len(b.jobs()) == 0 }, patience, 200*time.Millisecond)
}

func TestOfATokenThatThePoolDoesNotTakeEveryCommandSaysSo(t *testing.T) {
	t.Parallel()
	none := func(schedd.Job) error { return nil }
	for name, text := range map[string]string{
		"another issuer's":   forged("elsewhere.invalid", "POOL"),
		"with another key":   forged(parts.Domain, "OTHER"),
		"signed by somebody": forged(parts.Domain, "POOL"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.show(text)
			procs := schedd.Procs{Tag: b.d.Tag, Cluster: 1, Numbers: []int{0}}
			for command, call := range map[string]func() error{
				"submit":   func() error { _, err := b.send(); return err },
				"queue":    func() error { return b.Queue(t.Context(), b.id, "false", none) },
				"history":  func() error { return b.History(t.Context(), b.id, "false", schedd.HistoryBounds{Limit: 1}, none) },
				"remove":   func() error { return b.Remove(t.Context(), b.id, "false", "") },
				"release":  func() error { return b.Release(t.Context(), b.id, procs) },
				"transfer": func() error { return b.Transfer(t.Context(), b.id, procs, t.TempDir()) },
				"account":  func() error { _, err := b.Account(t.Context(), b.id); return err },
			} {
				err := call()
				require.Equal(t, schedd.Credentials, schedd.KindOf(err), "%s: %v", command, err)
				require.ErrorContains(t, err, "TRUST_DOMAIN", command)
			}
		})
	}
}

// A machine may have a token of its own, which every tool would present unless prevented.
func TestNoTokenOfTheMachineRidesAlong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.show(alices(t))
	usual, err := os.ReadFile(b.world.Lab.Path("condor", "client.conf"))
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "client.conf")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(usual, "SEC_CLIENT_AUTHENTICATION_METHODS = KERBEROS, IDTOKENS\nSEC_TOKEN_DIRECTORY = %s\n", b.id.Tokens), 0o600))
	o := b.options()
	o.CondorConfig = config
	b.Client = schedd.New(o)

	ping := exec.CommandContext(t.Context(), "condor_ping", "-name", b.world.Host(), "-type", "SCHEDD", "WRITE")
	ping.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "CONDOR_CONFIG=" + config, "KRB5CCNAME=FILE:/nonexistent"}
	said, err := ping.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "alice@", "it would be taken")

	_, err = b.Account(t.Context(), schedd.Identity{})
	require.Error(t, err)
	b.show(forged(parts.Domain, "POOL"))
	_, err = b.Account(t.Context(), b.id)
	require.Equal(t, schedd.Credentials, schedd.KindOf(err), "%v", err)
}
