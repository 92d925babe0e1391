package items

import "fmt"

// mostListed is the most bytes of a List.
const mostListed = 256 << 10

// List makes one item of each element of a list in a spec, which errors call items.
func List[V ~map[string]S, S ~string](list []V, check Check) ([]string, error) {
	c := collector{most: Most, check: check}
	for i, variables := range list {
		plain := make(map[string]string, len(variables))
		for name, value := range variables {
			plain[name] = string(value)
		}
		if err := c.add(plain); err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	if c.text.Len() > mostListed {
		return nil, fmt.Errorf(
			"items: expected at most %d KiB, found %d bytes: put them into a ConfigMap and name it in itemsFrom",
			mostListed>>10,
			c.text.Len(),
		)
	}
	return c.items(), nil
}
