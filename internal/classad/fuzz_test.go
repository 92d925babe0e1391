package classad

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

func seeds(f *testing.F, file string, lines bool) {
	ar, err := txtar.ParseFile("testdata/" + file)
	require.NoError(f, err)
	for _, a := range ar.Files {
		if !lines {
			f.Add(string(a.Data))
			continue
		}
		for l := range strings.Lines(string(a.Data)) {
			f.Add(strings.TrimSuffix(l, "\n"))
		}
	}
}

// What is read prints, and what was printed is read again and prints the same.
func FuzzExpr(f *testing.F) {
	seeds(f, "expr.txtar", true)
	f.Fuzz(func(t *testing.T, s string) {
		for _, parse := range []func(string) (Expr, error){ParseExpr, ParseNewExpr} {
			x, err := parse(s)
			if err != nil {
				continue
			}
			Walk(x, func(Expr) bool { return true })
			again, err := ParseExpr(x.String())
			require.NoError(t, err, "%q", x.String())
			require.Equal(t, x.String(), again.String())
		}
	})
}

// printsAgain: what an ad prints is read as one ad of as many attributes, which prints the same. Values whose text is
// no expression are HTCondor's to explain and may print as anything.
func printsAgain(t *testing.T, ad Ad) {
	for _, at := range ad {
		if _, err := at.Value.Expr(); err != nil {
			return
		}
	}
	text := ad.String()
	ads := 0
	require.NoError(t, ReadLong(strings.NewReader(text), func(again Ad) error {
		ads++
		require.Len(t, again, len(ad))
		require.Equal(t, text, again.String())
		return nil
	}), "%q", text)
	require.LessOrEqual(t, ads, 1)
}

func FuzzLong(f *testing.F) {
	seeds(f, "long.txtar", false)
	f.Fuzz(func(t *testing.T, s string) {
		_ = ReadLong(strings.NewReader(s), func(ad Ad) error {
			printsAgain(t, ad)
			return nil
		})
	})
}

func FuzzJSON(f *testing.F) {
	seeds(f, "json.txtar", false)
	f.Fuzz(func(t *testing.T, s string) {
		_ = ReadJSON(strings.NewReader(s), func(ad Ad) error {
			printsAgain(t, ad)
			return nil
		})
	})
}

func FuzzQuote(f *testing.F) {
	f.Add(`a"b\`)
	f.Fuzz(func(t *testing.T, s string) {
		x, err := ParseExpr("x == " + Quote(s) + " && y")
		require.NoError(t, err)
		require.IsType(t, &Ref{}, x.(*Binary).R)
	})
}
