package results

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinesAreRead(t *testing.T) {
	for text, c := range map[string]struct {
		want    []Result
		ignored string
	}{
		"":                             {nil, ""},
		"chi2=2.5\nn=-3e2":             {[]Result{{"chi2", 2.5}, {"n", -300}}, ""},
		" chi2 = +.5 \r\n\n":           {[]Result{{"chi2", .5}}, ""},
		"a=1\nb=2\na=3\n":              {[]Result{{"a", 3}, {"b", 2}}, ""},
		"a=1\nhello\nb=2\n":            {[]Result{{"a", 1}, {"b", 2}}, `line 2: expected name=number, found "hello"`},
		"a=nan":                        {nil, "line 1: expected a to be a decimal number"},
		"a=Inf":                        {nil, "line 1: expected a to be a decimal number"},
		"a=1e101":                      {nil, "between -1e100 and 1e100"},
		"a=1e999":                      {nil, "between -1e100 and 1e100"},
		"a=0x10":                       {nil, "line 1: expected a"},
		"a=1_0":                        {nil, "line 1: expected a"},
		"1a=1":                         {nil, "line 1: expected a name"},
		"a b=1":                        {nil, "line 1: expected a name"},
		"é=1":                          {nil, "line 1: expected a name"},
		"a\x00=1":                      {nil, "line 1: expected a name"},
		strings.Repeat("a", 64) + "=1": {nil, "line 1: expected a name"},
		"\xff\xfe=1\nb=1":              {[]Result{{"b", 1}}, "line 1: expected a name"},
	} {
		got, ignored := Parse(text)
		require.Equal(t, c.want, got, text)
		require.Contains(t, ignored, c.ignored)
		require.Equal(t, c.ignored == "", ignored == "", ignored)
	}
	many := ""
	for _, c := range "abcdefghijklmnopq" {
		many += string(c) + "=1\n"
	}
	got, ignored := Parse(many)
	require.Len(t, got, maxNames)
	require.Equal(t, "line 17: expected at most 16 names", ignored)
	got, ignored = Parse(strings.Repeat("a=1\n", maxText/4-1) + "b=12345678")
	require.Equal(t, []Result{{"a", 1}}, got, "half a number is none")
	require.Equal(t, "expected at most 4096 bytes", ignored)
	got, _ = Parse(strings.Repeat("=", 100_000))
	require.Empty(t, got)
}

func TestValuesAreSummedUp(t *testing.T) {
	require.Equal(t, Summary{}, Summarize(nil))
	require.Equal(t, Summary{Count: 1, Mean: 3, Min: 3, Max: 3}, Summarize([]float64{3}))
	require.Equal(
		t,
		Summary{Count: 5, Mean: 6, Variance: 43.5, Min: 0, Max: 16, IQR: 8, MAD: 4},
		Summarize([]float64{16, 1, 9, 4, 0}),
	)
	s := Summarize([]float64{1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16})
	require.InDelta(t, 30, s.Variance, 1e-6, "no small difference of large sums")
	large := make([]float64, 100_000)
	for i := range large {
		large[i] = largest * float64(1-i%2*2)
	}
	s = Summarize(large)
	for _, x := range []float64{s.Mean, s.Variance, s.IQR, s.MAD} {
		require.False(t, math.IsInf(x, 0) || math.IsNaN(x), "%+v", s)
	}
}
