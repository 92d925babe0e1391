package submit

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// puller serves credentials; answer is what it says, for the number of the question.
func puller(t *testing.T, answer func(int, *http.Request) (int, string)) (url, ca string) {
	t.Helper()
	var asked atomic.Int32
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		status, text := answer(int(asked.Add(1)), q)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/credentials/u/1", string(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
	)
}

func withCredentials(script string) Description {
	d := description()
	d.Command, d.Source = "sh", script
	d.Credentials = []Credential{
		{Name: "atlas", Variable: "X509_USER_PROXY", Content: "first\n"},
		{Name: "eos.keytab", Content: "\x00key\xfftab\n\n"},
	}
	return d
}

// pulling puts the tokens and the first copies where Stage and HTCondor would.
func pulling(t *testing.T, d Description, tools map[string]string) scratch {
	t.Helper()
	s := node(t, d, tools)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "token"), []byte("tok-0123456789\npull-token\n"), 0o600))
	return s
}

const showCredentials = `cd "$HTC_CREDENTIALS" || exit 3
[ "$X509_USER_PROXY" = "$PWD/atlas" ] || exit 4
for f in *; do stat -c '%a %n' "$f"; cat "$f"; done
`

func TestWrapperPlacesTheCredentialsThatCameAlong(t *testing.T) {
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			s := node(
				t,
				withCredentials(showCredentials),
				map[string]string{"apptainer": fakeContainer, "sh": "", "stat": ""},
			)
			s.shell = argv
			code, stdout, stderr := s.run(t)
			require.Equal(t, 0, code, stderr)
			require.Equal(t, "600 atlas\nfirst\n600 eos.keytab\n\x00key\xfftab\n\n", stdout)
			left, err := filepath.Glob(filepath.Join(s.dir, ".*"))
			require.NoError(t, err)
			require.NotContains(t, fmt.Sprint(left), "credential")
		})
	}
}

// fakeContainer removes the prefixes of variables, as apptainer does inside.
const fakeContainer = `#!/bin/sh
for v in HTC_CREDENTIALS X509_USER_PROXY; do eval "export $v=\"\$APPTAINERENV_$v\""; done
` + enterFake + `
exec "$@"
`

func TestWrapperPullsBeforeTheScriptAndWhileItRuns(t *testing.T) {
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, client := range []string{"curl", "wget"} {
		for shell, argv := range shellsOf(t, client) {
			t.Run(shell+" "+client, func(t *testing.T) {
				t.Parallel()
				var second atomic.Value
				url, ca := puller(t, func(n int, q *http.Request) (int, string) {
					if q.Header.Get("Authorization") != "Bearer pull-token" {
						return http.StatusForbidden, ""
					}
					switch n {
					case 1:
						return http.StatusOK, "htcd1 1 d1\natlas " + encoded(
							"second\n",
						) + "\n../../evil " + encoded(
							"evil",
						) + "\nend\n"
					case 2:
						second.Store(q.URL.Query().Get("have"))
						return http.StatusOK, "htcd1 1 d1\nend\n"
					case 3: // cut off
						return http.StatusOK, "htcd1 1 d2\natlas " + encoded("never") + "\n"
					case 4:
						return http.StatusServiceUnavailable, "try again"
					}
					return http.StatusOK, "htcd1 600 d3\natlas " + encoded("third\n") + "\nend\n"
				})
				d := withCredentials(`n=0; last=
while [ "$last" != third ]; do
	now=$(cat "$X509_USER_PROXY") || exit 5
	[ "$now" = "$last" ] || echo "$now"
	last=$now; sleep 0.1; n=$((n + 1)); [ $n -lt 600 ] || exit 6
done
cat "$HTC_CREDENTIALS/eos.keytab"
rm -rf "$HTC_CREDENTIALS" || exit 7
`)
				d.PullURL, d.CallbackCA = url, ca
				s := pulling(t, d, map[string]string{"apptainer": fakeContainer, "sh": "", client: ""})
				s.shell = argv
				began := time.Now()
				code, stdout, stderr := s.run(t)
				require.Equal(t, 0, code, stdout+stderr)
				require.Empty(t, stderr)
				require.Equal(t, "second\nthird\n\x00key\xfftab\n\n", stdout)
				require.Equal(t, "d1", second.Load())
				require.NoFileExists(t, filepath.Join(s.dir, "..", "evil"))
				require.Less(t, time.Since(began), 5*time.Minute, "it does not wait for the next question")
			})
		}
	}
}

// What the script puts in the place of its credentials changes nothing outside.
func TestTheScriptCannotLeadThePullElsewhere(t *testing.T) {
	for _, client := range []string{"curl", "wget"} {
		for shell, argv := range shellsOf(t, client) {
			t.Run(shell+" "+client, func(t *testing.T) {
				t.Parallel()
				url, ca := puller(t, func(n int, _ *http.Request) (int, string) {
					return http.StatusOK, fmt.Sprintf(
						"htcd1 1 d%d\natlas %s\nend\n",
						n,
						base64.StdEncoding.EncodeToString(fmt.Append(nil, "pulled ", n)),
					)
				})
				d := withCredentials(`set -e
printf '#!/bin/sh\necho ran >%s/ran\n' "$PWD" >evil; chmod 755 evil
cd "$HTC_CREDENTIALS"
echo 1 >../../../target
for f in .answer .part .given .digest .pause .ca atlas; do ln -sf ../../../target "$f"; done
for d in . .. "$OLDPWD"; do printf 'use_askpass = %s/evil\noutput_document = %s/ran\n' "$OLDPWD" "$OLDPWD" >"$d/.wget"; cp "$d/.wget" "$d/.wgetrc"; done
n=0; while [ -L atlas ]; do sleep 0.1; n=$((n + 1)); [ $n -lt 1200 ] || exit 6; done
cat atlas ../../../target; [ -L .part ] && [ -L .given ] && [ ! -e "$OLDPWD/ran" ]
`)
				d.PullURL, d.CallbackCA = url, ca
				s := pulling(t, d, map[string]string{"apptainer": fakeContainer, "sh": "", client: "", "ln": ""})
				s.shell = argv
				code, stdout, stderr := s.run(t)
				require.Equal(t, 0, code, stdout+stderr)
				require.Regexp(t, `^pulled \d+1\n$`, stdout)
			})
		}
	}
}

func TestAJobKeepsItsCredentialWhenNobodyAnswers(t *testing.T) {
	d := withCredentials(showCredentials)
	d.PullURL = "https://127.0.0.1:1/credentials/u/1"
	code, stdout, stderr := pulling(
		t,
		d,
		map[string]string{"apptainer": fakeContainer, "sh": "", "curl": "", "stat": ""},
	).run(
		t,
	)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, stdout, "600 atlas\nfirst\n")
	require.Empty(t, stderr)
}

func TestCredentialsThatCannotBeAreRefused(t *testing.T) {
	many := make([]Credential, 17)
	for i := range many {
		many[i].Name = fmt.Sprint("c", i)
	}
	for says, change := range map[string]func(*Description){
		"expected a name":  func(d *Description) { d.Credentials = []Credential{{Name: "../a"}} },
		"a is there twice": func(d *Description) { d.Credentials = []Credential{{Name: "a"}, {Name: "a"}} },
		"two have their path": func(d *Description) {
			d.Credentials = []Credential{{Name: "a", Variable: "X"}, {Name: "b", Variable: "X"}}
		},
		"cannot be the path": func(d *Description) { d.Credentials = []Credential{{Name: "a", Variable: "x y"}} },
		"at most 64 KiB": func(d *Description) {
			d.Credentials = []Credential{{Name: "a", Content: string(make([]byte, 64<<10+1))}}
		},
		"at most 16":            func(d *Description) { d.Credentials = many },
		"because of the cred":   func(d *Description) { d.Environment = map[string]string{"X509_USER_PROXY": "/x"} },
		"because of spec.cred":  func(d *Description) { d.Environment = map[string]string{"HTC_CREDENTIALS": "/x"} },
		"expected https://":     func(d *Description) { d.PullURL = "http://x/credentials" },
		"URL of credentials \"": func(d *Description) { d.PullURL = "https://x/'" },
	} {
		d := withCredentials("exit 0")
		change(&d)
		_, err := d.Render()
		require.ErrorContains(t, err, says)
		require.Equal(t, condor.Refused, condor.KindOf(err))
	}
}

func TestCredentialsAreStagedForTheirOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	s, err := withCredentials("exit 0").Render()
	require.NoError(t, err)
	require.NoError(t, Stage(dir, s, "one", "two"))
	text, err := os.ReadFile(filepath.Join(dir, "token"))
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\n", string(text))
	info, err := os.Stat(filepath.Join(dir, ".credential-atlas"))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode())
}
