package chaos

import (
	"fmt"
	"strings"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Shape is a kind of HTCJob and what is done to it.
type Shape struct {
	Name    string
	Place   Place
	Spec    Spec
	Edited  *Spec // what it is changed to as soon as the apiserver accepts it
	Deleted bool  // while it is on its way or running
	Again   bool  // once it has ended, those of its jobs that have failed run once more
	Paused  bool  // suspended while it is on its way or running, and resumed a while later
}

// Spec is what an HTCJob runs and how that must end.
type Spec struct {
	Queue int
	// Items, or Table, a key of the ConfigMap, have the variables of each job.
	Items   []v1alpha1.Item
	Table   string
	AtOnce  int      // made by a factory, so many at a time; 0: sent as one cluster
	Inputs  []string // keys of the ConfigMap
	Source  string
	Options string
	// Codes are the exit codes that HTCondor must see, one per proc; none if the description is refused.
	Codes []int
	// Success is the code that counts as success.
	Success int
	// Leaves is the output of each job: it must be kept completely.
	Leaves []Leaf
}

// Leaf is a file that a job leaves.
type Leaf struct {
	Name string
	Text string
	// Begins is for output to which htcd's wrapper may append, as it does if no callback gets through.
	Begins bool
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
		Queue:   2,
		Source:  "exit $(( 3 + $1 ))",
		Options: "max_retries = 1\nsuccess_exit_code = 3",
		Codes:   []int{3, 4},
		Success: 3,
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
	{Name: "odd names", Spec: leaving(
		Leaf{
			Name: "a b",
			Text: "1",
		},
		Leaf{Name: "it's", Text: "2"},
		Leaf{Name: `say "hi"`, Text: "3"},
		Leaf{Name: "größe 数据 🙂", Text: "4"},
		Leaf{Name: "-rf", Text: "5"},
		Leaf{Name: "#x;y&z|w", Text: "6"},
		Leaf{Name: "$(HOME) $ENV(X) $$(Y)", Text: "7"},
		Leaf{Name: "%s%n", Text: "8"},
		Leaf{Name: "[a]*?", Text: "9"},
		Leaf{Name: "=x", Text: "10"},
		Leaf{Name: "a,b", Text: "11"},
		Leaf{Name: ", ", Text: "12"},
		Leaf{Name: "two\nlines", Text: "13"},
	)},
	// It is held when it ends, and released until it has been started twice.
	{Name: "big ads", Spec: Spec{
		Queue: 2, Source: "head -c 300000 /dev/zero | tr '\\0' x >&2; exit $1", Codes: []int{0, 1},
		Options: "+JobDescription = \"" + strings.Repeat(
			"d",
			3500,
		) + "\"\n+WantOS = \"" + strings.Repeat(
			"w",
			3500,
		) + "\"\n" +
			"on_exit_hold = NumJobStarts < 2\non_exit_hold_reason = \"" + strings.Repeat(
			"r",
			1000,
		) + "\"\nperiodic_release = true\n",
		Leaves: []Leaf{{Name: stderr, Text: strings.Repeat("x", 300000), Begins: true}},
	}},
	{Name: "items", Spec: Spec{
		Queue:  3,
		Items:  []v1alpha1.Item{{"CODE": "3"}, {"CODE": "0"}, {"CODE": "5"}},
		Source: "exit $CODE",
		Codes:  []int{3, 0, 5},
	}},
	{Name: "items of a table", Paused: true, Spec: Spec{
		Queue: 4, Table: tableKey, Source: "sleep 3; exit $(( $CODE + $MORE ))", Codes: []int{1, 0, 7, 2},
	}},
	{
		Name: "an input",
		Spec: Spec{
			Queue:  2,
			Inputs: []string{numbersKey},
			Source: "cp " + numbersKey + " copy; exit $(wc -l <copy)",
			Codes:  []int{20, 20},
			Leaves: []Leaf{{Name: "copy", Text: numbers}},
		},
		Edited: &Spec{
			Queue: 2, Items: []v1alpha1.Item{{"LINES": "7"}, {"LINES": "20"}}, Inputs: []string{numbersKey},
			Source: "head -n $LINES " + numbersKey + " | wc -l >counted; exit $(cat counted)", Codes: []int{7, 20},
		},
	},
	{Name: "some jobs run again", Again: true, Spec: Spec{
		Queue: 5, Items: []v1alpha1.Item{{"CODE": "0"}, {"CODE": "3"}, {"CODE": "0"}, {"CODE": "4"}, {"CODE": "5"}},
		Source: "echo $1 $HTCPROCID $CODE >which; exit $CODE", Codes: []int{0, 3, 0, 4, 5},
	}},
	{Name: "a file that nobody may read, and a core file", Spec: Spec{
		Queue:  2,
		Source: `echo secret >keep; chmod 000 keep; printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\4\0' >core.7; exit $(( $1 * 3 ))`,
		Codes:  []int{0, 3},
		Leaves: []Leaf{{Name: "keep", Text: "secret\n"}},
	}},
	{Name: "suspended and resumed", Paused: true, Spec: Spec{Queue: 2, Source: "sleep 6; exit $1", Codes: []int{0, 1}}},
	{Name: "from a namespace with an account", Place: Place{Own: true}, Spec: Spec{
		Queue: 2, Source: "echo $1 >number; sleep 2; exit $1", Codes: []int{0, 1},
	}, Edited: &Spec{Queue: 1, Source: "exit 4", Codes: []int{4}}},
	{Name: "to one of two schedds", Place: Place{Either: true}, Spec: Spec{
		Queue: 2, Source: "sleep 4; exit $1", Codes: []int{0, 1},
	}, Edited: &Spec{Queue: 1, Source: "exit 4", Codes: []int{4}}},
	{Name: "deleted, at one of two schedds", Place: Place{Either: true}, Deleted: true, Spec: Spec{
		Queue: 1, Source: "sleep 300", Codes: []int{0},
	}},
	{Name: "deleted, from a namespace with an account", Place: Place{Own: true}, Deleted: true, Spec: Spec{
		Queue: 1, Source: "sleep 300", Codes: []int{0},
	}},
	{
		Name: "a factory",
		Spec: Spec{Queue: 8, AtOnce: 3, Source: "sleep 1; exit $(( $1 % 4 == 3 ))", Codes: every(8, func(proc int) int {
			if proc%4 == 3 {
				return 1
			}
			return 0
		})},
	},
	{Name: "a factory of items, some of which run again", Again: true, Spec: Spec{
		Queue:  5,
		AtOnce: 2,
		Items:  []v1alpha1.Item{{"CODE": "0"}, {"CODE": "3"}, {"CODE": "0"}, {"CODE": "4"}, {"CODE": "5"}},
		Source: "echo $HTCPROCID >which; exit $CODE",
		Codes:  []int{0, 3, 0, 4, 5},
	}},
	{Name: "a factory suspended and resumed", Paused: true, Spec: Spec{
		Queue: 8, AtOnce: 3, Source: "sleep 3; exit $1", Codes: every(8, func(proc int) int { return proc }),
	}},
	{Name: "a factory deleted", Deleted: true, Spec: Spec{
		Queue: 5000, AtOnce: 5, Source: "sleep 300", Codes: every(5000, func(int) int { return 0 }),
	}},
	{Name: "deleted", Deleted: true, Spec: Spec{Queue: 3, Source: "sleep 300", Codes: []int{0, 0, 0}}},
	{Name: "deleted at its end", Deleted: true, Spec: Spec{Queue: 1, Source: "sleep 1; exit 2", Codes: []int{2}}},
}

func shapeNames() (names []string) {
	for _, shape := range Shapes {
		names = append(names, shape.Name)
	}
	return names
}

// A job's streams among its files.
const (
	stdout = "_condor_stdout"
	stderr = "_condor_stderr"
)

// leaving returns two jobs that leave these files.
func leaving(files ...Leaf) Spec {
	var source strings.Builder
	for _, f := range files {
		fmt.Fprintf(&source, "printf %%s '%s' > './%s'\n", f.Text, strings.ReplaceAll(f.Name, "'", `'\''`))
	}
	source.WriteString("echo written")
	return Spec{
		Queue:  2,
		Source: source.String(),
		Codes:  []int{0, 0},
		Leaves: append(files, Leaf{Name: stdout, Text: "written\n"}),
	}
}

func every(n int, code func(proc int) int) []int {
	codes := make([]int, n)
	for proc := range codes {
		codes[proc] = code(proc)
	}
	return codes
}

// The ConfigMap that shapes read, which is made at the beginning.
const (
	configMap  = "chaos"
	tableKey   = "table.csv"
	numbersKey = "numbers"
)

var numbers = strings.Repeat("one line of many\n", 20)

var configMapData = map[string]string{tableKey: "CODE,MORE\n1,0\n0,0\n3,4\n0,2\n", numbersKey: numbers}

// object returns the HTCJob's spec.
func (s Spec) object(place Place, pool *v1alpha1.Pool) v1alpha1.HTCJobSpec {
	spec := v1alpha1.HTCJobSpec{
		Script:  v1alpha1.Script{Program: place.script(s.Source + "\n")},
		Pool:    pool,
		HTCOpts: s.Options,
		Items:   s.Items,
	}
	if s.AtOnce > 0 {
		spec.Parallelism = new(int32(s.AtOnce))
		spec.Script.Program = inDirectory(s.Source + "\n") // many jobs, maybe alice's
	}
	switch {
	case s.Table != "":
		spec.ItemsFrom = &v1alpha1.ItemsFrom{ConfigMapKeyRef: v1alpha1.KeyRef{Name: configMap, Key: s.Table}}
	case len(s.Items) == 0:
		spec.Script.Queue = new(int32(s.Queue))
	}
	for _, key := range s.Inputs {
		spec.Inputs = append(
			spec.Inputs,
			v1alpha1.Input{Name: key, ConfigMapKeyRef: &v1alpha1.KeyRef{Name: configMap, Key: key}},
		)
	}
	return spec
}

func trialName(number int) string { return fmt.Sprintf("trial-%03d", number) }
