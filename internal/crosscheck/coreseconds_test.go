package crosscheck

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd/usage"
)

func TestCoreSecondsCountOnceAndNotMoreThanCanBe(t *testing.T) {
	began := time.Unix(1_000_000, 0)
	run := ledger.Run{Created: began}
	use := func(wall, cpus int64) string { return usage.Use{Wall: wall, AskedCPUs: cpus}.String() }
	open := ledger.Proc{Status: ledger.StatusOpen}
	called := ledger.Proc{Status: ledger.StatusSucceeded, Source: FromCallback}
	told := ledger.Proc{Status: ledger.StatusSucceeded, Source: FromHTCondor, Usage: use(60, 4)}
	removed := ledger.Proc{Status: ledger.StatusFailed, Source: FromHTCondor, Usage: use(10, 0)}
	forged := ledger.Proc{Status: ledger.StatusFailed, Source: FromHTCondor, Usage: use(usage.Most, usage.Most)}
	for name, c := range map[string]struct {
		was, is ledger.Proc
		want    int64
	}{
		"an end":                          {open, told, 240},
		"an end after its callback":       {called, told, 240},
		"a callback":                      {open, called, 0},
		"told before":                     {told, told, 0},
		"corrected":                       {told, removed, 0},
		"a removal, of one core":          {open, removed, 10},
		"one that never started":          {open, ledger.Proc{Status: ledger.StatusFailed, Source: FromHTCondor}, 0},
		"it runs again":                   {told, open, 0},
		"what the job's owner has forged": {open, forged, (24*3600 + 100) << 16},
	} {
		require.Equal(t, c.want, CoreSeconds(run, []Change{{c.was, c.is}}, began.Add(100*time.Second)), name)
	}
}
