package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"

	"htc.cern.ch/htcd/test/lab/cache"
	"htc.cern.ch/htcd/test/lab/sbom"
)

// image builds htcd's image and records its contents.
func image(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	clone := flags.String("clone", ".", "directory of htcd's sources")
	version := flags.String("version", "dev", "its tag")
	revision := flags.String("revision", "unknown", "the commit it is built from")
	created := flags.String("created", "unknown", "when that was")
	architecture := flags.String("architecture", runtime.GOARCH, "what it is for: amd64 or arm64")
	fresh := flags.Bool("fresh", false, "take nothing from earlier builds")
	archive := flags.String("archive", "bin/htcd-image.tar", "where to write it; what is in it is written beside")
	if err := flags.Parse(args); err != nil {
		return err
	}
	p := newProgress()
	c, err := cache.Default(p.printf)
	if err != nil {
		return err
	}
	o := cache.Operator{
		Version:      *version,
		Revision:     *revision,
		Created:      *created,
		Architecture: *architecture,
		Fresh:        *fresh,
	}
	if o.Clone, err = filepath.Abs(*clone); err != nil {
		return err
	}
	if o.Archive, err = filepath.Abs(*archive); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.Archive), 0o755); err != nil {
		return err
	}
	if err := c.BuildOperator(ctx, o); err != nil {
		return err
	}
	list, err := sbom.OfArchive(o.Archive)
	if err != nil {
		return err
	}
	file, err := os.Create(o.Archive + ".cdx.json")
	if err != nil {
		return err
	}
	if err := errors.Join(list.Write(file), file.Close()); err != nil {
		return err
	}
	p.printf("image: htcd:%s for %s in %s, %d MB", o.Version, o.Architecture, o.Archive, list.Size>>20)
	p.printf("image: %d parts listed in %s", list.Parts(), file.Name())
	return nil
}
