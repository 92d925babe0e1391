package outage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func TestALedgerThatCannotBeWrittenHoldsEverythingUpAndNoMore(t *testing.T) {
	for name, c := range map[string]struct {
		volume     string // options of the tmpfs on the ledger's directory; empty: the lab's own disk
		queue      int32
		reason     string
		doctor     string // what it reports
		away, back func(outage)
	}{
		// SQLite keeps free pages: the rows of small HTCJobs may still fit.
		"the volume is full": {"size=2m", 500, "NoSpace", "is full, ", func(o outage) {
			_, _ = o.Lab.RunAs(o.T.Context(), "root", "dd", "if=/dev/zero", "of="+fill(o), "bs=1k") // ends when the volume is full
		}, func(o outage) {
			_, err := o.Lab.RunAs(context.WithoutCancel(o.T.Context()), "root", "rm", fill(o))
			require.NoError(o.T, err)
		}},
		"the volume is read-only from the start": {"size=4m", 2, "LedgerUnavailable", "read-only file system", func(o outage) {
			o.do(o.part("htcd").Stop)
			o.remount("ro")
			go func() { _ = o.part("htcd").Start(context.WithoutCancel(o.T.Context())) }() // it is not ready until the end
		}, func(o outage) { o.remount("rw") }},
		// A mount with open files cannot be made read-only; a journal that nobody may write is the same to SQLite.
		"the volume becomes read-only": {"", 2, "LedgerUnavailable", "can be written, keeps locks", func(o outage) {
			require.NoError(o.T, os.Chmod(o.Lab.Ledger()+"-journal", 0o400))
		}, func(o outage) {
			require.NoError(o.T, os.Chmod(o.Lab.Ledger()+"-journal", 0o600))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := begin(t)
			if c.volume != "" {
				o.mount(filepath.Dir(o.Lab.Ledger()), c.volume)
			}
			wait, end := o.Gate()
			o.Create("running", wait+"exit 0\n", trial.Queue(2))
			o.running("running")

			back := sync.OnceFunc(func() { c.back(o) })
			t.Cleanup(back)
			c.away(o)
			o.readyz("the ledger cannot be ")
			end()
			var names []string
			for i := range 2 {
				names = append(names, fmt.Sprintf("waiting-%d", i))
				o.Create(names[i], "exit 0\n", trial.Queue(c.queue), never)
			}
			for _, name := range names {
				said := o.says(name, v1alpha1.ConditionSubmitted, c.reason)
				require.Contains(t, said, "htcd cannot write its ledger, and goes on when it can")
				if c.reason == "NoSpace" {
					require.Regexp(t, `[0-9]+ KiB are free in `+filepath.Dir(o.Lab.Ledger()), said)
				}
				require.Equal(t, c.reason, o.column(name))
				job := o.Get(name)
				intents := o.SQL(fmt.Sprintf("SELECT count(*) FROM runs WHERE uid = '%s'", job.UID))
				require.True(t, intents == "1" || len(o.clusters(job)) == 0, "nothing is sent without a durable intent")
			}
			_, events, _ := strings.Cut(o.Kubectl("describe", "htcjob", names[0]), "\nEvents:")
			require.Contains(t, events, c.reason)
			found, do := o.doctor("volume")
			require.Contains(t, found, c.doctor)
			require.NotContains(t, do, "POSIX locks")
			if c.queue < 500 { // an end overwrites an existing row, which needs no space
				o.Eventually(func() bool { return strings.Contains(o.log(), "callback not recorded") },
					func() string { return "no callback was turned away" })
			}

			back()
			o.readyz("ready")
			o.succeeded("running")
			for _, name := range names {
				o.once(o.Phase(name, v1alpha1.PhaseIdle))
			}
			o.gone()
		})
	}
}

// mount restarts htcd with an empty tmpfs on one of its directories, for the duration of the test.
func (o outage) mount(dir, options string) {
	o.T.Helper()
	htcd := o.part("htcd")
	as := func(ctx context.Context, name string, args ...string) string {
		out, err := o.Lab.RunAs(ctx, "root", name, args...)
		require.NoError(o.T, err)
		return strings.TrimSpace(out)
	}
	ctx := o.T.Context()
	require.NoError(o.T, htcd.Stop(ctx))
	owner := as(ctx, "id", "-u", "htcd")
	as(ctx, "mount", "-t", "tmpfs", "-o", options+",mode=700,uid="+owner, "tmpfs", dir)
	o.T.Cleanup(func() {
		ctx := context.WithoutCancel(o.T.Context())
		require.NoError(o.T, htcd.Stop(ctx))
		as(ctx, "umount", dir)
		require.NoError(o.T, htcd.Start(ctx))
	})
	require.NoError(o.T, htcd.Start(ctx))
}

func (o outage) remount(how string) {
	o.T.Helper()
	_, err := o.Lab.RunAs(
		context.WithoutCancel(o.T.Context()),
		"root",
		"mount",
		"-o",
		"remount,"+how,
		filepath.Dir(o.Lab.Ledger()),
	)
	require.NoError(o.T, err)
}

func fill(o outage) string { return filepath.Join(filepath.Dir(o.Lab.Ledger()), "fill") }
