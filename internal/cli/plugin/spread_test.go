package plugin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func spread(spec v1alpha1.Landing, items ...string) func(*landing) {
	return func(l *landing) { l.places, l.jobs = &places{spec: spec, items: items, cluster: "7"}, 20 }
}

func TestFilesLandWhereTheHTCJobSays(t *testing.T) {
	dir := t.TempDir()
	where := spread(v1alpha1.Landing{
		Directory: "area_{{proc}}", Stdout: "logs/{{cluster}}/{{item.TOWN}}.out", Stderr: "logs/",
		Files: map[string]v1alpha1.LandingPlace{
			"ink.txt":       "done/ink_{{proc}}.txt",
			"plates/":       "plates_{{proc}}",
			"plates/a.png":  "png/",
			"{{item.TOWN}}": "t/{{proc}}",
		},
	}, "TOWN=arno\n", "TOWN=bree\n")
	archive := archived(
		t,
		"0/",
		"",
		"0/_condor_stdout",
		"out",
		"0/_condor_stderr",
		"err",
		"0/ink.txt",
		"i",
		"0/plates/",
		"",
		"0/plates/b/c",
		"c",
		"0/plates/a.png",
		"a",
		"0/x/y",
		"y",
		"1/",
		"",
		"1/_condor_stdout",
		"two",
		"1/bree",
		"t",
	)
	l, err := land(t, dir, archive, where)
	require.NoError(t, err)
	require.Equal(t, []int{2, 0}, []int{l.came, l.there})
	require.Empty(t, l.clashes)
	want := map[string]string{
		"logs/7/arno.out": "out",
		"logs/stderr":     "err",
		"done/ink_0.txt":  "i",
		"plates_0/b/c":    "c",
		"png/a.png":       "a",
		"area_0/x/y":      "y",
		"logs/7/bree.out": "two",
		"t/1":             "t",
	}
	require.Equal(t, want, tree(t, dir))

	require.NoError(t, os.Remove(filepath.Join(dir, "png/a.png")))
	l, err = land(t, dir, archive, where)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, []int{l.came, l.there}, "a job that lacks a file is fetched again")
	require.Equal(t, want, tree(t, dir))
	l, err = land(t, dir, archive, where, func(l *landing) { l.force = true })
	require.NoError(t, err)
	require.Equal(t, 2, l.came)
	require.Equal(t, want, tree(t, dir))
}

func TestTwoFilesOfOnePlaceAreBothKept(t *testing.T) {
	dir := t.TempDir()
	where := spread(v1alpha1.Landing{Directory: ".", Files: map[string]v1alpha1.LandingPlace{"b": "a"}})
	l, err := land(t, dir, archived(t, "0/a", "0", "0/b", "b", "1/a", "1"), where)
	require.NoError(t, err)
	want := map[string]string{"a": "0", "0/b": "b", "1/a": "1"}
	require.Equal(t, want, tree(t, dir))
	require.Equal(t, []string{
		"b of job 0 is at 0/b, as a is its a: write {{proc}} or {{item.NAME}} in spec.landing",
		"a of job 1 is at 1/a, as a is job 0's: write {{proc}} or {{item.NAME}} in spec.landing",
	}, l.clashes)
	for range 2 {
		l, err = land(t, dir, archived(t, "2/a", "2"), where)
		require.NoError(t, err)
	}
	want["2/a"] = "2"
	require.Equal(t, want, tree(t, dir))
	require.Equal(t, 1, l.there)
}

func TestAFileThatIsPutAsideReplacesNoOther(t *testing.T) {
	for name, of := range map[string]struct {
		files   map[string]v1alpha1.LandingPlace
		entries []string
		want    map[string]string
	}{
		"a file called as a stream": {
			map[string]v1alpha1.LandingPlace{"other": "o"},
			[]string{"0/_condor_stderr", "err", "0/_condor_stdout", "out", "0/stdout", "own"},
			map[string]string{"0/stderr": "err", "0/_condor_stdout": "out", "0/stdout": "own"},
		},
		"a place in the job's directory": {
			map[string]v1alpha1.LandingPlace{"a": "0/b"},
			[]string{"0/a", "a", "0/b", "b"},
			map[string]string{"0/b": "a", "0/b.1": "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, force := range []bool{false, true} {
				l, err := land(t, dir, archived(t, of.entries...), spread(v1alpha1.Landing{Files: of.files}),
					func(l *landing) { l.force = force })
				require.NoError(t, err)
				require.Len(t, l.clashes, 1)
				require.Equal(t, of.want, tree(t, dir))
			}
		})
	}
}

func TestFilesOfNodesLandWhereTheirStepsSay(t *testing.T) {
	w := &v1alpha1.HTCWorkflow{Spec: v1alpha1.HTCWorkflowSpec{
		Steps: []v1alpha1.Step{
			{
				StepWork: v1alpha1.StepWork{
					Name: "sim",
					Job: v1alpha1.StepJob{Handling: v1alpha1.Handling{Landing: &v1alpha1.Landing{
						Directory: "{{item.jobid}}", Stdout: "logs/{{item.TOWN}}.{{proc}}.{{cluster}}",
					}}},
				},
			},
			{StepWork: v1alpha1.StepWork{Name: "fit"}},
		},
		Finally: &v1alpha1.StepWork{
			Name: "end",
			Job:  v1alpha1.StepJob{Handling: v1alpha1.Handling{Landing: &v1alpha1.Landing{Directory: "."}}},
		},
	}}
	nodes := func(l *landing) { l.nodes, l.jobs, l.places = true, 4, placesOfNodes(w) }
	archive := archived(
		t,
		"1/", "# sim/job_0/1|TOWN=bree\njobid=job_0\n|1|7", "1/_condor_stdout", "out", "1/x", "1",
		"2/", "# sim/job_0/2|TOWN=arno\njobid=job_0\n|2|8", "2/_condor_stdout", "two", "2/x", "2",
		"5/", "# fit/job_0", "5/_condor_stdout", "fit", "5/a/b", "b",
		"6/", "# end/all|jobid=all\n|0|9", "6/y", "y",
	)
	want := map[string]string{
		"job_0/x": "1", "logs/bree.1.7": "out", "sim/job_0/2/x": "2", "logs/arno.2.8": "two",
		"fit/job_0/stdout": "fit", "fit/job_0/a/b": "b", "y": "y",
	}
	dir := t.TempDir()
	l, err := land(t, dir, archive, nodes)
	require.NoError(t, err)
	require.Equal(t, want, tree(t, dir))
	require.Equal(t, []string{
		"x of node sim/job_0/2 is at sim/job_0/2/x, as job_0/x is node sim/job_0/1's: write {{proc}} or {{item.NAME}} in job.landing of the step sim",
	}, l.clashes)
	require.Empty(t, l.lacks())
	l, err = land(t, dir, archive, nodes)
	require.NoError(t, err)
	require.Equal(t, 4, l.there, "what is there is not brought again")
	require.Equal(t, want, tree(t, dir))

	_, err = land(t, dir, archived(t, "9/", "# sim/job_1/9|jobid=../up\n|9|7", "9/x", "x"), nodes)
	require.ErrorContains(t, err, "expected a place below")
	_, err = land(t, dir, archived(t, "8/", "# sim/job_1/8|jobid=job_1\n|8|7", "8/_condor_stdout", "x"), nodes)
	require.ErrorContains(t, err, "job.landing of the step sim: ")
	require.Equal(t, want, tree(t, dir))
	w.Spec.Steps[0].Job.Landing, w.Spec.Finally.Job.Landing = nil, nil
	require.Nil(t, placesOfNodes(w))
}

func TestNothingLandsOutsideOrOnWhatIsThere(t *testing.T) {
	outside := t.TempDir()
	for name, c := range map[string]struct {
		spec  v1alpha1.Landing
		item  string
		words string
	}{
		"a place above":          {v1alpha1.Landing{Directory: "../x"}, "", "expected a place below"},
		"an absolute place":      {v1alpha1.Landing{Directory: "/tmp/x"}, "", "expected a place below"},
		"an item that leads up":  {v1alpha1.Landing{Directory: "{{item.D}}"}, "D=../..\n", "expected a place below"},
		"an empty item":          {v1alpha1.Landing{Files: map[string]v1alpha1.LandingPlace{"a": "{{item.D}}"}}, "D=\n", "expected a place below"},
		"the manifest":           {v1alpha1.Landing{Files: map[string]v1alpha1.LandingPlace{"a": ".htcd-output"}}, "", "expected a place below"},
		"no such variable":       {v1alpha1.Landing{Directory: "{{item.E}}"}, "D=x\n", "has no variable E"},
		"a file of the user's":   {v1alpha1.Landing{Files: map[string]v1alpha1.LandingPlace{"a": "mine"}}, "", "exists already"},
		"a link":                 {v1alpha1.Landing{Files: map[string]v1alpha1.LandingPlace{"a": "link"}}, "", "exists already"},
		"below a link":           {v1alpha1.Landing{Directory: "link"}, "", "exists already"},
		"a directory of theirs":  {v1alpha1.Landing{Files: map[string]v1alpha1.LandingPlace{"a": "dir"}}, "", "exists already"},
		"below a file of theirs": {v1alpha1.Landing{Directory: "mine"}, "", "exists already"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), []byte("mine"), 0o600))
			require.NoError(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
			require.NoError(t, os.Symlink(outside, filepath.Join(dir, "link")))
			_, err := land(t, dir, archived(t, "0/a", "theirs"), spread(c.spec, c.item))
			require.ErrorContains(t, err, c.words)
			text, err := os.ReadFile(filepath.Join(dir, "mine"))
			require.NoError(t, err)
			require.Equal(t, "mine", string(text))
			left, err := os.ReadDir(outside)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
