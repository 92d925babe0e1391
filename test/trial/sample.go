package trial

import "os"

// Sample returns n of the values, at least two, from the first to the last; with TEST_ALL, which make test-all sets,
// all.
func Sample[T any](n int, values ...T) []T {
	if n >= len(values) || os.Getenv("TEST_ALL") != "" {
		return values
	}
	some := make([]T, n)
	for i := range some {
		some[i] = values[i*(len(values)-1)/(n-1)]
	}
	return some
}
