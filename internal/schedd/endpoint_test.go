package schedd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestWhereJobsMayBeSent(t *testing.T) {
	for name, c := range map[string]struct {
		endpoint Endpoint
		patterns string
		says     string
	}{
		"nowhere where nothing is allowed":             {Endpoint{"", "b1"}, "", "--allow-pools names no other"},
		"a schedd of the usual pool":                   {Endpoint{"", "b1.cern.ch"}, "b1.cern.ch", ""},
		"one of several":                               {Endpoint{"", "b17.cern.ch"}, "x,b*.cern.ch", ""},
		"letters of another size":                      {Endpoint{"", "B1.cern.ch"}, "b1.CERN.ch", ""},
		"a schedd of that name in another pool is not": {Endpoint{"other", "b1"}, "b1", "schedd b1 of pool other is not one"},
		"another pool's":                               {Endpoint{"other:9618", "b1"}, "other:9618/*", ""},
		"another pool's with another port is not":      {Endpoint{"other:1", "b1"}, "other:9618/*", "is not one"},
		"the usual pool's is not the other pool's":     {Endpoint{"", "b1"}, "other/*", "is not one"},
		"a longer name is another name":                {Endpoint{"", "b1.cern.ch.evil.org"}, "b1.cern.ch", "is not one"},
	} {
		t.Run(name, func(t *testing.T) {
			patterns := strings.FieldsFunc(c.patterns, func(r rune) bool { return r == ',' })
			require.NoError(t, CheckEndpointPatterns(patterns))
			err := AllowEndpoint(c.endpoint, patterns)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.Equal(t, condor.Refused, condor.KindOf(err))
		})
	}
	for _, pattern := range []string{"", "a b", "a/b/c", "[ab]", "a/", "/b", `a\b`} {
		require.Error(t, CheckEndpointPatterns([]string{pattern}), pattern)
	}
}

func TestWhatASitesCommandPrints(t *testing.T) {
	for name, c := range map[string]struct{ out, want string }{
		"the name":                          {"bigbird10.cern.ch\n", "bigbird10.cern.ch"},
		"a configuration":                   {"CREDD_HOST = $(SCHEDD_HOST)\nSCHEDD_HOST = bigbird10.cern.ch\n", "bigbird10.cern.ch"},
		"lines for a shell":                 {"export _condor_CREDD_HOST=\"x\"; export _condor_SCHEDD_HOST=\"bigbird10.cern.ch\"\n", "bigbird10.cern.ch"},
		"JSON":                              {`{"currentschedd": "bigbird10.cern.ch", "pool": "share"}`, "bigbird10.cern.ch"},
		"nothing":                           {"\n", ""},
		"a sentence":                        {"Your schedd is bigbird10.cern.ch\n", ""},
		"two names":                         {"a.cern.ch\nb.cern.ch\n", ""},
		"an option in place of a name":      {"-pool\n", ""},
		"a name that would be two settings": {"SCHEDD_HOST = a b", ""},
		"JSON without a schedd":             {`{"pool": "share"}`, ""},
		"JSON that is cut":                  {`{"currentschedd": "big`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := namedSchedd(c.out)
			require.Equal(t, c.want, got)
			require.Equal(t, c.want == "", err != nil)
		})
	}
}

func TestASitesCommandIsAskedForEachAccountAndNotEveryTime(t *testing.T) {
	dir := t.TempDir()
	log, says := filepath.Join(dir, "log"), filepath.Join(dir, "says")
	client := tools(t, long, map[string]string{
		"myschedd": `env | sort >>` + log + `; echo "args $@" >>` + log + `; echo asked >>` + log + `; cat ` + says + ` || exit 1`,
		"condor_q": `echo "Error: communication error" >&2; echo "$@" >` + dir + `/q; exit 1`,
	})
	client.o.Command = filepath.Join(client.o.BinDir, "myschedd") + "  show -j"
	asked := func() int { b, _ := os.ReadFile(log); return strings.Count(string(b), "asked\n") }
	_, err := client.ScheddName(t.Context(), Identity{})
	require.Equal(t, condor.Unreachable, condor.KindOf(err), "without an answer nobody can be asked: %v", err)

	require.NoError(t, os.WriteFile(says, []byte("one.test\n"), 0o600))
	for range 3 {
		name, err := client.ScheddName(t.Context(), Identity{CCache: "/tickets/a"})
		require.NoError(t, err)
		require.Equal(t, "one.test", name)
	}
	require.Equal(t, 2, asked())
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(text), "KRB5CCNAME=FILE:/tickets/a\n")
	require.Contains(t, string(text), "args show -j\n")
	require.NotContains(t, string(text), "SCHEDD_HOST")

	require.NoError(t, os.WriteFile(says, []byte("two.test\n"), 0o600))
	name, err := client.ScheddName(t.Context(), Identity{CCache: "/tickets/b"})
	require.NoError(t, err)
	require.Equal(t, "two.test", name, "another account has another schedd")
	require.NoError(t, os.WriteFile(says, []byte("three.test\n"), 0o600))
	name, err = client.ScheddName(t.Context(), Identity{Tokens: "/tickets/c"})
	require.NoError(t, err)
	require.Equal(t, "three.test", name, "nor do those with a token share one")
	require.NoError(t, os.WriteFile(says, []byte("four.test\n"), 0o600))
	name, err = client.ScheddName(t.Context(), Identity{Tokens: "/tickets/d"})
	require.NoError(t, err)
	require.Equal(t, "four.test", name)

	require.Error(
		t,
		client.Query(
			t.Context(),
			Identity{CCache: "/tickets/a", Endpoint: Endpoint{"far.test", "old.test"}},
			Query{Where: "x"},
			nil,
		),
	)
	said, err := os.ReadFile(dir + "/q")
	require.NoError(t, err)
	require.Contains(t, string(said), "-name old.test -pool far.test ")
}

func TestWhenTheUsualScheddIsAskedForAnew(t *testing.T) {
	var u usual
	began := time.Now()
	id := Identity{CCache: "/tickets/a"}
	says, fails := "one", error(nil)
	at := func(after time.Duration) string {
		name, err := u.get(context.Background(), id, began.Add(after), func() (string, error) { return says, fails })
		require.NoError(t, err)
		return name
	}
	require.Equal(t, "one", at(0))
	says = "two"
	require.Equal(t, "one", at(askAgain-1))
	require.Equal(t, "two", at(askAgain), "once in a while")

	says = "three"
	elsewhere := id
	elsewhere.Endpoint = Endpoint{"", "another"}
	u.doubt(elsewhere)
	require.Equal(t, "two", at(askAgain+doubted), "another schedd's trouble says nothing about this one")
	u.doubt(id)
	require.Equal(t, "two", at(askAgain+doubted-1), "but not all the time")
	require.Equal(t, "three", at(askAgain+doubted), "when it did not answer")

	fails = os.ErrNotExist
	require.Equal(t, "three", at(time.Hour), "no answer is no reason to forget the last one")
}

func TestWhoDoesNotAskAnyMoreIsForgotten(t *testing.T) {
	var u usual
	began := time.Now()
	for i := range 1000 { // as many tokens, one after the other
		id, at := Identity{Tokens: fmt.Sprint("/tickets/", i)}, began.Add(time.Duration(i)*time.Hour)
		_, err := u.get(t.Context(), id, at, func() (string, error) { return "one", nil })
		require.NoError(t, err)
		u.doubt(Identity{Tokens: fmt.Sprint("/tickets/never/", i)})
	}
	require.LessOrEqual(t, len(u.m), int(unused/time.Hour)+2)
}
