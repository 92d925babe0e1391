package schedd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/classad"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// A naive description copies htcopts unchecked. These tests show what the real condor_submit then does, and that htcd
// refuses the same lines.

const secret = "s3cret"

var queues = regexp.MustCompile(`(?m)^queue `)

// naive stages b.d in dir, then inserts a user's lines unchanged before the queue statement, or in its place:
// condor_submit 25 accepts only one, the first.
func (b *bench) naive(dir, lines string) {
	b.t.Helper()
	require.NoError(b.t, stage(dir, b.d))
	file := filepath.Join(dir, "job.sub")
	ours, err := os.ReadFile(file)
	require.NoError(b.t, err)
	head, ok := strings.CutSuffix(string(ours), "queue 1\n")
	require.True(b.t, ok)
	if !queues.MatchString(lines) {
		lines += "\nqueue 1"
	}
	require.NoError(b.t, os.WriteFile(file, []byte(head+lines+"\n"), 0o644))
}

func (b *bench) refuses(lines string) {
	b.t.Helper()
	d := b.d
	d.Options = lines
	_, err := d.Render()
	require.Equal(b.t, condor.Refused, condor.KindOf(err), lines)
	require.ErrorContains(b.t, err, "htcopts, line ")
}

func TestWhatANaiveDescriptionLetsCondorSubmitDo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{
		"evil":   "#!/bin/sh\necho ran >" + in("ran") + "\necho '+Stolen = 1'\n",
		"lines":  "+Stolen = \"" + secret + "\"\n",
		"secret": secret + "\n",
	} {
		require.NoError(t, os.WriteFile(in(name), []byte(text), 0o700))
	}
	says := func(attribute, words string) func(*testing.T, []classad.Ad) {
		return func(t *testing.T, ads []classad.Ad) {
			for _, ad := range ads {
				if strings.Contains(ad.Get(attribute).String(), words) {
					return
				}
			}
			t.Errorf("no %s with %s", attribute, words)
		}
	}
	runs := func(t *testing.T, _ []classad.Ad) { require.FileExists(t, in("ran")) }
	for name, c := range map[string]struct {
		lines  string
		effect func(*testing.T, []classad.Ad)
	}{
		"include runs a command":                           {"include : " + in("evil") + " |", runs},
		"include command runs a command":                   {"include command : " + in("evil"), runs},
		"include command into runs a command":              {"include command into " + in("cache") + " : " + in("evil"), runs},
		"at include runs a command":                        {"@include : " + in("evil") + " |", runs},
		"queue from runs a command":                        {"queue x from " + in("evil") + " |", runs},
		"include reads a file":                             {"include : " + in("lines"), says("Stolen", secret)},
		"at include reads a file":                          {"@include : " + in("lines"), says("Stolen", secret)},
		"queue from reads a file":                          {"+Stolen = \"$(x)\"\nqueue x from " + in("secret"), says("Stolen", secret)},
		"queue matching finds files":                       {"+Stolen = \"$(x)\"\nqueue x matching " + in("sec*"), says("Stolen", in("secret"))},
		"a macro reads the environment":                    {"+Stolen = \"$ENV(SECRET)\"", says("Stolen", secret)},
		"getenv reads the environment":                     {"getenv = True", says("Environment", secret)},
		"transfer_input_files takes a file along":          {"transfer_input_files = " + in("secret"), says("TransferInput", in("secret"))},
		"input takes a file along":                         {"input = " + in("secret"), says("In", in("secret"))},
		"executable takes a file along":                    {"executable = " + in("secret"), says("Cmd", in("secret"))},
		"container_image takes a file along":               {"container_image = " + in("secret"), says("TransferInput", in("secret"))},
		"initialdir moves to another directory":            {"initialdir = /", says("Iwd", `"/"`)},
		"output is written anywhere":                       {"output = /etc/x", says("Out", "/etc/x")},
		"output is written above":                          {"output = ../x", says("Out", "../x")},
		"error output is written anywhere":                 {"error = /etc/x", says("Err", "/etc/x")},
		"output files are written anywhere":                {`transfer_output_remaps = "a=/etc/x"`, says("TransferOutputRemaps", "a=/etc/x")},
		"the local universe is the schedd's host":          {"universe = local", says("JobUniverse", "12")},
		"the scheduler universe is the schedd's host":      {"universe = scheduler", says("JobUniverse", "7")},
		"the grid universe is somewhere else":              {"universe = grid\ngrid_resource = batch pbs", says("JobUniverse", "9")},
		"an attribute lets the job use the schedd's files": {"+WantIOProxy = True", says("WantIOProxy", "true")},
		"an attribute is another program":                  {`+Cmd = "/x"`, says("Cmd", `"/x"`)},
		"an attribute is another program, in any letters":  {`my.cMD = "/x"`, says("Cmd", `"/x"`)},
		"an attribute takes the job out of the queue":      {"+LeaveJobInQueue = False", says("LeaveJobInQueue", "false")},
		"an attribute is another's tag":                    {`+HTCJobUID = "another"`, says("HTCJobUID", "another")},
		"an attribute is another's tag, in any letters":    {`MY.htcjobuid = "another"`, says("HTCJobUID", "another")},
		"an attribute is a priority":                       {"+JobPrio = 99", says("JobPrio", "99")},
		"another account pays":                             {"accounting_group = a\naccounting_group_user = alice", says("AccountingGroup", "a.alice")},
		"the job runs again and again":                     {"cron_minute = *", says("CronMinute", "*")},
		"an attribute names a hook of the node":            {`+HookKeyword = "X"`, says("HookKeyword", "X")},
		"mail goes to anybody":                             {"notify_user = a@example.org", says("NotifyUser", "a@example.org")},
		"the schedd is given a macro that can end it":      {"arguments = $$(Unknown)", says("Args", "$$(Unknown)")},
		"a macro rebuilds a macro":                         {"arguments = $(DOLLAR)$(DOLLAR)(Unknown)", says("Args", "$$(DOLLAR)(Unknown)")},
		"a queue of one's own is more jobs":                {"queue 3", func(t *testing.T, ads []classad.Ad) { require.Len(t, ads, 3) }},
		"a return within a value vanishes":                 {"+X = \"a\rqueue 5\"", says("X", "queue 5")},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(in("ran"))
			b.naive(dir, c.lines)
			ads, err := dryRun(t.Context(), dir, "SECRET="+secret)
			require.NoError(t, err)
			c.effect(t, ads)
			b.refuses(c.lines)
		})
	}
	// A check of the user's text misses these: the escapes are resolved only when the name is written.
	for source, c := range map[string]struct {
		written string
		effect  func(*testing.T, []classad.Ad)
	}{
		`+JobDescription = '$ENV\50SECRET)'`:   {"+JobDescription = '$ENV(SECRET)'", says("JobDescription", secret)},
		`+JobDescription = '$\44(Unknown)'`:    {"+JobDescription = '$$(Unknown)'", says("JobDescription", "$$(Unknown)")},
		`requirements = '$ENV\50SECRET)' is x`: {"requirements = '$ENV(SECRET)' is x", says("Requirements", secret)},
		`+WantOS = MY.'\33[2J'`:                {"+WantOS = MY.'\x1b[2J'", says("WantOS", "[2J")},
	} {
		t.Run(source, func(t *testing.T) {
			b.naive(dir, c.written)
			ads, err := dryRun(t.Context(), dir, "SECRET="+secret)
			require.NoError(t, err)
			c.effect(t, ads)
			b.refuses(source)
		})
	}
	t.Run("a backslash at the end takes the queue statement away", func(t *testing.T) {
		b.naive(dir, `+X = 1 \`)
		_, err := dryRun(t.Context(), dir)
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Regexp(t, "no queue statement|X = 1 queue 1", string(exit.Stderr))
		b.refuses(`+X = 1 \`)
	})
}

func TestANaiveNameAddsLinesToTheDescription(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	name := "x\"\n+HTCJobUID = \"another\"\n+Y = \"y\"\nqueue 2\n#"
	b.naive(dir, "My.JobBatchName = \""+name+"\"")
	ads, err := dryRun(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, ads, 2)
	uid, _ := ads[0].Get("HTCJobUID").Str()
	require.Equal(t, "another", uid)
	b.d.BatchName = name
	_, err = b.d.Render()
	require.Equal(t, condor.Refused, condor.KindOf(err))
}

// sendNaive submits b.d with the lines unchanged and returns the job when it has ended.
func (b *bench) sendNaive(dir, lines string) condor.Job {
	b.t.Helper()
	b.naive(dir, lines)
	_, err := b.Submit(b.t.Context(), b.id, dir)
	require.NoError(b.t, err)
	b.t.Cleanup(b.remove)
	return b.until("ended", func(j condor.Job) bool { return j.Done() })[0]
}

func TestANaiveJobReadsAFileThatOnlyTheOperatorMayRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "private")
	require.NoError(t, os.WriteFile(file, []byte(secret), 0o600))
	b.d.Source = fmt.Sprintf(`test "$(cat private)" = %s && exit 42`, secret)
	lines := "transfer_input_files = script, token, " + file
	job := b.sendNaive(dir, lines)
	require.Equal(t, 42, *job.ExitCode)
	b.refuses(lines)
}

func TestANaiveJobWritesFilesOfTheOperators(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir, home := t.TempDir(), t.TempDir()
	b.d.Source = "echo evil; echo evil >mine"
	lines := fmt.Sprintf(
		"output = %s/.bashrc\ntransfer_output_files = mine\ntransfer_output_remaps = \"mine=%s/.profile\"",
		home,
		home,
	)
	job := b.sendNaive(dir, lines)
	fetch := exec.Command("condor_transfer_data", job.ID())
	fetch.Env = append(os.Environ(), "KRB5CCNAME="+b.id.CCache)
	out, err := fetch.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, name := range []string{".bashrc", ".profile"} {
		text, err := os.ReadFile(filepath.Join(home, name))
		require.NoError(t, err)
		require.Equal(t, "evil\n", string(text))
	}
	for l := range strings.Lines(lines) {
		if !strings.HasPrefix(l, "transfer_output_files") {
			b.refuses(l)
		}
	}
}
