package results

import (
	"math"
	"slices"
)

// Summary describes values. Of none all of it is 0.
type Summary struct {
	Count    int
	Mean     float64
	Variance float64 // of a sample: divided by Count-1
	Min      float64
	Max      float64
	IQR      float64 // between the first and the third quartile
	MAD      float64 // the median of the distances to the median
}

// Summarize sums up values, which it sorts and changes.
func Summarize(values []float64) Summary {
	s := Summary{Count: len(values)}
	if s.Count == 0 {
		return s
	}
	var squares float64 // by Welford: no small difference of large sums
	for i, x := range values {
		d := x - s.Mean
		s.Mean += d / float64(i+1)
		squares += d * (x - s.Mean)
	}
	if s.Count > 1 {
		s.Variance = squares / float64(s.Count-1)
	}
	slices.Sort(values)
	s.Min, s.Max = values[0], values[s.Count-1]
	s.IQR = quantile(values, 0.75) - quantile(values, 0.25)
	median := quantile(values, 0.5)
	for i, x := range values {
		values[i] = math.Abs(x - median)
	}
	slices.Sort(values)
	s.MAD = quantile(values, 0.5)
	return s
}

// quantile interpolates linearly between sorted values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
