package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Cache is a directory of artifacts.
type Cache struct {
	Dir string
	// Log takes one line of progress.
	Log func(format string, args ...any)
}

// Default returns the current user's cache.
func Default(log func(string, ...any)) (*Cache, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(base, "htcd")
	return &Cache{Dir: dir, Log: log}, os.MkdirAll(dir, 0o755)
}

// artifact returns the directory made by build from recipe, building it if it does not exist. What build writes into
// its directory is kept only if it returns nil.
func (c *Cache) artifact(
	ctx context.Context,
	name, recipe string,
	build func(ctx context.Context, dir string) error,
) (string, error) {
	sum := sha256.Sum256([]byte(recipe))
	final := filepath.Join(c.Dir, name+"-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	unlock, err := c.lock(ctx, final+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}

	// The lock makes the name ours alone; whatever exists there is from a killed build.
	building := final + ".building"
	if err := os.RemoveAll(building); err != nil {
		return "", err
	}
	if err := os.Mkdir(building, 0o755); err != nil {
		return "", err
	}
	began := time.Now()
	c.Log("%s: building (once for this machine)", name)
	if err := build(ctx, building); err != nil {
		return "", errors.Join(fmt.Errorf("build %s: %w", name, err), os.RemoveAll(building))
	}
	if err := os.Rename(building, final); err != nil {
		return "", err
	}
	c.Log("%s: built in %s", name, time.Since(began).Round(100*time.Millisecond))
	return final, nil
}

// lock waits for the file lock, which the kernel releases when its holder ends in any way.
func (c *Cache) lock(ctx context.Context, file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for said := false; ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, err
		}
		if !said {
			c.Log("waiting for somebody else's build: %s", filepath.Base(file))
			said = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
