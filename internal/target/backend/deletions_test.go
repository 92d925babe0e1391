package backend

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// removals is a schedd whose condor_rm waits for the test, and the credentials of its only account.
type removals struct {
	Schedd
	began chan string // the constraint of a condor_rm
	letGo chan error  // what it ends with

	mu   sync.Mutex
	jobs []condor.Job // what every condor_rm leaves
}

func (s *removals) Change(ctx context.Context, _ schedd.Identity, c schedd.Change) (o schedd.Outcome, err error) {
	s.began <- string(c.(schedd.Remove).Where)
	select {
	case err := <-s.letGo:
		return o, err
	case <-ctx.Done():
		return o, ctx.Err()
	}
}

func (s *removals) Query(_ context.Context, _ schedd.Identity, q schedd.Query, fn func(condor.Job) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if strings.Contains(string(q.Where), strconv.Quote(j.Tag.UID)) {
			_ = fn(j)
		}
	}
	return nil
}

func (s *removals) Identity(_ context.Context, t Target) (schedd.Identity, error) {
	return schedd.Identity{CCache: t.Namespace, Endpoint: t.Endpoint}, nil
}

func (s *removals) Common(context.Context, schedd.Endpoint) (schedd.Identity, error) {
	return schedd.Identity{}, errors.New("none")
}

func (s *removals) Any(context.Context, schedd.Endpoint) (schedd.Identity, error) { panic("unused") }

// deleting deletes objects of a schedd's jobs.
type deleting struct {
	*removals
	Owners
	t *testing.T
}

func newDeleting(t *testing.T, jobs ...condor.Job) deleting {
	s := &removals{began: make(chan string), letGo: make(chan error), jobs: jobs}
	return deleting{s, NewOwners(s, s), t}
}

// delete begins to delete an object and returns how it ends.
func (d deleting) delete(ctx context.Context, namespace, uid string, many bool) <-chan removal {
	done := make(chan removal, 1)
	go func() {
		left, err := d.RemoveDeleted(ctx, Target{Account: Account{Namespace: namespace}}, uid, "deleted", many)
		done <- removal{left, err}
	}()
	return done
}

// waiting waits until so many deletions of a namespace wait for a condor_rm.
func (d deleting) waiting(namespace string, n int) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		d.deletions.mu.Lock()
		defer d.deletions.mu.Unlock()
		return len(d.deletions.waiting[together{schedd.Identity{CCache: namespace}, "deleted"}]) == n
	}, 10*time.Second, time.Millisecond)
}

func job(uid string, status condor.JobStatus) condor.Job {
	return condor.Job{Tag: condor.Tag{UID: uid}, Status: status}
}

func TestDeletionsGoTogether(t *testing.T) {
	d := newDeleting(t, job("first", condor.Removed), job("second", condor.Running), job("second", condor.Removed))
	first := d.delete(t.Context(), "ns", "first", false)
	require.Contains(t, <-d.began, `"first"`)
	second := d.delete(t.Context(), "ns", "second", false)
	d.waiting("ns", 1)
	third := d.delete(t.Context(), "ns", "third", false)
	d.waiting("ns", 2)

	d.letGo <- nil
	left := (<-first).left
	require.Equal(t, 1, left.Removed)
	require.Empty(t, left.Others)

	constraint := <-d.began
	require.NotContains(t, constraint, `"first"`)
	require.Contains(t, constraint, "second")
	require.Contains(t, constraint, "third")
	d.letGo <- nil
	left = (<-second).left
	require.Equal(t, 1, left.Removed)
	require.Equal(t, []condor.Job{job("second", condor.Running)}, left.Others)
	left = (<-third).left
	require.Zero(t, left.Removed)
	require.Empty(t, left.Others)
	require.NotZero(t, left.Took)
}

func TestDeletionsThatComeSoonAfterARemovalGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeleting(t)
		first := d.delete(t.Context(), "ns", "first", false)
		<-d.began
		time.Sleep(maxRest) // a slow condor_rm, by the clock of the test
		d.letGo <- nil
		require.NoError(t, (<-first).err)
		second := d.delete(t.Context(), "ns", "second", false)
		third := d.delete(t.Context(), "ns", "third", false)
		constraint := <-d.began
		require.Contains(t, constraint, "second")
		require.Contains(t, constraint, "third")
		d.letGo <- nil
		require.NoError(t, (<-second).err)
		require.NoError(t, (<-third).err)
	})
}

func TestAFailureIsThatOfAllWhoseJobsWereToBeRemoved(t *testing.T) {
	d := newDeleting(t)
	first := d.delete(t.Context(), "ns", "first", false)
	<-d.began
	second := d.delete(t.Context(), "ns", "second", false)
	d.waiting("ns", 1)
	third := d.delete(t.Context(), "ns", "third", false)
	d.waiting("ns", 2)
	d.letGo <- nil
	require.NoError(t, (<-first).err)
	<-d.began
	silent := errors.New("the schedd is silent")
	d.letGo <- silent
	require.ErrorIs(t, (<-second).err, silent)
	require.ErrorIs(t, (<-third).err, silent)

	again := d.delete(t.Context(), "ns", "second", false)
	<-d.began
	d.letGo <- nil
	require.NoError(t, (<-again).err)
}

func TestADeletionWaitsNeitherForAnotherAccountNorForManyJobs(t *testing.T) {
	d := newDeleting(t)
	large := d.delete(t.Context(), "ns", "large", true)
	<-d.began
	large2 := d.delete(t.Context(), "ns", "large2", true)
	<-d.began
	other := d.delete(t.Context(), "other", "first", false)
	<-d.began
	small := d.delete(t.Context(), "ns", "small", false)
	require.Contains(t, <-d.began, "small")
	for range 4 {
		d.letGo <- nil
	}
	for _, done := range []<-chan removal{large, large2, other, small} {
		require.NoError(t, (<-done).err)
	}
}

func TestNoMoreDeletionsGoTogetherThanACommandIsToTake(t *testing.T) {
	d := newDeleting(t)
	first := d.delete(t.Context(), "ns", "first", false)
	<-d.began
	var others []<-chan removal
	for i := range mostDeleted + 1 {
		others = append(others, d.delete(t.Context(), "ns", fmt.Sprintf("u%d", i), false))
	}
	d.waiting("ns", mostDeleted+1)
	d.letGo <- nil
	<-first
	for _, n := range []int{mostDeleted, 1} {
		require.Equal(t, n, strings.Count(<-d.began, `"u`))
		d.letGo <- nil
	}
	for _, done := range others {
		require.NoError(t, (<-done).err)
	}
}

func TestDeletionsThatWaitEndWithHtcd(t *testing.T) {
	d := newDeleting(t)
	ctx, end := context.WithCancel(t.Context())
	first := d.delete(ctx, "ns", "first", false)
	<-d.began
	second := d.delete(ctx, "ns", "second", false)
	d.waiting("ns", 1)
	end()
	require.ErrorIs(t, (<-first).err, context.Canceled)
	<-d.began
	require.ErrorIs(t, (<-second).err, context.Canceled)
}
