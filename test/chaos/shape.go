package chaos

import (
	"fmt"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// Shape is a kind of HTCJob and what is done to it.
type Shape struct {
	Name    string
	Spec    Spec
	Edited  *Spec // what it is changed to as soon as the apiserver takes it
	Deleted bool  // while it is on its way or running
	Paused  bool  // suspended while it is on its way or running, and resumed a while later
}

// Spec is what an HTCJob runs and how that must end.
type Spec struct {
	Queue   int
	Source  string
	Options string
	// Codes are the exit codes that HTCondor must see, one for each proc; none when the description is refused.
	Codes []int
	// Success is the code that counts as success.
	Success int
}

func (s Spec) refused() bool { return len(s.Codes) == 0 }

// Shapes are what the trials are drawn from.
var Shapes = []Shape{
	{Name: "one job", Spec: Spec{Queue: 1, Source: "exit 0", Codes: []int{0}}},
	{Name: "one that fails", Spec: Spec{Queue: 1, Source: "sleep 1; exit 3", Codes: []int{3}}},
	{Name: "one that sleeps", Spec: Spec{Queue: 1, Source: "sleep 8", Codes: []int{0}}},
	{Name: "three jobs", Spec: Spec{Queue: 3, Source: "sleep 1; exit $(( $1 * 7 ))", Codes: []int{0, 7, 14}}},
	{Name: "twenty jobs", Spec: Spec{Queue: 20, Source: "exit $(( $1 % 4 == 3 ))", Codes: every(20, func(proc int) int {
		if proc%4 == 3 {
			return 1
		}
		return 0
	})}},
	{Name: "killed by a signal", Spec: Spec{Queue: 2, Source: "bash -c 'kill -9 $$'; exit $?", Codes: []int{137, 137}}},
	{Name: "retried", Spec: Spec{Queue: 1, Source: "exit 5", Options: "max_retries = 2", Codes: []int{5}}},
	{Name: "another success", Spec: Spec{
		Queue: 2, Source: "exit $(( 3 + $1 ))", Options: "max_retries = 1\nsuccess_exit_code = 3", Codes: []int{3, 4}, Success: 3,
	}},
	{Name: "refused by htcd", Spec: Spec{Queue: 2, Source: "exit 0", Options: "executable = /bin/sh"}},
	{Name: "refused by the schedd", Spec: Spec{Queue: 1, Source: "exit 0", Options: `+ProjectName = "forbidden"`}},
	{
		Name:   "refused, then mended",
		Spec:   Spec{Queue: 1, Source: "exit 0", Options: "requirements = ((("},
		Edited: &Spec{Queue: 1, Source: "exit 0", Codes: []int{0}},
	},
	{
		Name:   "edited",
		Spec:   Spec{Queue: 1, Source: "exit 4", Codes: []int{4}},
		Edited: &Spec{Queue: 2, Source: "sleep 1; exit $1", Codes: []int{0, 1}},
	},
	{Name: "suspended and resumed", Paused: true, Spec: Spec{Queue: 2, Source: "sleep 6; exit $1", Codes: []int{0, 1}}},
	{Name: "deleted", Deleted: true, Spec: Spec{Queue: 3, Source: "sleep 300", Codes: []int{0, 0, 0}}},
	{Name: "deleted at its end", Deleted: true, Spec: Spec{Queue: 1, Source: "sleep 1; exit 2", Codes: []int{2}}},
}

func every(n int, code func(proc int) int) []int {
	codes := make([]int, n)
	for proc := range codes {
		codes[proc] = code(proc)
	}
	return codes
}

// object is what stands in the HTCJob's spec.
func (s Spec) object() v1alpha1.HTCJobSpec {
	n := int32(s.Queue)
	return v1alpha1.HTCJobSpec{
		Script:  v1alpha1.Script{Image: "centos", Command: "bash", Source: s.Source + "\n", Queue: &n},
		HTCOpts: s.Options,
	}
}

func trialName(number int) string { return fmt.Sprintf("trial-%03d", number) }
