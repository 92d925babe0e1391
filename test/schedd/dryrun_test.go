package schedd_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
)

// dryRun asks the real condor_submit what the description dir/job.sub means, and returns one ad for each proc. Those
// after the first of a cluster hold only what differs.
func dryRun(ctx context.Context, dir string, env ...string) ([]classad.Ad, error) {
	file := filepath.Join(dir, "job.ads")
	cmd := exec.CommandContext(ctx, "condor_submit", "-dry-run", file, "job.sub")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if _, err := cmd.Output(); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	// It writes Name=value, with an empty line between ads.
	var long strings.Builder
	for l := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(l, "=")
		if !ok {
			long.WriteString(l)
			continue
		}
		long.WriteString(name + " = " + value)
	}
	var ads []classad.Ad
	return ads, classad.ReadLong(strings.NewReader(long.String()), func(a classad.Ad) error { ads = append(ads, a); return nil })
}
