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

// What is read can be printed, and when read again prints the same.
func FuzzExpr(f *testing.F) {
	seeds(f, "expr.txtar", true)
	f.Fuzz(func(t *testing.T, s string) {
		for _, newSyntax := range []bool{false, true} {
			x, err := parse(s, newSyntax)
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

// printsAgain checks that an ad's print is read as an ad with the same names, and that its print is read as itself.
// (The first print may differ: .0 is kept as written only until it is read.) Values whose text is no expression may
// print as anything.
func printsAgain(t *testing.T, ad Ad) {
	for _, at := range ad {
		if _, err := at.Value.Expr(); err != nil {
			return
		}
	}
	for range 2 {
		again, err := ParseAd(ad.String())
		require.NoError(t, err, "%q", ad)
		require.Len(t, again, len(ad))
		for i, at := range ad {
			require.Equal(t, at.Name, again[i].Name)
		}
		ad = again
	}
	again, err := ParseAd(ad.String())
	require.NoError(t, err)
	require.Equal(t, ad.String(), again.String())
}

func FuzzAd(f *testing.F) {
	seeds(f, "long.txtar", false)
	f.Fuzz(func(t *testing.T, s string) {
		if ad, err := ParseAd(s); err == nil {
			printsAgain(t, ad)
		}
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
