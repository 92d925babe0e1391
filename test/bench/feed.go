package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// bothWays measures without a feed, and then with one: measure gets htcd's flags for it, and the words for its figures.
func (p *place) bothWays(
	ctx context.Context,
	measure func(how string, flags []string) ([]figure, error),
) (figures []figure, err error) {
	if figures, err = measure("without a feed", nil); err != nil {
		return figures, err
	}
	p.tidy(ctx)
	flags, stop, err := p.feed(ctx)
	if err != nil {
		return figures, err
	}
	fed, err := measure("with a feed", flags)
	return append(figures, fed...), errors.Join(err, stop())
}

// feed starts htcd feed at the lab's schedd and returns the flags with which htcd uses it.
func (p *place) feed(ctx context.Context) (flags []string, stop func() error, err error) {
	dir, err := p.dir("htcd", "feed")
	if err != nil {
		return nil, nil, err
	}
	cert, key := filepath.Join(dir, "crt"), filepath.Join(dir, "key")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return nil, nil, err
	}
	// One certificate is the authority, the server's and the client's.
	out, err := exec.CommandContext(
		ctx, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
		"-keyout", key, "-out", cert, "-subj", "/CN=htcd", "-addext", "subjectAltName=IP:127.0.0.1",
	).CombinedOutput()
	if err != nil {
		return nil, nil, fmt.Errorf("openssl: %w: %s", err, out)
	}
	if err := p.give("htcd", dir); err != nil {
		return nil, nil, err
	}
	cmd, err := p.command(context.WithoutCancel(ctx), "root", "", p.lab.Path("htcd", "bin", "htcd"), "feed",
		"--spool", p.lab.Path("condor", "spool"), "--listen", address, "--tls-cert", cert, "--tls-key", key,
		"--client-ca", cert, "--allow", "htcd=*")
	if err != nil {
		return nil, nil, err
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	log, err := os.Create(filepath.Join(p.results, "feed.log"))
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	stop = func() error { _ = cmd.Process.Signal(syscall.SIGTERM); return cmd.Wait() }
	return []string{
		"--schedd", p.schedd, "--feed", p.schedd + "=https://" + address,
		"--feed-ca", cert, "--feed-cert", cert, "--feed-key", key,
	}, stop, nil
}
