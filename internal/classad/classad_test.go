package classad

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

func TestExprGolden(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/expr.txtar")
	require.NoError(t, err)
	for _, f := range ar.Files {
		lines := strings.Split(strings.TrimSuffix(string(f.Data), "\n"), "\n")
		require.Zero(t, len(lines)%2, f.Name)
		for i := 0; i < len(lines); i += 2 {
			in, want := lines[i], lines[i+1]
			t.Run(f.Name+"/"+in, func(t *testing.T) {
				x, err := ParseExpr(in)
				if at, ok := strings.CutPrefix(want, "! "); ok && isPlace(at) {
					place, words, _ := strings.Cut(at, " ")
					line, column, _ := strings.Cut(place, ":")
					require.EqualError(t, err, "line "+line+", column "+column+": "+words)
					return
				}
				require.NoError(t, err)
				if want == "=" {
					want = in
				}
				require.Equal(t, want, x.String())
				again, err := ParseExpr(x.String())
				require.NoError(t, err)
				require.Equal(t, x.String(), again.String())
			})
		}
	}
}

// isPlace distinguishes "1:4 found ..." from an expression that begins with a "!".
func isPlace(s string) bool { return s[0] >= '0' && s[0] <= '9' }

// readLong reads ads that an empty line separates.
func readLong(r io.Reader, fn func(Ad) error) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		ad, err := ParseAd(block)
		if err == nil && len(ad) > 0 {
			err = fn(ad)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func TestAdGolden(t *testing.T) {
	for name, read := range map[string]func(io.Reader, func(Ad) error) error{"long": readLong, "json": ReadJSON} {
		ar, err := txtar.ParseFile("testdata/" + name + ".txtar")
		require.NoError(t, err)
		for i := 0; i < len(ar.Files); i += 2 {
			in, want := ar.Files[i], ar.Files[i+1]
			t.Run(name+"/"+in.Name, func(t *testing.T) {
				require.Equal(t, in.Name+", want", want.Name)
				require.Equal(t, string(want.Data), show(read, strings.NewReader(string(in.Data))))
				require.Equal(
					t,
					string(want.Data),
					show(read, iotest.OneByteReader(strings.NewReader(string(in.Data)))),
				)
			})
		}
	}
}

// show reads ads and prints what they hold.
func show(read func(io.Reader, func(Ad) error) error, r io.Reader) string {
	var b strings.Builder
	kinds := [...]string{"Undefined", "Error", "Bool", "Int", "Real", "String", "Unevaluated"}
	err := read(r, func(ad Ad) error {
		for _, at := range ad {
			fmt.Fprintf(&b, "%s %s %s\n", kinds[at.Value.Kind()], at.Name, at.Value)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		fmt.Fprintf(&b, "error: %v\n", err)
	}
	return b.String()
}

func TestPrinterAddsParentheses(t *testing.T) {
	one, a, b := &Literal{Value: IntValue(1)}, &Ref{Name: "a"}, &Ref{Name: "b"}
	for want, x := range map[string]Expr{
		"(a || b) && 1":    &Binary{"&&", &Binary{"||", a, b}, one},
		"a - (b - 1)":      &Binary{"-", a, &Binary{"-", b, one}},
		"a - b - 1":        &Binary{"-", &Binary{"-", a, b}, one},
		"-(a + b)":         &Unary{"-", &Binary{"+", a, b}},
		"- -1":             &Unary{"-", &Literal{Value: IntValue(-1)}},
		"(a ? b : 1) ?: b": &Cond{If: &Cond{a, b, one}, Else: b},
		"(a + b).x":        &Select{&Binary{"+", a, b}, "x"},
		"'odd name'.is_ok": &Ref{Scope: "odd name", Name: "is_ok"},
		"'is'":             &Ref{Name: "is"},
		"1.0":              &Literal{Value: RealValue(1)},
		"\"q\\\"\"":        &Literal{Value: StringValue(`q"`)},
	} {
		require.Equal(t, want, x.String())
		again, err := ParseExpr(want)
		require.NoError(t, err)
		require.Equal(t, want, again.String())
	}
}

func TestDepthIsBounded(t *testing.T) {
	for name, s := range map[string]string{
		"parentheses": strings.Repeat("(", 1e6),
		"minuses":     strings.Repeat("-", 1e6) + "1",
		"indices":     "a" + strings.Repeat("[1]", 1e6),
		"lists":       strings.Repeat("{", 1e6),
		"conditions":  strings.Repeat("a?", 1e6) + "1",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseExpr(s)
			require.ErrorContains(t, err, "levels of nesting")
		})
	}
	err := ReadJSON(
		strings.NewReader(`[{"A":`+strings.Repeat("[", 1e5)+strings.Repeat("]", 1e5)+`}]`),
		func(Ad) error { return nil },
	)
	require.ErrorContains(t, err, "levels of nesting")

	long := "a" + strings.Repeat(" || a", 1e4)
	x, err := ParseExpr(long)
	require.NoError(t, err, "a long chain is not deep")
	require.Equal(t, long, x.String())
}

func TestErrorsCountLinesAndCharacters(t *testing.T) {
	_, err := ParseExpr("a &&\n  ä")
	require.EqualError(t, err, "line 2, column 3: found 'ä', expected a name, number, string or operator")
	var s *SyntaxError
	require.ErrorAs(t, err, &s)
	require.Equal(t, 2, s.Line)
}

func TestQuoteNeverLeavesItsQuotes(t *testing.T) {
	for in, want := range map[string]string{
		`plain`:          `"plain"`,
		`say "hi"`:       `"say \"hi\""`,
		`back\slash`:     `"back\slash"`,
		`ends with \`:    `"ends with \ "`,
		`\"`:             `"\\""`,
		"two\nlines\r\t": `"two lines  "`,
		"nul\x00":        `"nul "`,
	} {
		require.Equal(t, want, Quote(in))
		x, err := ParseExpr(Quote(in) + " =!= undefined")
		require.NoError(t, err)
		require.IsType(t, &Binary{}, x)
	}
}

func TestAdNamesHaveNoCase(t *testing.T) {
	ad := Ad{{"ClusterId", IntValue(1)}, {"U", Value{}}, {"clusterid", IntValue(2)}}
	v, ok := ad.Get("CLUSTERID").Int()
	require.True(t, ok)
	require.EqualValues(t, 2, v, "the last one counts")
	require.True(t, ad.Has("u"))
	require.False(t, ad.Has("v"))
	require.Equal(t, Undefined, ad.Get("v").Kind())
}

func TestExpressionsOfAdsAreParsedInTheirOwnSyntax(t *testing.T) {
	var x Expr
	require.NoError(t, ReadJSON(strings.NewReader(`[{"A": "\/Expr(a == \"x\\\\y\\\"\")\/"}]`), func(ad Ad) (err error) {
		x, err = ad.Expr("A")
		return err
	}))
	s, _ := x.(*Binary).R.(*Literal).Value.Str()
	require.Equal(t, `x\y"`, s)

	ad, err := ParseAd(`A = a == "x\y\"" || b`)
	require.NoError(t, err)
	x, err = ad.Expr("A")
	require.NoError(t, err)
	s, _ = x.(*Binary).L.(*Binary).R.(*Literal).Value.Str()
	require.Equal(t, `x\y"`, s)
}

func TestAnErrorOfTheCallerEndsTheReading(t *testing.T) {
	stop := fmt.Errorf("enough")
	n := 0
	fn := func(Ad) error { n++; return stop }
	require.Equal(t, stop, ReadJSON(strings.NewReader(`[{"A":1},{"A":2}]`), fn))
	require.Equal(t, 1, n)
}

func TestReaderErrorsArePassedOn(t *testing.T) {
	broken := fmt.Errorf("pipe broke")
	r := io.MultiReader(strings.NewReader("[\n{"), iotest.ErrReader(broken))
	require.ErrorIs(t, ReadJSON(r, func(Ad) error { return nil }), broken)
}

func TestALongStringIsCutWhereItIsRead(t *testing.T) {
	for name, unit := range map[string]string{"plain": "x", "letters of three bytes": "\u20ac", "escapes": `\n`, "quotes": `\"`, "backslashes": `\\`, "numbers": `\u20ac`} {
		for _, n := range []int{maxString - 1, maxString, maxString + 1, 300_000} {
			text := `[{"A":"` + strings.Repeat(
				unit,
				n,
			) + `","B":7,"C":"` + strings.Repeat(
				"y",
				100_000,
			) + `"},{"A":"short"}]`
			var ads []Ad
			require.NoError(
				t,
				ReadJSON(strings.NewReader(text), func(ad Ad) error { ads = append(ads, ad); return nil }),
				name,
			)
			require.Len(t, ads, 2)
			a, _ := ads[0].Get("A").Str()
			require.LessOrEqual(t, len(a), maxString)
			require.Greater(t, len(a), min(n, maxString-8)-1)
			require.True(t, utf8.ValidString(a), name)
			require.Equal(t, IntValue(7), ads[0].Get("B"))
			short, _ := ads[1].Get("A").Str()
			require.Equal(t, "short", short)
		}
	}
}

func TestMemoryDoesNotGrowWithAString(t *testing.T) {
	text := `[{"A":"` + strings.Repeat("x", 64<<20) + `"}]`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, ReadJSON(strings.NewReader(text), func(Ad) error { return nil }))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2<<20))
}
