package chaos

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes a line per shape with the number of its trials that have each fault, and a total. sent has the shape of
// each trial.
func Print(w io.Writer, shapes, sent []string, findings []Finding) error {
	faults := []Fault{Doubled, Lost, Wrong, LeftOver}
	const all = "all"
	trials := map[string]int{}
	faulty := map[string]map[Fault]map[string]bool{}
	count := func(shape string, f Finding) {
		if faulty[shape] == nil {
			faulty[shape] = map[Fault]map[string]bool{}
		}
		if faulty[shape][f.Fault] == nil {
			faulty[shape][f.Fault] = map[string]bool{}
		}
		faulty[shape][f.Fault][f.Trial] = true
	}
	for _, shape := range sent {
		trials[shape]++
		trials[all]++
	}
	for _, f := range findings {
		count(f.Shape, f)
		count(all, f)
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "SHAPE\tTRIALS\tDOUBLED\tLOST\tWRONG\tLEFT OVER")
	for _, name := range append(shapes, all) {
		fmt.Fprintf(table, "%s\t%d", name, trials[name])
		for _, f := range faults {
			fmt.Fprintf(table, "\t%d", len(faulty[name][f]))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
