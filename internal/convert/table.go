package convert

import (
	"bytes"
	"encoding/csv"
	"strings"
	"unicode"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Limits of items in the object itself, and of the variables of one item anywhere.
const (
	maxItems     = 1000
	maxVariables = 2000
	maxItemBytes = 64 << 10
	maxNames     = 16
)

// itemSize is what a variable of an item counts.
func itemSize(name, value string) int { return len(name) + len(value) + 2 }

// isUnfit reports whether a value cannot be a variable's.
func isUnfit(value string) bool {
	return strings.ContainsFunc(value, unicode.IsControl) || len(value) > 4096
}

// inObject reports whether so many items, with so many variables each, fit into the object itself.
func inObject(items, names, size int) bool {
	return items <= maxItems && items*names <= maxVariables && size <= maxItemBytes
}

// table packs a table of variables, with a row for each item. It returns the bytes of the table, also with an error.
func (b *bundler) table(names []string, rows [][]string, ref *v1alpha1.KeyRef) (int, error) {
	var text bytes.Buffer
	if err := csv.NewWriter(&text).WriteAll(append([][]string{names}, rows...)); err != nil {
		return text.Len(), err
	}
	p := &place{}
	if err := b.add(p, "items.csv", text.Bytes()); err != nil {
		return text.Len(), err
	}
	ref.Key = p.key
	p.pack.refs = append(p.pack.refs, ref)
	return text.Len(), nil
}
