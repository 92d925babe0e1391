package main

import (
	"context"

	"htc.cern.ch/htcd/test/lab/cache"
)

// host installs the few packages that the host itself must have.
func host(ctx context.Context) error {
	c, err := cache.Default(newProgress().printf)
	if err != nil {
		return err
	}
	return c.HostPackages(ctx)
}
