package convert

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/convert/dagfile"
	"htc.cern.ch/htcd/internal/convert/dagsteps"
)

func TestNodesOfAStepEndADAGAlikeOrNotAtAll(t *testing.T) {
	for text, want := range map[string]string{
		"ABORT-DAG-ON a 9 RETURN 0\nABORT-DAG-ON b 9 return 0\n":                                     "abortExitCodes, abortReturn",
		"ABORT-DAG-ON a 9\nABORT-DAG-ON b 9\n":                                                       "abortExitCodes",
		"ABORT-DAG-ON a 9 RETURN 0\nABORT-DAG-ON b 9\n":                                              "the nodes of the step s do not all end the DAG alike",
		"ABORT-DAG-ON a 9 RETURN 0\n":                                                                "the nodes of the step s do not all end the DAG alike",
		"ABORT-DAG-ON a 8\nABORT-DAG-ON b 8\nABORT-DAG-ON a 9 RETURN 0\nABORT-DAG-ON b 9 RETURN 0\n": "another line has the step s end the DAG with another value",
	} {
		t.Run(text, func(t *testing.T) {
			b, works := &dagBuild{d: &dagfile.DAG{}}, []*work{{}}
			for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == 10 }) {
				b.d.Statements = append(b.d.Statements, dagfile.Statement{Command: "ABORT-DAG-ON", Rest: strings.TrimPrefix(line, "ABORT-DAG-ON ")})
			}
			flow := &dagsteps.Flow{Steps: []dagsteps.Step{{Name: "s", Nodes: [][]*dagfile.Node{{{Name: "a"}, {Name: "b"}}}}}}
			var last Line
			for _, s := range b.d.Statements {
				last = b.abort(s, flow, works)
			}
			require.Equal(t, want, last.Words)
		})
	}
}
