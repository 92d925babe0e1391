package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is one that either every write reaches, or none.
type lease struct {
	resourcelock.Interface
	err error
}

func (l *lease) Identity() string { return "first" }

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.Identity()}, nil, nil
}

func (l *lease) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

func TestALeaseIsTooOldAfterASleepOfTheMachine(t *testing.T) {
	const renewDeadline = time.Minute
	var clock time.Duration
	kept := &lease{}
	var failed error
	renewed := &renewals{
		Interface: kept, clock: func() time.Duration { return clock }, fails: func(err error) { failed = err },
	}
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
	require.Equal(t, kept.err, failed)

	kept.err = nil
	_, _, err := renewed.Get(t.Context())
	require.NoError(t, err)
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

// contested is a Lease that only somebody who has read its latest version can change.
type contested struct {
	resourcelock.Interface
	record        resourcelock.LeaderElectionRecord
	version, read int
}

func (c *contested) Identity() string   { return "first" }
func (c *contested) Describe() string   { return "lease" }
func (c *contested) RecordEvent(string) {}

func (c *contested) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if c.read = c.version; c.read == 0 {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{}, "lease")
	}
	record := c.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (c *contested) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return c.Update(ctx, record)
}

func (c *contested) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if c.read != c.version {
		return errors.New("it has changed")
	}
	c.version++
	c.record, c.read = record, c.version
	return nil
}

// The election of a process that was asleep still believes that it leads when it is told to stop.
func TestALeaseThatOthersHaveTakenIsNotReleased(t *testing.T) {
	for others, want := range map[string]string{"": "", "second": "second"} {
		synctest.Test(t, func(t *testing.T) {
			lease := &contested{}
			at := newLeaseTimes()
			elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock:          &renewals{clock: sinceBoot, Interface: lease, fails: func(error) {}},
				LeaseDuration: at.duration, RenewDeadline: at.renewDeadline, RetryPeriod: retryPeriod,
				ReleaseOnCancel: true,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {},
				},
			})
			require.NoError(t, err)
			holding, release := context.WithCancel(t.Context())
			go elector.Run(holding)
			synctest.Wait() // until it has taken the Lease, and waits to renew it
			require.Equal(t, "first", lease.record.HolderIdentity)
			if others != "" {
				lease.record.HolderIdentity = others
				lease.version++
			}
			require.True(t, elector.IsLeader(), "for all that it knows")
			release()
			synctest.Wait()
			require.Equal(t, want, lease.record.HolderIdentity)
		})
	}
}
