package krb

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/programtest"
)

// cacheFile is a credential cache as kinit writes it.
func cacheFile(start, end, renew time.Time, renewable bool) []byte {
	var b []byte
	u16 := func(v uint16) { b = binary.BigEndian.AppendUint16(b, v) }
	u32 := func(v uint32) { b = binary.BigEndian.AppendUint32(b, v) }
	data := func(s string) { u32(uint32(len(s))); b = append(b, s...) }
	principal := func(realm string, parts ...string) {
		u32(1)
		u32(uint32(len(parts)))
		data(realm)
		for _, p := range parts {
			data(p)
		}
	}
	ticket := func(server func(), flags uint32) {
		principal("R", "robot")
		server()
		u16(18)
		data("key")
		u32(uint32(start.Unix()))
		u32(uint32(start.Unix()))
		u32(uint32(end.Unix()))
		u32(uint32(renew.Unix()))
		b = append(b, 0)
		u32(flags)
		u32(1) // an address
		u16(2)
		data("1234")
		u32(0)
		data("ticket")
		data("")
	}
	u16(0x0504)
	u16(12)
	b = append(b, "123456789012"...)
	principal("R", "robot")
	ticket(func() { principal("X-CACHECONF:", "krb5_ccache_conf_data", "pa_type", "krbtgt/R@R") }, 0)
	flags := uint32(0)
	if renewable {
		flags = flagRenewable
	}
	ticket(func() { principal("R", "krbtgt", "R") }, flags)
	return b
}

// bench is a keeper whose kinit is a script that takes its next cache from a file "next", or fails with the words in a
// file "fail".
type bench struct {
	*Keeper
	dir string
	now time.Time
	mu  sync.Mutex
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), now: time.Unix(1_800_000_000, 0)}
	b.Keeper = New(
		Options{
			BinDir:     b.dir,
			Dir:        filepath.Join(b.dir, "tickets"),
			Krb5Config: filepath.Join(b.dir, "krb5.conf"),
			Lifetime:   time.Hour,
			Renewable:  24 * time.Hour,
			Timeout:    20 * time.Second,
			Now:        func() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return b.now },
		},
	)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	programtest.Write(t, filepath.Join(b.dir, "kinit"), `#!/bin/sh
here=${0%/*}
echo "$@" >>$here/calls
env >>$here/environment
cache=${2#FILE:}
[ -f $here/slow ] && sleep 0.3
case $* in
*-R*) [ -f $here/norenew ] && { echo "kinit: KDC can't fulfill requested option while renewing credentials" >&2; exit 1; } ;;
*-k*) cat "${9#FILE:}" >>$here/passwords ;;
*) echo "Password for x: "; cat >>$here/passwords ;;
esac
if [ -f $here/fail ]; then echo half >$cache; cat $here/fail >&2; exit 1; fi
cp $here/next $cache
`)
	b.ticket(t, time.Hour, true)
	b.write(t, "krb5.conf", "[libdefaults]\n default_realm = R\n[realms]\n SECOND.REALM = {\n  kdc = localhost\n }\n")
	return b
}

func (b *bench) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600))
}

// ticket sets what the next kinit gets.
func (b *bench) ticket(t *testing.T, life time.Duration, renewable bool) {
	t.Helper()
	b.write(t, "next", string(cacheFile(b.now, b.now.Add(life), b.now.Add(24*time.Hour), renewable)))
}

func (b *bench) pass(d time.Duration) { b.mu.Lock(); defer b.mu.Unlock(); b.now = b.now.Add(d) }

func (b *bench) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, name))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return string(text)
}

func (b *bench) calls(t *testing.T) int { return strings.Count(b.read(t, "calls"), "\n") }

var robot = Credential{Username: "robot", Password: "p w:$x#1"}

func TestATicketIsFetchedOnceAndKept(t *testing.T) {
	b := newBench(t)
	first, err := b.Ticket(t.Context(), robot)
	require.NoError(t, err)
	require.Equal(t, b.now.Add(time.Hour), first.Expires)
	st, err := os.Stat(first.CCache)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	st, err = os.Stat(filepath.Dir(first.CCache))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm())
	b.pass(30 * time.Minute)
	again, err := b.Ticket(t.Context(), robot)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, 1, b.calls(t))
	require.Contains(t, b.read(t, "calls"), "-l 3600s -r 86400s robot\n")
}

func TestThePasswordTravelsOnStandardInputOnly(t *testing.T) {
	b := newBench(t)
	_, err := b.Ticket(t.Context(), Credential{Username: " robot\n", Password: robot.Password + "\r\n"})
	require.NoError(t, err)
	require.Equal(t, robot.Password+"\n", b.read(t, "passwords"))
	require.NotContains(t, b.read(t, "calls")+b.read(t, "environment"), robot.Password)
	require.Contains(t, b.read(t, "environment"), "KRB5_CONFIG="+b.dir+"/krb5.conf")
	require.Contains(t, b.read(t, "environment"), "LC_ALL=C")
}

func TestAKeytabIsGoneWhenKinitIs(t *testing.T) {
	b := newBench(t)
	got, err := b.Ticket(t.Context(), Credential{Username: "robot", Password: "unused", Keytab: []byte("\x05\x02keys")})
	require.NoError(t, err)
	require.Equal(t, "\x05\x02keys", b.read(t, "passwords"))
	left, err := os.ReadDir(filepath.Dir(got.CCache))
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing but the cache")
}

func TestAnOldTicketIsRenewed(t *testing.T) {
	b := newBench(t)
	_, err := b.Ticket(t.Context(), robot)
	require.NoError(t, err)
	b.pass(41 * time.Minute)
	b.ticket(t, time.Hour, true)
	got, err := b.Ticket(t.Context(), robot)
	require.NoError(t, err)
	require.Equal(t, b.now.Add(time.Hour), got.Expires)
	require.Equal(t, 2, b.calls(t))
	require.Contains(t, b.read(t, "calls"), ".new -R\n")
	require.Equal(t, robot.Password+"\n", b.read(t, "passwords"), "the password was not needed again")
}

func TestATicketThatCannotBeRenewedIsFetchedAnew(t *testing.T) {
	for name, prepare := range map[string]func(*bench){
		"it was not renewable":        func(b *bench) { b.ticket(t, time.Hour, false) },
		"the KDC refuses to renew it": func(b *bench) { b.write(t, "norenew", "") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			prepare(b)
			_, err := b.Ticket(t.Context(), robot)
			require.NoError(t, err)
			b.pass(59 * time.Minute)
			b.ticket(t, time.Hour, false)
			got, err := b.Ticket(t.Context(), robot)
			require.NoError(t, err)
			require.Equal(t, b.now.Add(time.Hour), got.Expires)
			require.Equal(t, 2, strings.Count(b.read(t, "passwords"), "\n"))
		})
	}
}

func TestWithoutAKDCThePresentTicketIsUsedWhileItLasts(t *testing.T) {
	b := newBench(t)
	first, err := b.Ticket(t.Context(), robot)
	require.NoError(t, err)
	b.write(t, "fail", "kinit: Cannot contact any KDC for realm 'R' while getting initial credentials\n")
	b.pass(50 * time.Minute)
	for range 3 {
		again, err := b.Ticket(t.Context(), robot)
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
	require.Equal(t, 3, b.calls(t), "one renewal and one fetch were tried, not three of each")

	b.pass(20 * time.Minute)
	_, err = b.Ticket(t.Context(), robot)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, KDCUnreachable, e.Kind)

	require.NoError(t, os.Remove(filepath.Join(b.dir, "fail")))
	b.pass(pauseUnreachable)
	b.ticket(t, time.Hour, true)
	got, err := b.Ticket(t.Context(), robot)
	require.NoError(t, err)
	require.Equal(t, b.now.Add(time.Hour), got.Expires)
}

func TestARefusedPasswordIsNotAskedAgainAtOnceButANewOneIs(t *testing.T) {
	b := newBench(t)
	b.write(t, "fail", "kinit: Password incorrect while getting initial credentials\n")
	for range 3 {
		_, err := b.Ticket(t.Context(), robot)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, BadPassword, e.Kind)
		require.NotContains(t, err.Error(), robot.Password)
	}
	require.Equal(t, 1, b.calls(t))
	b.pass(pauseRefused)
	_, err := b.Ticket(t.Context(), robot)
	require.Error(t, err)
	require.Equal(t, 2, b.calls(t))

	require.NoError(t, os.Remove(filepath.Join(b.dir, "fail")))
	_, err = b.Ticket(t.Context(), Credential{Username: "robot", Password: "right"})
	require.NoError(t, err, "mending the Secret is enough")
}

func TestAWrongPasswordIsTriedLessAndLessOften(t *testing.T) {
	b := newBench(t)
	b.write(t, "fail", "kinit: Preauthentication failed while getting initial credentials\n")
	for range 24 * 60 { // somebody asks every minute of a day
		_, err := b.Ticket(t.Context(), robot)
		require.Error(t, err)
		b.pass(time.Minute)
	}
	require.Equal(t, 4+23, b.calls(t), "at once, after 1, 4 and 16 minutes, then each hour")

	require.NoError(t, os.Remove(filepath.Join(b.dir, "fail")))
	b.pass(pauseRefusedMost)
	b.ticket(t, time.Hour, true)
	_, err := b.Ticket(t.Context(), robot)
	require.NoError(t, err, "it is the account's password now")
	b.write(t, "fail", "kinit: Preauthentication failed while getting initial credentials\n")
	b.pass(2 * time.Hour)
	before := b.calls(t)
	for range 2 {
		_, err = b.Ticket(t.Context(), robot)
		require.Error(t, err)
		b.pass(pauseRefused)
	}
	require.Equal(t, before+2, b.calls(t), "and counts from the beginning again")
}

func TestTheSameNameWithAnotherPasswordSharesNothing(t *testing.T) {
	b := newBench(t)
	first, err := b.Ticket(t.Context(), robot)
	require.NoError(t, err)
	b.write(t, "fail", "kinit: Password incorrect while getting initial credentials\n")
	_, err = b.Ticket(t.Context(), Credential{Username: "robot", Password: "guess"})
	require.Error(t, err)
	again, err := b.Ticket(t.Context(), robot)
	require.NoError(t, err)
	require.Equal(t, first, again)
}

func TestConcurrentCallersShareOneKinit(t *testing.T) {
	b := newBench(t)
	b.write(t, "slow", "")
	var wg sync.WaitGroup
	got := make([]Ticket, 20)
	for i := range got {
		wg.Go(func() {
			var err error
			got[i], err = b.Ticket(t.Context(), robot)
			require.NoError(t, err)
		})
	}
	wg.Wait()
	require.Equal(t, 1, b.calls(t))
	for _, g := range got {
		require.Equal(t, got[0], g)
	}
}

func TestACallerThatGivesUpLeavesTheOthersAlone(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Ticket(ctx, robot)
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.Ticket(t.Context(), robot)
	require.NoError(t, err)
}

func TestASilentKDCCostsNoMoreThanTheDeadline(t *testing.T) {
	b := newBench(t)
	b.o.Timeout = 200 * time.Millisecond
	programtest.Write(t, filepath.Join(b.dir, "kinit"), "#!/bin/sh\nsleep 1000 & wait\n")
	start := time.Now()
	_, err := b.Ticket(t.Context(), robot)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, KDCUnreachable, e.Kind)
	require.ErrorContains(t, err, "no answer within 200ms")
	require.Less(t, time.Since(start), 10*time.Second)
}

func TestAnEmptiedDirectoryIsNoticed(t *testing.T) {
	b := newBench(t)
	first, err := b.Ticket(t.Context(), robot)
	require.NoError(t, err)
	require.NoError(t, os.Remove(first.CCache))
	again, err := b.Ticket(t.Context(), robot)
	require.NoError(t, err)
	require.FileExists(t, again.CCache)
	require.Equal(t, 2, b.calls(t))
}

func TestCachesOfTheDeadAreRemovedAndThoseOfTheLivingKept(t *testing.T) {
	b := newBench(t)
	alive, err := b.Ticket(t.Context(), robot)
	require.NoError(t, err)
	dead := filepath.Join(b.o.Dir, "keeper-1")
	require.NoError(t, os.Mkdir(dead, 0o700))
	other := New(b.o)
	_, err = other.Ticket(t.Context(), robot)
	require.NoError(t, err)
	require.NoDirExists(t, dead)
	require.FileExists(t, alive.CCache)
	require.NoError(t, other.Close())
	require.FileExists(t, alive.CCache)
}

func TestEndedCachesOfOldCredentialsAreRemoved(t *testing.T) {
	b := newBench(t)
	old, err := b.Ticket(t.Context(), Credential{Username: "robot", Password: "before"})
	require.NoError(t, err)
	b.pass(2 * time.Hour)
	b.ticket(t, time.Hour, true)
	_, err = b.Ticket(t.Context(), robot)
	require.NoError(t, err)
	require.NoFileExists(t, old.CCache)
}

func TestCredentialsThatCannotWorkAreRefusedWithoutKinit(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct {
		cred  Credential
		words string
	}{
		"no user name":                  {Credential{Password: "x"}, "there is no username"},
		"an option for a user name":     {Credential{Username: "-k", Password: "x"}, "begins with a -"},
		"a user name with a line break": {Credential{Username: "a\nb", Password: "x"}, "control character"},
		"neither password nor keytab":   {Credential{Username: "robot", Password: "\n"}, "neither a password nor a keytab"},
		"a password of two lines":       {Credential{Username: "robot", Password: "hush1\nhush2"}, "more than one line"},
		"a keytab that is none":         {Credential{Username: "robot", Keytab: []byte("BQIAAA==")}, "no keytab file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.Ticket(t.Context(), c.cred)
			require.ErrorContains(t, err, c.words)
			require.NotContains(t, err.Error(), "hush")
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, Invalid, e.Kind)
			require.Equal(t, "InvalidCredential", e.Kind.String())
		})
	}
	require.Zero(t, b.calls(t))
}

func TestKindsOfKinitsWords(t *testing.T) {
	for words, kind := range map[string]Kind{
		"kinit: Password incorrect while getting initial credentials":                                       BadPassword,
		"kinit: Preauthentication failed while getting initial credentials":                                 BadPassword,
		"kinit: Keytab contains no suitable keys for robot@TEST.HTCD while getting initial credentials":     BadPassword,
		"kinit: Client 'nobody@TEST.HTCD' not found in Kerberos database while getting initial credentials": UnknownPrincipal,
		"kinit: Cannot contact any KDC for realm 'TEST.HTCD' while getting initial credentials":             KDCUnreachable,
		"kinit: Cannot find KDC for realm \"OTHER.REALM\" while getting initial credentials":                KDCUnreachable,
		"kinit: Client's credentials have been revoked while getting initial credentials":                   Expired,
		"kinit: Client's entry in database has expired while getting initial credentials":                   Expired,
		"kinit: Password has expired while getting initial credentials":                                     Expired,
		"kinit: Malformed representation of principal when parsing name a@b@c":                              Invalid,
		"kinit: Configuration file does not specify default realm when parsing name robot":                  Invalid,
		"kinit: something nobody has seen":                                                                  Unknown,
	} {
		b := newBench(t)
		b.write(t, "fail", words+"\n")
		_, err := b.Ticket(t.Context(), robot)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, kind, e.Kind, words)
		require.ErrorContains(t, err, strings.TrimPrefix(words, "kinit: "))
	}
}
