package daemon

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is one that either every write reaches, or none.
type lease struct {
	resourcelock.Interface
	err error
}

func (l *lease) Identity() string { return "first" }

func (l *lease) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

func TestALeaseIsTooOldAfterASleepOfTheMachine(t *testing.T) {
	const renewDeadline = time.Minute
	var clock time.Duration
	kept := &lease{}
	renewed := &renewals{Interface: kept, clock: func() time.Duration { return clock }}
	sure := sureOf(func() bool { return true }, renewed, renewDeadline)
	renew := func(holder string) {
		_ = renewed.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder})
	}
	require.ErrorIs(t, sure(), errUnsure, "never renewed")

	renew("first")
	clock += renewDeadline
	require.NoError(t, sure())
	clock += time.Hour // unseen by Go's own clock, and so by the election
	require.ErrorIs(t, sure(), errUnsure)

	renew("first")
	require.NoError(t, sure())
	kept.err = errors.New("the apiserver does not answer")
	clock += renewDeadline + 1
	renew("first")
	require.ErrorIs(t, sure(), errUnsure)

	kept.err = nil
	renew("") // released
	require.ErrorIs(t, sure(), errUnsure)
}

// Others wait longer than a holder goes on, by the second in which they saw it renew.
func TestAHolderStopsBeforeOthersTakeOver(t *testing.T) {
	at := newLeaseTimes()
	require.Less(t, at.renewDeadline+retryPeriod, at.duration)
	require.Equal(t, 5*time.Second, at.duration, "how long nobody works after a node has died")

	t.Setenv(leaseLost, "true")
	late := newLeaseTimes()
	require.Less(t, late.renewDeadline+retryPeriod, late.duration)
	require.Less(t, at.duration, late.renewDeadline)
}

// The kernel counts its uptime by the clock that runs during sleep.
func TestTheClockOfTheLeaseIsTheUptime(t *testing.T) {
	before := sinceBoot()
	text, err := os.ReadFile("/proc/uptime")
	require.NoError(t, err)
	after := sinceBoot()
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	require.NoError(t, err)
	uptime := time.Duration(seconds * float64(time.Second))
	require.GreaterOrEqual(t, uptime, before-20*time.Millisecond, "it is shown in hundredths")
	require.LessOrEqual(t, uptime, after)
}
