package setting

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestAListIsOneLineAndEachWordOfItsKind(t *testing.T) {
	var list []string
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	List(f, &list, "binds", []string{"/cvmfs"}, Place, "")
	require.NoError(t, f.Set("binds", "/eos,/afs\n"), "as a file of settings may have it")
	require.Equal(t, []string{"/eos", "/afs"}, list)
	require.EqualError(t, Explain(f.Set("binds", "/eos,afs"), ""), "--binds afs: want an absolute path")
	require.EqualError(
		t,
		Explain(f.Set("binds", "/eos\n/afs"), "HTCD_BINDS"),
		`HTCD_BINDS "/eos\n/afs": want one line; in it, each an absolute path`,
	)
	require.Equal(t, "each an absolute path", Allowed(f.Lookup("binds")))
}

func TestAnEmptyTextIsAllowedWhereItIsTheDefault(t *testing.T) {
	var without, with string
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	Text(f, &without, "namespace,n", "", Namespace, "")
	Text(f, &with, "lease-name", "htcd", Object, "")
	require.NoError(t, f.Set("namespace", ""))
	require.Error(t, f.Set("lease-name", ""))
	require.NoError(t, f.Parse([]string{"-n", "mine"}))
	require.Equal(t, "mine", without)
}

func TestATimeOfNoneIsAllowedWhereItIsTheDefault(t *testing.T) {
	var every, resync time.Duration
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	Duration(f, &every, "every", 0, time.Second, 36*time.Hour, "")
	Duration(f, &resync, "resync", time.Minute, time.Second, 90*time.Second, "")
	require.NoError(t, f.Set("every", "0s"))
	require.EqualError(t, Explain(f.Set("every", "1ms"), ""), "--every 1ms: want 0, or a time from 1s to 36h")
	require.EqualError(t, Explain(f.Set("resync", "0"), ""), "--resync 0: want a time from 1s to 1m30s")
}

func TestALongValueIsCut(t *testing.T) {
	var name string
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	Text(f, &name, "name", "", Object, "")
	require.Less(t, len(Explain(f.Set("name", string(make([]byte, 1<<20))), "").Error()), 600)
}

func TestAFlagOfAnotherKindAllowsNothing(t *testing.T) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Int("workers", 1, "")
	require.Empty(t, Allowed(f.Lookup("workers")))
}
