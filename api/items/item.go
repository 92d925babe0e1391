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

// Limits of a list of items.
const (
	Most         = 1_000_000 // items of an HTCJob
	MostNodes    = 100_000   // items of a step of an HTCWorkflow
	mostNames    = 128       // variables of one item
	mostBytes    = 64 << 10  // of one item
	mostTogether = 32 << 20  // bytes of all items
	mostLabel    = 256       // bytes of a Label
)

// Check is the rule for one variable.
type Check func(name, value string) error

// writeItem checks the variables and writes them as an item.
func writeItem(b *strings.Builder, variables map[string]string, check Check) error {
	if len(variables) == 0 {
		return fmt.Errorf("expected at least one variable, found none")
	}
	if len(variables) > mostNames {
		return fmt.Errorf("expected at most %d variables, found %d", mostNames, len(variables))
	}
	before := b.Len()
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if err := check(name, variables[name]); err != nil {
			return err
		}
		b.WriteString(name + "=" + variables[name] + "\n")
	}
	if size := b.Len() - before; size > mostBytes {
		return fmt.Errorf(
			"expected at most %d KiB, found %d bytes: put them into a file that the script reads",
			mostBytes>>10,
			size,
		)
	}
	return nil
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

// collector gathers items within the limits: in one text, since there can be a million.
type collector struct {
	most  int
	check Check
	text  strings.Builder
	ends  []int32 // of the items in text
}

// expect allocates what a table with this many rows and bytes, and these names, needs at most.
func (c *collector) expect(rows, bytes int, names []string) {
	for _, name := range names {
		bytes += rows * (len(name) + len("="))
	}
	c.text.Grow(min(bytes, mostTogether))
	c.ends = make([]int32, 0, min(rows, c.most))
}

// add appends an item; its errors do not say where it is from.
func (c *collector) add(variables map[string]string) error {
	if len(c.ends) == c.most {
		return fmt.Errorf("expected at most %d items, found more: split the list", c.most)
	}
	if err := writeItem(&c.text, variables, c.check); err != nil {
		return err
	}
	if c.text.Len() > mostTogether {
		return fmt.Errorf(
			"expected at most %d MiB of variables for all jobs together, found more: leave long values to the script",
			mostTogether>>20,
		)
	}
	c.ends = append(c.ends, int32(c.text.Len())) // #nosec G115 -- at most mostTogether
	return nil
}

// items returns them.
func (c *collector) items() []string {
	all, text, start := make([]string, len(c.ends)), c.text.String(), int32(0)
	for i, end := range c.ends {
		all[i], start = text[start:end], end
	}
	return all
}
