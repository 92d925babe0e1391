package items

import "fmt"

// List makes one item of each element of spec.items.
func List(list []map[string]string, check Check) ([]Item, error) {
	c := collector{check: check}
	for i, variables := range list {
		if err := c.add(variables); err != nil {
			return nil, fmt.Errorf("spec.items[%d]: %w", i, err)
		}
	}
	return c.items, nil
}
