package dagsteps

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"htc.cern.ch/htcd/internal/convert/dagfile"
)

func read(t *testing.T, text string) *dagfile.DAG {
	t.Helper()
	d, err := dagfile.Read("", "x.dag", func(string) ([]byte, error) { return []byte(text), nil })
	require.NoError(t, err)
	return d
}

// show has a line for each step: its name, its nodes with | between sequences, and the steps that it needs.
func show(f *Flow, err error) string {
	if err != nil {
		return "! " + err.Error() + "\n"
	}
	var b strings.Builder
	for _, s := range f.Steps {
		b.WriteString(s.Name + ":")
		for i, sequence := range s.Nodes {
			if i > 0 {
				b.WriteString(" |")
			}
			for _, n := range sequence {
				b.WriteString(" " + n.Name)
			}
		}
		for i, k := range s.Needs {
			b.WriteString([]string{" after ", ", "}[min(i, 1)] + f.Steps[k].Name)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestSteps(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/steps.txtar")
	require.NoError(t, err)
	for _, f := range ar.Files {
		t.Run(f.Name, func(t *testing.T) {
			input, want, ok := strings.Cut(string(f.Data), "=>\n")
			require.True(t, ok)
			want, wantEach, ok := strings.Cut(want, "each\n")
			d := read(t, input)
			require.Equal(t, want, show(of(d, false)))
			if ok {
				require.Equal(t, wantEach, show(of(d, true)))
			}
		})
	}
}

func many(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return b.String()
}

func TestAHundredThousandNodesAreTwoSteps(t *testing.T) {
	f, err := of(read(t, many(50000, "JOB a%[1]d s.sub\nJOB b%[1]d t.sub\nPARENT a%[1]d CHILD b%[1]d")), false)
	require.NoError(t, err)
	require.Len(t, f.Steps, 2)
	require.Equal(t, 50000, f.Sequences)
	require.Equal(t, []int{0}, f.Steps[1].Needs)
}

func TestALongChainHasTooManySteps(t *testing.T) {
	var b strings.Builder
	for i := range 60000 {
		fmt.Fprintf(&b, "JOB n%d s.sub\nPARENT n%d CHILD n%d\n", i, i, i+1)
	}
	_, err := of(read(t, b.String()+"JOB n60000 s.sub\n"), false)
	require.EqualError(t, err, "its 60001 nodes come to 60001 steps, as too few of them run the same submit file at "+
		"the same place of the graph, and an HTCWorkflow may have 50")
}

func TestManyNOOPNodesBetweenManyNodesAreRefused(t *testing.T) {
	text := many(2000, "JOB a%[1]d s.sub\nJOB b%[1]d s.sub\nPARENT a%[1]d CHILD j\nPARENT j CHILD b%[1]d") +
		"JOB j s.sub NOOP\n"
	_, err := of(read(t, text), false)
	require.ErrorContains(t, err, "more than 1,000,000 edges")
}

func TestWord(t *testing.T) {
	for text, want := range map[string]string{
		"left-1": "left-1", "Top": "top", "east+a1": "east-a1", "_x_": "x", "é": "", "a.b/c": "a-b-c",
		strings.Repeat("x", 62) + "-y": strings.Repeat("x", 62),
	} {
		require.Equal(t, want, Word(text))
	}
}

func FuzzOf(f *testing.F) {
	text, err := os.ReadFile("testdata/steps.txtar")
	require.NoError(f, err)
	for _, a := range txtar.Parse(text).Files {
		f.Add(string(a.Data))
	}
	// The steps order the nodes as the graph does.
	f.Fuzz(func(t *testing.T, text string) {
		input, _, _ := strings.Cut(text, "=>\n")
		d, err := dagfile.Read("", "x.dag", func(string) ([]byte, error) { return []byte(input), nil })
		if err != nil {
			return
		}
		for _, each := range []bool{false, true} {
			flow, err := of(d, each)
			if err != nil {
				continue
			}
			ran := map[*dagfile.Node]int{}
			parents := map[string]int{} // of nodes in steps
			for i, s := range flow.Steps {
				require.Len(t, s.Nodes, flow.Sequences)
				for sequence, nodes := range s.Nodes {
					require.Len(t, nodes, len(s.Nodes[0]))
					for _, n := range nodes {
						require.NotContains(t, ran, n)
						ran[n] = sequence
						for _, k := range s.Needs {
							require.Less(t, k, i)
							for _, p := range flow.Steps[k].Nodes[sequence] {
								parents[p.Name+" "+n.Name]++
							}
						}
					}
				}
			}
			g, err := runs(d)
			require.NoError(t, err)
			require.Len(t, ran, len(g.nodes))
			for c, before := range g.parents {
				for _, p := range before {
					key := g.nodes[p].Name + " " + g.nodes[c].Name
					require.Equal(t, 1, parents[key], key)
					delete(parents, key)
				}
			}
			require.Empty(t, parents)
		}
	})
}
