package schedd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/krb"
)

// What decides is what kinit makes of krb5.conf: its words name the realm, and tell one whose KDC does not answer from
// one that it knows no KDC of.
func TestKinitReadsTheSameRealms(t *testing.T) {
	t.Parallel()
	world(t)
	const closed = " = {\n kdc = 127.0.0.1:1\n}\n"
	quiet := "[libdefaults]\ndns_lookup_kdc = false\n"
	ofClient := regexp.MustCompile(`realm ['"]([^'"]*)['"]`)
	for name, c := range map[string]struct {
		files map[string]string
		named []string // of ONE, TWO and SIX
		base  string   // the default realm
	}{
		"plain":                          {map[string]string{"krb5.conf": quiet + "default_realm = ONE\n[realms]\nTWO" + closed}, []string{"TWO"}, "ONE"},
		"quoted, with CR and comments":   {map[string]string{"krb5.conf": "words\n" + quiet + "# default_realm = SIX\r\n  default_realm = \"ONE\"  \r\n[realms]\r\n;SIX = {\n" + "TWO" + closed}, []string{"TWO"}, "ONE"},
		"the first default":              {map[string]string{"krb5.conf": quiet + "default_realm = ONE\ndefault_realm = SIX\n[realms]\nTWO" + closed}, []string{"TWO"}, "ONE"},
		"an include before everything":   {map[string]string{"krb5.conf": "include DIR/more\n" + quiet + "default_realm = SIX\n", "more": "[libdefaults]\ndefault_realm = ONE\n[realms]\nTWO" + closed}, []string{"TWO"}, "ONE"},
		"an include within a section":    {map[string]string{"krb5.conf": quiet + "default_realm = ONE\n[realms]\ninclude DIR/more\nSIX" + closed, "more": "[realms]\nTWO" + closed}, []string{"TWO", "SIX"}, "ONE"},
		"a directory of several":         {map[string]string{"krb5.conf": "includedir DIR/d\n" + quiet + "default_realm = ONE\n", "d/a.conf": "[realms]\nTWO" + closed, "d/b.rpmnew": "[realms]\nSIX" + closed, "d/c": "[realms]\nONE" + closed}, []string{"TWO", "ONE"}, "ONE"},
		"final sections and values":      {map[string]string{"krb5.conf": "[libdefaults]*\ndns_lookup_kdc = false\ndefault_realm* = ONE\n[realms]*\nTWO" + closed}, []string{"TWO"}, "ONE"},
		"a brace on the next line":       {map[string]string{"krb5.conf": quiet + "default_realm = ONE\n[realms]\nTWO =\n{\n kdc = 127.0.0.1:1\n}\n"}, []string{"TWO"}, "ONE"},
		"braces in braces":               {map[string]string{"krb5.conf": quiet + "default_realm = ONE\n[realms]\nTWO = {\n kdc = 127.0.0.1:1\n auth_to_local_names = {\n  SIX = {\n  kdc = 127.0.0.1:1\n  }\n }\n}\n"}, []string{"TWO"}, "ONE"},
		"tabs, and no blanks around '='": {map[string]string{"krb5.conf": quiet + "\tdefault_realm=ONE\n[realms]\n\tTWO={\n\t\tkdc=127.0.0.1:1\n\t}\n"}, []string{"TWO"}, "ONE"},
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
			config := filepath.Join(dir, "krb5.conf")
			kinit := func(principal string) string {
				x := exec.CommandContext(t.Context(), "kinit", "-c", "FILE:"+filepath.Join(dir, "cc"), principal)
				x.Env, x.Stdin = append(os.Environ(), "KRB5_CONFIG="+config, "LC_ALL=C"), strings.NewReader("x\n")
				said, err := x.CombinedOutput()
				require.Error(t, err, string(said))
				return string(said)
			}
			k := krb.New(krb.Options{Dir: t.TempDir(), Krb5Config: config, Realms: []string{"NONE"}})
			t.Cleanup(func() { require.NoError(t, k.Close()) })
			_, err := k.Ticket(t.Context(), krb.Credential{Username: "robot", Password: "x"})
			require.ErrorContains(t, err, `is of the realm "`+c.base+`"`)
			said := kinit("robot")
			require.Equal(t, c.base, ofClient.FindStringSubmatch(said)[1], said)

			all := krb.New(krb.Options{Dir: t.TempDir(), Krb5Config: config})
			t.Cleanup(func() { require.NoError(t, all.Close()) })
			for _, realm := range []string{"ONE", "TWO", "SIX"} {
				said := kinit("robot@" + realm)
				knows := strings.Contains(said, "Cannot contact any KDC")
				require.NotEqual(t, knows, strings.Contains(said, "Cannot find KDC"), said)
				_, err := all.Ticket(t.Context(), krb.Credential{Username: "robot@" + realm, Password: "x"})
				var e *krb.Error
				require.ErrorAs(t, err, &e)
				require.Equal(
					t,
					knows || realm == c.base,
					e.Kind != krb.RealmNotAllowed,
					"%s: %s; %s",
					realm,
					said,
					e.Message,
				)
				require.Equal(t, slices.Contains(c.named, realm), knows, said)
			}
		})
	}
}
