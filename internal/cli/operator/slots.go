package operator

import (
	"fmt"
	"io"
	"text/tabwriter"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/matching"
)

// PrintSlots writes a table of slots.
func PrintSlots(w io.Writer, kinds []matching.Kind) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "SIZE\tMACHINES\tSLOTS\tIDLE\tFREE\tLARGEST FREE")
	for _, k := range kinds {
		fmt.Fprintf(
			table,
			"%s\t%d\t%d\t%d\t%s\t%s\n",
			matching.Describe(k.Size),
			k.Machines,
			k.Slots,
			k.Idle,
			free(k.Free),
			free(k.Largest),
		)
	}
	return table.Flush()
}

// free describes what a job could get. Disks of several machines are not added up.
func free(s schedd.Size) string {
	if s.CPUs == 0 {
		return "-"
	}
	s.Disk = 0
	return matching.Describe(s)
}
