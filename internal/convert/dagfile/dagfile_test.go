package dagfile

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// in reads files of an archive.
func in(ar *txtar.Archive) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		for _, f := range ar.Files {
			if f.Name == name {
				return f.Data, nil
			}
		}
		return nil, os.ErrNotExist
	}
}

// show prints a DAG, or what is wrong with it.
func show(d *DAG, err error) string {
	if err != nil {
		return "! " + err.Error() + "\n"
	}
	var b strings.Builder
	for _, n := range d.Nodes {
		fmt.Fprintf(&b, "%s %s %s %q", n.Place, n.Kind, n.Name, n.Submit)
		for _, more := range []struct {
			there bool
			text  string
		}{
			{n.Dir != "", "dir " + n.Dir},
			{n.Noop, "noop"},
			{n.Done, "done"},
			{n.Retries > 0, fmt.Sprintf("retries %d", n.Retries)},
			{n.UnlessExit != 0, fmt.Sprintf("unless %d", n.UnlessExit)},
			{n.Abort != nil, abortOf(n)},
			{n.Priority != 0, fmt.Sprintf("priority %d", n.Priority)},
			{n.Category != "", "category " + n.Category},
		} {
			if more.there {
				b.WriteString(" " + more.text)
			}
		}
		b.WriteString("\n")
		for _, v := range n.Vars {
			fmt.Fprintf(&b, "  %s=%q", v.Name, v.Value)
			if v.Append {
				b.WriteString(" appended")
			}
			b.WriteString("\n")
		}
		if n.Description != nil {
			fmt.Fprintf(&b, "  %s %q\n", n.Description.Place, n.Description.Text)
		}
	}
	for _, e := range d.Edges {
		fmt.Fprintf(&b, "%s -> %s", d.Nodes[e.Parent].Name, d.Nodes[e.Child].Name)
		if e.Weak {
			b.WriteString(" weak")
		}
		b.WriteString("\n")
	}
	var limits []string
	for category, n := range d.Limits {
		limits = append(limits, fmt.Sprintf("at most %d of %s\n", n, category))
	}
	sort.Strings(limits)
	return b.String() + strings.Join(limits, "")
}

func abortOf(n *Node) string {
	if n.Abort == nil {
		return ""
	}
	return fmt.Sprintf("abort &{%d %d}", n.Abort.Code, n.Abort.Return)
}

func TestGraphs(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, a := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(a), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(a)
			require.NoError(t, err)
			want, err := in(ar)("want")
			require.NoError(t, err)
			require.Equal(t, string(want), show(Read("", "x.dag", in(ar))))
		})
	}
}

func TestStatements(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/statements/statements.txtar")
	require.NoError(t, err)
	for _, f := range ar.Files {
		t.Run(f.Name, func(t *testing.T) {
			input, want, ok := strings.Cut(string(f.Data), "=>\n")
			require.True(t, ok)
			files := &txtar.Archive{Files: []txtar.File{
				{Name: "x.dag", Data: []byte(input)}, {Name: "sp.dag",
					Data: []byte("JOB c s.sub\nJOB d s.sub\nPARENT c CHILD d\n")},
			}}
			require.Equal(t, want, show(Read("", "x.dag", in(files))))
		})
	}
}

// inlined is a DAG with its sub-DAGs.
func inlined(ar *txtar.Archive) (*DAG, error) {
	d, err := Read("", "x.dag", in(ar))
	if err == nil {
		err = d.Inline(in(ar))
	}
	return d, err
}

func TestSubDAGsWhoseFilesAreThereAreSpliced(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/subdag/subdag.txtar")
	require.NoError(t, err)
	want, err := in(ar)("want")
	require.NoError(t, err)
	d, err := inlined(ar)
	require.Equal(t, string(want), show(d, err))
	require.Equal(t, 9, len(d.Statements))
}

func TestASubDAGThatStartsItselfIsRefused(t *testing.T) {
	_, err := inlined(txtar.Parse([]byte("-- x.dag --\nSUBDAG EXTERNAL u y.dag\n-- y.dag --\nSUBDAG EXTERNAL v " +
		"y.dag\n")))
	require.EqualError(t, err, "y.dag:1: SUBDAG v is a DAG that starts itself, and has no end")
}

func TestManySubDAGsAreTooLarge(t *testing.T) {
	ar := &txtar.Archive{}
	for i := range 9 {
		var b strings.Builder
		for k := range 10 {
			fmt.Fprintf(&b, "SUBDAG EXTERNAL u%d %d.dag\n", k, i+1)
		}
		ar.Files = append(ar.Files, txtar.File{Name: fmt.Sprintf("%d.dag", i), Data: []byte(b.String())})
	}
	ar.Files[0].Name = "x.dag"
	ar.Files = append(ar.Files, txtar.File{Name: "9.dag", Data: []byte("JOB a s.sub\n")})
	_, err := inlined(ar)
	require.ErrorContains(t, err, "there are more than 100000 nodes or 1000000 edges: that is too large to convert")
}

func read(text string) (*DAG, error) {
	return Read("", "x.dag", in(&txtar.Archive{Files: []txtar.File{{Name: "x.dag", Data: []byte(text)}}}))
}

func TestEveryStatementIsListedOnceThoughItsFileIsSplicedTwice(t *testing.T) {
	ar := txtar.Parse([]byte("-- x.dag --\nSPLICE s y.dag\nSPLICE t y.dag\n-- y.dag --\nJOB a s.sub \\\n DONE\nDOT " +
		"a.dot\n"))
	d, err := Read("", "x.dag", in(ar))
	require.NoError(t, err)
	require.Equal(t, []Statement{
		{Place{"x.dag", 1}, "SPLICE", "s y.dag"},
		{Place{"x.dag", 2}, "SPLICE", "t y.dag"},
		{Place{"y.dag", 1}, "JOB", "a s.sub DONE"},
		{Place{"y.dag", 3}, "DOT", "a.dot"},
	}, d.Statements)
	require.Len(t, d.Nodes, 2)
}

func TestAFileThatCannotBeReadIsNamed(t *testing.T) {
	_, err := Read("", "x.dag", in(&txtar.Archive{}))
	require.EqualError(t, err, "read x.dag: file does not exist")
}

func TestWhatIsTooLargeIsRefused(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	_, err := read(many(maxNodes, "JOB n%d s.sub\n"))
	require.NoError(t, err)
	_, err = read(many(maxNodes+1, "JOB n%d s.sub\n"))
	require.EqualError(t, err, "x.dag:100001: there are more than 100000 nodes from here on: that is too large to "+
		"convert")

	_, err = read(many(1001, "JOB n%d s.sub\n") + "PARENT" + many(1000, " n%d") + " CHILD" + many(1001, " n%d"))
	require.EqualError(t, err, "x.dag:1002: there are more than 1000000 edges from here on: that is too large to "+
		"convert")

	_, err = read("JOB n s.sub\n" + many(1001, "VARS n v%d=\"1\"\n"))
	require.EqualError(t, err, "x.dag:1002: n has more than 1000 variables: that is too many to convert")

	_, err = read(many(20000, "JOB n%d s.sub\n") + many(900, "VARS ALL_NODES v%d=\"1\"\n"))
	require.ErrorContains(t, err, "come to more than 256 MiB from here on")
}

func TestSplicesOfSplicesAreBounded(t *testing.T) {
	var ar txtar.Archive
	for depth := range 20 {
		var b strings.Builder
		for i := range 10 {
			fmt.Fprintf(&b, "SPLICE s%d %d.dag\n", i, depth+1)
		}
		ar.Files = append(ar.Files, txtar.File{Name: fmt.Sprintf("%d.dag", depth), Data: []byte(b.String())})
	}
	ar.Files = append(ar.Files, txtar.File{Name: "20.dag"})
	_, err := Read("", "0.dag", in(&ar))
	require.ErrorContains(t, err, "come to more than 256 MiB from here on")
}
