package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// description returns one that is fit to be sent.
func description() Description {
	return Description{
		Tag: condor.Tag{
			UID:       "7f1f7c0e-8a43-4c0e-9d57-2f1b9bb1c7a1",
			Attempt:   1,
			Namespace: "default",
			Name:      "zero",
		},
		BatchName: "zero",
		Queue:     1,
		Image:     "docker://centos",
		Command:   "bash",
		Source:    "echo A\n",
	}
}

// submitText returns the submit description of d.
func submitText(d Description) (string, error) {
	s, err := d.Render()
	return textOf(s, FileSubmit), err
}

// textOf returns the content of a sandbox's file.
func textOf(s Sandbox, name string) string {
	for _, f := range s.Files {
		if f.Name == name {
			return f.Text()
		}
	}
	return ""
}

// stageIn renders and stages d.
func stageIn(dir string, d Description, token string) error {
	s, err := d.Render()
	if err != nil {
		return err
	}
	return Stage(dir, s, token)
}

func TestOptionsGolden(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/htcopts.txtar")
	require.NoError(t, err)
	for i := 0; i < len(ar.Files); i += 2 {
		in, want := ar.Files[i], ar.Files[i+1]
		t.Run(in.Name, func(t *testing.T) {
			require.Equal(t, "want", want.Name)
			options, err := parseOptions(string(in.Data), allowances{named: []string{"batch_project", "+ProjectX"}})
			if refusal, ok := strings.CutPrefix(string(want.Data), "! "); ok {
				require.EqualError(t, err, strings.TrimSuffix(refusal, "\n"))
				require.Equal(t, condor.Refused, condor.KindOf(err))
				return
			}
			require.NoError(t, err)
			var got strings.Builder
			for _, o := range options {
				got.WriteString(o.String())
			}
			require.Equal(t, string(want.Data), got.String())
			again, err := parseOptions(got.String(), allowances{named: []string{"batch_project", "+ProjectX"}})
			require.NoError(t, err)
			require.Equal(t, options, again)
		})
	}
}

func TestOptionsRefuseControlCharacters(t *testing.T) {
	for in, at := range map[string]string{
		"rank = 1\rqueue 5":                "column 9",
		"rank = 1\x00":                     "column 9",
		"+JobFlavour = \"a\x0bqueue\"":     "column 17",
		"accounting_group = a\x1b[31m":     "column 21",
		"batch_project = x\x7f":            "column 18",
		"# fine\r\nrank = 1\r\nrank = 2\r": "line 3, column 9",
	} {
		_, err := parseOptions(in, allowances{named: []string{"batch_project"}})
		require.ErrorContains(t, err, at, "%q", in)
		require.ErrorContains(t, err, "control character")
	}
}

func TestDescriptionGolden(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/describe.txtar")
	require.NoError(t, err)
	full := description()
	full.BatchName, full.Queue, full.Tag.Attempt = `say "hi" to a\b`, 300, 2
	full.Options = "+JobFlavour = \"espresso\"\nnotification = Always\n"
	full.Image, full.Command = "/cvmfs/unpacked.cern.ch/registry/img:1", "bash  -c\tit's; $(rm -rf /) \"`"
	full.Command = strings.ReplaceAll(full.Command, "\t", " ")
	full.Binds, full.CallbackURL = []string{"/cvmfs", "/eos"}, "http://htcd.example.org:8088/cloudevents"
	full.CallbackDeadline, full.Sender = 30*time.Second, "/usr/bin/htcd"
	for i, d := range []Description{description(), full} {
		s, err := d.Render()
		require.NoError(t, err)
		require.Equal(t, d.Queue, s.Procs)
		require.Equal(t, string(ar.Files[2*i].Data), textOf(s, FileSubmit))
		head, ok := strings.CutSuffix(textOf(s, fileJob), callbackBody+wrapperBody)
		require.True(t, ok)
		require.Equal(t, string(ar.Files[2*i+1].Data), head)
	}
}

func TestDescriptionsThatCannotBeSentAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Description)
		words  string
	}{
		"no UID":                                {func(d *Description) { d.Tag.UID = "" }, "UID"},
		"a UID with a quote":                    {func(d *Description) { d.Tag.UID = `a"b` }, "UID"},
		"no attempt":                            {func(d *Description) { d.Tag.Attempt = 0 }, "attempt"},
		"a namespace with a line break":         {func(d *Description) { d.Tag.Namespace = "a\nqueue" }, "namespace"},
		"a name with a blank":                   {func(d *Description) { d.Tag.Name = "a b" }, "name"},
		"a name of too many letters":            {func(d *Description) { d.Tag.Name = strings.Repeat("a", 254) }, "name"},
		"nothing to queue":                      {func(d *Description) { d.Queue = 0 }, "queue 0"},
		"a batch name of two lines":             {func(d *Description) { d.BatchName = "a\nqueue 5" }, "control character 0x0a at byte 2"},
		"a batch name with a macro":             {func(d *Description) { d.BatchName = "$ENV(HOME)" }, "macro"},
		"a batch name that ends in a backslash": {func(d *Description) { d.BatchName = `a\` }, "backslash"},
		"no image":                              {func(d *Description) { d.Image = "" }, "image"},
		"an image that is not allowed":          {func(d *Description) { d.AllowImages = []string{"docker://physics"} }, "image docker://centos is not among those"},
		"an image that is an option":            {func(d *Description) { d.Image = "--bind=/" }, "image"},
		"an image with a quote":                 {func(d *Description) { d.Image = "docker://a'b" }, "image"},
		"no command":                            {func(d *Description) { d.Command = "  " }, "command"},
		"a command that is an option":           {func(d *Description) { d.Command = "--help" }, "command"},
		"a command of two lines":                {func(d *Description) { d.Command = "bash\nrm" }, "command"},
		"a bind with a blank":                   {func(d *Description) { d.Binds = []string{"/a b"} }, "bind"},
		"a bind with a target":                  {func(d *Description) { d.Binds = []string{"/a:/etc"} }, "bind"},
		"a callback to a file":                  {func(d *Description) { d.CallbackURL = "file:///etc/passwd" }, "callback URL"},
		"options that are refused":              {func(d *Description) { d.Options = "queue" }, "htcopts, line 1, column 1"},
	} {
		t.Run(name, func(t *testing.T) {
			d := description()
			c.change(&d)
			_, err := d.Render()
			require.ErrorContains(t, err, c.words)
			require.Equal(t, condor.Refused, condor.KindOf(err))
			require.Error(t, stageIn(t.TempDir(), d, "token"))
		})
	}
}

func TestAnImageIsResolvedAndThenComparedWithThePatterns(t *testing.T) {
	d := description()
	d.Image, d.ImageRegistry, d.AllowImages = "centos", "registry.example.org/physics", []string{
		"docker://registry.example.org/physics/*",
	}
	s, err := d.Render()
	require.NoError(t, err)
	require.Contains(t, textOf(s, fileJob), "image='docker://registry.example.org/physics/centos'\n")
}

func TestOnlyHTCondorCanTellTheEndOfWhatItMayRunAgain(t *testing.T) {
	for options, deferred := range map[string]bool{
		"":                      false,
		"+JobFlavour = \"x\"":   false,
		"request_cpus = 2":      false,
		"request_fpga = 2":      false,
		"max_retries = 2":       true,
		"Success_Exit_Code = 3": true,
		"site_command = 1":      true,
		"queue":                 false, // refused anyway
	} {
		d := description()
		d.Options, d.Allow = options, []string{"site_command"}
		s, _ := d.Render()
		require.Equal(t, deferred, s.Deferred, options)
	}
}

func TestStageWritesTheSandboxWithItsModes(t *testing.T) {
	dir := t.TempDir()
	sender := filepath.Join(dir, "sender")
	require.NoError(t, os.WriteFile(sender, []byte("binary"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "token"), []byte("older, and longer than the new one"), 0o644))
	d := description()
	d.Sender = sender
	require.NoError(t, stageIn(dir, d, "tok-0123456789"))
	for name, want := range map[string]struct {
		mode os.FileMode
		text string
	}{"token": {0o600, "tok-0123456789\n\n"}, "script": {0o644, "echo A\n"}, "htcd-send": {0o755, "binary"}} {
		st, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want.mode, st.Mode().Perm(), name)
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want.text, string(text), name)
	}
	for _, name := range []string{"job.sub", "job.sh", "script", "htcd-send"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NotContains(t, string(text), "tok-0123456789", name)
	}
	require.Error(t, stageIn(filepath.Join(dir, "absent"), d, "secret"))
	require.NotEqual(t, condor.Refused, condor.KindOf(stageIn(filepath.Join(dir, "absent"), d, "secret")))
}

func TestResolveImage(t *testing.T) {
	for in, want := range map[string]string{
		"centos":                           "docker://reg.cern.ch:5000/hub/centos",
		"library/centos:7":                 "docker://reg.cern.ch:5000/hub/library/centos:7",
		"docker.io/centos":                 "docker://docker.io/centos",
		"localhost/centos":                 "docker://localhost/centos",
		"127.0.0.1:5000/centos@sha256:abc": "docker://127.0.0.1:5000/centos@sha256:abc",
		"docker://centos":                  "docker://centos",
		"oras://ghcr.io/x/y:1":             "oras://ghcr.io/x/y:1",
		"library://lolcow":                 "library://lolcow",
		"/cvmfs/unpacked.cern.ch/gitlab-registry.cern.ch/x/y:latest/": "/cvmfs/unpacked.cern.ch/gitlab-registry.cern.ch/x/y:latest/",
		"/images/a.sif": "/images/a.sif",
	} {
		got, err := resolveImage(in, "reg.cern.ch:5000/hub")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := resolveImage("centos", "")
	require.NoError(t, err)
	require.Equal(t, "docker://centos", got)
	for _, bad := range []string{"", "-x", "a b", "http://x/y", "shub://x", "docker-archive:/x", "docker://", "/a/../etc", "/", "/a b", "a\nb", "a'b", "$(x)", "/x,y", "a:/x", "a//b", "a:b:c", "host:x/y"} {
		_, err := resolveImage(bad, "")
		require.Equal(t, condor.Refused, condor.KindOf(err), "%q", bad)
	}
}
