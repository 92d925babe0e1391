package chaos

import (
	"context"
	"fmt"
	"path/filepath"
)

// volumeSize is enough for whatever a run writes, in addition to what --keep-free reserves.
const volumeSize = "192m"

func (p *Player) data() string { return p.Lab.Path("htcd", "data") }

// sh runs a script as root inside the lab.
func (p *Player) sh(ctx context.Context, script string, args ...string) (string, error) {
	return p.Lab.RunAs(ctx, "root", "sh", append([]string{"-c", "set -e; " + script, "sh"}, args...)...)
}

// small stops htcd and gives it a small volume with all of its data for the duration of the chaos.
func (p *Player) small(ctx context.Context) error {
	if err := p.Lab.Part("htcd").Stop(ctx); err != nil {
		return err
	}
	_, err := p.sh(
		ctx,
		`new=$(mktemp -d); mount -t tmpfs -o size=`+volumeSize+` tmpfs "$new"; cp -a "$1/." "$new"; mount --move "$new" "$1"; rmdir "$new"`,
		p.data(),
	)
	p.onSmall = err == nil
	return err
}

// large stops htcd and gives it back its own volume.
func (p *Player) large(ctx context.Context) error {
	if !p.onSmall {
		return nil
	}
	if err := p.Lab.Part("htcd").Stop(ctx); err != nil {
		return err
	}
	_, err := p.sh(ctx, `umount "$1"`, p.data())
	p.onSmall = err != nil
	return err
}

// fill takes all but this many KiB of the volume.
func (p *Player) fill(ctx context.Context, leaves int) error {
	_, err := p.sh(
		ctx,
		`free=$(df --output=avail -B1K "$1" | tail -1); [ "$free" -le "$2" ] || fallocate -l $((free - $2))K "$1/fill"`,
		p.data(),
		fmt.Sprint(leaves),
	)
	return err
}

func (p *Player) empty(ctx context.Context) error {
	_, err := p.sh(ctx, `rm -f "$1/fill"`, p.data())
	return err
}

// revert restores a copy of the ledger made a while before, or none.
func (p *Player) revert(ctx context.Context, d Disturbance) error {
	htcd := p.Lab.Part("htcd")
	if d.Do == doForget {
		if err := htcd.Stop(ctx); err != nil {
			return err
		}
		if _, err := p.sh(ctx, `find "$1" -mindepth 1 -delete`, p.ledgerDir()); err != nil {
			return err
		}
		return htcd.Start(ctx)
	}
	if err := htcd.Stop(ctx); err != nil { // for a consistent copy
		return err
	}
	_, err := p.sh(ctx, `rm -rf "$2"; cp -a "$1" "$2"`, p.ledgerDir(), p.olderLedger())
	if err != nil {
		return err
	}
	if err := htcd.Start(ctx); err != nil {
		return err
	}
	sleep(ctx, d.For)
	if err := htcd.Stop(ctx); err != nil {
		return err
	}
	// The volume may be nearly full.
	err = p.until(ctx, func() error {
		_, err := p.sh(
			ctx,
			`find "$1" -mindepth 1 -delete; cp -a "$2/." "$1"; rm -rf "$2"`,
			p.ledgerDir(),
			p.olderLedger(),
		)
		return err
	})
	if err != nil {
		return err
	}
	err = htcd.Start(ctx)
	p.Log("%s: over", d)
	return err
}

func (p *Player) ledgerDir() string { return filepath.Dir(p.Lab.Ledger()) }

func (p *Player) olderLedger() string { return p.Lab.Path("older-ledger") }
