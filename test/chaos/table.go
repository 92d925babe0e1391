package chaos

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes a line per shape with the number of its trials that have each fault, and a total.
func Print(w io.Writer, sent []Sent, findings []Finding) error {
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
	for _, s := range sent {
		trials[s.Trial.Shape.Name]++
		trials[all]++
	}
	for _, f := range findings {
		count(f.Shape, f)
		count(all, f)
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "SHAPE\tTRIALS\tDOUBLED\tLOST\tWRONG\tLEFT OVER")
	names := []string{}
	for _, shape := range Shapes {
		names = append(names, shape.Name)
	}
	for _, name := range append(names, all) {
		fmt.Fprintf(table, "%s\t%d", name, trials[name])
		for _, f := range faults {
			fmt.Fprintf(table, "\t%d", len(faulty[name][f]))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
