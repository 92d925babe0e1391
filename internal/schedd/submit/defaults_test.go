package submit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// withPool is a description of an HTCJob that says only so much, in a pool with these defaults.
func withPool(htcopts string, own JobOptions, defaults Defaults) Description {
	return Description{
		Tag:       condor.Tag{UID: "u", Attempt: 1, Namespace: "n", Name: "n", Pool: "grid"},
		BatchName: "n", Queue: 1, Image: "centos", Command: "bash", Source: "exit 0\n",
		Options: htcopts, JobOptions: own, Defaults: defaults, Allow: []string{"environment"},
	}
}

// linesOf returns the submit lines that begin with a word.
func linesOf(t *testing.T, d Description, word string) []string {
	t.Helper()
	s, err := d.Render()
	require.NoError(t, err)
	var found []string
	for _, f := range s.Files {
		if f.Name != FileSubmit {
			continue
		}
		for line := range strings.Lines(f.Content) {
			if strings.HasPrefix(strings.ToLower(line), strings.ToLower(word)) {
				found = append(found, strings.TrimSpace(line))
			}
		}
	}
	return found
}

func TestWhatAnHTCJobSaysWinsOverItsPoolsDefaults(t *testing.T) {
	three, five := 3, 5
	fields := Defaults{
		JobOptions: JobOptions{
			CPUs:            2,
			Memory:          2048,
			Disk:            1 << 20,
			GPUs:            1,
			AccountingGroup: "group_x",
			Retries:         &three,
		},
	}
	for name, c := range map[string]struct {
		d    Description
		word string
		want []string
	}{
		"nothing is said":                    {withPool("", JobOptions{}, fields), "request_memory", []string{"request_memory = 2048"}},
		"a field":                            {withPool("", JobOptions{Memory: 100}, fields), "request_memory", []string{"request_memory = 100"}},
		"a line":                             {withPool("request_memory = 1GB", JobOptions{}, fields), "request_memory", []string{"request_memory = 1GB"}},
		"retries by a line":                  {withPool("max_retries = 7", JobOptions{}, fields), "max_retries", []string{"max_retries = 7"}},
		"retries by a field":                 {withPool("", JobOptions{Retries: &five}, fields), "max_retries", []string{"max_retries = 5"}},
		"a condition for running again":      {withPool("on_exit_remove = ExitCode == 0", JobOptions{}, fields), "max_retries", nil},
		"a group by an attribute":            {withPool(`+AccountingGroup = "own"`, JobOptions{}, fields), "accounting_group", nil},
		"niceness instead of a group":        {withPool("nice_user = true", JobOptions{}, fields), "accounting_group", nil},
		"no GPU":                             {withPool("", JobOptions{NoGPUs: true}, fields), "request_gpus", nil},
		"a default line for a field":         {withPool("", JobOptions{Memory: 100}, Defaults{Options: "request_memory = 2GB"}), "request_memory", []string{"request_memory = 100"}},
		"a limit by a line":                  {withPool("allowed_execute_duration = 60", JobOptions{}, Defaults{JobOptions: JobOptions{Deadlines: condor.Deadlines{RunDeadline: 9}}}), "My.HTCJobRunDeadline", nil},
		"a default limit":                    {withPool("", JobOptions{}, Defaults{JobOptions: JobOptions{Deadlines: condor.Deadlines{RunDeadline: 9}}}), "allowed_execute_duration", []string{"allowed_execute_duration = 9"}},
		"a default line for the same line":   {withPool("+jobflavour = \"a\"", JobOptions{}, Defaults{Options: `+JobFlavour = "b"`}), "My.jobflavour", []string{`My.jobflavour = "a"`}},
		"a run time instead of a flavour":    {withPool("+MaxRuntime = 60", JobOptions{}, Defaults{Options: `+JobFlavour = "b"`}), "My.JobFlavour", nil},
		"a default line for another matter":  {withPool("+MaxRuntime = 60", JobOptions{}, Defaults{Options: `+WantOS = "el9"`}), "My.WantOS", []string{`My.WantOS = "el9"`}},
		"preferences instead of a rank":      {withPool("preferences = Mips", JobOptions{}, Defaults{Options: "rank = Memory"}), "rank", nil},
		"a default group for an attribute":   {withPool("", JobOptions{AccountingGroup: "own"}, Defaults{Options: `+AccountingGroup = "theirs"`}), "My.AccountingGroup", []string{`My.AccountingGroup = strcat(AcctGroup, ".", Owner)`}},
		"a priority":                         {withPool("", JobOptions{Priority: &five}, Defaults{Options: "priority = 1"}), "priority", []string{"priority = 5"}},
		"a priority that a line says, too":   {withPool("priority = 5", JobOptions{Priority: &five}, Defaults{}), "priority", []string{"priority = 5"}},
		"a default priority":                 {withPool("", JobOptions{}, Defaults{Options: "priority = 1"}), "priority", []string{"priority = 1"}},
		"an environment line, then no other": {withPool("environment = \"A=1\"", JobOptions{}, Defaults{Environment: map[string]string{"SITE": "X"}}), "environment", []string{`environment = "A=1"`}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, linesOf(t, c.d, c.word)) })
	}
}

func TestAnHTCJobsVariablesOverrideThoseOfItsPool(t *testing.T) {
	d := withPool("", JobOptions{}, Defaults{Environment: map[string]string{"SITE": "X", "A": "1"}})
	d.Environment = map[string]string{"A": "2"}
	s, err := d.Render()
	require.NoError(t, err)
	require.Equal(t, "A=2\nSITE=X\n", s.Files[0].Content)
	d = withPool("environment = \"A=1\"", JobOptions{}, Defaults{Environment: map[string]string{"SITE": "X"}})
	s, err = d.Render()
	require.NoError(t, err)
	for _, f := range s.Files {
		require.NotEqual(t, fileEnvironment, f.Name, "its own line says the whole environment")
	}
}

func TestAPriorityAndALineMustAgree(t *testing.T) {
	five := 5
	_, err := withPool("priority = 4", JobOptions{Priority: &five}, Defaults{}).Render()
	require.ErrorContains(t, err, "priority in htcopts and spec.priority do not say the same")
	require.Equal(t, condor.Refused, condor.KindOf(err))
}

func TestRequestsAreAdjustedAndRoundedUp(t *testing.T) {
	for name, c := range map[string]struct {
		htcopts string
		own     JobOptions
		adjust  Adjust
		word    string
		want    string
	}{
		"cores never become none":         {"", JobOptions{CPUs: 1}, Adjust{CPUs: 1}, "request_cpus", "request_cpus = 1"},
		"cores are rounded up":            {"", JobOptions{CPUs: 8}, Adjust{CPUs: 90}, "request_cpus", "request_cpus = 8"},
		"percent, then the extra":         {"", JobOptions{Memory: 1000}, Adjust{Memory: 110, MemoryExtra: 200}, "request_memory", "request_memory = 1300"},
		"the extra alone":                 {"", JobOptions{Memory: 1000}, Adjust{MemoryExtra: 200}, "request_memory", "request_memory = 1200"},
		"a line counts as asked for":      {"request_memory = 2GB", JobOptions{}, Adjust{Memory: 150}, "request_memory", "request_memory = 3072"},
		"100 percent leave a line as is":  {"request_memory = 2GB", JobOptions{}, Adjust{Memory: 100}, "request_memory", "request_memory = 2GB"},
		"an expression stays as it is":    {"request_memory = RequestCpus * 2", JobOptions{}, Adjust{Memory: 150}, "request_memory", "request_memory = RequestCpus * 2"},
		"the disk":                        {"", JobOptions{Disk: 10}, Adjust{Disk: 25}, "request_disk", "request_disk = 3"},
		"half a core that a line asks":    {"request_cpus = 1.5", JobOptions{}, Adjust{CPUs: 90}, "request_cpus", "request_cpus = 2"},
		"none at all stays none at all":   {"request_cpus = 0", JobOptions{}, Adjust{CPUs: 90}, "request_cpus", "request_cpus = 0"},
		"a default is adjusted like that": {"", JobOptions{}, Adjust{CPUs: 200}, "request_cpus", "request_cpus = 6"},
	} {
		t.Run(name, func(t *testing.T) {
			d := withPool(c.htcopts, c.own, Defaults{Adjust: c.adjust, JobOptions: JobOptions{CPUs: 3}})
			require.Equal(t, []string{c.want}, linesOf(t, d, c.word))
		})
	}
}

func TestMoreThanCanBeAskedForIsRefused(t *testing.T) {
	d := withPool("", JobOptions{Memory: mostMemory}, Defaults{Adjust: Adjust{Memory: 1000}})
	_, err := d.Render()
	require.ErrorContains(
		t,
		err,
		"request_memory = 1073741824, with the adjustments of HTCPool grid, is more than the 1073741824 that can be asked for",
	)
	require.Equal(t, condor.Refused, condor.KindOf(err))
}

func TestAPoolsMemoryRetryConcernsThoseThatItCanHelp(t *testing.T) {
	pool := Defaults{JobOptions: JobOptions{MemoryRetry: &MemoryRetry{Most: 4096, Times: 3}}}
	for name, c := range map[string]struct {
		htcopts string
		own     JobOptions
		want    string
	}{
		"less than its most":   {"request_memory = 1GB", JobOptions{}, "< 2 ? 1024 << "},
		"its most":             {"request_memory = 4GB", JobOptions{}, "request_memory = 4GB"},
		"an expression":        {"request_memory = RequestCpus", JobOptions{}, "request_memory = RequestCpus"},
		"one of its own":       {"", JobOptions{Memory: 1024, MemoryRetry: &MemoryRetry{Most: 2048, Times: 1}}, "< 1 ? 1024 << "},
		"a field without more": {"", JobOptions{Memory: 1024}, "< 2 ? 1024 << "},
	} {
		require.Contains(t, linesOf(t, withPool(c.htcopts, c.own, pool), "request_memory")[0], c.want, name)
	}
	require.Empty(t, linesOf(t, withPool("", JobOptions{}, pool), "request_memory"))
	require.NoError(t, CheckDefaults("grid", pool, nil))
	pool.Most.Memory = 2048
	require.ErrorContains(t, CheckDefaults("grid", pool, nil), "found 4096 MiB in spec.memoryRetry.maxMemory")
}

func TestMemoryIsDoubledFromADefault(t *testing.T) {
	d := withPool(
		"",
		JobOptions{MemoryRetry: &MemoryRetry{Most: 8000, Times: 3}},
		Defaults{JobOptions: JobOptions{Memory: 1000}, Adjust: Adjust{Memory: 110}},
	)
	require.Contains(t, linesOf(t, d, "request_memory")[0], "1100 <<")
	d.JobOptions.MemoryRetry.Most = 1100
	_, err := d.Render()
	require.ErrorContains(t, err, "more than the 1100 MiB of the first request")
}

func TestWhatIsRequestedInTheEndIsKnown(t *testing.T) {
	two := 2
	d := withPool(
		"request_memory = 2GB\n+AccountingGroup = \"own\"",
		JobOptions{Deadlines: condor.Deadlines{IdleDeadline: 5}},
		Defaults{
			JobOptions: JobOptions{
				CPUs:      4,
				Retries:   &two,
				Deadlines: condor.Deadlines{HeldDeadline: 9, IdleDeadline: 8, RunDeadline: 7},
			},
			Adjust: Adjust{Memory: 150},
		},
	)
	s, err := d.Render()
	require.NoError(t, err)
	require.Equal(
		t,
		Requests{
			CPUs:            4,
			Memory:          3072,
			Retries:         &two,
			AccountingGroup: "own",
			Deadlines:       condor.Deadlines{HeldDeadline: 9, IdleDeadline: 5, RunDeadline: 7},
		},
		s.Requests,
	)
	require.Contains(t, linesOf(t, d, "periodic_remove")[0], "> 9")
}

func TestLongOptionsOfBothFitTogether(t *testing.T) {
	long := strings.Repeat("+WantOS = \""+strings.Repeat("x", 3000)+"\"\n", 21)
	theirs := strings.ReplaceAll(long, "WantOS", "Experiment")
	require.Len(t, linesOf(t, withPool(long, JobOptions{}, Defaults{Options: theirs}), "My.Experiment"), 21)
}

func TestDefaultsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		defaults Defaults
		words    string
	}{
		"a line that users may not write":   {Defaults{Options: "\nexecutable = /bin/sh"}, "htcopts, line 2, column 1: executable is not allowed"},
		"htcd's own attribute":              {Defaults{Options: `+HTCPool = "other"`}, "the attribute HTCPool is htcd's own"},
		"a line and a field that disagree":  {Defaults{Options: "request_memory = 1GB", JobOptions: JobOptions{Memory: 2048}}, "do not say the same"},
		"a variable of htcd's":              {Defaults{Environment: map[string]string{"HOME": "/"}}, "HOME is set by htcd"},
		"an environment line and variables": {Defaults{Options: `environment = "A=1"`, Environment: map[string]string{"B": "2"}}, "spec.environment do not say the same"},
		"more than there can be":            {Defaults{JobOptions: JobOptions{Memory: mostMemory}, Adjust: Adjust{MemoryExtra: 1}}, "more than the"},
	} {
		require.ErrorContains(t, CheckDefaults("grid", c.defaults, []string{"environment"}), c.words, name)
	}
	require.NoError(t, CheckDefaults("grid", Defaults{}, nil))
	require.Error(t, CheckAllow([]string{"+HTCPool"}))
}
