package plugin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
)

func TestWhatIsAppliedAgainIsUnchanged(t *testing.T) {
	made := func(change func(*v1alpha1.HTCJob)) *object {
		job := &v1alpha1.HTCJob{}
		job.UID, job.Generation, job.ResourceVersion = "u", 2, "7"
		change(job)
		return objectOf(job)
	}
	before := made(func(*v1alpha1.HTCJob) {})
	for name, c := range map[string]struct {
		change func(*v1alpha1.HTCJob)
		same   bool
	}{
		"nothing":                              {func(*v1alpha1.HTCJob) {}, true},
		"only a status meanwhile":              {func(job *v1alpha1.HTCJob) { job.ResourceVersion, job.Status.Active = "8", 1 }, true},
		"a spec":                               {func(job *v1alpha1.HTCJob) { job.Generation++ }, false},
		"another object of the name":           {func(job *v1alpha1.HTCJob) { job.UID = "v" }, false},
		"an annotation that asks for one more": {func(job *v1alpha1.HTCJob) { job.Annotations = map[string]string{v1alpha1.RerunAnnotation: "1"} }, false},
		"a label":                              {func(job *v1alpha1.HTCJob) { job.Labels = map[string]string{"a": "b"} }, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.same, same(before, made(c.change))) })
	}
	require.False(t, same(nil, before), "there was none")
}

func TestSubmitTakesOneFile(t *testing.T) {
	for name, args := range map[string][]string{
		"none": {}, "two": {"a", "b"}, "one beside -f": {"-f", "a", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			c := submitCommand()
			c.SetArgs(args)
			c.SilenceUsage, c.SilenceErrors = true, true
			require.ErrorAs(t, c.Execute(), &setting.Usage{})
		})
	}
	for name, args := range map[string][]string{"as an argument": {"no-such-file"}, "with -f": {"-f", "no-such-file"}} {
		t.Run(name, func(t *testing.T) {
			c := submitCommand()
			c.SetArgs(args)
			c.SilenceUsage, c.SilenceErrors = true, true
			require.ErrorContains(t, c.Execute(), "open no-such-file")
		})
	}
}

func TestAFileThatIsNoManifestIsRefused(t *testing.T) {
	for file, words := range map[string]string{
		"/bin/true": "/bin/true: yaml: control characters are not allowed", "/dev/zero": "/dev/zero has more than 16 MiB, which no file of HTCJobs and HTCWorkflows needs",
		t.TempDir(): "is a directory", "/dev/null": "there is no HTCJob and no HTCWorkflow in it",
	} {
		c := submitCommand()
		c.SetArgs([]string{file})
		c.SilenceUsage, c.SilenceErrors = true, true
		require.ErrorContains(t, c.Execute(), words)
	}
	c := submitCommand()
	c.SetArgs([]string{"job.yaml", "--input", "a", "b"})
	c.SilenceUsage, c.SilenceErrors = true, true
	require.ErrorContains(t, c.Execute(), "want one file with HTCJobs, and --input before each of the others")
}
