package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"htc.cern.ch/htcd/test/lab/cache"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/lab/root"
)

// buildImage builds htcd's image, and reports whether it has changed.
func (b build) buildImage(ctx context.Context, c *cache.Cache) (changed bool, err error) {
	archive := parts.OperatorArchive(b.lab)
	before, _ := os.ReadFile(archive)
	if err := c.BuildOperator(
		ctx,
		cache.Operator{Clone: b.clone, Version: "dev", Revision: "lab", Created: "lab", Archive: archive},
	); err != nil {
		return false, err
	}
	after, err := os.ReadFile(archive)
	if err != nil {
		return false, err
	}
	b.p.printf("htcd's image: %d MB", len(after)>>20)
	return !bytes.Equal(before, after), nil
}

// writeHosts writes what the lab sees as /etc/hosts.
func (b build) writeHosts(file string) error {
	// HTCondor's curl_plugin crashes on a machine that does not know its own name (23.9 and 25.14).
	own, err := os.Hostname()
	if err != nil {
		return err
	}
	hosts := fmt.Sprintf("127.0.0.1 localhost %s\n", own)
	if b.node {
		// The name that deploy/base gives to htcd's Ingress.
		hosts += root.NodeAddress + " htcd.example.org\n"
	}
	return os.WriteFile(file, []byte(hosts), 0o644)
}
