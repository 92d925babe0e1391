package submit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// jobOptionsOf holds the cases of testdata/joboptions.txtar, which has the htcopts, in the same order.
var jobOptionsOf = map[string]JobOptions{
	"resources": {CPUs: 2, Memory: 2048, Disk: 10 << 20, GPUs: 1},
	"resources that htcopts say, too, in other words": {CPUs: 2, Memory: 2048, Disk: 2048},
	"what one machine must have, and who pays": {
		Requirements:    "OpSysMajorVer == 9\n  && HasSingularity",
		AccountingGroup: "group_u_CMS.u_zh",
	},
	"retries":                    {Retries: new(3)},
	"one other code is success":  {SuccessCodes: []int{3}},
	"retries until one code":     {Retries: new(3), SuccessCodes: []int{3}},
	"retries until any of codes": {Retries: new(3), SuccessCodes: []int{3, 5, 7}},
	"retries until any of codes, or one that htcopts name": {Retries: new(3), SuccessCodes: []int{0, 3}},
	"retries until any of codes, or what htcopts say":      {Retries: new(3), SuccessCodes: []int{0, 3}},
	"one that htcopts name, and an end of theirs":          {},
	"more memory": {Memory: 1000, MemoryRetry: &MemoryRetry{Most: 3000, Times: 3}},
	"more memory than htcopts ask for, and a release of the user's": {MemoryRetry: &MemoryRetry{Most: 16384, Times: 1}},
	"deadlines":                    {Deadlines: condor.Deadlines{HeldDeadline: 600, IdleDeadline: 86400}},
	"a deadline of each execution": {Deadlines: condor.Deadlines{RunDeadline: 3600}},
	"a deadline of each execution, and what the user releases": {
		Deadlines: condor.Deadlines{RunDeadline: 3600, HeldDeadline: 60},
	},
	"a deadline of each execution, said otherwise":   {Deadlines: condor.Deadlines{RunDeadline: 3600}},
	"a deadline and what the user removes":           {Deadlines: condor.Deadlines{IdleDeadline: 60}},
	"a deadline and a text that ends in a backslash": {Deadlines: condor.Deadlines{IdleDeadline: 60}},
	"a deadline and a choice between such texts":     {Deadlines: condor.Deadlines{IdleDeadline: 60}},
	"memory said otherwise":                          {Memory: 2000},
	"memory said otherwise by an expression":         {Memory: 2000},
	"the last of two says otherwise":                 {CPUs: 2},
	"gpus that there are to be none of":              {NoGPUs: true},
	"no gpus, said twice":                            {NoGPUs: true},
	"requirements said otherwise":                    {Requirements: "Memory > 1"},
	"retries said otherwise":                         {Retries: new(0)},
	"a success code said otherwise":                  {SuccessCodes: []int{3}},
	"one success code of two":                        {SuccessCodes: []int{3, 0}},
	"an accounting group as an attribute, too":       {AccountingGroup: "a"},
	"an accounting group for a nice user":            {AccountingGroup: "a"},
	"requirements that are none":                     {Requirements: "Memory >\n  > 3"},
	"requirements with a macro":                      {Requirements: `Machine == "$ENV(HOME)"`},
	"requirements with a macro in a name":            {Requirements: `'$ENV\50PATH)' =!= undefined`},
	"requirements longer than the CRD lets them be": {
		Requirements: "true " + strings.Repeat("ä", maxRequirements),
	},
	"more memory than nobody asked for": {MemoryRetry: &MemoryRetry{Most: 16384, Times: 1}},
	"more memory than an expression":    {MemoryRetry: &MemoryRetry{Most: 16384, Times: 1}},
	"more memory than none":             {MemoryRetry: &MemoryRetry{Most: 16384, Times: 1}},
	"no more memory than before": {
		Memory:      1000,
		MemoryRetry: &MemoryRetry{Most: 1000, Times: 1},
	},
	"a group of odd letters":           {AccountingGroup: "a b"},
	"less than nothing":                {CPUs: -1},
	"more than there is":               {Memory: mostMemory + 1},
	"a code that no process ends with": {SuccessCodes: []int{256}},
	"fewer retries than none":          {Retries: new(-1)},
	"a deadline before the beginning":  {Deadlines: condor.Deadlines{IdleDeadline: -1}},
	"a memory retry that never tries":  {Memory: 1, MemoryRetry: &MemoryRetry{Most: 2}},
}

func TestJobOptionsGolden(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/joboptions.txtar")
	require.NoError(t, err)
	require.Len(t, ar.Files, 2*len(jobOptionsOf))
	usual, err := submitText(description())
	require.NoError(t, err)
	for i := 0; i < len(ar.Files); i += 2 {
		in, want := ar.Files[i], ar.Files[i+1]
		t.Run(in.Name, func(t *testing.T) {
			options, there := jobOptionsOf[in.Name]
			require.True(t, there)
			d := description()
			d.Options, d.JobOptions = string(in.Data), options
			text, err := submitText(d)
			if refusal, ok := strings.CutPrefix(string(want.Data), "! "); ok {
				require.EqualError(t, err, strings.TrimSuffix(refusal, "\n"))
				require.Equal(t, condor.Refused, condor.KindOf(err))
				return
			}
			require.NoError(t, err)
			var more strings.Builder
			for l := range strings.Lines(text) {
				if !strings.Contains(usual, l) {
					more.WriteString(l)
				}
			}
			require.Equal(t, string(want.Data), more.String())
		})
	}
}

func TestRetriesAndCodesAreForHTCondorToJudge(t *testing.T) {
	for name, c := range map[string]struct {
		options  JobOptions
		deferred bool
	}{
		"nothing said":    {JobOptions{}, false},
		"resources":       {JobOptions{CPUs: 1, Memory: 1, Requirements: "true", AccountingGroup: "a"}, false},
		"deadlines":       {JobOptions{Deadlines: condor.Deadlines{HeldDeadline: 1, IdleDeadline: 1}}, false},
		"retries":         {JobOptions{Retries: new(1)}, true},
		"success codes":   {JobOptions{SuccessCodes: []int{0}}, true},
		"a memory retry":  {JobOptions{Memory: 1, MemoryRetry: &MemoryRetry{Most: 2, Times: 1}}, true},
		"a refused retry": {JobOptions{MemoryRetry: &MemoryRetry{Most: 2, Times: 1}}, false},
	} {
		d := description()
		d.JobOptions = c.options
		s, _ := d.Render()
		require.Equal(t, c.deferred, s.Deferred, name)
	}
}

func TestEnvironmentTravelsInAPrivateFile(t *testing.T) {
	d := description()
	d.Environment = map[string]string{"B": `"quoted" $HOME \ 'x' = ä😀`, "A": ""}
	s, err := d.Render()
	require.NoError(t, err)
	text := textOf(s, FileSubmit)
	require.Contains(t, text, "transfer_input_files = script, token, .environment\n")
	require.NotContains(t, text, "quoted")
	dir := t.TempDir()
	require.NoError(t, Stage(dir, s, "tok"))
	st, err := os.Stat(filepath.Join(dir, ".environment"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	written, err := os.ReadFile(filepath.Join(dir, ".environment"))
	require.NoError(t, err)
	require.Equal(t, "A=\nB=\"quoted\" $HOME \\ 'x' = ä😀\n", string(written))
	require.NotContains(t, textOf(s, fileJob), "quoted")
}

func TestEnvironmentsThatWouldNotArriveAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		name, value, words string
	}{
		"no name":                     {"", "", "found \"\""},
		"a name with a blank":         {"A B", "", "letters, digits and _"},
		"a name with a line break":    {"A\n", "", "letters, digits and _"},
		"a name with an equals sign":  {"A=B", "", "letters, digits and _"},
		"a name with a digit first":   {"1A", "", "letters, digits and _"},
		"a name with a letter beyond": {"Ä", "", "letters, digits and _"},
		"a name that is too long":     {strings.Repeat("a", 129), "", "at most 128"},
		"htcd's own":                  {"HTCPROCID", "7", "choose another name"},
		"the home directory":          {"HOME", "/", "choose another name"},
		"HTCondor's":                  {"_CONDOR_SCRATCH_DIR", "/", "choose another name"},
		"what apptainer binds":        {"APPTAINER_BIND", "/", "choose another name"},
		"what apptainer hands on":     {"APPTAINERENV_X", "/", "choose another name"},
		"what singularity binds":      {"SINGULARITY_BIND", "/", "choose another name"},
		"what apptainer counts with":  {"key", "red", "choose another name"},
		"a value of two lines":        {"A", "a\nb", "control character 0x0a"},
		"a value with a NUL":          {"A", "a\x00", "control character 0x00"},
		"a value with an escape":      {"A", "\x1b[31m", "control character 0x1b"},
		"a value that is too long":    {"A", strings.Repeat("ä", 4097), "the variable A: expected at most 4096 characters, found 4097"},
	} {
		d := description()
		d.Environment = map[string]string{c.name: c.value}
		_, err := d.Render()
		require.ErrorContains(t, err, c.words, name)
		require.Equal(t, condor.Refused, condor.KindOf(err), name)
	}
	d := description()
	d.Environment, d.Allow, d.Options = map[string]string{
		"A": "1",
	}, []string{
		"environment",
	}, "\n  environment = \"A=2\"\n"
	_, err := d.Render()
	require.EqualError(
		t,
		err,
		"htcopts, line 2, column 3: environment in htcopts and spec.environment do not say the same: write it once",
	)
}
