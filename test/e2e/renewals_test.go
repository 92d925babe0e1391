//go:build renewals

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// Every 5 s for 10 minutes the script writes the time and the digest of its proxy.
const readings = `
start=$(date +%s)
while now=$(date +%s) && [ $((now - start)) -lt 600 ]; do
	echo "$now $(sha256sum <"$X509_USER_PROXY" | cut -d ' ' -f 1)" >>readings
	sleep 5
done
`

// A job of 10 minutes outlives two proxies of 6 minutes: each is renewed when it is some 4 minutes old, and at no time
// does the job find one that has ended.
func TestAJobOfTenMinutesSurvivesTwoRenewals(t *testing.T) {
	b := trial.New(t)
	const life = 6 * time.Minute
	ends := map[string]time.Time{} // by digest
	renew := func() string {
		end := time.Now().Add(life)
		text := proxy(t, end)
		ends[digestOf(text)] = end
		jobSecret(b, "atlas-proxy", "x509up", text)
		return digestOf(text)
	}
	digest := renew()
	running := "running-" + b.Namespace
	b.Create("long", "set -e; : >readings; touch "+running+readings, credentials("atlas atlas-proxy x509up X509Proxy"))
	var scratch, written string
	for renewals := 0; ; renewals++ {
		for least := 1; least <= 45; least += 4 {
			b.Eventually(func() bool {
				if scratch == "" {
					scratch = b.ScratchWith(running)
				}
				text, _ := os.ReadFile(filepath.Join(scratch, "readings"))
				written = string(text)
				return strings.Count(written, digest) >= least
			}, func() string {
				return fmt.Sprintf(
					"renewal %d: %s was read less than %d times:\n%s\n%s",
					renewals,
					digest,
					least,
					written,
					b.Kubectl("describe", "htcjob", "long"),
				)
			})
			if renewals == 2 {
				break
			}
		}
		if renewals == 2 {
			break
		}
		digest = renew()
	}
	for minute := 0; minute < 10 && !b.Get("long").Status.Phase.Terminal(); minute++ {
		before := strings.Count(written, "\n")
		b.Eventually(func() bool {
			text, err := os.ReadFile(filepath.Join(scratch, "readings"))
			written = string(text)
			return err != nil || strings.Count(written, "\n") >= before+12
		}, func() string { return "the job has stopped reading:\n" + written })
	}
	job := b.Fetched("long")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)

	var digests []string
	var first, last int64
	for line := range strings.Lines(b.File(job, 0, "readings")) {
		var at int64
		var digest string
		_, err := fmt.Sscan(line, &at, &digest)
		require.NoError(t, err)
		require.Contains(t, ends, digest)
		require.Less(t, at, ends[digest].Unix(), "the proxy had ended")
		if len(digests) == 0 || digests[len(digests)-1] != digest {
			digests = append(digests, digest)
			t.Logf("at %d: %s", at, digest)
		}
		if first == 0 {
			first = at
		}
		last = at
	}
	require.Len(t, digests, 3)
	require.GreaterOrEqual(t, last-first, int64(590))
}
