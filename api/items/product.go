package items

import (
	"fmt"
	"maps"
	"slices"
)

// Count is how many items Product makes, and Most+1 if these are too many.
func Count[V ~[]S, S ~string](parameters map[string]V) int {
	n := 1
	for _, values := range parameters {
		if n *= len(values); n > Most {
			n = Most + 1
		}
	}
	return n
}

// Product makes one item of each combination of the parameters' values, in the order of the names, the last name's
// values changing fastest.
func Product[V ~[]S, S ~string](parameters map[string]V, check Check) ([]string, error) {
	names := slices.Sorted(maps.Keys(parameters))
	for _, name := range names {
		if len(parameters[name]) == 0 {
			return nil, fmt.Errorf("spec.parameters.%s: expected at least one value, found none", name)
		}
		for i, value := range parameters[name] {
			if err := check(name, string(value)); err != nil {
				return nil, fmt.Errorf("spec.parameters.%s[%d]: %w", name, i, err)
			}
		}
	}
	n := Count(parameters)
	if n > Most {
		return nil, fmt.Errorf(
			"spec.parameters: expected at most %d combinations, found more: make it several HTCJobs",
			Most,
		)
	}
	c := collector{most: Most, check: func(string, string) error { return nil }}
	point := make(map[string]string, len(names))
	for i := range n {
		rest := i
		for _, name := range slices.Backward(names) {
			values := parameters[name]
			point[name], rest = string(values[rest%len(values)]), rest/len(values)
		}
		if err := c.add(point); err != nil {
			return nil, fmt.Errorf("spec.parameters, combination %d: %w", i, err)
		}
	}
	return c.items(), nil
}
