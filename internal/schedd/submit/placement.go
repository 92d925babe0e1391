package submit

// Placement says which machines a job prefers.
type Placement string

// The placements; "" and any other have no preference.
const (
	Pack   Placement = "Pack"   // those in use, and of these the fullest, so that whole ones stay free
	Spread Placement = "Spread" // empty ones, and of these the largest
)

// ranks are the submit command for each. A slot that other slots are cut from says in Cpus how many cores are left, and
// in TotalSlotCpus how many it had. The negotiator looks at Rank only between slots that are equal in its own
// NEGOTIATOR_PRE_JOB_RANK.
var ranks = map[Placement]string{
	Pack:   "1000000 * (TARGET.Cpus < TARGET.TotalSlotCpus) - TARGET.Cpus",
	Spread: "1000000 * (TARGET.Cpus >= TARGET.TotalSlotCpus) + TARGET.Cpus",
}

// place adds the placement's rank, unless the user has written one.
func (d Description) place(options []option) ([]option, error) {
	rank, known := ranks[d.Placement]
	_, said := value(options, "rank")
	_, preferred := value(options, "preferences")
	if said || preferred || !known {
		return options, nil
	}
	return append(options, option{"rank", rank}), nil
}
