package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseTimes are how long a holder of the Lease goes on without having renewed it, and after how long others take it
// over. Others read the latter in the Lease, so two htcd may differ in it.
type leaseTimes struct{ renewDeadline, duration time.Duration }

const retryPeriod = time.Second

// newLeaseTimes returns longer times for a process whose predecessor could not renew in time. To stop is not cheap on a
// busy machine: it ends the commands that run, and what was just being sent has to be looked for. With 3.5 s, under a
// load of 60 on two cores, that was every 20 s, and a submission took longer than that: nothing was sent for minutes.
func newLeaseTimes() leaseTimes {
	if os.Getenv(leaseLost) != "" {
		return leaseTimes{10 * time.Second, 15 * time.Second}
	}
	return leaseTimes{3500 * time.Millisecond, 5 * time.Second}
}

// errLeaseLost ends everything in this process at once (see reexec): another htcd may already be working.
var errLeaseLost = errors.New("the lease was lost to another htcd, or could not be renewed in time")

// identity is the name by which this process holds the Lease. A process that finds its own name there leads at once,
// without waiting until the Lease expires: so two processes may have the same name only if one of them is dead.
//
// A container restarted in its pod has the name of its predecessor: the pod's UID and process id 1, which the kernel
// gives to one process of the container at a time. Its death ends its PID namespace: nothing of it is left when the
// kubelet hears of it, not even condor_submit. Another pod, on whatever node and of whatever name, has another UID, and
// a process started in the pod by hand has another process id.
func (d *daemon) identity() (string, error) {
	if d.o.Identity != "" {
		return d.o.Identity, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("--identity: %w", err)
	}
	if d.o.PodUID != "" {
		host += "_" + d.o.PodUID
	}
	return fmt.Sprintf("%s_%d", host, os.Getpid()), nil
}

// lead runs work while holding the Lease, which is released only after work has ended.
func (d *daemon) lead(ctx context.Context, work func(context.Context) error) error {
	identity, err := d.identity()
	if err != nil {
		return err
	}
	fails := d.health.asks("asking for the lease " + d.o.OwnSpace + "/" + d.o.LeaseName)

	holding, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	standing, rise := context.WithCancel(holding)
	worked := make(chan error, 1)
	begun := make(chan struct{})
	renewed := &renewals{clock: sinceBoot, fails: fails, Interface: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: d.o.OwnSpace, Name: d.o.LeaseName},
		Client:     d.core.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          renewed,
		LeaseDuration: d.lease.duration, RenewDeadline: d.lease.renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true,
		Name:            d.o.LeaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnNewLeader: func(holder string) { // in a goroutine of its own
				if holder != "" && holder != identity {
					d.standBy(standing, holder)
				}
			},
			OnStartedLeading: func(context.Context) {
				rise()
				close(begun)
				d.log.Info().Str("identity", identity).Msg("leading")
				worked <- d.sealed(ctx, identity, work)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	fence := newFence(sureOf(elector.IsLeader, renewed, d.lease.renewDeadline))
	d.fence = fence
	electing := make(chan struct{})
	go func() { elector.Run(holding); close(electing) }()
	select {
	case <-ctx.Done(): // still standing by, or stopping: the same ctx ends work
		select {
		case <-begun:
			err = <-worked
		default:
		}
	case err = <-worked:
	case <-electing:
		return errLeaseLost
	case <-fence.lost:
		return errLeaseLost
	}
	release()
	<-electing
	select {
	case <-begun:
		d.log.Info().Str("identity", identity).Msg("the lease is released: another htcd may lead at once")
	default:
	}
	return err
}

// leadOrLeave is lead for a caller that does not want to wait: while another htcd renews the Lease, it returns an error
// that names the holder. It waits for a holder that has died, at most for the Lease's duration.
func (d *daemon) leadOrLeave(ctx context.Context, work func(context.Context) error) error {
	own, err := d.identity()
	if err != nil {
		return err
	}
	d.o.Identity = own + "-reconcile-" + rand.Text() // nobody else's, whatever --identity says
	d.o.PodName = ""                                 // whose label is the daemon's, not this process's
	waiting, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	begun := make(chan struct{})
	go func() {
		if err := d.watchHolder(waiting, begun); err != nil {
			leave(err)
		}
	}()
	err = d.lead(waiting, func(context.Context) error {
		close(begun)
		return work(ctx)
	})
	if err == nil {
		select {
		case <-begun:
		default:
			err = context.Cause(waiting)
		}
	}
	return err
}

// silent is the number of looks at an unrenewed Lease after which the wait is logged: it may take the Lease's whole
// duration.
const silent = 3

// watchHolder returns an error if it sees another htcd renew the Lease, or cannot read it, before work has begun.
func (d *daemon) watchHolder(ctx context.Context, begun <-chan struct{}) error {
	var seen time.Time
	for tries := 0; ; tries++ {
		lease, err := d.core.CoordinationV1().Leases(d.o.OwnSpace).Get(ctx, d.o.LeaseName, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read the lease %s/%s: %w", d.o.OwnSpace, d.o.LeaseName, err)
		}
		if err == nil && lease.Spec.HolderIdentity != nil && lease.Spec.RenewTime != nil {
			holder, renewed := *lease.Spec.HolderIdentity, lease.Spec.RenewTime.Time
			if holder != "" && holder != d.o.Identity && !seen.IsZero() && renewed.After(seen) {
				return fmt.Errorf(
					"%s is at work (it holds the lease %s/%s), and does not answer on %s: run this in its pod",
					holder,
					d.o.OwnSpace,
					d.o.LeaseName,
					d.o.Socket(),
				)
			}
			seen = renewed
			if tries == silent {
				d.log.Warn().Str("holder", holder).Msg("the lease is held but not renewed: waiting until it expires")
			}
		}
		select {
		case <-begun:
			return nil
		case <-ctx.Done():
			return nil
		case <-time.After(retryPeriod / 2):
		}
	}
}
