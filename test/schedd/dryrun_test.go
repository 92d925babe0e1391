package schedd_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"htc.cern.ch/htcd/internal/classad"
)

// dryRun asks the real condor_submit what the description dir/job.sub means and returns one ad per proc. After the
// first of a cluster they contain only differences.
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
	var ads []classad.Ad
	for block := range strings.SplitSeq(string(text), "\n\n") {
		var lines strings.Builder
		for l := range strings.Lines(block) {
			lines.WriteString(strings.Replace(l, "=", " = ", 1))
		}
		ad, err := classad.ParseAd(lines.String())
		if err != nil {
			return nil, err
		}
		if len(ad) > 0 {
			ads = append(ads, ad)
		}
	}
	return ads, nil
}
