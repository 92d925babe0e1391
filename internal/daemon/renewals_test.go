package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
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

// shared is a Lease of which each writer must have read the latest version.
type shared struct {
	mu      sync.Mutex
	record  resourcelock.LeaderElectionRecord
	version int
}

func (s *shared) holder() (name string, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.HolderIdentity, s.version
}

func (s *shared) take(holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.HolderIdentity = holder
	s.version++
}

type lockOf struct {
	resourcelock.Interface
	lease *shared
	read  int
}

func (l *lockOf) Identity() string   { return "first" }
func (l *lockOf) Describe() string   { return "lease" }
func (l *lockOf) RecordEvent(string) {}

func (l *lockOf) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	if l.read = l.lease.version; l.read == 0 {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{}, "lease")
	}
	record := l.lease.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (l *lockOf) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *lockOf) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	if l.read != l.lease.version {
		return errors.New("it has changed")
	}
	l.lease.version++
	l.lease.record, l.read = record, l.lease.version
	return nil
}

// The election of a process that was asleep still believes that it leads when it is told to stop.
func TestALeaseThatOthersHaveTakenIsNotReleased(t *testing.T) {
	for others, want := range map[string]string{"": "", "second": "second"} {
		lease := &shared{}
		holding, release := context.WithCancel(t.Context())
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock:          &renewals{clock: sinceBoot, Interface: &lockOf{lease: lease}},
			LeaseDuration: 3 * time.Hour, RenewDeadline: 2 * time.Hour, RetryPeriod: time.Hour,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {},
			},
		})
		require.NoError(t, err)
		ended := make(chan struct{})
		go func() { elector.Run(holding); close(ended) }()
		for version := 0; version < 2; _, version = lease.holder() { // taken, and renewed once
			time.Sleep(time.Millisecond)
		}
		if others != "" {
			lease.take(others)
		}
		require.True(t, elector.IsLeader(), "for all that it knows")
		release()
		<-ended
		holder, _ := lease.holder()
		require.Equal(t, want, holder)
	}
}
