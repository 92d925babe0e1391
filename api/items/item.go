package items

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of what one HTCJob may make.
const (
	Most         = 100_000  // items
	mostNames    = 128      // variables of one item
	mostBytes    = 64 << 10 // of one item
	mostTogether = 16 << 20 // bytes of all items
	mostLabel    = 256      // bytes of a Label
)

// Check is the rule for one variable.
type Check func(name, value string) error

// newItem checks the variables and writes them as an item.
func newItem(variables map[string]string, check Check) (string, error) {
	if len(variables) == 0 {
		return "", fmt.Errorf("expected at least one variable, found none")
	}
	if len(variables) > mostNames {
		return "", fmt.Errorf("expected at most %d variables, found %d", mostNames, len(variables))
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if err := check(name, variables[name]); err != nil {
			return "", err
		}
		b.WriteString(name + "=" + variables[name] + "\n")
	}
	if b.Len() > mostBytes {
		return "", fmt.Errorf(
			"expected at most %d KiB, found %d bytes: put them into a file that the script reads",
			mostBytes>>10,
			b.Len(),
		)
	}
	return b.String(), nil
}

// Label names the job of an item in a line for people: "ENERGY=13000 SEED=2", at most 256 bytes. Values with blanks or
// unusual characters are quoted.
func Label(item string) string {
	var words []string
	for line := range strings.Lines(item) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if strings.ContainsFunc(value, unusual) {
			value = strconv.Quote(value)
		}
		words = append(words, name+"="+value)
	}
	return shorten(strings.Join(words, " "))
}

func unusual(r rune) bool {
	return r == ' ' || r == '"' || !unicode.IsGraphic(r) || r == utf8.RuneError
}

func shorten(s string) string {
	if len(s) <= mostLabel {
		return s
	}
	cut := mostLabel - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// collector gathers items within the limits.
type collector struct {
	items []string
	bytes int
	check Check
}

// add appends an item; its errors do not say where it is from.
func (c *collector) add(variables map[string]string) error {
	if len(c.items) == Most {
		return fmt.Errorf("expected at most %d items, found more: make it several HTCJobs", Most)
	}
	item, err := newItem(variables, c.check)
	if err != nil {
		return err
	}
	if c.bytes += len(item); c.bytes > mostTogether {
		return fmt.Errorf(
			"expected at most %d MiB of variables for all jobs together, found more: make it several HTCJobs, or leave long values to the script",
			mostTogether>>20,
		)
	}
	c.items = append(c.items, item)
	return nil
}
