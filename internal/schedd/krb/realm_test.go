package krb

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoKDCIsAskedOfARealmThatIsNotAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		realms   []string
		username string
		kind     Kind // of the refusal; 0 with no words: none
		words    string
	}{
		"no realm: the default one":             {nil, "robot", 0, ""},
		"the default realm by name":             {nil, "robot@R", 0, ""},
		"another in [realms]":                   {nil, "robot/batch@SECOND.REALM", 0, ""},
		"one that krb5.conf does not name":      {nil, "robot@ELSEWHERE.ORG", RealmNotAllowed, `is of the realm "ELSEWHERE.ORG", and htcd asks only KDCs of the realms in krb5.conf: R, SECOND.REALM; an administrator`},
		"the default realm in small letters":    {nil, "robot@r", RealmNotAllowed, `"r"`},
		"one that is listed":                    {[]string{"ELSEWHERE.ORG"}, "robot@ELSEWHERE.ORG", 0, ""},
		"one of krb5.conf that is not listed":   {[]string{"ELSEWHERE.ORG"}, "robot@R", RealmNotAllowed, "in --realms: ELSEWHERE.ORG;"},
		"the default one that is not listed":    {[]string{"ELSEWHERE.ORG"}, "robot", RealmNotAllowed, `is of the realm "R"`},
		"the default one that is listed":        {[]string{"ELSEWHERE.ORG", "R"}, "robot", 0, ""},
		"a realm behind an escaped @":           {nil, `robot\@R@ELSEWHERE.ORG`, Invalid, "backslash"},
		"an escaped letter in the realm":        {nil, `robot@ELSEWHERE\.ORG`, Invalid, "backslash"},
		"two realms":                            {nil, "robot@ELSEWHERE.ORG@R", Invalid, "neither a name nor name@REALM"},
		"an empty realm":                        {nil, "robot@", Invalid, "neither a name nor name@REALM"},
		"a realm that ends in a line end":       {nil, "robot@R\n", 0, ""},
		"a realm of more than a message's room": {nil, "robot@" + strings.Repeat("X", 100000), RealmNotAllowed, "X"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.o.Realms = c.realms
			_, err := b.Ticket(t.Context(), Credential{Username: c.username, Password: "hush"})
			if c.words == "" {
				require.NoError(t, err)
				require.Equal(t, 1, b.calls(t))
				return
			}
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.kind, e.Kind)
			require.Contains(t, e.Message, c.words)
			require.Less(t, len(e.Message), 1000)
			require.Zero(t, b.calls(t), "kinit was not started")
		})
	}
	require.Equal(t, "RealmNotAllowed", RealmNotAllowed.String())
}

func TestWhenRealmsChangeTicketsAreNotRenewed(t *testing.T) {
	b := newBench(t)
	second := Credential{Username: "robot@SECOND.REALM", Password: "hush"}
	_, err := b.Ticket(t.Context(), second)
	require.NoError(t, err)
	b.pass(50 * 60e9)
	b.write(t, "krb5.conf", "[libdefaults]\n default_realm = R\n")
	_, err = b.Ticket(t.Context(), second)
	require.ErrorContains(t, err, "SECOND.REALM")
	require.Equal(t, 1, b.calls(t))

	b.write(t, "krb5.conf", "[libdefaults]\n default_realm\n")
	_, err = b.Ticket(t.Context(), second)
	require.NoError(t, err, "while the file cannot be read, the present ticket is used")
	b.pass(20 * 60e9)
	_, err = b.Ticket(t.Context(), second)
	require.ErrorContains(t, err, "krb5.conf:2: want name = value")
}

func TestWhatKrb5ConfSaysAboutRealms(t *testing.T) {
	const lab = "[realms]\nLAB = {\n kdc = localhost\n}\n"
	for name, c := range map[string]struct {
		files   map[string]string // krb5.conf and what it includes; DIR is where they are
		realm   string
		realms  []string
		refused string
	}{
		"comments, blanks and CR": {files: map[string]string{"krb5.conf": "any words\n[libdefaults]\r\n# default_realm = NOT\n; default_realm = NOT\n\tdefault_realm =  LAB \r\n\n" + lab}, realm: "LAB", realms: []string{"LAB"}},
		"a quoted value":          {files: map[string]string{"krb5.conf": "[libdefaults]\ndefault_realm = \"LAB\"\n"}, realm: "LAB", realms: []string{"LAB"}},
		"the first one counts":    {files: map[string]string{"krb5.conf": "[libdefaults]\ndefault_realm = LAB\ndefault_realm = NOT\n[libdefaults]\ndefault_realm = NOT\n"}, realm: "LAB", realms: []string{"LAB"}},
		"final sections and tags": {files: map[string]string{"krb5.conf": "[libdefaults]*\ndefault_realm* = LAB\n[realms]\nLAB* = {\n}*\n"}, realm: "LAB", realms: []string{"LAB"}},
		"braces in braces": {files: map[string]string{"krb5.conf": "[realms]\nLAB = {\n auth_to_local_names = {\n  NOT = {\n  }\n }\n default_realm = NOT\n}\nTWO =\n{\n kdc = x\n}\n[domain_realm]\n.lab = NOT\nNOT = {\n}\n"},
			realms: []string{"LAB", "TWO"}},
		"a realm without braces is none": {files: map[string]string{"krb5.conf": "[realms]\nNOT = localhost\n"}},
		"an included file":               {files: map[string]string{"krb5.conf": "include DIR/more\n[libdefaults]\ndefault_realm = NOT\n", "more": "[libdefaults]\ndefault_realm = LAB\n"}, realm: "LAB", realms: []string{"LAB"}},
		"an include within a section": {files: map[string]string{"krb5.conf": "[realms]\ninclude DIR/more\nTWO = {\n}\n", "more": lab},
			realms: []string{"LAB", "TWO"}},
		"an included directory": {files: map[string]string{"krb5.conf": "includedir DIR/d/\n", "d/one": lab, "d/two.conf": "[realms]\nTWO = {\n}\n",
			"d/three.rpmsave": "[realms]\nNOT = {\n}\n", "d/.hidden.conf": "[realms]\nNOT = {\n}\n", "d/four~": "[realms]\nNOT = {\n}\n"}, realms: []string{"LAB", "TWO"}},
		"an include that is not there":    {files: map[string]string{"krb5.conf": "include DIR/more\n"}, refused: "krb5.conf:1: include: open"},
		"a directory that is not there":   {files: map[string]string{"krb5.conf": "\nincludedir DIR/d\n"}, refused: "krb5.conf:2: includedir: open"},
		"a file that includes itself":     {files: map[string]string{"krb5.conf": "include DIR/krb5.conf\n"}, refused: "more than 16 deep"},
		"a brace too many":                {files: map[string]string{"krb5.conf": lab + "}\n"}, refused: "krb5.conf:5: there is a } too many"},
		"a section that is not closed":    {files: map[string]string{"krb5.conf": "[realms\n"}, refused: "krb5.conf:1: want a section"},
		"a section within braces":         {files: map[string]string{"krb5.conf": "[realms]\nLAB = {\n[libdefaults]\n"}, refused: "krb5.conf:3: want a section"},
		"a line of no form":               {files: map[string]string{"krb5.conf": "[libdefaults]\ndefault_realm LAB\n"}, refused: "krb5.conf:2: want name = value"},
		"a name with nothing after it":    {files: map[string]string{"krb5.conf": "[realms]\nLAB =\nkdc = localhost\n"}, refused: "krb5.conf:3: want {"},
		"nothing":                         {files: map[string]string{"krb5.conf": ""}},
		"no file":                         {refused: "no such file"},
		"an include that is only a value": {files: map[string]string{"krb5.conf": "[libdefaults]\n include DIR/more\n"}, refused: "krb5.conf:2: want name = value"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
				require.NoError(
					t,
					os.WriteFile(filepath.Join(dir, file), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600),
				)
			}
			p, err := readProfile(filepath.Join(dir, "krb5.conf"))
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.realm, p.defaultRealm)
			require.Equal(t, fmt.Sprint(c.realms), fmt.Sprint(p.named()))
		})
	}
}

func TestOfSeveralFilesSomeMayBeMissing(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	require.NoError(t, os.WriteFile(two, []byte("[libdefaults]\ndefault_realm = LAB\n"), 0o600))
	p, err := readProfile(one + ":" + two)
	require.NoError(t, err)
	require.Equal(t, "LAB", p.defaultRealm)
	require.NoError(t, os.WriteFile(one, []byte("[libdefaults]\ndefault_realm = FIRST\n"), 0o600))
	p, err = readProfile(one + ":" + two)
	require.NoError(t, err)
	require.Equal(t, "FIRST", p.defaultRealm)
}

func FuzzReadProfile(f *testing.F) {
	f.Add("[libdefaults]\ndefault_realm = LAB\n[realms]\nLAB = {\n kdc = x\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "include") {
			return
		}
		file := filepath.Join(t.TempDir(), "krb5.conf")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, _ = readProfile(file)
	})
}
