package daemon

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// renewals is the election's lock. It remembers when the Lease was last taken or renewed, by a clock that runs while
// the machine sleeps: Go's own clock, and so the election's, stops then, and a Lease that others took long ago would
// look freshly renewed.
//
// It also keeps the election from releasing a Lease of others: a former leader that wakes up reads the Lease and then
// writes that nobody holds it (client-go v0.36, LeaderElector.release), whoever holds it now.
type renewals struct {
	resourcelock.Interface
	clock func() time.Duration
	fails func(error) // is told why the Lease can be neither read nor taken

	mu     sync.Mutex
	holder string // as last read
	ours   bool
	at     time.Duration
}

var errOfOthers = errors.New("the lease is another htcd's by now, and is left to it")

func (r *renewals) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := r.Interface.Get(ctx)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			r.fails(err)
		}
		return record, raw, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holder = record.HolderIdentity
	return record, raw, nil
}

func (r *renewals) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	asked := r.clock()
	return r.note(asked, record, r.Interface.Create(ctx, record))
}

func (r *renewals) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" && !r.held() {
		return errOfOthers
	}
	asked := r.clock()
	return r.note(asked, record, r.Interface.Update(ctx, record))
}

// held reports whether this process held the Lease when it was last read; the apiserver refuses to change one that
// somebody has written since.
func (r *renewals) held() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holder == r.Identity()
}

// note counts from when the apiserver was asked: others count from when they see the answer, which is later.
func (r *renewals) note(asked time.Duration, record resourcelock.LeaderElectionRecord, err error) error {
	if err != nil {
		r.fails(err)
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ours, r.at = record.HolderIdentity == r.Identity(), asked
	return nil
}

// age is the time since then; very long if the Lease is not ours.
func (r *renewals) age() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ours {
		return math.MaxInt64
	}
	return r.clock() - r.at
}

// sinceBoot is the time since the machine was started, including sleep.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("CLOCK_BOOTTIME: " + err.Error()) // every Linux since 2.6.39 has it
	}
	return time.Duration(t.Nano())
}
