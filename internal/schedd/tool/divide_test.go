package tool

import (
	"bufio"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

const mib = 1 << 20

func TestToolsThatRunAtATimeHaveOneShareTogether(t *testing.T) {
	for name, c := range map[string]struct{ used, want []uint64 }{
		"none":                             {nil, []uint64{}},
		"one alone":                        {[]uint64{3}, []uint64{640}},
		"two that begin":                   {[]uint64{0, 0}, []uint64{320, 320}},
		"the first grows":                  {[]uint64{320, 40}, []uint64{460, 180}},
		"and further":                      {[]uint64{460, 40}, []uint64{530, 110}},
		"nothing is left":                  {[]uint64{500, 140}, []uint64{500, 140}},
		"one that begins then":             {[]uint64{500, 140, 0}, []uint64{500, 140, 32}},
		"more than there is, for a moment": {[]uint64{600, 100, 3}, []uint64{600, 100, 32}},
		"many":                             {[]uint64{40, 40, 40, 40}, []uint64{280, 160, 100, 100}},
	} {
		used := make([]uint64, len(c.used))
		for i, n := range c.used {
			used[i] = n * mib
		}
		limits := divided(640*mib, used)
		for i := range limits {
			limits[i] /= mib
		}
		require.Equal(t, c.want, limits, name)
	}
}

func TestOneToolsMemoryIsNotGivenToAnother(t *testing.T) {
	running.most = func() uint64 { return 1024 * mib }
	t.Cleanup(func() { running.most = memory })
	ctx, cancel := context.WithCancel(t.Context())
	has, ended := make(chan string), make(chan error)
	hold := func(size int, more ...string) {
		c := allocating(size)
		c.Memory, c.Env = 0, append(c.Env, more...)
		in, out := io.Pipe()
		context.AfterFunc(ctx, func() { _ = out.Close() })
		c.In, c.Read = in, func(r io.Reader) error {
			line, _ := bufio.NewReader(r).ReadString('\n')
			has <- line
			return nil
		}
		ended <- Run(t.Context(), c)
	}
	go hold(512)
	require.Equal(t, "has it\n", <-has)

	var f *Failure
	second := allocating(512)
	second.Memory = 0
	require.ErrorAs(t, Run(t.Context(), second), &f)
	require.Contains(t, f.Words, "it needed more memory than was left of the")
	require.NoError(t, Run(t.Context(), shell("true")), "little is there for each")

	// What is left goes to the one that needs it, though others run.
	go hold(192, patientVariable+"=1")
	require.Equal(t, "has it\n", <-has)
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, <-ended)
	require.Empty(t, running.tools)
}
