package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

func TestAFailedTransferNamesItsURL(t *testing.T) {
	of := func(urls ...string) (spec v1alpha1.HTCJobSpec) {
		for _, url := range urls {
			spec.Inputs = append(spec.Inputs, v1alpha1.Input{URL: url})
		}
		return spec
	}
	sent := v1alpha1.HTCJobSpec{
		Outputs: []v1alpha1.Output{{Path: "x"}, {Path: "y", URL: "root://a//{namespace}/{name}/{attempt}/{proc}"}},
	}
	const failed = "Transfer input files failure at execution point slot1@node. Details: "
	for name, c := range map[string]struct {
		spec       v1alpha1.HTCJobSpec
		said, want string
	}{
		"the plugin names it":     {of("https://a/x", "https://b/y"), failed + "404 ( URL file = https://b/y )|", failed + "404 ( URL file = https://b/y )|"},
		"it names the file":       {of("root://a//x", "root://b//y?q=1"), failed + "receiving file /dir_1/y: exit 1", failed + "receiving file /dir_1/y: exit 1; spec.inputs: root://b//y?q=1"},
		"it names nothing":        {of("root://a//x", "root://b//y"), failed + "exit 1", failed + "exit 1; spec.inputs: root://a//x or root://b//y"},
		"there are many":          {of("r://a/1", "r://a/2", "r://a/3", "r://a/4"), failed + "exit 1", failed + "exit 1; spec.inputs: r://a/1 or r://a/2 or r://a/3, and 1 other"},
		"an output":               {sent, "Transfer output files failure: /dir_1/.htcd-out/.url/1: exit 1", "Transfer output files failure: /dir_1/.htcd-out/.url/1: exit 1; spec.outputs: root://a//a/b/2/7"},
		"there are none":          {of(), failed + "exit 1", failed + "exit 1"},
		"it is held for the disk": {of("r://a/1"), "disk usage exceeded", "disk usage exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			p := ledger.Proc{Namespace: "a", Name: "b", Attempt: 2, Proc: 7, Message: c.said}
			require.Equal(t, c.want, NameURL(c.spec, p))
		})
	}
}
