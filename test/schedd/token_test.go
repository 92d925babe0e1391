package schedd_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/krb"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	idtoken "htc.cern.ch/htcd/internal/schedd/token"
	"htc.cern.ch/htcd/internal/target/credential"
	"htc.cern.ch/htcd/test/lab/parts"
)

// made returns a token by the name of its file.
func made(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv(tokensVariable), name))
	require.NoError(t, err)
	return string(text)
}

// forged returns a token that the pool has not signed.
func forged(issuer, key string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode(fmt.Appendf(nil, `{"alg":"HS256","kid":%q}`, key)) + "." +
		encode(
			fmt.Appendf(nil, `{"iat":1700000000,"iss":%q,"sub":"alice@%s"}`, issuer, parts.Domain),
		) + "." + encode(make([]byte, 32))
}

// show makes the bench authenticate with a token.
func (b *bench) show(text string) {
	b.t.Helper()
	k := &credential.Keeper{
		Tickets: krb.New(krb.Options{Dir: b.t.TempDir()}),
		Tokens:  idtoken.New(idtoken.Options{Dir: b.t.TempDir()}),
	}
	b.t.Cleanup(func() { require.NoError(b.t, k.Close()) })
	c, err := credential.Read(map[string][]byte{"token": []byte(text)})
	require.NoError(b.t, err)
	proof, err := k.Proof(b.t.Context(), c)
	require.NoError(b.t, err)
	b.id = proof.Identity
	// A host certificate is for a name.
	b.id.Endpoint.Collector = fmt.Sprintf("%s:%d", b.world.Host(), b.world.Ports.Condor)
}

func TestWhoComesWithATokenIsServedAsWhoseItIs(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"idtoken", "scitoken", "wlcg", "long"} {
		t.Run(name, func(t *testing.T) { t.Parallel(); served(t, made(t, name)) })
	}
}

func served(t *testing.T, text string) {
	b := newBench(t)
	b.show(text)
	account, err := b.Ping(t.Context(), b.id, schedd.Writing)
	require.NoError(t, err)
	require.Equal(t, "alice", account)
	b.d.Source = "echo mine"
	cluster := b.submit()
	jobs := b.until("ended", func(j condor.Job) bool { return j.Done() })
	require.Equal(t, "alice", jobs[0].Owner)

	dir := t.TempDir()
	out := filepath.Join(dir, strconv.Itoa(jobs[0].Proc))
	require.NoError(t, os.Mkdir(out, 0o700))
	procs := schedd.Procs{Tag: b.d.Tag, Cluster: cluster.ID, Numbers: []int{0}}
	require.NoError(
		t,
		b.Transfer(t.Context(), b.id, procs, dir),
		"where it may write nothing else it can still read its token",
	)
	written, err := os.ReadFile(filepath.Join(out, condor.Stdout))
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(written))
	o, err := b.Change(t.Context(), b.id, schedd.Release{Procs: procs})
	require.NoError(t, err)
	require.True(t, o.Found)
	require.NoError(
		t,
		scheddtest.Err(b.Change(t.Context(), b.id, schedd.Remove{Where: b.d.Tag.Constraint(), Reason: "enough"})),
	)
	require.Eventually(t, func() bool { return len(b.jobs()) == 0 }, patience, 200*time.Millisecond)
}

func TestOfATokenThatThePoolDoesNotTakeEveryCommandSaysSo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, says string }{
		"another issuer's":     {forged("elsewhere.invalid", "POOL"), "TRUST_DOMAIN"},
		"with another key":     {forged(parts.Domain, "OTHER"), "TRUST_DOMAIN"},
		"signed by somebody":   {forged(parts.Domain, "POOL"), "TRUST_DOMAIN"},
		"of an unknown issuer": {made(t, "issuer"), `does not accept this token, with iss "https://127.0.0.1:9/elsewhere"`},
		"for another audience": {made(t, "audience"), `aud "https://elsewhere.example.org"`},
		"without an account":   {made(t, "nobody"), `sub "0b1c"`},
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); refused(t, c.text, c.says) })
	}
}

// Not parallel: OpenSSL's error about the signature stays with the daemon's thread, and HTCondor (23.9, 25.14) takes it
// for one of whatever other SciToken it is reading at that moment: it gives up that handshake without a word, and the
// other tool waits 20 s.
func TestOfASciTokenThatSomebodyElseSignedEveryCommandSaysSo(t *testing.T) {
	text := made(t, "scitoken")
	text = text[:strings.LastIndexByte(text, '.')+1] + base64.RawURLEncoding.EncodeToString(make([]byte, 64))
	refused(t, text, "does not accept this token, with iss")
}

// refused checks what every command says about a token.
func refused(t *testing.T, text, says string) {
	b := newBench(t)
	b.show(text)
	none := func(condor.Job) error { return nil }
	procs := schedd.Procs{Tag: b.d.Tag, Cluster: 1, Numbers: []int{0}}
	for command, call := range map[string]func() error{
		"submit": func() error { _, err := b.send(); return err },
		"queue":  func() error { return b.Query(t.Context(), b.id, schedd.Query{Where: "false"}, none) },
		"history": func() error {
			return b.Query(t.Context(), b.id, schedd.Query{Where: "false", Left: &schedd.HistoryBounds{Limit: 1}}, none)
		},
		"remove":   func() error { return scheddtest.Err(b.Change(t.Context(), b.id, schedd.Remove{Where: "false"})) },
		"release":  func() error { _, err := b.Change(t.Context(), b.id, schedd.Release{Procs: procs}); return err },
		"transfer": func() error { return b.Transfer(t.Context(), b.id, procs, t.TempDir()) },
		"account":  func() error { _, err := b.Ping(t.Context(), b.id, schedd.Writing); return err },
	} {
		err := call()
		require.Equal(t, condor.Credentials, condor.KindOf(err), "%s: %v", command, err)
		require.ErrorContains(t, err, says, command)
	}
}

// A machine may have a token of its own, which every tool would present unless prevented.
func TestNoTokenOfTheMachineRidesAlong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.show(made(t, "idtoken"))
	usual, err := os.ReadFile(b.world.Lab.Path("condor", "client.conf"))
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "client.conf")
	require.NoError(
		t,
		os.WriteFile(
			config,
			fmt.Appendf(
				usual,
				"SEC_CLIENT_AUTHENTICATION_METHODS = KERBEROS, IDTOKENS\nSEC_TOKEN_DIRECTORY = %s\n",
				b.id.Tokens,
			),
			0o600,
		),
	)
	o := b.options()
	o.CondorConfig = config
	b.Client = schedd.New(o)

	ping := exec.CommandContext(t.Context(), "condor_ping", "-name", b.world.Host(), "-type", "SCHEDD", "WRITE")
	ping.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=/nonexistent",
		"CONDOR_CONFIG=" + config,
		"KRB5CCNAME=FILE:/nonexistent",
	}
	said, err := ping.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "alice@", "it would be taken")

	_, err = b.Ping(t.Context(), schedd.Identity{}, schedd.Writing)
	require.Error(t, err)
	b.show(forged(parts.Domain, "POOL"))
	_, err = b.Ping(t.Context(), b.id, schedd.Writing)
	require.Equal(t, condor.Credentials, condor.KindOf(err), "%v", err)
}

func TestASciTokenIsShownOnlyToAServerThatIsTrusted(t *testing.T) {
	t.Parallel()
	usual, err := os.ReadFile(newBench(t).world.Lab.Path("condor", "client.conf"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		config, collector, says string
	}{
		"an unknown authority": {"AUTH_SSL_CLIENT_CAFILE = /nonexistent\n", "", "AUTH_SSL_CLIENT_CAFILE"},
		"an address":           {"", "address", "named by an address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.show(made(t, "scitoken"))
			if c.collector != "" {
				b.id.Endpoint.Collector = fmt.Sprintf("%s:%d", b.world.Address, b.world.Ports.Condor)
			}
			o := b.options()
			o.CondorConfig = filepath.Join(t.TempDir(), "client.conf")
			require.NoError(t, os.WriteFile(o.CondorConfig, append(usual, c.config...), 0o600))
			b.Client = schedd.New(o)
			_, err := b.Ping(t.Context(), b.id, schedd.Writing)
			require.Equal(t, condor.Credentials, condor.KindOf(err), "%v", err)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestWhatASciTokenDoesNotGrantIsDenied(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.show(made(t, "reading"))
	require.NoError(t, b.Query(t.Context(), b.id, schedd.Query{Where: "false"}, func(condor.Job) error { return nil }))
	for _, name := range []string{"reading", "scopeless"} {
		b.show(made(t, name))
		_, err := b.send()
		require.Equal(t, condor.NotAuthorised, condor.KindOf(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "must grant reading and writing", name)
	}
}

// A machine may have a SciToken of its own, in the place that WLCG's token discovery names.
func TestNoSciTokenOfTheMachineRidesAlong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	usual, err := os.ReadFile(b.world.Lab.Path("condor", "client.conf"))
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "client.conf")
	require.NoError(
		t,
		os.WriteFile(
			config,
			fmt.Appendf(
				usual,
				"SEC_CLIENT_AUTHENTICATION_METHODS = KERBEROS, SCITOKENS\nCOLLECTOR_HOST = %s:%d\n",
				b.world.Host(),
				b.world.Ports.Condor,
			),
			0o600,
		),
	)
	discovered := fmt.Sprintf("/tmp/bt_u%d", os.Getuid())
	require.NoError(t, os.WriteFile(discovered, []byte(made(t, "scitoken")), 0o600))
	t.Cleanup(func() { require.NoError(t, os.Remove(discovered)) })
	ping := exec.CommandContext(t.Context(), "condor_ping", "-name", b.world.Host(), "-type", "SCHEDD", "WRITE")
	ping.Env = []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=/nonexistent",
		"CONDOR_CONFIG=" + config,
		"KRB5CCNAME=FILE:/nonexistent",
	}
	said, err := ping.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "alice@", "it would be taken")

	o := b.options()
	o.CondorConfig, o.Pool = config, ""
	b.Client = schedd.New(o)
	_, err = b.Ping(t.Context(), schedd.Identity{}, schedd.Writing)
	require.Error(t, err)
}
