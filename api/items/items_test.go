package items

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var nameRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// plain is a rule such as schedd's.
func plain(name, value string) error {
	if !nameRE.MatchString(name) {
		return fmt.Errorf("the name %q is none", name)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("a control character")
	}
	return nil
}

func TestATableIsOneItemPerRow(t *testing.T) {
	want := []string{"ENERGY=7000\nSEED=1\n", "ENERGY=13000\nSEED=2\n"}
	for name, text := range map[string]string{
		"JSON":                            `[{"ENERGY": 7000, "SEED": "1"}, {"SEED": 2, "ENERGY": "13000"}]`,
		"JSON over lines":                 "\n[\n {\"SEED\": 1, \"ENERGY\": 7000},\n {\"ENERGY\": 13000, \"SEED\": 2}\n]\n",
		"CSV":                             "ENERGY,SEED\n7000,1\n13000,2\n",
		"CSV without a last line break":   "ENERGY,SEED\n7000,1\n13000,2",
		"CSV of Windows":                  "\ufeffENERGY,SEED\r\n7000,1\r\n13000,2\r\n",
		"CSV with blanks after commas":    "ENERGY, SEED\n7000, 1\n13000, 2\n",
		"CSV with blanks before commas":   "\ufeffENERGY ,SEED \n7000 ,1\t\n13000\t , 2 \r\n",
		"CSV with quotes and empty lines": "\"SEED\",\"ENERGY\"\n\n1,\"7000\"\n\n2,13000\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Table([]byte(text), 9, plain)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestValuesArriveAsWritten(t *testing.T) {
	got, err := Table(
		[]byte(`[{"A": 1e3, "B": 0.10, "C": true, "D": false, "E": "", "F": "a,b \"c\"", "G": 12345678901234567890}]`),
		9,
		plain,
	)
	require.NoError(t, err)
	require.Equal(t, []string{"A=1e3\nB=0.10\nC=true\nD=false\nE=\nF=a,b \"c\"\nG=12345678901234567890\n"}, got)
	got, err = Table([]byte("A,B\n\"a,b \"\"c\"\"\", \" x \"\n=1,\n"), 9, plain)
	require.NoError(t, err)
	require.Equal(t, []string{"A=a,b \"c\"\nB= x \n", "A==1\nB=\n"}, got)
}

func TestAMistakeInATableIsNamedWithItsLine(t *testing.T) {
	for name, c := range map[string]struct{ text, words string }{
		"nothing":                            {" \n", "the table is empty"},
		"not UTF-8":                          {"A\n\xff\n", "not UTF-8"},
		"an object instead of a list":        {`{"A": 1}`, "line 1: expected a list of objects"},
		"an empty list":                      {"\n[]", "line 2: expected a list of objects"},
		"a list of numbers":                  {"[\n1]", `line 2: row 1: expected an object such as {"ENERGY": 13000, "SEED": 1}, found 1`},
		"a list in a list":                   {"[[1]]", "found a list"},
		"a nested object":                    {"[{\"A\": 1},\n{\"A\": {\"B\": 1}}]", `line 2: row 2: "A": expected a string, a number, true or false, found an object`},
		"null":                               {`[{"A": null}]`, `"A": expected a string, a number, true or false, found null`},
		"an object without variables":        {`[{"A": 1}, {}]`, "row 2: expected at least one variable"},
		"a name twice in an object":          {`[{"A": 1, "A": 2}]`, `row 1: the variable "A" appears twice`},
		"a bad name":                         {"[{\"A\": 1},\n\n{\"A B\": 2}]", `line 3: row 2: the name "A B" is none`},
		"a value of two lines":               {`[{"A": "a\nb"}]`, "row 1: a control character"},
		"JSON that stops":                    {"[{\"A\": 1},\n", "line 1: the JSON ends too early"},
		"JSON with a comma too many":         {"[{\"A\": 1},\n]", "line 2: this is not JSON"},
		"JSON without a comma":               {"[{\"A\": 1}\n{\"A\": 2}]", "line 2: this is not JSON"},
		"something after the list":           {"[{\"A\": 1}]\n[1]", "line 2: expected nothing after the list"},
		"CSV without rows":                   {"A,B\n", "the table has no rows"},
		"CSV with too few fields":            {"A,B\n1,2\n3\n", "line 3: expected 2 fields (A,B), found 1"},
		"CSV with too many fields":           {"A,B\n1,2,3\n", "line 2: expected 2 fields (A,B), found 3"},
		"CSV with semicolons":                {"A;B\n1;2\n", `line 1: column 1: expected the names of the variables in the first line, separated by commas: the name "A;B" is none`},
		"CSV with a name twice":              {"A,B,A\n1,2,3\n", "line 1: column 3: the variable A appears twice"},
		"CSV with a nameless column":         {"A,\n1,2\n", `column 2: expected the names`},
		"CSV with an open quote":             {"A\n\"1\n", "line 2, column 4: a double quote is not closed"},
		"CSV with a quote inside":            {"A\na\"b\n", "line 2, column 2: a double quote"},
		"CSV with a value of two lines":      {"A\n1\n\"a\nb\"\n", "line 3: a control character"},
		"CSV without a line of names":        {"7000,1\n13000,2\n", "line 1: column 1: expected the names of the variables in the first line"},
		"more variables than an item":        {"[{" + many(129) + "}]", "row 1: expected at most 128 variables, found more"},
		"more columns than an item":          {"A,B\n1,\",,\n\"\n" + strings.Repeat(",", 128), "line 4: expected at most 128 fields, found more"},
		"an item that is too large":          {`[{"A": "` + strings.Repeat("x", 64<<10) + `"}]`, "expected at most 64 KiB"},
		"more rows than there may be":        {"A\n" + strings.Repeat("1\n", 601), "line 602: expected at most 600 items, found more: split the list"},
		"more bytes than all items may have": {"A,B\n" + strings.Repeat(strings.Repeat("x", 60<<10)+",1\n", 560), "expected at most 32 MiB of variables"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Table([]byte(c.text), 600, plain)
			require.ErrorContains(t, err, c.words)
		})
	}
}

func many(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"A%d": 1`, i))
	}
	return strings.Join(all, ",")
}

func TestAListIsOneItemPerElement(t *testing.T) {
	got, err := List([]map[string]string{{"SEED": "1", "ENERGY": "7000"}, {"LIMIT": "a b"}}, plain)
	require.NoError(t, err)
	require.Equal(t, []string{"ENERGY=7000\nSEED=1\n", "LIMIT=a b\n"}, got)
	_, err = List([]map[string]string{{"A": "1"}, {"B-C": "1"}}, plain)
	require.EqualError(t, err, `items[1]: the name "B-C" is none`)
	_, err = List([]map[string]string{{}}, plain)
	require.EqualError(t, err, "items[0]: expected at least one variable, found none")
}

func TestParametersAreCombinedInTheOrderOfNamesTheLastFastest(t *testing.T) {
	parameters := map[string][]string{"SEED": {"3", "1", "2"}, "ENERGY": {"7000", "13000"}}
	got, err := Product(parameters, plain)
	require.NoError(t, err)
	require.Equal(t, []string{
		"ENERGY=7000\nSEED=3\n", "ENERGY=7000\nSEED=1\n", "ENERGY=7000\nSEED=2\n",
		"ENERGY=13000\nSEED=3\n", "ENERGY=13000\nSEED=1\n", "ENERGY=13000\nSEED=2\n",
	}, got)
	require.Equal(t, 6, Count(parameters))
}

func TestMistakesInParametersAreNamed(t *testing.T) {
	_, err := Product(map[string][]string{"A": {"1"}, "B": {}}, plain)
	require.EqualError(t, err, "spec.parameters.B: expected at least one value, found none")
	_, err = Product(map[string][]string{"A": {"1", "x\ny"}}, plain)
	require.EqualError(t, err, "spec.parameters.A[1]: a control character")
	many := make([]string, 1000)
	huge := map[string][]string{}
	for i := range 30 { // a product far beyond an int
		huge[fmt.Sprintf("A%d", i)] = many
	}
	require.Equal(t, Most+1, Count(huge))
	_, err = Product(huge, plain)
	require.EqualError(
		t,
		err,
		"spec.parameters: expected at most 1000000 combinations, found more: make it several HTCJobs",
	)
	_, err = Product(map[string][]string{"A": {strings.Repeat("x", 4096)}, "B": make([]string, 9000)}, plain)
	require.ErrorContains(t, err, "spec.parameters, combination 8180: expected at most 32 MiB")
}

func TestALabelNamesAnItemInOneShortLine(t *testing.T) {
	for item, want := range map[string]string{
		"ENERGY=13000\nSEED=2\n":           "ENERGY=13000 SEED=2",
		"A=a b\nB=\nC=x=y\n":               `A="a b" B= C=x=y`,
		"A=\u202ex\u009b\nB=ä\nC=\"\n":     `A="\u202ex\u009b" B=ä C="\""`,
		("A=" + strings.Repeat("ä", 300)):  "A=" + strings.Repeat("ä", 125) + "…",
		("A=x" + strings.Repeat("ä", 300)): "A=x" + strings.Repeat("ä", 125) + "…",
	} {
		require.Equal(t, want, Label(item))
		require.LessOrEqual(t, len(Label(item)), mostLabel)
	}
}

func FuzzTable(f *testing.F) {
	for _, seed := range []string{
		`[{"A": 1, "B": "x"}, {"A": true}]`, "A,B\n1,2\n", "A\r\n\"a\"\"b\"\r\n", "\ufeffA\n1", `[{"A": "\u0000"}]`, `[{"A"`, "[[[[", `[{"A":1}]x`, "A,A\n1,1\n", "\"", "[{}]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := Table(text, 1000, plain)
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		require.NotEmpty(t, all)
		for _, item := range all {
			require.True(t, strings.HasSuffix(item, "\n"))
			for line := range strings.Lines(item) {
				name, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
				require.True(t, found)
				require.NoError(t, plain(name, value))
			}
			require.LessOrEqual(t, len(Label(item)), mostLabel)
		}
	})
}

func TestBlanksCountInDoubleQuotesOnly(t *testing.T) {
	got, err := Table([]byte("A,B\n\n\"x\ny \",z \n \"ä \" , \n"), 9, func(string, string) error { return nil })
	require.ErrorContains(t, err, "line 5, column", "%v", got) // after a closing quote comes the comma
	got, err = Table([]byte("A,B\n\n\"x y \",z \n ä , \" \"\n"), 9, plain)
	require.NoError(t, err)
	require.Equal(t, []string{"A=x y \nB=z\n", "A=ä\nB= \n"}, got)
}
