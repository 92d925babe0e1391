package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// client-go's own values: a holder that cannot renew for 10 s stops, others take over after 15 s.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// errLeaseLost ends the process at once: another htcd may be working already.
var errLeaseLost = errors.New("the lease was lost to another htcd, or could not be renewed in time")

// lead runs work while holding the Lease. The Lease is given back only after work has ended.
func (d *daemon) lead(ctx context.Context, work func(context.Context) error) error {
	identity := d.o.Identity
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("--identity: %w", err)
		}
		// In a pod the process id stays the same over restarts, so that a restarted container leads again at once.
		identity = fmt.Sprintf("%s_%d", host, os.Getpid())
	}
	d.health.set("standing by: another htcd holds the lease " + d.o.OwnSpace + "/" + d.o.LeaseName)

	holding, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	worked := make(chan error, 1)
	begun := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: d.o.OwnSpace, Name: d.o.LeaseName},
			Client:     d.core.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true,
		Name:            d.o.LeaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				close(begun)
				d.log.Info().Str("identity", identity).Msg("leading")
				worked <- work(ctx)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	electing := make(chan struct{})
	go func() { elector.Run(holding); close(electing) }()
	select {
	case <-ctx.Done(): // still standing by, or stopping: work ends by the same ctx
		select {
		case <-begun:
			err = <-worked
		default:
		}
	case err = <-worked:
	case <-electing:
		return errLeaseLost
	}
	release()
	<-electing
	return err
}
