package schedd_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/tool"
)

// growing is an expression whose value has a thousand times 2 to the power of n letters.
func growing(n int) string {
	nested := fmt.Sprintf(`[a0 = "%s"`, strings.Repeat("x", 1000))
	for i := range n {
		nested += fmt.Sprintf("; a%d = strcat(a%d, a%d)", i+1, i, i)
	}
	return fmt.Sprintf("%s].a%d", nested, n)
}

func TestAnExpressionThatGrowsIsRefusedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	for line, words := range map[string]string{
		"request_cpus = size(" + growing(20) + ")": "htcopts, line 1, column 21: request_cpus: found a nested ad [...]",
		"+WantOS = strcat(Owner, Owner)\n+REQUIRED_OS = strcat(WantOS, WantOS)\nrequirements = size(REQUIRED_OS) > 1":                                    "htcopts, line 1, column 11: WantOS: found the function strcat",
		"+WantOS = {" + strings.Repeat("REQUIRED_OS, ", 200) + "1}\n+REQUIRED_OS = {" + strings.Repeat("Experiment, ", 200) + "1}\n+Experiment = {1, 2}": "htcopts, line 1, column 1: WantOS: found an expression that is longer than 64 KiB",
	} {
		b := newBench(t)
		b.d.Options = line
		_, err := b.send()
		require.Equal(t, condor.Refused, condor.KindOf(err))
		require.ErrorContains(t, err, words)
	}
}

// A job's owner can change its ad without htcd. The tool that evaluates it then ends in words, and all others are
// answered.
func TestAToolThatAnAdTakesAllMemoryOfEndsInWords(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.d.Options = "requirements = false"
	b.submit()
	b.edit("RequestCpus", growing(9))

	var out bytes.Buffer
	ask := func(expression string) error {
		out.Reset()
		return tool.Run(t.Context(), tool.Command{
			Name: "condor_q",
			Args: []string{"-allusers", "-constraint", string(b.d.Tag.Constraint()), "-af", expression},
			Env: []string{
				"CONDOR_CONFIG=" + b.options().CondorConfig,
				"KRB5_CONFIG=" + b.options().Krb5Config,
				"KRB5CCNAME=FILE:" + b.id.CCache,
			},
			Timeout: patience,
			Memory:  64 << 20,
			Read:    tool.Output(&out),
		})
	}
	require.NoError(t, ask("size(RequestCpus)"))
	require.Equal(t, "512000\n", out.String())
	err := ask("size(strcat(" + strings.Repeat("RequestCpus, ", 127) + "RequestCpus))")
	require.ErrorContains(
		t,
		err,
		"it needed more memory than was left of the 64 MiB that the tools running at a time may have here",
	)
	require.ErrorContains(t, err, "bad_alloc")
	require.Len(t, b.jobs(), 1, "htcd's own question needs no value of it")
}
