package chaos

import (
	"fmt"
	"slices"
)

// newest returns the ad of each job, by its number: that of the last attempt that has sent it, of which the first one
// in this order has sent all. It also returns the numbers that the last attempt has sent.
func (t *trialOf) newest(attempt, cluster int) (ads map[int]Ad, sent []int) {
	ads = map[int]Ad{}
	for ; attempt > 0; attempt-- {
		whole := false
		for _, ad := range t.e.Ads {
			if ad.UID != t.UID || ad.Launcher || ad.Attempt != attempt || cluster > 0 && ad.ClusterID != cluster {
				continue
			}
			whole = whole || ad.Own == nil
			if cluster > 0 {
				sent = append(sent, ad.number())
			}
			if _, later := ads[ad.number()]; !later {
				ads[ad.number()] = ad
			}
		}
		if whole {
			break
		}
		cluster = 0 // those of earlier attempts are known to have one each
	}
	slices.Sort(sent)
	return ads, sent
}

// onlyFailed checks that the jobs that run again are those that have failed.
func (t *trialOf) onlyFailed(sent []int) {
	var failed []int
	for proc, code := range t.spec().Codes {
		if code != t.spec().Success {
			failed = append(failed, proc)
		}
	}
	if got, want := fmt.Sprint(sent), fmt.Sprint(failed); got != want {
		t.find(Doubled, "the jobs %s run again instead of %s", got, want)
	}
}
