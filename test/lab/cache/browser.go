package cache

import (
	"context"
	_ "embed"
	"os"
	"os/exec"
)

//go:embed browser.sh
var browserScript string

const browserSuite = "trixie"

// Browser returns the directory of a Debian root with Chromium. It is apart from that of the parts, which no browser
// concerns.
func (c *Cache) Browser(ctx context.Context) (string, error) {
	return c.artifact(
		ctx,
		"chromium-"+browserSuite,
		debianScript+browserScript+browserSuite,
		func(ctx context.Context, dir string) error {
			if err := c.HostPackages(ctx); err != nil {
				return err
			}
			mirror, err := debianMirror("/etc/apt", os.Getenv("HTCD_DEBIAN_MIRROR"))
			if err != nil {
				return err
			}
			cmd := exec.Command(
				"/bin/sh",
				"-c",
				debianScript+browserScript,
				"browser",
				dir,
				browserSuite,
				mirror,
				debianKeyring,
			)
			return c.run(ctx, namespaced(cmd), "chromium")
		},
	)
}
