package submit

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/programtest"
)

func withURLs() Description {
	d := description()
	d.AllowSchemes = []string{"https", "root"}
	d.Inputs = []Input{{Name: "a", URL: "wlcg+https://h/a"}, {Name: "b", URL: "root://h//b"}}
	d.Outputs = []Output{{Path: "out", URL: "root://h//out"}}
	d.Credentials = []Credential{
		{Name: "atlas", Variable: variableProxy, Content: "old proxy\n"},
		{Name: "wlcg", Variable: variableBearer, Content: "old token\n"},
	}
	return d
}

func TestAJobWhoseURLsNeedCredentialsBringsPlugins(t *testing.T) {
	d := withURLs()
	d.Options = "requirements = Memory > 1"
	s, err := d.Render()
	require.NoError(t, err)
	text := textOf(s, FileSubmit)
	require.Contains(t, text, "\ntransfer_plugins = https=.htcd-plugin-https; root=.htcd-plugin-root\n")
	require.Contains(t, text, "\nrequirements = stringListIMember(\"https\", TARGET.HasFileTransferPluginMethods) && "+
		"stringListIMember(\"root\", TARGET.HasFileTransferPluginMethods) && (TARGET.HasDisableUserTransferPlugins ?: 0) == 0 && Memory > 1\n")
	require.Contains(t, text, ".htcd-plugin-https, .htcd-plugin-root, wlcg+https://h/a, root://h//b")
	require.Contains(t, textOf(s, fileJob), "\nplugins='.htcd-plugin-https .htcd-plugin-root'\n")

	d.Outputs = nil
	s, err = d.Render()
	require.NoError(t, err)
	require.Contains(t, textOf(s, fileJob), "\nplugins=''\n", "none runs after the script")

	d.Inputs = []Input{{Name: "a", URL: "https://h/a"}}
	d.Credentials = d.Credentials[1:]
	s, err = d.Render()
	require.NoError(t, err, "the token may be for the script alone")
	require.NotContains(t, textOf(s, FileSubmit), "plugin")
}

func TestURLsThatNameNoTokenOfTheJobAreRefused(t *testing.T) {
	for url, words := range map[string]string{
		"other+https://h/a":     "other before the + is not the name",
		"atlas+https://h/a":     "atlas before the + is not the name",
		"wlcg+wlcg+https://h/a": "this site allows the schemes",
		"wlcg+file:///etc/a":    "this site allows the schemes",
		"x-file:///etc/a":       "this site allows the schemes",
		"wlcg+ftp://h/a":        "this site allows the schemes",
	} {
		d := withURLs()
		d.Inputs = []Input{{Name: "a", URL: url}}
		_, err := d.Render()
		require.ErrorContains(t, err, words, url)
		require.Equal(t, condor.Refused, condor.KindOf(err))
		d = withURLs()
		d.Outputs = []Output{{Path: "out", URL: url}}
		_, err = d.Render()
		require.ErrorContains(t, err, words, url)
	}
	for _, scheme := range []string{"x+file", "a-b", "a.b"} {
		require.Error(t, CheckSchemes([]string{scheme}), scheme)
	}
}

// A node has three plugins: one that takes a list, one for single files, and one for single files that fails.
func nodePlugins(t *testing.T, bin string) {
	for name, text := range map[string]string{
		"list":   "printf '%s\\n' 'SupportedMethods = \"http, https\"' 'MultipleFileSupport = TRUE'; exit\nfi\necho \"$* $X509_USER_PROXY $_CONDOR_CREDS\"; cat \"$_CONDOR_CREDS\"/* \"$X509_USER_PROXY\"; cat \"$2\" >\"$4\"; exit 3",
		"single": "printf '%s\\n' 'SupportedMethods = \"root\"'; exit\nfi\necho \"$1 $2 $BEARER_TOKEN_FILE\" >>single.log; cat \"$X509_USER_PROXY\" $BEARER_TOKEN_FILE >>single.log",
		"fails":  "printf '%s\\n' 'SupportedMethods = \"s3\"'; exit\nfi\necho 'TransferError = \"it said \"no\\\\\"'; exit 1",
		"broken": "exit 1; fi",
	} {
		programtest.Write(t, filepath.Join(bin, name), "#!/bin/sh\nif [ \"$1\" = -classad ]; then "+text+"\n")
	}
	programtest.Write(t, filepath.Join(bin, "condor_config_val"), fmt.Sprintf(
		"#!/bin/sh\necho '%[1]s/list, %[1]s/none, %[1]s/broken, %[1]s/single,%[1]s/fails'\n", bin))
}

func TestThePluginRunsThatOfTheNodeWithTheCredentials(t *testing.T) {
	fresh := base64.StdEncoding.EncodeToString([]byte("new proxy\n"))
	for shell, argv := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			url, ca := puller(t, func(_ int, q *http.Request) (int, string) {
				if q.Header.Get("Authorization") != "Bearer pull-token" {
					return http.StatusForbidden, ""
				}
				return http.StatusOK, "htcd1 600 d1\natlas " + fresh + "\nend\n"
			})
			d := withURLs()
			d.AllowSchemes = []string{"https", "root", "s3", "gone"}
			d.Inputs = append(d.Inputs, Input{Name: "c", URL: "s3://h/c"}, Input{Name: "d", URL: "gone://h/d"})
			d.PullURL, d.CallbackCA = url, ca
			s := pulling(t, d, map[string]string{"curl": "", "tr": "", "cut": "", "cp": ""})
			nodePlugins(t, s.bin)
			run := func(scheme, list string, arguments ...string) (string, string, error) {
				in, out := filepath.Join(s.dir, "in"), filepath.Join(s.dir, "answer")
				require.NoError(t, os.WriteFile(in, []byte(list), 0o600))
				c := exec.Command(
					argv[0],
					append(
						append(append([]string{}, argv[1:]...), filePlugin+scheme, "-infile", in, "-outfile", out),
						arguments...)...)
				c.Dir, c.Env = s.dir, []string{"PATH=" + s.bin}
				said, err := c.CombinedOutput()
				answer, readErr := os.ReadFile(out)
				require.NoError(t, readErr)
				return string(said), string(answer), err
			}

			said, answer, err := run("https", "the list")
			require.ErrorContains(t, err, "exit status 3")
			require.Equal(t, "the list", answer)
			require.Contains(t, said, s.dir+"/.credential-atlas "+s.dir+"/.htcd-creds\nold token\nnew proxy\n")
			require.NoDirExists(t, filepath.Join(s.dir, ".htcd-creds"))

			// The script's end: the token for the pull is gone, and the wrapper has left what it had.
			require.NoError(t, os.Remove(filepath.Join(s.dir, "token")))
			_, answer, err = run(
				"root",
				`[ Url = "root://[::1]:1//b"; LocalFileName = "/s/b c" ][ LocalFileName = "/s/out"; Url = "wlcg+root://h//out" ]`,
				"-upload",
			)
			require.NoError(t, err)
			require.Equal(
				t,
				`[ TransferSuccess = true; TransferUrl = "root://[::1]:1//b"; TransferFileName = "b c"; TransferProtocol = "root"; TransferType = "upload" ]
[ TransferSuccess = true; TransferUrl = "wlcg+root://h//out"; TransferFileName = "out"; TransferProtocol = "root"; TransferType = "upload" ]
`,
				answer,
			)
			log, err := os.ReadFile(filepath.Join(s.dir, "single.log"))
			require.NoError(t, err)
			require.Equal(
				t,
				"/s/b c root://[::1]:1//b \nnew proxy\n/s/out root://h//out "+s.dir+"/.credential-wlcg\nnew proxy\nold token\n",
				string(log),
			)

			_, answer, err = run("s3", `[ Url = "s3://h/c"; LocalFileName = "/s/c" ]`)
			require.Error(t, err)
			require.Contains(t, answer, `TransferSuccess = false; TransferUrl = "s3://h/c"`)
			require.Contains(t, answer, `TransferError = "it said 'no/" ]`)
			_, answer, err = run("gone", `[ Url = "gone://h/d"; LocalFileName = "/s/d" ]`)
			require.Error(t, err)
			require.Contains(t, answer, "this node has no transfer plugin for gone")
			left, err := filepath.Glob(filepath.Join(s.dir, ".htcd-[cu]*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestTheScriptCannotChangeAPluginThatRunsAfterIt(t *testing.T) {
	d := withURLs()
	d.Command, d.Source = "sh", `ls -A
for f in .htcd-plugin-root .credential-atlas .htcd-urls .htcd-creds "$APPTAINERENV_HTC_CREDENTIALS/atlas"; do rm -f "$f"; ln -s /etc/passwd "$f"; done
`
	s := node(t, d, map[string]string{"apptainer": fakeApptainer, "sh": "", "stat": "", "find": "", "ls": "", "ln": ""})
	before, err := os.ReadFile(filepath.Join(s.dir, ".htcd-plugin-root"))
	require.NoError(t, err)
	_, stdout, _ := s.run(t)
	require.Contains(t, strings.Fields(stdout), "script")
	require.NotContains(t, stdout, "plugin", "it does not see it")
	plugin, err := os.ReadFile(filepath.Join(s.dir, ".htcd-plugin-root"))
	require.NoError(t, err)
	require.Equal(t, string(before), string(plugin))
	info, err := os.Lstat(filepath.Join(s.dir, ".credential-atlas"))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode(), "a file, not the script's link")
	text, err := os.ReadFile(filepath.Join(s.dir, ".credential-atlas"))
	require.NoError(t, err)
	require.Equal(t, "old proxy\n", string(text), "the plugins that write the outputs find it")
	for _, planted := range []string{".htcd-urls", ".htcd-creds"} {
		_, err := os.Lstat(filepath.Join(s.dir, planted))
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}

func TestImagesOfRegistriesAreKnown(t *testing.T) {
	for image, registry := range map[string]string{
		"centos": "default.example.org", "docker://centos": "docker.io", "docker://a.org:5000/g/i:v1": "a.org:5000", "oras://a.org/i": "a.org",
		"library://a.org/i": "", "/cvmfs/i": "", "ftp://a.org/i": "", "group/image": "default.example.org",
	} {
		require.Equal(t, registry, ImageRegistry(image, "default.example.org/x"), image)
	}
}
