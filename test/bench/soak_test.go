package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASoakIsLevelUnlessItsLastThirdStandsAboveItsSecond(t *testing.T) {
	series := func(rss func(i int) float64) []sample {
		samples := make([]sample, 60)
		for i := range samples {
			samples[i] = sample{at: time.Duration(i) * time.Second, rss: rss(i), files: 30, goroutines: 80, ledger: 1}
		}
		return samples
	}
	for name, c := range map[string]struct {
		samples []sample
		want    []string
	}{
		"nothing moves":                    {series(func(int) float64 { return 60 }), nil},
		"it warms up and then stays":       {series(func(i int) float64 { return 30 + 30*min(1, float64(i)/15) }), nil},
		"it goes up and down":              {series(func(i int) float64 { return 60 + float64(i%10) }), nil},
		"it grows":                         {series(func(i int) float64 { return 60 + float64(i) }), []string{"RSS [MB] from 90 to 110"}},
		"what is small may move by chance": {series(func(i int) float64 { return 5 + float64(i)/20 }), nil},
		"two samples tell nothing":         {series(func(int) float64 { return 60 })[:2], []string{"too few samples to tell"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, judge(c.samples)) })
	}
}
